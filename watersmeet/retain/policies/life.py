"""LIFE: discards the tuple with the least product of the steps it has left and how often its value has come in the other
stream.

The steps left are those of the window, or those that bounded streams leave a value.

Source: heeb, Section 1 (LIFE_p) and Section 8.
"""

from __future__ import annotations

from typing import ClassVar

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.lookup import OWN, follow, look
from watersmeet.retain.policies._counts import COUNT_WORDS, KNOWS_ENDS, count_of, count_one, counting
from watersmeet.retain.policy import JOINING, Scored, State
from watersmeet.retain.problem import Problem

WINDOW = COUNT_WORDS  # own word after those of counts


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    follow(numbers, words, side, value)
    count_one(numbers, words, side, value)


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    own = words[OWN]
    left = 1e300
    if words[own + KNOWS_ENDS]:
        left = look(numbers, words, side, value, 0)
        if left <= 0:
            return -1.0
    if words[own + WINDOW] > 0:
        left = min(left, float(words[own + WINDOW] - (now - arrived)))
    return left * count_of(numbers, words, 1 - side, value)


class Life(Scored):
    name: ClassVar[str] = "life"
    about: ClassVar[str] = "keeps values that were frequent and have long to live"
    problems: ClassVar[frozenset[str]] = frozenset({JOINING})
    needs: ClassVar[frozenset[str]] = frozenset({"ends"})
    observe, score = _observe, _score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        state = counting(problem, more_words=1)
        own = state.words[OWN]
        state.words[own + WINDOW] = problem.window
        if not problem.window and not state.words[own + KNOWS_ENDS]:
            raise WatersmeetError(
                "LIFE needs tuples that end: a window, or streams with bounds\n  use prob or heeb instead"
            )
        return state


POLICY = Life
