"""Half-way joins: the directions of a plan that probes can be spent on, as the policies of this package see them.

A node with inputs i has one half-way join for each of them: tuples of i probe the states of the others. In a binary
tree this is one probe, as in the paper; in an MJoin node it is a chain of probes.

    ρ_h = Π σ·|S|    results per tuple that is let in     (equation 3, along the chain)
    c                resources per tuple that is let in: 1 in the paper, CPU seconds here

`JoinTree.of` makes one from plain numbers, in the paper's unit (a probe costs 1); `join_tree` from a problem and a
plan, in CPU seconds at the problem's prices, with all states as large as they are when every probe is made.

>>> figure_10 = JoinTree.of("((A B) C)", {"A": 500, "B": 700, "C": 500}, {"A": 0.5, "B": 5, "(A B)": 5, "C": 1})
>>> for half in figure_10.halves: print(half)
A ⋈ B: 0.5 results, cost 1, 500 tuples/s
B ⋈ A: 5 results, cost 1, 700 tuples/s
(A B) ⋈ C: 5 results, cost 1, 3750 tuples/s
C ⋈ (A B): 1 results, cost 1, 500 tuples/s

Source: jaqpot, section 2 (Definition 1, equation 3) and section 3 (equation 4).
Departs from the paper in: nodes of more than two inputs; costs that differ between half-way joins; what results cost
to keep in a state is part of c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from watersmeet.errors import PlanError
from watersmeet.model.plan import Leaf, Node, Plan, leaves, nodes
from watersmeet.optimize.problem import Problem


@dataclass(frozen=True)
class Step:
    """One probe of a chain. target: the store probed. fanout: σ·|S|, matches that go on, for each tuple that comes.

    probe: resources of the look-up. match: of what the look-up returns, for each tuple that comes.
    """

    target: str
    fanout: float
    probe: float = 1.0
    match: float = 0.0


@dataclass(frozen=True)
class HalfJoin:
    """Tuples of `input` that probe the other inputs of `node`.

    streams: whose arrivals come by here. rate: tuples per second that come if all probes are made.
    keep: resources of each result for the state of the node; 0 at the root, which keeps nothing.
    """

    input: str
    node: str
    streams: tuple[str, ...]
    rate: float
    steps: tuple[Step, ...]
    keep: float = 0.0

    @cached_property
    def productivity(self) -> float:
        """ρ_h: results for each tuple that is let in (equation 3)."""
        return prod(s.fanout for s in self.steps)

    @cached_property
    def cost(self) -> float:
        """Resources for each tuple that is let in."""
        come, total = 1.0, 0.0
        for s in self.steps:
            total += come * (s.probe + s.match)
            come *= s.fanout
        return total + come * self.keep

    def __str__(self) -> str:
        chain = " ⋈ ".join([self.input, *(s.target for s in self.steps)])
        return f"{chain}: {self.productivity:g} results, cost {self.cost:g}, {self.rate:g} tuples/s"


@dataclass(frozen=True)
class Window:
    """What the coupled model and Lemma 1 need of a stream: tuples held, and how often a second they are renewed (λ / W; 0: a table)."""

    stream: str
    rate: float
    size: float
    turnover: float


@dataclass(frozen=True)
class JoinTree:
    """The half-way joins of a plan, inputs before their node; the last belong to the root.

    windows: the streams, from left to right. selectivity: σ of each join node. states: |S| of inner nodes, in tuples.
    fixed: resources per second that no policy can save (windows are kept whatever is probed).
    residual: the part of complete combinations that pass what is checked at the end.
    """

    halves: tuple[HalfJoin, ...]
    windows: tuple[Window, ...]
    selectivity: tuple[tuple[str, float], ...]
    states: tuple[tuple[str, float], ...]
    fixed: float = 0.0
    residual: float = 1.0

    @classmethod
    def of(
        cls,
        text: str,
        rate: Mapping[str, float],
        productivity: Mapping[str, float],
        *,
        selectivity: Mapping[str, float] | None = None,
        states: Mapping[str, float] | None = None,
    ) -> JoinTree:
        """The paper's plans: a probe costs 1. productivity: ρ_h by input; states: |S| of streams and inner nodes."""
        root, sizes = Plan.parse(text).root, states or {}
        come = dict(rate)
        halves = []
        for node in nodes(root):
            names = [str(i) for i in node.inputs]
            if len(names) != 2:
                raise PlanError(f"the paper's plans are binary trees, not {node}")
            for tree, other in ((node.inputs[0], names[1]), (node.inputs[1], names[0])):
                at = tuple(leaf.stream for leaf in leaves(tree))
                step = Step(other, productivity[str(tree)])
                halves.append(HalfJoin(str(tree), str(node), at, come[str(tree)], (step,)))
            come[str(node)] = sum(come[n] * productivity[n] for n in names)
        windows = tuple(
            Window(s.stream, rate[s.stream], sizes.get(s.stream, 1.0), rate[s.stream] / sizes.get(s.stream, 1.0))
            for s in leaves(root)
        )
        inner = tuple((str(n), sizes.get(str(n), 1.0)) for n in nodes(root) if n is not root)
        return cls(tuple(halves), windows, tuple((selectivity or {}).items()), inner)

    @cached_property
    def by_input(self) -> dict[str, HalfJoin]:
        return {h.input: h for h in self.halves}

    @cached_property
    def root(self) -> str:
        return self.halves[-1].node

    @cached_property
    def operators(self) -> dict[str, tuple[HalfJoin, ...]]:
        """The half-way joins of each join node, children before parents."""
        found: dict[str, tuple[HalfJoin, ...]] = {}
        for h in self.halves:
            found[h.node] = (*found.get(h.node, ()), h)
        return found

    def path(self, stream: str) -> tuple[HalfJoin, ...]:
        """The half-way joins from a stream to the root (Definition 3)."""
        found, at = [], stream
        while at in self.by_input:
            found.append(self.by_input[at])
            at = found[-1].node
        return tuple(found)

    @property
    def saturation(self) -> float:
        """Resources per second with which every probe is made, the fixed ones apart."""
        return sum(h.rate * h.cost for h in self.halves)

    @property
    def output(self) -> float:
        """Results per second with which every probe is made."""
        return self.residual * sum(h.rate * h.productivity for h in self.operators[self.root])


