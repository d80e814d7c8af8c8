"""ECB: the expected cumulative benefit of keeping a tuple for 1, 2, ... steps, and what can be proved from it.

`joining` (Lemma 1): probabilities of a match at each step add up. `caching` (Corollary 1): the probability that the
tuple is referenced at all; later references do not count, since the tuple could be fetched again. `dominates` and
`dominated_subset` (Theorem 1, Corollary 2): discarding a dominated subset is optimal, whatever else is done.

>>> dominated_subset(np.array([[3.0, 4], [1, 2], [2, 5], [0, 1]]), most=3)    # 3 below 1, 1 below 0 and 2, which cross
[3, 1]
>>> dominated_subset(np.array([[3.0, 4], [2, 5]]), most=1)
[]

Source: heeb, Sections 5.1 and 5.2.
Departs from the paper in: Corollary 1 for streams whose tuples depend on each other (`first_use`, by the renewal
equation)."""

from __future__ import annotations

import numpy as np

from watersmeet.retain.compiled import Floats

SAME = 1e-12  # rounding


def joining(p: Floats) -> Floats:
    """B(1), B(2), ... along axis 0, from the probability of a match at each step."""
    made: Floats = np.cumsum(p, axis=0)
    return made


def caching(p: Floats) -> Floats:
    """The same for a tuple of a relation; references are independent of each other."""
    made: Floats = np.subtract(1.0, np.cumprod(1 - p, axis=0))
    return made


def first_use(p: Floats, again: Floats) -> Floats:
    """The probability that the first reference is at step d, for streams with a memory: f_d = p_d - sum over j < d of f_j a_{d-j}.

    p: of a reference at each step. again: of one d steps after a reference.
    """
    first = np.array(p, float)
    for d in range(1, len(first)):
        first[d] -= np.einsum("j...,j...->...", first[:d], again[:d][::-1])
    made: Floats = np.maximum(first, 0.0)
    return made


def dominates(x: Floats, y: Floats) -> bool:
    """Keeping x is never worse than keeping y, for however long."""
    return bool((x >= y - SAME).all())


def strongly_dominates(x: Floats, y: Floats) -> bool:
    return bool((x > y + SAME).all())


def comparable(x: Floats, y: Floats) -> bool:
    return dominates(x, y) or dominates(y, x)


def dominated_subset(ecbs: Floats, most: int) -> list[int]:
    """The largest dominated subset of at most so many tuples (rows of `ecbs`), worst first.

    Who dominates has the larger sum, so a dominated subset is the beginning of the order by sums; and every tuple outside dominates every
    tuple inside exactly if, at each step, the least outside is at least the most inside.
    """
    order = np.argsort(ecbs.sum(axis=1), kind="stable")
    ranked = ecbs[order]
    inside = np.maximum.accumulate(ranked, axis=0)
    outside = np.minimum.accumulate(ranked[::-1], axis=0)[::-1]
    for size in range(min(most, len(ecbs) - 1), 0, -1):
        if dominates(outside[size], inside[size - 1]):
            return [int(x) for x in order[:size]]
    return []
