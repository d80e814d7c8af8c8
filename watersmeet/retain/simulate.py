"""Simulate: a problem run under a scored policy, compiled.

At each step: tuples whose window has ended leave; arrivals meet what is kept; the policy observes them; they become
candidates; while there are more than k, the one with the least score leaves (of equal ones the oldest). In caching,
references are never kept, and a kept tuple that is referred to gives way to the supply tuple of that step, which is
the same tuple of the relation.

>>> from watersmeet.retain.policy import policy
>>> p = Problem.caching([1, 2, 1, 3, 1, 2])
>>> [p.count(policy(name).keep(p, k=2)) for name in ("lru", "lfd")]
[2, 3]

Source: heeb, Sections 3 and 8.
Unclear in the paper, settled as: who leaves of equals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from watersmeet.retain.compiled import (
    ENTER,
    FLOATS,
    LEFT,
    OBSERVE,
    SCORE,
    WORDS,
    Floats,
    Words,
    as_argument,
    compiled,
)
from watersmeet.retain.policy import Scored
from watersmeet.retain.problem import FOREVER, Problem

_I = types.int64


def simulate(policy: Scored, problem: Problem, k: int, seed: int = 0) -> Words:
    """For each tuple the last step at which it is there."""
    state = policy.prepare(problem, k, seed)
    of: Any = type(policy)  # compiled functions are called with what they declare, not with the policy
    until = np.full(len(problem.time), FOREVER)
    most = int(np.bincount(problem.time).max())
    held, hits, marks, scored = (
        np.zeros(k + most, np.int64),
        np.zeros(k + most, np.int64),
        np.zeros(k + most),
        np.zeros(k + most),
    )
    there, done, now = 0, 0, policy.period or problem.steps
    while done < len(problem.time):
        end = int(np.searchsorted(problem.time, now))
        there = _advance(
            of.observe, of.enter, of.score, of.left, state.numbers, state.words, problem.time, problem.side, problem.value,
            until, held, hits, marks, scored, there, k, problem.window, int(problem.is_caching), done, end,
        )  # fmt: skip
        if end < len(problem.time):
            policy.review(state, problem, k, now)
        done, now = end, now + (policy.period or problem.steps)
    return until


@compiled(
    _I(
        as_argument(OBSERVE), as_argument(ENTER), as_argument(SCORE), as_argument(LEFT), FLOATS, WORDS, WORDS, WORDS, WORDS,
        WORDS, WORDS, WORDS, FLOATS, FLOATS, _I, _I, _I, _I, _I, _I,
    )
)  # fmt: skip
def _advance(
    observe: Any, enter: Any, score: Any, left: Any, numbers: Floats, words: Words, time: Words, side: Words, value: Words,
    until: Words, held: Words, hits: Words, marks: Floats, scored: Floats,
    there: int, k: int, window: int, caching: int, begin: int, end: int,
) -> int:  # fmt: skip
    """Arrivals from `begin` to `end`; `there` tuples are held before, and the number held after is returned."""
    while begin < end:
        now = time[begin]
        last = begin
        while last < end and time[last] == now:
            last += 1
        if window > 0:
            i = 0
            while i < there:
                x = held[i]
                if now - time[x] > window:
                    until[x] = now - 1
                    left(numbers, words, now, side[x], value[x], time[x], marks[i], hits[i])
                    there -= 1
                    held[i], hits[i], marks[i] = held[there], hits[there], marks[there]
                else:
                    i += 1
        for a in range(begin, last):
            if caching and side[a] == 1:
                continue
            i = 0
            while i < there:
                x = held[i]
                if value[x] == value[a] and side[x] != side[a]:
                    hits[i] += 1
                    if caching:
                        until[x] = now
                        left(numbers, words, now, side[x], value[x], time[x], marks[i], hits[i])
                        there -= 1
                        held[i], hits[i], marks[i] = held[there], hits[there], marks[there]
                        continue
                i += 1
        for a in range(begin, last):
            if not caching or side[a] == 0:
                observe(numbers, words, now, side[a], value[a])
        for a in range(begin, last):
            if caching and side[a] == 0:
                until[a] = now
            else:
                held[there], hits[there] = a, 0
                marks[there] = enter(numbers, words, now, side[a], value[a])
                there += 1
        if there > k:
            for i in range(there):
                x = held[i]
                scored[i] = score(numbers, words, now, side[x], value[x], time[x], marks[i])
            while there > k:
                least = 0
                for i in range(1, there):
                    if scored[i] < scored[least] or (scored[i] == scored[least] and held[i] < held[least]):
                        least = i
                x = held[least]
                until[x] = now
                left(numbers, words, now, side[x], value[x], time[x], marks[least], hits[least])
                there -= 1
                held[least], hits[least] = held[there], hits[there]
                marks[least], scored[least] = marks[there], scored[there]
        begin = last
    return there
