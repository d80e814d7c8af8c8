"""MJoin ordering: in which order a tuple of each input probes the other inputs of its node.

The work of a pipeline that starts with the combinations over J and probes B_1, B_2, ..., B_m is

    Σ_t  probe · D(J, J B_1..B_{t−1}) + match · candidates(J, J B_1..B_{t−1}, B_t)

*Least next* (greedy): probe next what leaves fewest combinations. O(n³) for all inputs as written here, O(n² log n)
with a heap on a sparse graph; not optimal: a costly probe may open the way to one that empties the pipeline.

*Exact*: the least work from a set P of probed inputs on depends on P only, so dynamic programming over subsets finds
the best order in O(2^m · m) for each start. It is the bound that the greedy order is measured against, and what small
nodes use.

Both take Cartesian products where they pay: an input without a predicate to the prefix just has no factor f.

problem: rates and prices. blocks: the sets of streams of the node's inputs. start: the input whose order is wanted.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.cost import pipeline
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> set_4 = Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp)
>>> blocks = (1, 2, 4, 8)
>>> for order in (least_next(set_4, blocks, 2), exact_order(set_4, blocks, 2)):
...     _, matches = pipeline(set_4, blocks, 2, order)
...     print([set_4.names[j] for j in order], f"{matches - set_4.rates.made(4, 15):,.0f} tuples/s before the last join")
['D', 'B', 'A'] 201,000 tuples/s before the last join
['B', 'A', 'D'] 84,000 tuples/s before the last join

Source: cited only, by both papers (Viglas 2003, Golab 2003, Babu 2004); this specification is ours. qualified-plans
5.1 asks for O(n² log n).
"""

from __future__ import annotations

from watersmeet.optimize.problem import Problem


def least_next(problem: Problem, blocks: tuple[int, ...], start: int) -> tuple[int, ...]:
    """The greedy order: always the input that leaves fewest combinations; the first of them if several do."""
    rates, prefix = problem.rates, blocks[start]
    left = [j for j in range(len(blocks)) if j != start]
    order = []
    while left:
        best = min(left, key=lambda j: (rates.made(blocks[start], prefix | blocks[j]), j))
        order.append(best)
        left.remove(best)
        prefix |= blocks[best]
    return tuple(order)


def exact_order(problem: Problem, blocks: tuple[int, ...], start: int) -> tuple[int, ...]:
    """The order of least work, by dynamic programming over the subsets of inputs."""
    rates, costs, m = problem.rates, problem.costs, len(blocks)
    full = (1 << m) - 1
    union = [0] * (full + 1)
    for s in range(1, full + 1):
        low = s & -s
        union[s] = union[s ^ low] | blocks[low.bit_length() - 1]
    least = [0.0] * (full + 1)
    choice = [-1] * (full + 1)
    for s in range(full - 1, 0, -1):
        if not s >> start & 1:
            continue
        probe = costs.probe * rates.made(blocks[start], union[s])
        for j in range(m):
            if not s >> j & 1:
                match = costs.match * rates.candidates(blocks[start], union[s], blocks[j])
                work = probe + match + least[s | 1 << j]
                if choice[s] < 0 or work < least[s]:
                    least[s], choice[s] = work, j
    order, s = [], 1 << start
    while s != full:
        order.append(choice[s])
        s |= 1 << choice[s]
    return tuple(order)
