"""LFU: discards the value with the fewest uses so far; perfect, that is, uses are counted of values that are not kept,
too.

For joins a use is a tuple of the other stream. Unlike `prob` it knows of no bounds.

Source: heeb, Sections 2, 7.2 and 8.
"""

from __future__ import annotations

from typing import ClassVar

from watersmeet.retain.compiled import OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.policies._counts import count_of, count_one, counting
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    count_one(numbers, words, side, value)


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    return count_of(numbers, words, 1 - side, value)


class Lfu(Scored):
    name: ClassVar[str] = "lfu"
    about: ClassVar[str] = "keeps what was used most often"
    observe, score = _observe, _score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        return counting(problem)


POLICY = Lfu
