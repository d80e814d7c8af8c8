"""What a cache saves and what it costs, per unit time, from what its pipeline has been seen to do.

For the segment of operators j..k of pipeline i, with d the tuples per unit time that reach an operator and c the cost of each there:

    plain    = sum of d_l c_l over the segment                                       without the cache
    proc     = d_j probe + miss (plain + d_j create + d_after update)                with it, upkeep apart
    benefit  = plain - proc
    upkeep   = update x (updates of the segment's join per unit time)                paid once for shared caches

d_after is what comes out of the segment. With prices of this engine, a look-up costs a probe and a match for each reference that it gives,
a creation an insert for the entry, empty or not, and one for each reference, an update a probe and an insert.

>>> s = Segment(reach=(100.0, 300.0), each=(1.0, 1.0), after=10.0, updates=20.0, miss=0.25, probe=1.0, update=2.0)
>>> s.plain, s.proc, s.benefit, s.upkeep, s.net
(400.0, 205.0, 195.0, 40.0, 155.0)

Source: a-caching 4.1, and Appendix A for how the terms are measured.
Departs from the paper in: the index of d in cost() is that of each member's own pipeline (as printed it names the pipeline by the member's
place); `updates` is their sum. An entry costs something although its value is empty (create).
"""

from __future__ import annotations

from dataclasses import dataclass

from watersmeet.model.statistics import Costs


@dataclass(frozen=True)
class Segment:
    """reach, each: d and c of the operators of the segment, in order; after: d behind it; updates: of its join, per unit time;
    miss: probability that a look-up finds nothing; probe, update: cost of a look-up and of putting in one combination; create: of an
    entry with an empty value; tell: of finding out whether a new combination has an entry."""

    reach: tuple[float, ...]
    each: tuple[float, ...]
    after: float
    updates: float
    miss: float
    probe: float
    update: float
    create: float = 0.0
    tell: float = 0.0

    @property
    def plain(self) -> float:
        return sum(d * c for d, c in zip(self.reach, self.each, strict=True))

    @property
    def proc(self) -> float:
        return self.reach[0] * (self.probe + self.miss * self.create) + self.miss * (
            self.plain + self.after * self.update
        )

    @property
    def benefit(self) -> float:
        return self.plain - self.proc

    @property
    def upkeep(self) -> float:
        return (self.tell + self.update) * self.updates

    @property
    def net(self) -> float:
        return self.benefit - self.upkeep


def probe_cost(costs: Costs, references: float) -> float:
    """A look-up: one probe, and a match for each combination that it gives on average."""
    return costs.probe + costs.match * references


def update_cost(costs: Costs, members: int) -> float:
    """Putting in one combination: an insert, which writes a reference to each member."""
    return costs.insert * max(1.0, members / 2)