def join_tree(problem: Problem, plan: Plan) -> JoinTree:
    """The half-way joins of a plan with all states full, in CPU seconds at the problem's prices.

    >>> p = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2})
    >>> tree = join_tree(p, Plan.parse("((A B) C)"))
    >>> [(h.input, round(h.productivity, 6)) for h in tree.halves], round(tree.output, 6)
    ([('A', 5.0), ('B', 5.0), ('(A B)', 2.0), ('C', 10.0)], 1000.0)
    """
    rates, costs = problem.rates, problem.prices(plan.root)
    number = {name: i for i, name in enumerate(problem.names)}

    def mask(tree: Node | Leaf) -> int:
        return sum(1 << number[leaf.stream] for leaf in leaves(tree))

    def steps(node: Node, start: int, passes: int) -> Iterator[Step]:
        cause = prefix = mask(node.inputs[start])
        for j in node.orders[start]:
            target = mask(node.inputs[j])
            come, went = rates.made(cause, prefix), rates.made(cause, prefix | target)
            match = passes * costs.match * rates.candidates(cause, prefix, target) / come if come else 0.0
            yield Step(str(node.inputs[j]), went / come if come else 0.0, passes * costs.probe, match)
            prefix |= target

    halves = []
    selectivity, states = [], []
    for node in nodes(plan.root):
        whole, root = mask(node), node is plan.root
        made, left = rates.made(whole, whole), rates.leaving(whole)
        keep = 0.0 if root or not made else costs.insert + costs.delete * left / made
        passes = problem.root_passes if root else problem.inner_passes
        for i, tree in enumerate(node.inputs):
            at = tuple(leaf.stream for leaf in leaves(tree))
            come = rates.made(mask(tree), mask(tree))
            halves.append(HalfJoin(str(tree), str(node), at, come, tuple(steps(node, i, passes)), keep))
        pairs = prod(rates.size(mask(i)) for i in node.inputs)
        selectivity.append((str(node), rates.size(whole) / pairs if pairs else 0.0))
        if not root:
            states.append((str(node), rates.size(whole)))
    windows, fixed = [], 0.0
    for leaf in leaves(plan.root):
        s, one = problem.streams[number[leaf.stream]], 1 << number[leaf.stream]
        windows.append(Window(s.name, s.rate, s.window, s.turnover))
        fixed += costs.insert * rates.made(one, one) + costs.delete * rates.leaving(one)
    return JoinTree(tuple(halves), tuple(windows), tuple(selectivity), tuple(states), fixed, problem.residual)
