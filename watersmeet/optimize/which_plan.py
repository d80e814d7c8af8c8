"""Which plan to approximate when none fits: the one that keeps most results behind its best drop boxes.

The cheapest plan need not be it. static-optimization leaves the question open; two facts answer it:

1. If plan p with fractions x is the best, p is a cheapest plan *at the thinned rates* x: another that needs less CPU
   there would leave room to keep more. So the best pair (p, x) is a fixed point of

       x := best drop boxes for p          p := cheapest plan for rates and windows times x

   and every turn of it keeps at least as many results. From several starts (cheapest plan, mjoin, binary tree) it
   gives a good plan at any size.
2. For few streams all trees can be tried, each with the probe orders that are best behind its own drop boxes. With x⁰
   the best fractions so far, the inequality of the means bounds what another plan can keep by a knapsack:

       CPU(x) ≥ CPU(x⁰) · Π (x_i / x⁰_i)^{e_i}      e_i: elasticity of its CPU at x⁰

   Plans whose bound is below what is kept already are passed over.

costs: prices of the nodes. limits: CPU and memory. at_least, weights: as in drop_boxes.py. all_trees: streams up to
which all trees are tried.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> problem = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2}, Costs(0.01, 0, 0, 0))
>>> best = best_approximation(NodeCosts(problem), Limits(cpu=1))
>>> print(best.root, best.kept)
(A (B C)) keep A 1, B 0.989964, C 0.282847: 280.008 of 1000 results/s
>>> cheapest = drop_boxes(problem, NodeCosts(problem).tree(((0, 1), 2)), Limits(cpu=1))
>>> print(f"{cheapest.results:.0f}")
173

Source: ours; the question is static-optimization's, end of 5.2 ("still an open problem"). docs/internals/cost-model.md has how
often and by how much it pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from watersmeet.model.plan import Node
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.bounds import lower_bounds
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.drop_boxes import LEAST, drop_boxes, posynomials
from watersmeet.optimize.kept import Kept
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import pareto_front
from watersmeet.optimize.shape import Shape, all_jtrees
from watersmeet.optimize.two_layer import two_layer

ALL_TREES = 5
EXACT_STREAMS = 7
TURNS = 8
GAIN = 1e-6  # a turn that keeps less than this part more is the last


@dataclass(frozen=True)
class Approximation:
    """A plan with its drop boxes."""

    shape: Shape
    root: Node
    kept: Kept


class _Overload:
    """What does not change from plan to plan."""

    def __init__(
        self,
        costs: NodeCosts,
        limits: Limits,
        at_least: Mapping[str, float] | None,
        weights: Mapping[str, float] | None,
    ) -> None:
        self.costs, self.problem, self.limits = costs, costs.problem, limits
        self.at_least, self.weights = at_least or {}, weights or {}
        self.weight = np.array([0.0 if s.static else self.weights.get(s.name, 1.0) for s in self.problem.streams])
        self.floor = np.log(
            [1.0 if s.static else max(self.at_least.get(s.name, 0.0), LEAST) for s in self.problem.streams]
        )

    def thinned(self, kept: Kept) -> NodeCosts:
        return NodeCosts(self.problem.thinned(x for _, x in kept.keep), self.costs.exact_inputs)

    def worth(self, kept: Kept) -> float:
        """What is maximised: Σ w log x; the more the better."""
        return float(self.weight @ self.logs(kept)) if kept.feasible else -np.inf

    def logs(self, kept: Kept) -> Any:
        return np.log([max(x, LEAST) for _, x in kept.keep])

    def approximate(self, shape: Shape, orders: NodeCosts | None = None) -> Approximation:
        """Drop boxes for a tree, its probe orders chosen for the thinned streams until that gains nothing."""
        root = (orders or self.costs).tree(shape)
        best = Approximation(shape, root, self.boxes(root))
        for _ in range(TURNS):
            if not best.kept.feasible:
                break
            root = self.thinned(best.kept).tree(shape)
            if root == best.root:
                break
            kept = self.boxes(root)
            if self.worth(kept) <= self.worth(best.kept) + GAIN:
                break
            best = Approximation(shape, root, kept)
        return best

    def boxes(self, root: Node) -> Kept:
        return drop_boxes(self.problem, root, self.limits, self.at_least, self.weights)

    def may_beat(self, shape: Shape, best: Kept, at: NodeCosts) -> bool:
        """Whether the bound of the docstring lets this tree keep more than `best`; `at`: prices behind its drop boxes."""
        cpu, _ = posynomials(self.problem, at.tree(shape))
        y = self.logs(best)
        room = np.log(self.limits.cpu / cpu.value(y)) if self.limits.cpu < np.inf else np.inf
        elasticity = cpu.log_gradient(y)
        # start from every stream whole, and take back what breaks the bound where it costs the objective least
        excess = elasticity @ (0.0 - y) - room
        bound = 0.0
        for i in sorted(range(len(y)), key=lambda i: self.weight[i] / elasticity[i] if elasticity[i] else np.inf):
            if excess <= 0 or not elasticity[i]:
                break
            step = min(excess / elasticity[i], -self.floor[i])
            excess -= step * elasticity[i]
            bound -= step * self.weight[i]
        return bound > self.worth(best) + GAIN


def best_approximation(
    costs: NodeCosts,
    limits: Limits,
    at_least: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    all_trees: int = ALL_TREES,
) -> Approximation | None:
    """The plan and drop boxes that keep most; None if no plan's minimum rates fit."""
    overload = _Overload(costs, limits, at_least, weights)
    best: Approximation | None = None
    for shape in starts(costs, limits):
        found = _fixed_point(overload, shape)
        if best is None or overload.worth(found.kept) > overload.worth(best.kept):
            best = found
    assert best is not None
    n = len(costs.problem.streams)
    if 1 < n <= all_trees:
        for shape in all_jtrees(tuple(range(n))):
            if best.kept.feasible and not overload.may_beat(shape, best.kept, overload.thinned(best.kept)):
                continue
            found = overload.approximate(shape)
            if overload.worth(found.kept) > overload.worth(best.kept):
                best = found
    return best if best.kept.feasible else None


def _fixed_point(overload: _Overload, shape: Shape) -> Approximation:
    best = overload.approximate(shape)
    for _ in range(TURNS if len(overload.problem.streams) > 1 else 0):
        if not best.kept.feasible:
            break
        thinned = overload.thinned(best.kept)
        found = overload.approximate(cheapest(thinned, overload.limits), thinned)
        if overload.worth(found.kept) <= overload.worth(best.kept) + GAIN:
            break
        best = found
    return best


def starts(costs: NodeCosts, limits: Limits) -> Iterator[Shape]:
    """Where the fixed point is looked for."""
    if len(costs.problem.streams) > 1:
        yield cheapest(costs, limits)
        yield best_binary_tree(costs)
    yield tuple(range(len(costs.problem.streams)))


def cheapest(costs: NodeCosts, limits: Limits) -> Shape:
    """The plan of least CPU within the memory, or of least CPU if none is; exact for few streams."""
    n = len(costs.problem.streams)
    memory = Limits(memory=limits.memory)
    if n <= EXACT_STREAMS:
        front = pareto_front(costs, memory) or pareto_front(costs)
        return front[0].shape
    bounds = lower_bounds(costs.problem)
    found = two_layer(costs, memory, aim=Limits(bounds.cpu, limits.memory))
    return min(found.qualified or [p for _, p in found.seen], key=lambda p: p.cpu).shape
