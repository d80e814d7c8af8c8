"""LRU-k, with k = 2: discards the value whose last use but one is longest ago; values used once leave first, the least
recent of them first.

Uses are remembered of values that are not kept, too. For joins a use is a tuple of the other stream.

Source: heeb, Sections 2 and 7.2, which cite O'Neil et al. for it.
"""

from __future__ import annotations

from typing import ClassVar

from watersmeet.retain.compiled import OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.lookup import OWN, OWN_NUMBERS
from watersmeet.retain.policies._counts import RANGE, count_place, counting
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem

LONG_AGO = -1e15


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    last = count_place(words, side, value)
    before = last + 2 * words[words[OWN] + RANGE]
    numbers[before] = numbers[last]
    numbers[last] = float(now)


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    last = count_place(words, 1 - side, value)
    before = numbers[last + 2 * words[words[OWN] + RANGE]]
    if before <= LONG_AGO / 2:
        return LONG_AGO + float(arrived)
    return float(before)


class LruK(Scored):
    name: ClassVar[str] = "lru_k"
    about: ClassVar[str] = "keeps what was used twice most recently"
    observe, score = _observe, _score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        state = counting(problem, per_value=2)
        state.numbers[state.words[OWN_NUMBERS] :] = LONG_AGO
        return state


POLICY = LruK
