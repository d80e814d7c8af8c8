"""Cost: CPU seconds per second and memory of a plan, from four prices (docs/internals/cost-model.md derives it).

A tuple that arrives at a node's input is a combination over some set J. It probes the node's other inputs in its
probe order; with P the streams bound so far and B the input probed:

    probe · D(J, P)             one look-up for each combination that gets there
  + match · candidates(J, P, B) for each tuple that the look-up returns
    insert · D(V, V)            for each combination over an inner node's streams V, kept in its state
  + delete · leaving(V)         and for each that expires there; likewise for the windows themselves

CPU is the sum over all nodes and inputs; memory is Σ W over windows plus Σ |V| over inner nodes. The root keeps
nothing. A part over tables alone has no arrivals and costs nothing but its memory (static-optimization, section 4).
Where rows go in groups (`Problem.grouped`), a plan of one node pays `together` of these prices.

    static-optimization (8, 9): match = 0       every input tuple of a join pays C_P + C_I + C_V
    qualified-plans (1 to 5):   probe = 0       C_j for each pair joined, C_i and C_d for each tuple stored

>>> from watersmeet.model.plan import Plan
>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> ms = Costs(probe=0.0005, match=0, insert=0, delete=0)
>>> example_1 = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2}, ms)
>>> for text in ("((A B) C)", "(A (B C))", "((A C) B)"):
...     e = price(example_1, Plan.parse(text).root)
...     print(text, f"{e.cpu:.1%} of the processor, {e.memory:.0f} tuples, {e.output_rate:.0f} results/s")
((A B) C) 12.5% of the processor, 80 tuples, 1000 results/s
(A (B C)) 14.0% of the processor, 50 tuples, 1000 results/s
((A C) B) 45.0% of the processor, 130 tuples, 1000 results/s

Source: static-optimization 3.3 and 4 (equations 7 to 17), qualified-plans 2.2 and 2.3 (equations 1 to 5), both as
docs/internals/papers.md corrects them; general jtrees are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from watersmeet.errors import PlanError, QueryError
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Leaf, Node, Tree
from watersmeet.optimize.problem import Problem

TOLERANCE = 1e-9  # a budget is kept if it is exceeded by no more than this part of it


@dataclass(frozen=True)
class Part:
    """What one window or node of a plan does per second, and holds. `rate`: tuples that come out of it."""

    tree: Tree
    streams: int
    rate: float
    probes: float
    matches: float
    inserts: float
    deletes: float
    state: float
    cpu: float
    memory: float


@dataclass(frozen=True)
class Estimate:
    """A plan's bill. `memory` is in the problem's unit, `memory_tuples` always in tuples; parts: inputs before their node."""

    parts: tuple[Part, ...]
    cpu: float
    memory: float
    memory_tuples: float
    output_rate: float


@dataclass(frozen=True)
class Limits:
    """What a plan may use: CPU seconds per second and memory in the problem's unit.

    >>> Limits.of(Budget(cpu=4, memory_tuples=1000), head_room=0.2)
    Limits(cpu=3.2, memory=1000.0)
    """

    cpu: float = inf
    memory: float = inf

    @classmethod
    def of(cls, budget: Budget | None, head_room: float = 0.0) -> Limits:
        """Equations 15 and 17 with n processors and head room (section 4): the bound is n · (1 − head room)."""
        if not 0 <= head_room < 1:
            raise QueryError(f"head room is a part of the CPU, 0 to below 1, not {head_room}")
        if budget is None:
            return cls()
        memory = budget.memory_tuples if budget.memory_tuples is not None else budget.memory_bytes
        return cls(
            inf if budget.cpu is None else budget.cpu * (1 - head_room), inf if memory is None else float(memory)
        )

    def allow(self, cpu: float, memory: float) -> bool:
        """Definition 2 of qualified-plans: at most, not less than (docs/internals/papers.md)."""
        return cpu <= self.cpu * (1 + TOLERANCE) and memory <= self.memory * (1 + TOLERANCE)

    @property
    def bounded(self) -> bool:
        return self.cpu < inf or self.memory < inf


def upkeep(problem: Problem, streams: int) -> float:
    """CPU to keep the window of a stream or the state of a node: each tuple is put in, and taken out when it expires."""
    rates, costs = problem.rates, problem.costs
    return costs.insert * rates.made(streams, streams) + costs.delete * rates.leaving(streams)


def holding(problem: Problem, streams: int) -> float:
    """Memory of the window of a stream or the state of a node."""
    return problem.rates.size(streams) * problem.weight(streams)


def pipeline(
    problem: Problem, blocks: tuple[int, ...], start: int, order: tuple[int, ...], arriving: int | None = None
) -> tuple[float, float]:
    """Probes and matches per second of the tuples of input `start`, which probe the other inputs in `order`.

    Only those that arrivals of the streams in `arriving` cause, if given.
    """
    rates, prefix = problem.rates, blocks[start]
    cause = blocks[start] if arriving is None else arriving
    probes = matches = 0.0
    for j in order:
        probes += rates.made(cause, prefix)
        matches += rates.candidates(cause, prefix, blocks[j])
        prefix |= blocks[j]
    return probes, matches


def price(problem: Problem, root: Node) -> Estimate:
    """The bill of a plan's tree with its probe orders."""
    number = {name: i for i, name in enumerate(problem.names)}
    if root.streams != frozenset(number):
        raise PlanError(
            f"the plan joins {', '.join(sorted(root.streams))}, the statistics are of {', '.join(problem.names)}"
        )
    parts: list[Part] = []
    rates, costs = problem.rates, problem.prices(root)

    def visit(tree: Tree) -> int:
        if isinstance(tree, Leaf):
            mask = 1 << number[tree.stream]
            made, left, probes, matches = rates.made(mask, mask), rates.leaving(mask), 0.0, 0.0
        else:
            blocks = tuple(visit(i) for i in tree.inputs)
            mask = sum(blocks)
            runs = [pipeline(problem, blocks, i, order) for i, order in enumerate(tree.orders)]
            passes = problem.root_passes if tree is root else problem.inner_passes
            probes, matches = passes * sum(p for p, _ in runs), passes * sum(m for _, m in runs)
            made, left = rates.made(mask, mask), rates.leaving(mask)
        kept = tree is not root
        inserts, deletes = (made, left) if kept else (0.0, 0.0)
        cpu = costs.probe * probes + costs.match * matches + costs.insert * inserts + costs.delete * deletes
        state = rates.size(mask) if kept else 0.0
        rate = made if kept else rates.output
        memory = holding(problem, mask) if kept else 0.0
        parts.append(Part(tree, mask, rate, probes, matches, inserts, deletes, state, cpu, memory))
        return mask

    visit(root)
    return Estimate(
        tuple(parts), sum(p.cpu for p in parts), sum(p.memory for p in parts), sum(p.state for p in parts), rates.output
    )
