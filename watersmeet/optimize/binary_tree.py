"""Best binary tree (bjtree): which pairs to join, bushy, of least CPU.

A binary tree's CPU is the sum over its nodes of (probes and matches of both inputs + upkeep of the result), and each
term depends only on the two sets of streams joined. So the best tree for a set is the best split of it into two sets
with their best trees.

*Exact*: dynamic programming over connected subgraphs: every pair of disjoint connected sets with an edge between them
is looked at once, smaller unions first. A chain of 20 streams has 1,330 such pairs, a star of 20 five million: beyond
`max_pairs` the search gives up and the heuristic takes over. *Greedy*: join the two sets whose node costs least,
again and again.

Cartesian products: up to CARTESIAN streams every pair of streams counts as an edge, so they are taken where they pay.
Beyond, an edge is added between unlinked streams whose product is smaller than any join of theirs; and parts that no
predicate connects are linked.

problem: rates and prices. max_pairs: pairs of connected sets to look at before the greedy way is taken.

>>> from watersmeet.model.statistics import Costs
>>> from watersmeet.optimize.problem import Problem
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> best_binary_tree(NodeCosts(Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp)))
((0, 1), (2, 3))

Source: qualified-plans 5.1 (Find_BJTree_Ordering, cited only) and static-optimization section 4; the enumeration is
that of Moerkotte and Neumann (2006), which qualified-plans cites.
Unclear in the papers, settled as: which search; "beyond a stated size" is a number of pairs, because shape matters
more than size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.problem import members
from watersmeet.optimize.shape import Shape

CARTESIAN = 7
MAX_PAIRS = 2_000


def best_binary_tree(costs: NodeCosts, max_pairs: int = MAX_PAIRS) -> Shape:
    """The binary tree of least CPU, exact if there are at most `max_pairs` pairs to look at, else greedy."""
    links = edges(costs)
    exact = exact_binary_tree(costs, links, max_pairs)
    return greedy_binary_tree(costs, links) if exact is None else exact


def edges(costs: NodeCosts) -> tuple[int, ...]:
    """For each stream those it may be joined with directly: by a predicate, or by a product that may pay or must be."""
    problem = costs.problem
    n, size = len(problem.streams), problem.rates.size
    if n <= CARTESIAN:
        return tuple(problem.all & ~(1 << s) for s in range(n))
    links = list(problem.neighbours)

    def join(i: int, j: int) -> None:
        links[i] |= 1 << j
        links[j] |= 1 << i

    least = [min((size(1 << i | 1 << j) for j in members(links[i])), default=float("inf")) for i in range(n)]
    for i, j in combinations(range(n), 2):
        if not problem.neighbours[i] >> j & 1 and size(1 << i | 1 << j) < min(least[i], least[j]):
            join(i, j)
    for part, other in combinations(problem.components, 2):
        for i in members(part):
            for j in members(other):
                join(i, j)
    return tuple(links)


def exact_binary_tree(costs: NodeCosts, links: tuple[int, ...], max_pairs: int) -> Shape | None:
    """The best tree by dynamic programming over connected subgraphs; None if there are more than `max_pairs` pairs."""
    most = max(map(int.bit_count, links))
    if most * 2 ** (most - 1) > max_pairs:  # a star of one stream and those it is linked with has so many
        return None
    pairs: list[tuple[int, int]] = []
    for pair in connected_pairs(links):
        pairs.append(pair)
        if len(pairs) > max_pairs:
            return None
    best: dict[int, tuple[float, Shape]] = {1 << s: (0.0, s) for s in range(len(links))}
    for left, right in sorted(pairs, key=lambda p: (p[0] | p[1]).bit_count()):
        below, known = best[left][0] + best[right][0], best.get(left | right)
        if known is None or below < known[0]:  # else it is no better, whatever its node costs
            cpu = below + costs.node_cpu((left, right))
            if known is None or cpu < known[0]:
                best[left | right] = cpu, (best[left][1], best[right][1])
    return best[costs.problem.all][1]


def greedy_binary_tree(costs: NodeCosts, links: tuple[int, ...]) -> Shape:
    """Join the two linked parts whose node costs least until one part is left."""
    parts: list[Shape] = list(range(len(links)))
    blocks, around, left = [1 << s for s in range(len(links))], list(links), list(range(len(links)))

    def option(i: int, j: int) -> tuple[float, int, int]:
        return costs.node_cpu((blocks[i], blocks[j])), i, j

    options = [option(i, j) for i, j in combinations(left, 2) if around[i] & blocks[j]]
    while len(left) > 1:
        _, i, j = min(options)  # there is one: `edges` links all parts
        joined = len(parts)
        parts.append((parts[i], parts[j]))
        blocks.append(blocks[i] | blocks[j])
        around.append((around[i] | around[j]) & ~blocks[joined])
        left = [k for k in left if k not in (i, j)]
        options = [o for o in options if o[1] in left and o[2] in left]
        options += [option(k, joined) for k in left if around[joined] & blocks[k]]
        left.append(joined)
    return parts[-1]


def connected_pairs(links: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Every unordered pair of disjoint connected sets with an edge between them, once.

    >>> len(list(connected_pairs((0b010, 0b101, 0b010))))
    4
    """
    known: dict[int, int] = {}

    def around(part: int) -> int:
        """The streams beside a part."""
        found = known.get(part)
        if found is None:
            found = 0
            for s in members(part):
                found |= links[s]
            known[part] = found = found & ~part
        return found

    for s in range(len(links) - 1, -1, -1):
        start, below = 1 << s, (1 << s) - 1
        for first in _grown(around, start, below | start):
            # the second set holds no stream below first's lowest: otherwise the pair would come twice
            lowest = first & -first
            barred = (lowest - 1) | lowest | first
            beside = around(first) & ~barred
            for t in sorted(members(beside), reverse=True):
                for second in _grown(around, 1 << t, barred | (beside & ((1 << t + 1) - 1))):
                    yield first, second


def _grown(around: Callable[[int], int], start: int, barred: int) -> Iterator[int]:
    """All connected sets that contain `start` and, besides it, nothing barred."""
    yield start
    beside = chosen = around(start) & ~barred
    while chosen:
        yield from _grown(around, start | chosen, barred | beside)
        chosen = (chosen - 1) & beside
