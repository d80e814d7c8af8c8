"""A-Greedy: the probe order of one pipeline, kept right while statistics change.

The idea: at each step probe what shrinks the stream most for what it costs. With F(P, S) what a tuple over P finds in S and c(P, S)
the cost of that probe, the next is the one with the least (F - 1) / c among those that a predicate links (a product comes last). The
order satisfies the *greedy invariant* if each of its steps is that one; it is checked with fresh statistics, and broken by a margin only,
so that the order does not flap between two that are as good.

>>> fanout = {"S": 3.0, "T": 0.5, "U": 0.9}
>>> a = AGreedy(lambda have, s: fanout[s], lambda have, s: 1.0, lambda have, s: True)
>>> a.order("R", {"S", "T", "U"})
('T', 'U', 'S')
>>> a.violation("R", ("U", "T", "S")), a.violation("R", ("T", "U", "S"))
(0, None)

Source: a-caching 4 (it uses A-Greedy of Babu et al., "Adaptive ordering of pipelined stream filters", SIGMOD 2004, without restating it).
Unclear in the paper, settled as: filters drop tuples, joins may multiply them; (F - 1) / c is the rank that orders both (it is minus the
filter's drop rate for each unit of cost). For independent joins it gives the cheapest order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

MARGIN = 0.2  # of the rank, below which an invariant does not count as broken

Measure = Callable[[frozenset[str], str], float]


@dataclass(frozen=True)
class AGreedy:
    """fanout, cost: of a tuple over a set of streams that probes another. linked: whether a predicate joins the two."""

    fanout: Measure
    cost: Measure
    linked: Callable[[frozenset[str], str], bool]
    margin: float = MARGIN

    def rank(self, have: frozenset[str], target: str) -> tuple[bool, float]:
        """Lower is better; products after all that is linked."""
        return not self.linked(have, target), (self.fanout(have, target) - 1.0) / max(self.cost(have, target), 1e-300)

    def order(self, first: str, others: Collection[str]) -> tuple[str, ...]:
        have, left, made = frozenset((first,)), set(others), list[str]()
        while left:
            best = min(left, key=lambda s: (self.rank(have, s), s))
            made.append(best)
            left.discard(best)
            have |= {best}
        return tuple(made)

    def violation(self, first: str, order: tuple[str, ...]) -> int | None:
        """The first step that is worse than another by more than the margin; None: the greedy invariant holds."""
        have = frozenset((first,))
        for k, target in enumerate(order):
            product, rank = self.rank(have, target)
            for other in order[k + 1 :]:
                other_product, other_rank = self.rank(have, other)
                if other_product > product:
                    continue
                if other_product < product or other_rank < rank - self.margin * max(abs(rank), abs(other_rank)):
                    return k
            have |= {target}
        return None
