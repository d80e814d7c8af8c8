"""Group-selection: hill climbing between mjoin and binary tree that may store the join of several inputs at once.

State-selection stores pairs only. Where no pair pays but a triple does, ((A B C) D), it finds nothing; state-removal
gets there only from a binary tree that happens to contain the triple. So, from a given plan, each step takes the best
of

    group    (A B C D) -> ((A B C) D)      any node: some of its inputs become a node
    remove   ((A B) C) -> (A B C)          any node but the root is taken apart

where best is: nearest to the limits, by how much CPU and memory exceed them, each as a part of its limit, added. It
ends within the limits, or where no step gets nearer. Groups grow from each pair, linked pairs first, by the input
that makes the smallest state; with selectivities near 1 a Cartesian product may be as good a state as a join.

costs: prices of the nodes. limits: CPU_avail, Mem_avail. start: a plan. effort: how many groups may be priced, each
counted as the cube of its node's inputs; what is left of it serves the next start. Returns the plans on the way.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> from watersmeet.optimize.state_selection import state_selection
>>> rate, sel = {"A": 40.0, "B": 60.0, "C": 50.0, "D": 70.0}, {("A", "B"): 0.002, ("B", "C"): 0.001, ("C", "D"): 0.01}
>>> problem = Problem.of(rate, {s: 4 * r for s, r in rate.items()}, sel, Costs(9e-7, 1e-7, 7e-7, 7e-7))
>>> costs = NodeCosts(problem)
>>> mjoin = Candidate(costs.cpu((0, 1, 2, 3)), costs.memory((0, 1, 2, 3)), (0, 1, 2, 3))
>>> tight = Limits(cpu=mjoin.cpu * 0.995, memory=mjoin.memory * 1.03)
>>> len(state_selection(costs, tight)), [p.shape for p in group_selection(costs, tight, mjoin)]
(1, [(0, 1, 2, 3), ((0, 1, 2), 3)])

Source: ours. qualified-plans 5.2 stores pairs and may merge two nodes it has stored (Figure 11); this goes on from
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, takewhile

from watersmeet.optimize.cost import TOLERANCE, Limits
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.shape import Shape, normal, streams
from watersmeet.optimize.state_removal import removals
from watersmeet.optimize.state_selection import ranked_edges

EFFORT = 400_000


class Effort:
    """What a search may still spend."""

    def __init__(self, left: int = EFFORT) -> None:
        self.left = left

    def spend(self, inputs: int) -> bool:
        self.left -= inputs**3
        return self.left >= 0


def group_selection(
    costs: NodeCosts, limits: Limits, start: Candidate, effort: Effort | None = None
) -> list[Candidate]:
    """The plans from the start to one within the limits, or to where no step gets nearer to them."""
    path, effort = [start], effort or Effort()
    while (far := excess(limits, path[-1])) > TOLERANCE:
        now, best = path[-1], None
        for change, size, shape in _steps(costs, now.shape, effort):
            plan = Candidate(now.cpu + change, now.memory + size, shape)
            distance = excess(limits, plan)
            if distance < far * (1 - TOLERANCE):
                far, best = distance, plan
        if best is None:
            break
        path.append(replace(best, shape=normal(best.shape)))
    return path


def excess(limits: Limits, plan: Candidate) -> float:
    """By how much a plan exceeds the limits: 0.1 if it needs 10 % too much CPU and the memory fits."""
    return max(0.0, plan.cpu / limits.cpu - 1) + max(0.0, plan.memory / limits.memory - 1)


def _steps(costs: NodeCosts, shape: Shape, effort: Effort) -> Iterator[tuple[float, float, Shape]]:
    """All steps from a plan: change in CPU, change in memory, the plan after it."""
    for change, size, without in removals(costs, shape):
        yield change, -size, without
    yield from groupings(costs, shape, effort)


def groupings(costs: NodeCosts, shape: Shape, effort: Effort) -> Iterator[tuple[float, float, Shape]]:
    """Plans in which some inputs of one node have become a node: change in CPU, memory of the new state, the plan."""
    if isinstance(shape, int) or effort.left < 0:
        return
    blocks = tuple(map(streams, shape))
    if len(shape) > 2:
        here = costs.node_cpu(blocks)
        splits = []
        for group in takewhile(lambda _: effort.spend(len(shape)), _groups(costs, blocks)):
            rest = [i for i in range(len(shape)) if i not in group]
            inside = tuple(blocks[i] for i in group)
            splits.append((group, rest, inside, (*(blocks[i] for i in rest), sum(inside))))
        costs.order_together(outside for _, _, _, outside in splits)
        for group, rest, inside, outside in splits:
            change = costs.node_cpu(outside) + costs.node_cpu(inside) - here
            yield change, costs.holding(outside[-1]), (*(shape[i] for i in rest), tuple(shape[i] for i in group))
    for i, child in enumerate(shape):
        for change, size, replaced in groupings(costs, child, effort):
            yield change, size, (*shape[:i], replaced, *shape[i + 1 :])


def _groups(costs: NodeCosts, blocks: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Pairs of inputs, linked ones first; then each of them with a third, a fourth, ... that makes the smallest state."""
    linked = ranked_edges(costs, blocks)
    products = sorted(set(combinations(range(len(blocks)), 2)).difference(linked))
    products.sort(key=lambda pair: costs.holding(blocks[pair[0]] | blocks[pair[1]]))
    seen: set[frozenset[int]] = set()
    groups: list[tuple[int, ...]] = [*linked, *products]
    while groups:
        taken = []
        for group in groups:
            key = frozenset(group)
            if key not in seen and len(group) < len(blocks):
                seen.add(key)
                yield group
                taken.append(group)
        groups = [(*group, _nearest(costs, blocks, group)) for group in taken]


def _nearest(costs: NodeCosts, blocks: tuple[int, ...], group: tuple[int, ...]) -> int:
    """The input that makes the smallest state with a group."""
    mask = sum(blocks[i] for i in group)
    return min((i for i in range(len(blocks)) if i not in group), key=lambda i: costs.holding(mask | blocks[i]))
