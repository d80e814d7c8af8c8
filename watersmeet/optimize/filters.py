"""Selections: rate and window behind a chain of filters, its cost, and where to drop tuples when it is too slow.

A filter i passes the fraction σ_i and takes c_i seconds for each tuple it sees. Behind filters 1..n, in this order,

    λ_o = λ · Π σ_j                                    (1, 20)        W_o = W · Π σ_j                             (2)
    c(i) = λ · c_i · σ_1 ⋯ σ_{i−1}                     (21)           C = Σ c(i) ≤ 1                              (7, 12)

If C exceeds what there is, drop boxes keep only fractions x_1, ..., x_{n+1} before, between and behind the filters:

    max λ_o · Π x_i    subject to    Σ_i c(i) · x_1 ⋯ x_i ≤ capacity                                              (18, 19, 22)

Observation 2: all dropping belongs before the first filter, x_1 = capacity / C (23), and the plan to drop from is the
cheapest one: filters by rising c_i / (1 − σ_i).

>>> plan_a = FilterPlan(1000.0, (Filter(0.25, 0.0005), Filter(0.5, 0.001)))      # Figure 4
>>> plan_b = plan_a.ordered((1, 0))
>>> plan_a.cpu, plan_b.cpu, plan_b.keep(1.0)
(0.75, 1.25, 0.8)
>>> plan_b.cheapest() == plan_a
True

Source: static-optimization 3.2.1, 3.3.1, 5.1 (equations 1, 2, 7, 18 to 24; (22) with ≤, and the box drops 100 (1 − x)
%: docs/internals/papers.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

from watersmeet.errors import QueryError


@dataclass(frozen=True)
class Filter:
    """A selection: the fraction of tuples that pass it and the seconds it takes for each that it sees."""

    selectivity: float
    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.selectivity <= 1 or not 0 <= self.seconds < inf:
            raise QueryError(f"a filter passes 0 to 1 and takes zero seconds or more: {self}")


@dataclass(frozen=True)
class FilterPlan:
    """Filters in the order in which a stream of `rate` tuples per second meets them."""

    rate: float
    filters: tuple[Filter, ...]

    @property
    def output_rate(self) -> float:
        """λ_o (1, 20)."""
        return self.rate * prod(f.selectivity for f in self.filters)

    def window(self, tuples: float) -> float:
        """W_o: what a window of so many tuples holds behind the filters (2)."""
        return tuples * prod(f.selectivity for f in self.filters)

    @property
    def parts(self) -> tuple[float, ...]:
        """c(i): CPU seconds per second of each filter (21)."""
        made, reach = [], self.rate
        for f in self.filters:
            made.append(reach * f.seconds)
            reach *= f.selectivity
        return tuple(made)

    @property
    def cpu(self) -> float:
        """C(p) without drop boxes (12)."""
        return sum(self.parts)

    def keep(self, capacity: float = 1.0) -> float:
        """x_1*: the fraction to keep before the first filter; everything behind it is kept (23)."""
        return min(1.0, capacity / self.cpu) if self.cpu else 1.0

    def dropped_cpu(self, keep: tuple[float, ...]) -> float:
        """C(p) with drop boxes in all n + 1 places (19)."""
        return sum(c * prod(keep[: i + 1]) for i, c in enumerate(self.parts))

    def dropped_rate(self, keep: tuple[float, ...]) -> float:
        """λ_approx with drop boxes in all n + 1 places (18)."""
        return self.output_rate * prod(keep)

    def ordered(self, order: tuple[int, ...]) -> FilterPlan:
        return replace(self, filters=tuple(self.filters[i] for i in order))

    def cheapest(self) -> FilterPlan:
        """The order of least cost: rising seconds / (1 − selectivity)."""

        def rank(f: Filter) -> float:
            return f.seconds / (1 - f.selectivity) if f.selectivity < 1 else inf

        return replace(self, filters=tuple(sorted(self.filters, key=rank)))
