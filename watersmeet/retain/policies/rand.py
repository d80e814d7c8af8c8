"""RAND: discards at random.

Where streams are bounded, tuples that no future tuple can match leave first.

Source: heeb, Section 8.
"""

from __future__ import annotations

from typing import ClassVar

from watersmeet.retain.compiled import OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.lookup import OWN, follow, look, lookups, random_seed, random_unit
from watersmeet.retain.policies._ends import ends
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem

KNOWS_ENDS = 1  # own words: the generator, whether ends are known


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    follow(numbers, words, side, value)


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    own = words[OWN]
    drawn = random_unit(words, own)
    if words[own + KNOWS_ENDS] and look(numbers, words, side, value, 0) <= 0:
        return drawn - 1.0
    return drawn


class Rand(Scored):
    name: ClassVar[str] = "rand"
    about: ClassVar[str] = "discards at random"
    observe, score = _observe, _score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        tables = ends(problem)
        state = lookups(problem.models, tables, words=2)
        state.words[state.words[OWN]] = random_seed(seed)
        state.words[state.words[OWN] + KNOWS_ENDS] = int(any(tables))
        return state


POLICY = Rand
