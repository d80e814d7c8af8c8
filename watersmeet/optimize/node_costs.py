"""NodeCosts: the least work of each node that a search considers, found once; trees priced from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from watersmeet.model.plan import Leaf, Node, Tree
from watersmeet.optimize.cost import holding, pipeline, upkeep
from watersmeet.optimize.mjoin_order import exact_order, least_next
from watersmeet.optimize.order_arrays import ArrayOrders
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.shape import Shape, inner, streams

EXACT_INPUTS = 9  # nodes with up to this many inputs get their exact probe orders, larger ones the greedy ones


@dataclass(frozen=True)
class Ordering:
    """Work (CPU seconds per second, one pass) of a node's pipelines and the orders, inputs numbered as in `blocks`."""

    blocks: tuple[int, ...]
    work: float
    orders: tuple[tuple[int, ...], ...]


class NodeCosts:
    """Prices nodes and trees of one problem.

    >>> problem = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2})
    >>> print(NodeCosts(problem).tree((2, (0, 1))))
    (C (A B))
    """

    def __init__(self, problem: Problem, exact_inputs: int = EXACT_INPUTS) -> None:
        self.problem, self.exact_inputs = problem, exact_inputs
        self.arrays = ArrayOrders(problem) if problem.symmetric else None
        self._nodes: dict[tuple[int, ...], Ordering] = {}
        self._upkeep: dict[int, float] = {}
        self._holding: dict[int, float] = {}
        n = len(problem.streams)
        self.base_cpu = sum(self.upkeep(1 << s) for s in range(n))
        self.base_memory = sum(self.holding(1 << s) for s in range(n))

    def node(self, blocks: tuple[int, ...]) -> Ordering:
        """The best orders known for a node with these inputs; exact up to `exact_inputs` of them."""
        key = tuple(sorted(blocks))
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = self._order(key)
        return found

    def _order(self, blocks: tuple[int, ...]) -> Ordering:
        exact = len(blocks) <= self.exact_inputs
        if len(blocks) == 2:
            return Ordering(blocks, self._pair(*blocks), ((1,), (0,)))
        if self.arrays is not None:
            return Ordering(blocks, *(self.arrays.exact(blocks) if exact else self.arrays.least_next(blocks)))
        one = exact_order if exact else least_next
        orders = tuple(one(self.problem, blocks, i) for i in range(len(blocks)))
        costs, work = self.problem.costs, 0.0
        for i, order in enumerate(orders):
            probes, matches = pipeline(self.problem, blocks, i, order)
            work += costs.probe * probes + costs.match * matches
        return Ordering(blocks, work, orders)

    def order_together(self, nodes: Iterable[tuple[int, ...]]) -> None:
        """Find the greedy orders that `node` will be asked for, those of nodes with as many inputs side by side."""
        if self.arrays is None:
            return
        by_inputs: dict[int, list[tuple[int, ...]]] = {}
        for key in {tuple(sorted(blocks)) for blocks in nodes} - self._nodes.keys():
            if len(key) > self.exact_inputs:
                by_inputs.setdefault(len(key), []).append(key)
        for same in by_inputs.values():
            for key, found in zip(same, self.arrays.least_next_of(same), strict=True):
                self._nodes[key] = Ordering(key, *found)

    def upkeep(self, mask: int) -> float:
        found = self._upkeep.get(mask)
        if found is None:
            found = self._upkeep[mask] = upkeep(self.problem, mask)
        return found

    def holding(self, mask: int) -> float:
        found = self._holding.get(mask)
        if found is None:
            found = self._holding[mask] = holding(self.problem, mask)
        return found

    def node_cpu(self, blocks: tuple[int, ...]) -> float:
        """CPU of a node: its pipelines, and its state unless it is the root.

        A node over all streams may get its rows in groups; what that saves with the windows is taken off here as well.
        """
        mask = sum(blocks)
        work = self._pair(*blocks) if len(blocks) == 2 else self.node(blocks).work
        if mask == self.problem.all:
            root = self.problem.root_passes * work
            if self.problem.grouped and len(blocks) == len(self.problem.streams):
                return self.problem.costs.together * (self.base_cpu + root) - self.base_cpu
            return root
        return self.problem.inner_passes * work + self.upkeep(mask)

    def _pair(self, left: int, right: int) -> float:
        """Work of a binary node: no order to find, so it is not worth keeping."""
        rates, costs = self.problem.rates, self.problem.costs
        if self.arrays is not None and rates.equalities_only:
            a, b = rates.turnovers(left), rates.turnovers(right)
            probing = costs.probe * (a * rates.size(left) + b * rates.size(right))
            return probing + costs.match * (a + b) * rates.size(left | right)
        probes = rates.made(left, left) + rates.made(right, right)
        matches = rates.candidates(left, left, right) + rates.candidates(right, right, left)
        return costs.probe * probes + costs.match * matches

    def cpu(self, shape: Shape) -> float:
        return self.base_cpu + sum(self.node_cpu(tuple(map(streams, node))) for node in inner(shape))

    def memory(self, shape: Shape) -> float:
        everything = self.problem.all
        states = (streams(node) for node in inner(shape))
        return self.base_memory + sum(self.holding(mask) for mask in states if mask != everything)

    def tree(self, shape: Shape) -> Node:
        """The shape as a plan's tree, with its probe orders."""
        made = self._tree(shape)
        assert isinstance(made, Node)
        return made

    def _tree(self, shape: Shape) -> Tree:
        if isinstance(shape, int):
            return Leaf(self.problem.names[shape])
        blocks = tuple(map(streams, shape))
        ordering = self.node(blocks)
        place = {mask: i for i, mask in enumerate(blocks)}
        orders: list[tuple[int, ...]] = [()] * len(blocks)
        for mask, order in zip(ordering.blocks, ordering.orders, strict=True):
            orders[place[mask]] = tuple(place[ordering.blocks[j]] for j in order)
        return Node(tuple(map(self._tree, shape)), tuple(orders))
