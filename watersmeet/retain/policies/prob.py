"""PROB: discards the tuple whose value has been rarest in the other stream so far.

It takes the past for the future: optimal for stationary streams (7.2), poor where there is a trend, since what comes
next has never come before. Where streams are bounded, tuples that no future tuple can match leave first. In caching
this is perfect LFU.

Source: heeb, Section 1 (PROB_p) and Section 8.
"""

from __future__ import annotations

from typing import ClassVar

from watersmeet.retain.compiled import OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.lookup import OWN, follow, look
from watersmeet.retain.policies._counts import KNOWS_ENDS, count_of, count_one, counting
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    follow(numbers, words, side, value)
    count_one(numbers, words, side, value)


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    if words[words[OWN] + KNOWS_ENDS] and look(numbers, words, side, value, 0) <= 0:
        return -1.0
    return count_of(numbers, words, 1 - side, value)


class Prob(Scored):
    name: ClassVar[str] = "prob"
    about: ClassVar[str] = "keeps values that were frequent in the other stream"
    observe, score = _observe, _score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        return counting(problem)


POLICY = Prob
