"""Lower bounds: what no plan can go below, so that exceeding a limit proves that nothing fits.

Memory: every plan keeps every window whole, so Σ W (the mjoin has exactly that).

CPU, whatever the tree and the probe orders:
    Σ λ_i (insert + delete)    every tuple enters its window and leaves it
  + Σ λ_i · probe              and looks at least once for partners
  + output · match             and every combination that is complete before the last checks was returned by some probe

A query over one stream probes nothing.
With cells, every copy counts. Where rows may go in groups, all of it at the lower prices. A plan may well need more; `proves` says
only that none can need less.

>>> from watersmeet.model.statistics import Costs
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> set_4 = lower_bounds(Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp))
>>> print(set_4)
at least 35.2 CPU and 4000 tuples
>>> set_4.proves(Limits(cpu=1)), set_4.proves(Limits(cpu=36))
(True, False)

Source: static-optimization 3.3.2 (memory, 11) and qualified-plans 5.1 (the mjoin's memory); the CPU bound is ours,
since the one of Algorithm 2, line 9 (the binary tree's CPU) is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from watersmeet.optimize.cost import Limits, holding, upkeep
from watersmeet.optimize.problem import Problem


@dataclass(frozen=True)
class LowerBounds:
    """CPU seconds per second and memory (in `unit`) that every plan needs at least."""

    cpu: float
    memory: float
    unit: str = "tuples"

    def proves(self, limits: Limits) -> bool:
        """Whether no plan can be within the limits."""
        return not limits.allow(self.cpu, self.memory)

    def __str__(self) -> str:
        return f"at least {self.cpu:.4g} CPU and {self.memory:.6g} {self.unit}"


def lower_bounds(problem: Problem) -> LowerBounds:
    """The bounds for all plans of a problem."""
    rates, costs, n = problem.rates, problem.costs, len(problem.streams)
    cpu = sum(upkeep(problem, 1 << s) for s in range(n))
    if n > 1:
        cpu += least_passes(problem) * costs.probe * sum(rates.made(1 << s, 1 << s) for s in range(n))
        cpu += problem.root_passes * costs.match * rates.made(problem.all, problem.all)
    if problem.grouped:
        cpu *= min(1.0, costs.together)
    return LowerBounds(cpu, sum(holding(problem, 1 << s) for s in range(n)), problem.unit)


def least_passes(problem: Problem) -> int:
    """How often a tuple's first probe is made at least: its node may be the root or not."""
    return min(problem.root_passes, problem.inner_passes)
