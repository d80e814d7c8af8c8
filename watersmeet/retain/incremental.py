"""Incremental: H of a step from H of the step before, and of a value from that of a neighbour.

    joining, Corollary 3    H_t = e^(1/alpha) H_{t-1} - p_t
    caching, Corollary 4    H_t = (e^(1/alpha) H_{t-1} - p_t) / (1 - p_t)
    trend, Corollary 5      H of v at t is H of v + a at t + 1

p_t: the probability that the stream has the value at step t. Each step multiplies errors by e^(1/alpha), so after
some alpha steps H must be computed again: for a table that serves all time, which the policies use, see
`watersmeet/retain/benefit.py`.

>>> p, alpha = 0.25, 2.0                      # a stationary stream: H stays as it is
>>> h = p / (math.exp(1 / alpha) - 1)
>>> round(next_joining(h, p, alpha) - h, 12)
0.0

Source: heeb, Section 6.1.
"""

from __future__ import annotations

import math

import numpy as np

from watersmeet.retain.models.trend import Trend


def next_joining(h: float, p: float, alpha: float) -> float:
    """H a step later, for tuples that depend on nothing before them."""
    return math.exp(1 / alpha) * h - p


def next_caching(h: float, p: float, alpha: float) -> float:
    """The same for caching; alpha may be infinite (L = inf)."""
    return (math.exp(1 / alpha) * h - p) / (1 - p)


def before_joining(h: float, p: float, alpha: float) -> float:
    """H a step earlier: Corollary 3 the other way round."""
    return math.exp(-1 / alpha) * (h + p)


def of_neighbour(h: float, neighbour: int, value: int, trend: Trend, now: int, alpha: float) -> float:
    """H of a value at step now, from H of another value at the same step (joining); the trend must rise or fall by whole numbers.

    By Corollary 5 it is H of the neighbour at step now + (neighbour - value) / a, which is reached step by step.
    """
    steps = (neighbour - value) / trend.a
    for d in range(1, abs(round(steps)) + 1):
        at = now + d if steps > 0 else now + 1 - d
        offset = neighbour - int(trend.level(np.array([at]))[0]) - trend.noise.low
        p = float(trend.noise.p[offset]) if 0 <= offset < len(trend.noise.p) else 0.0
        h = next_joining(h, p, alpha) if steps > 0 else before_joining(h, p, alpha)
    return h
