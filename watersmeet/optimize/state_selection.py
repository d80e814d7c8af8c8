"""State-selection: from the mjoin, store the intermediate results that save most CPU for their memory, until the plan fits.

The mjoin holds least memory and recomputes everything. Each step merges two inputs of the top node into one whose
results are stored:

    (A B C D)  ->  ((A B) C D)

*Which*: the pair with the highest frequency / weight. Frequency: how often the two are neighbours in the probe orders
of the top node, a tuple's own input counting as the first. Weight: the memory of the new state. The first pair in that
order that lowers the CPU and fits the memory is taken; then all is counted again.

*Optimize* (line 9): an input that is a node already may be merged as a node of its own or taken apart, ((A B) C) or
(A B C); of those that fit the memory the one of least CPU is taken.

costs: prices of the nodes. limits: CPU_avail, Mem_avail. Returns the plans on the way, the mjoin first; the last is
qualified, or the search ended there.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> costs = NodeCosts(Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp))
>>> [p.shape for p in state_selection(costs, Limits(cpu=35.9, memory=50_000))]
[(0, 1, 2, 3), ((0, 1), 2, 3)]

Source: qualified-plans 5.2, Algorithm 3.
Departs from the paper in: the merged vertex has state λλσW² and rate 2λλσW (printed λλσ for both); edges are counted
again after each merge (as printed E goes stale); a state that does not fit is skipped instead of ending the search;
the loop ends when no pair helps (as printed it never does). Each is in docs/internals/papers.md. In dense graphs only the 2n
best edges are tried.
Unclear in the paper, settled as: an edge "appears in the join sequence" when its two inputs are neighbours in it, which
alone allows the 6 and 2 times of the paper's example. The other reading, an input joined to what precedes it, lets all
edges appear equally often.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

from watersmeet.optimize.cost import Limits
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.shape import Shape, inner, normal, streams

TRIED = 2  # edges tried for each input of the top node


def state_selection(costs: NodeCosts, limits: Limits) -> list[Candidate]:
    """The plans from the mjoin to one within the limits, or to where no stored result helps."""
    # 1: P = P_mjoin
    inputs: list[Shape] = list(range(len(costs.problem.streams)))
    path = [_priced(costs, inputs)]
    # 3: while (CPU_r > CPU_avail) AND (Mem_r < Mem_avail)
    while path[-1].cpu > limits.cpu and len(inputs) > 2:
        merged = _merge_best(costs, limits, inputs, path[-1])
        if merged is None:  # 17: if |E| = 0
            break
        inputs = merged
        path.append(_priced(costs, inputs))
    return path


def _priced(costs: NodeCosts, inputs: list[Shape]) -> Candidate:
    shape = normal(tuple(inputs))
    return Candidate(costs.cpu(shape), costs.memory(shape), shape)


def _merge_best(costs: NodeCosts, limits: Limits, inputs: list[Shape], now: Candidate) -> list[Shape] | None:
    """The inputs after the first merge, by falling frequency / weight, that lowers the CPU within the memory."""
    blocks = tuple(map(streams, inputs))
    top_now = costs.node_cpu(blocks)
    # 6: Choose E_i ∈ E with max(frequency / weight)
    for x, y in ranked_edges(costs, blocks)[: TRIED * len(blocks)]:
        rest = [s for k, s in enumerate(inputs) if k not in (x, y)]
        fitting = []
        for shape in _implementations(inputs[x], inputs[y]):
            memory = now.memory + _states(costs, shape) - _states(costs, inputs[x]) - _states(costs, inputs[y])
            if limits.allow(0.0, memory):
                fitting.append((memory, shape))
        if not fitting:
            continue
        # 8: JG_new = merge V_x and V_y    10: P_new ← MJoin_Ordering(JG_new)
        top_change = costs.node_cpu((*(streams(s) for s in rest), blocks[x] | blocks[y])) - top_now
        options = []
        for memory, shape in fitting:
            cpu = now.cpu + top_change + _below(costs, shape) - _below(costs, inputs[x]) - _below(costs, inputs[y])
            options.append((cpu, memory, shape))
        # 9: Optimize(V_xy)    12: if CPU_new < CPU_r
        cpu, _, shape = min(options, key=lambda o: o[:2])
        if cpu < now.cpu:
            return [*rest, shape]
    return None


def ranked_edges(costs: NodeCosts, blocks: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs of inputs with a predicate between them, by falling frequency / weight."""
    around = [costs.problem.linked(mask) for mask in blocks]
    linked = [(x, y) for x, y in combinations(range(len(blocks)), 2) if around[x] & blocks[y]]
    frequency = neighbours(costs, blocks)

    def worth(pair: tuple[int, int]) -> float:
        weight = costs.holding(blocks[pair[0]] | blocks[pair[1]])
        return frequency[pair] / weight if weight else float("inf")

    return sorted(linked, key=lambda pair: (-worth(pair), pair))


def neighbours(costs: NodeCosts, blocks: tuple[int, ...]) -> Counter[tuple[int, int]]:
    """How often each two inputs are next to each other in the join sequences of a node."""
    ordering = costs.node(blocks)
    place = {mask: i for i, mask in enumerate(blocks)}
    found: Counter[tuple[int, int]] = Counter()
    for start, order in enumerate(ordering.orders):
        sequence = [place[ordering.blocks[j]] for j in (start, *order)]
        found.update((min(pair), max(pair)) for pair in pairwise(sequence))
    return found


def _implementations(x: Shape, y: Shape) -> list[Shape]:
    """The ways to join two inputs: as they are, or with the nodes among them taken apart."""
    made: list[Shape] = [(x, y)]
    if not isinstance(x, int):
        made.append((*x, y))
    if not isinstance(y, int):
        made.append((x, *y))
    if not isinstance(x, int) and not isinstance(y, int):
        made.append((*x, *y))
    return made


def _below(costs: NodeCosts, shape: Shape) -> float:
    """CPU of the nodes of an input."""
    return sum(costs.node_cpu(tuple(map(streams, node))) for node in inner(shape))


def _states(costs: NodeCosts, shape: Shape) -> float:
    return sum(costs.holding(streams(node)) for node in inner(shape))
