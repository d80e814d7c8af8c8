"""The paper's drop boxes for joins: a continuous knapsack (static-optimization 5.2, equations 25 to 29).

If a window always holds the last n *surviving* tuples, dropping tuples of stream k slows its arrivals and nothing
else. Then both the output and the cost are linear in the fractions x kept:

    max Σ_k o_k x_k    subject to  Σ_k a_k x_k ≤ capacity,  l_k ≤ x_k ≤ 1                                       (27 to 29)

with o_k the results that arrivals of k complete and a_k the CPU that they cause, all else at full rate. Take l_k of
each, then as much as fits in falling order of o_k / a_k.

problem, root: the plan. capacity: CPU seconds per second. at_least: l by stream name. weights: o_k is multiplied by
them.

>>> from watersmeet.model.plan import Plan
>>> from watersmeet.model.statistics import Costs
>>> problem = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2}, Costs(0.01, 0, 0, 0))
>>> for text in ("((A B) C)", "(A (B C))", "((A C) B)"):
...     print(text, knapsack(problem, Plan.parse(text).root, 1.0))
((A B) C) keep A 0.5, B 0, C 1: 750 of 1000 results/s
(A (B C)) keep A 1, B 0, C 0.428571: 400 of 1000 results/s
((A C) B) keep A 0.727273, B 1, C 0: 272.727 of 1000 results/s

Source: static-optimization 5.2, Observation 3, Figure 7.
Departs from the paper in: nothing; it is kept for Figure 7. The engine's windows count dropped tuples, so that what
is left is a part of the exact answer: drop_boxes.py is the model for it (docs/internals/papers.md, clash 1).
"""

from __future__ import annotations

from collections.abc import Mapping

from watersmeet.model.plan import Leaf, Node, Tree
from watersmeet.optimize.cost import TOLERANCE, pipeline
from watersmeet.optimize.kept import Kept
from watersmeet.optimize.problem import Problem


def cost_coefficients(problem: Problem, root: Node) -> list[float]:
    """a_k: the CPU that arrivals of each stream cause in this plan, windows being full (28)."""
    number = {name: i for i, name in enumerate(problem.names)}
    rates, costs = problem.rates, problem.prices(root)
    found = [0.0] * len(number)

    def charge(mask: int) -> None:
        for k in (i for i in range(len(found)) if mask >> i & 1):
            leaves = rates.made(1 << k, mask) if problem.streams[k].expires else 0.0
            found[k] += costs.insert * rates.made(1 << k, mask) + costs.delete * leaves

    def visit(tree: Tree) -> int:
        if isinstance(tree, Leaf):
            mask = 1 << number[tree.stream]
            charge(mask)
            return mask
        blocks = tuple(visit(i) for i in tree.inputs)
        passes = problem.root_passes if tree is root else problem.inner_passes
        for i, order in enumerate(tree.orders):
            for k in (s for s in range(len(found)) if blocks[i] >> s & 1):
                probes, matches = pipeline(problem, blocks, i, order, 1 << k)
                found[k] += passes * (costs.probe * probes + costs.match * matches)
        if tree is not root:
            charge(sum(blocks))
        return sum(blocks)

    visit(root)
    return found


def knapsack(
    problem: Problem,
    root: Node,
    capacity: float,
    at_least: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Kept:
    """The best drop boxes for a plan, in the paper's model."""
    cost = cost_coefficients(problem, root)
    gain = [problem.rates.made(1 << k, problem.all) * problem.residual for k in range(len(cost))]
    keep = [1.0 if s.static else (at_least or {}).get(s.name, 0.0) for s in problem.streams]
    left = capacity - sum(a * x for a, x in zip(cost, keep, strict=True))
    of = sum(gain)
    if left < -TOLERANCE * capacity:
        return Kept((), 0.0, of, False, capacity - left)

    def worth(k: int) -> float:
        weighted = gain[k] * (weights or {}).get(problem.names[k], 1.0)
        return weighted / cost[k] if cost[k] else float("inf")

    for k in sorted(range(len(cost)), key=lambda k: (-worth(k), k)):
        more = 1 - keep[k]
        if cost[k] * more > left:
            more = max(left, 0.0) / cost[k]
        keep[k] += more
        left -= cost[k] * more
    results = sum(g * x for g, x in zip(gain, keep, strict=True))
    return Kept(tuple(zip(problem.names, keep, strict=True)), results, of, True, capacity - left)
