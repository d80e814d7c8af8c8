"""Lifetime: L(d), the estimated probability that a tuple is still kept d steps from now.

fixed: 1 for the next `span` steps, then 0. inf: 1 for ever, and inv: 1/d (caching only: sums over joins diverge).
exp: e^(-d/alpha), whose mean life is 1 / (1 - e^(-1/alpha)).

>>> exp(2.0).weights(3).round(3).tolist(), fixed(2).weights(3).tolist()
([0.607, 0.368, 0.223], [1.0, 1.0, 0.0])
>>> round(alpha_of(12.5), 3)   # as in 7.3: (w_R + w_S) / 2
11.993

Source: heeb, Section 5.3, Table 1; the five properties before Theorem 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from math import exp as e_to
from math import inf as infinity

import numpy as np

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import Floats
from watersmeet.retain.ecb import dominates, strongly_dominates

FAR = 4096  # steps that are looked ahead at most
EXACT = 16.0  # e^-16: what exp leaves out


@dataclass(frozen=True)
class Lifetime:
    """`horizon`: steps after which L is (as good as) 0. `decay`: the factor a step where L is exponential."""

    name: str
    at: Callable[[Floats], Floats]
    horizon: int
    caching_only: bool = False
    decay: float | None = None

    def weights(self, steps: int) -> Floats:
        """L(1) to L(steps)."""
        return self.at(np.arange(1, steps + 1, dtype=float))


def fixed(span: int) -> Lifetime:
    return Lifetime(f"fixed {span}", lambda d: (d <= span).astype(float), span)


def inf() -> Lifetime:
    return Lifetime("inf", lambda d: np.ones(len(d)), FAR, caching_only=True)


def inv() -> Lifetime:
    return Lifetime("inv", lambda d: 1.0 / d, FAR, caching_only=True)


def exp(alpha: float) -> Lifetime:
    if not 0 < alpha < infinity:
        raise WatersmeetError(f"alpha must be a number above 0, and is {alpha:g}")
    return Lifetime(f"exp {alpha!r}", lambda d: np.exp(-d / alpha), ceil(EXACT * alpha), decay=e_to(-1 / alpha))


def alpha_of(mean_life: float) -> float:
    """The alpha whose predicted mean life is the given one (in steps, above 1)."""
    if mean_life <= 1:
        raise WatersmeetError(f"a mean life must be longer than a step, and is {mean_life:g}")
    return -1 / log(1 - 1 / mean_life)


def broken_properties(weights: Floats, ecbs: Floats, caching: bool = False) -> list[int]:
    """Which of the paper's properties 1 to 5 functions L (a row for each tuple) break, given the tuples' ECBs.

    3, that H converges, is checked by what the last steps still add: for joins of L itself, for caching of the benefit.
    """
    broken = set()
    if (weights < 0).any() or (weights > 1).any():
        broken.add(1)
    if (np.diff(weights, axis=1) > 0).any():
        broken.add(2)
    steps = np.diff(ecbs, axis=1, prepend=0.0)
    added = weights * steps if caching else weights
    tail = added[:, -max(1, added.shape[1] // 8) :].sum(axis=1)
    if (tail > 1e-3 * np.maximum(added.sum(axis=1), 1e-300)).any() and (tail > 1e-9).any():
        broken.add(3)
    for x in range(len(ecbs)):
        for y in range(len(ecbs)):
            if x != y and dominates(ecbs[x], ecbs[y]) and (weights[x] < weights[y]).any():
                # equal ECBs dominate each other: then L may differ either way only if it is the same
                broken.add(4)
            if x != y and strongly_dominates(ecbs[x], ecbs[y]) and not weights[x, 0] > 0:
                broken.add(5)
    return sorted(broken)
