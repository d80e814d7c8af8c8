"""LFD: discards the tuple whose next use is farthest in the future. Optimal for caching, and needs to know the future.

The framework leads to it: with the whole stream known, ECBs are steps at the time of the next use, so that all are
comparable (7.1).

Source: heeb, Sections 2, 7.1, which cite Belady for it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import ENTER, OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.policy import CACHING, Scored, State
from watersmeet.retain.problem import Problem

NEVER = 1e15


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    words[0] = now


@compiled(ENTER)
def _enter(numbers: Floats, words: Words, now: int, side: int, value: int) -> float:
    return float(numbers[now])


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    return -mark


class Lfd(Scored):
    name: ClassVar[str] = "lfd"
    about: ClassVar[str] = "keeps what will be used soonest (knows the future)"
    problems: ClassVar[frozenset[str]] = frozenset({CACHING})
    needs: ClassVar[frozenset[str]] = frozenset({"future"})
    observe, enter, score = _observe, _enter, _score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        references = problem.stream(0)
        following = np.full(len(references), NEVER)
        order = np.argsort(references, kind="stable")
        same = references[order[1:]] == references[order[:-1]]
        following[order[:-1][same]] = order[1:][same]
        return State(following, np.zeros(1, np.int64))


POLICY = Lfd
