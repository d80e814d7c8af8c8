"""State-removal: from the best binary tree, give up the states that cost least CPU for the memory they free, until the plan fits.

The binary tree recomputes nothing and holds n − 2 states. Each step takes one node apart into its parent, so that its
state is gone:

    ((A B) (C D))  ->  ((A B) C D)

*Which*: the state with the least ΔCPU / |S|, the state quality ratio; it is negative where keeping a state costs more
than recomputing it. All n − 2 states go if they must: the last plan on the way is the mjoin.

costs: prices of the nodes. limits: CPU_avail, Mem_avail. start: the binary tree. Returns the plans on the way, the
start first; the last is qualified, or the mjoin.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> costs = NodeCosts(Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp))
>>> [p.shape for p in state_removal(costs, Limits(cpu=35.9, memory=50_000), ((0, 1), (2, 3)))]
[((0, 1), (2, 3)), ((0, 1), 2, 3)]

Source: qualified-plans 5.3, Algorithm 4.
Departs from the paper in: nothing but its count of states (n − 2, not n − 1) and its complexity (O(n⁴ log n)).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from watersmeet.optimize.cost import Limits
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.shape import Shape, normal, streams


def state_removal(costs: NodeCosts, limits: Limits, start: Shape) -> list[Candidate]:
    """The plans from the start to one within the limits, or to the mjoin."""
    # 1: P = P_bjtree    2: S = set of all intermediate states in P
    path = [Candidate(costs.cpu(start), costs.memory(start), start)]
    # 3: while S ≠ ∅
    while not limits.allow(path[-1].cpu, path[-1].memory):
        now = path[-1]
        best: tuple[float, float, float, Shape] | None = None
        # 5: for each S_i ∈ S    8: P_new = Merge(P, op1, op2)
        for change, size, shape in removals(costs, now.shape):
            # 12: state_ratio = (CPU_new − CPU_r) / |S_i|
            ratio = change / size if size else (-inf if change < 0 else inf)
            # 13: if state_ratio < min_ratio
            if best is None or ratio < best[0]:
                best = ratio, change, size, shape
        if best is None:
            break
        # 15: Remove state from S; P = P_s
        _, change, size, shape = best
        path.append(Candidate(now.cpu + change, now.memory - size, normal(shape)))
    return path


def removals(costs: NodeCosts, shape: Shape) -> Iterator[tuple[float, float, Shape]]:
    """For each state of a plan: the change in CPU if it goes, the memory that frees, and the plan without it."""
    if isinstance(shape, int):
        return
    blocks = tuple(map(streams, shape))
    here = costs.node_cpu(blocks)
    for i, child in enumerate(shape):
        if isinstance(child, int):
            continue
        below = tuple(map(streams, child))
        merged = (*blocks[:i], *below, *blocks[i + 1 :])
        change = costs.node_cpu(merged) - here - costs.node_cpu(below)
        yield change, costs.holding(blocks[i]), (*shape[:i], *child, *shape[i + 1 :])
        for deeper, size, replaced in removals(costs, child):
            yield deeper, size, (*shape[:i], replaced, *shape[i + 1 :])
