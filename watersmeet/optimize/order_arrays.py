"""Probe orders of one node on arrays: the decisions of mjoin_order.py for problems with symmetric selectivities, much faster.

There D(J, P) = ν_J · |P|, so an order depends on its start only through the set it starts from, and sizes are sums of
logarithms:

    log |P| = Σ_i log W_i + Σ_{i<j} log f_ij  +  classes and copies, which are no sums over pairs

*Exact*: one pass over all subsets of the inputs serves every start. *Least next*: all starts take their steps side by
side, where sizes are sums over pairs those of several nodes as well.

>>> from watersmeet.optimize.problem import Problem
>>> set_4 = Problem.of(dict.fromkeys("ABCD", 20), 1000, {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05})
>>> work, orders = ArrayOrders(set_4).exact((1, 2, 4, 8))
>>> orders[2]
(1, 0, 3)

Source: the same as mjoin_order.py, which is the reference; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from watersmeet.optimize.problem import Problem

LOG_ZERO = -1e4  # log of a selectivity of 0: any size that contains it is 0, and differences stay numbers


def log(values: Any) -> Any:
    """Natural logarithms, with LOG_ZERO for 0."""
    array = np.asarray(values, dtype=float)
    return np.log(array, out=np.full(array.shape, LOG_ZERO), where=array > 0)


class ArrayOrders:
    """Finds the probe orders of nodes of one problem. Work is in CPU seconds per second, for one pass."""

    def __init__(self, problem: Problem) -> None:
        rates, n = problem.rates, len(problem.streams)
        self.problem, self.n = problem, n
        self.turnover = np.array(rates.turnover)
        self.window = log([s.window for s in problem.streams])
        self.equal = log(rates.equal)
        self.compared = log(rates.compared)
        self.hashed = np.array([[bool(m >> j & 1) for j in range(n)] for m in rates.hash_links], dtype=float)
        self.shares = [(s.mask, float(np.log(s.count))) for s in problem.shares]
        self.classes = []
        for group in rates.classes:
            order = np.array(group.order)
            sel = log([[group.selectivity.get((i, j), 1.0) for j in group.order] for i in group.order])
            self.classes.append((order, np.triu(sel, 1)))  # [i, j]: of member j with an earlier member i
        self.special = bool(self.shares or self.classes)
        self.equalities_only = rates.equalities_only

    def exact(self, blocks: tuple[int, ...]) -> tuple[float, tuple[tuple[int, ...], ...]]:
        """Least work of the node and the order of each input that has it."""
        m, inside = len(blocks), self._inside(blocks)
        weight, equal, compared, linked = self._blocks(inside)
        bits, used, after, layers = subsets(m)
        by_equal = bits @ equal
        by_pair = by_equal if self.equalities_only else bits @ (equal + compared)
        log_size = bits @ weight + 0.5 * (by_pair * bits).sum(1)
        growth = by_equal + weight
        if not self.equalities_only:
            growth += np.where(bits @ linked > 0, 0.0, bits @ compared)
        if self.special:
            extra = self._special(bits @ inside > 0)
            log_size += extra
            growth += extra[after] - extra[:, None]
        costs = self.problem.costs
        with np.errstate(over="ignore"):
            step = costs.probe * np.exp(log_size)[:, None] + costs.match * np.exp(log_size[:, None] + growth)
        np.putmask(step, used, np.inf)
        least = np.zeros(1 << m)
        for layer, after_layer in layers:
            least[layer] = (step[layer] + least[after_layer]).min(1)
        turnover, from_start = (inside @ self.turnover).tolist(), least[1 << np.arange(m)].tolist()
        total = float(sum(t * w for t, w in zip(turnover, from_start, strict=True) if t))
        choice = (step + least[after]).argmin(1).tolist()
        return total, tuple(_follow(choice, i, m) for i in range(m))

    def least_next(self, blocks: tuple[int, ...]) -> tuple[float, tuple[tuple[int, ...], ...]]:
        """Work of the greedy orders, and the orders."""
        return self.least_next_of([blocks])[0]

    def least_next_of(self, nodes: Sequence[tuple[int, ...]]) -> list[tuple[float, tuple[tuple[int, ...], ...]]]:
        """The same for each of several nodes with as many inputs."""
        if self.special or not self.equalities_only:
            return [self._least_next_in_general(blocks) for blocks in nodes]
        return self._least_next_by_pairs(nodes)

    def _least_next_in_general(self, blocks: tuple[int, ...]) -> tuple[float, tuple[tuple[int, ...], ...]]:
        m, inside = len(blocks), self._inside(blocks)
        weight, equal, compared, linked = self._blocks(inside)
        rows = np.arange(m)
        present = inside > 0  # [start, stream]
        by_equal, by_compare, links = (
            equal.copy(),
            compared.copy(),
            linked.copy(),
        )  # prefix of each start with each block
        extra = self._special(present) if self.special else np.zeros(m)
        log_size = weight + extra
        used = np.eye(m, dtype=bool)
        turnover, costs = inside @ self.turnover, self.problem.costs
        total = np.zeros(m)
        orders = np.zeros((m, m - 1), dtype=int)
        for t in range(m - 1):
            grown = log_size[:, None] + weight + by_equal
            if self.special:
                after = self._special(present[:, None, :] | (inside > 0)[None, :, :])
                grown += after - extra[:, None]
            left = np.where(used, np.inf, grown + by_compare)
            pick = left.argmin(1)
            found = np.where(links[rows, pick] > 0, grown[rows, pick], left[rows, pick])
            with np.errstate(over="ignore"):
                total += costs.probe * np.exp(log_size) + costs.match * np.exp(found)
            log_size = left[rows, pick]
            orders[:, t] = pick
            used[rows, pick] = True
            by_equal += equal[pick]
            by_compare += compared[pick]
            links += linked[pick]
            if self.special:
                present |= inside[pick] > 0
                extra = after[rows, pick]
        work = float(sum(t * w for t, w in zip(turnover, total, strict=True) if t))
        return work, tuple(map(tuple, orders.tolist()))

    def _least_next_by_pairs(self, nodes: Sequence[tuple[int, ...]]) -> list[tuple[float, tuple[tuple[int, ...], ...]]]:
        """The same where sizes are sums over pairs: what each block adds to each prefix is all there is to keep."""
        g, m = len(nodes), len(nodes[0])
        inside = self._inside([mask for blocks in nodes for mask in blocks]).reshape(g, m, self.n)
        weight, equal, _, _ = self._blocks(inside)
        diagonal(equal)[...] = np.inf  # what is in a prefix is not picked again
        growth = (equal + weight[:, None, :]).reshape(g * m, m)  # [start of some node, block]
        growths, equal = growth.ravel(), equal.reshape(g * m, m)
        rows = np.arange(g * m)
        own_row, own_node = rows * m, rows - rows % m
        grown = np.empty((m, g * m))
        grown[0] = weight.ravel()
        orders = np.empty((m - 1, g * m), dtype=int)
        for t in range(m - 1):
            orders[t] = pick = growth.argmin(1)
            grown[t + 1] = growths[own_row + pick]
            growth += equal.take(own_node + pick, axis=0)
        costs = self.problem.costs
        with np.errstate(over="ignore"):
            size = np.exp(grown.cumsum(0))
            total = costs.probe * size[:-1].sum(0) + costs.match * size[1:].sum(0)
        work = zip((inside @ self.turnover).tolist(), total.reshape(g, m).tolist(), strict=True)
        each = orders.T.reshape(g, m, m - 1).tolist()
        return [
            (float(sum(t * w for t, w in zip(turnover, of_start, strict=True) if t)), tuple(map(tuple, found)))
            for (turnover, of_start), found in zip(work, each, strict=True)
        ]

    def _inside(self, blocks: Sequence[int]) -> Any:
        """Which stream is in which block: [block, stream]."""
        width = (self.n + 7) // 8
        packed = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in blocks), dtype=np.uint8)
        return np.unpackbits(packed.reshape(-1, width), axis=1, count=self.n, bitorder="little").astype(float)

    def _blocks(self, inside: Any) -> tuple[Any, Any, Any, Any]:
        """Log size (classes and copies apart) and log selectivities between the blocks of a node, or of each of several."""
        across = inside.swapaxes(-1, -2)
        equal = inside @ self.equal @ across
        if self.equalities_only:
            compared = linked = np.zeros_like(equal)
        else:
            compared, linked = inside @ self.compared @ across, inside @ self.hashed @ across
        weight = inside @ self.window + 0.5 * (diagonal(equal) + diagonal(compared))
        diagonal(equal)[...] = diagonal(compared)[...] = 0.0
        return weight, equal, compared, linked

    def _special(self, present: Any) -> Any:
        """Log of the classes' selectivity and of the copies, for sets of streams given as rows of flags."""
        found = np.zeros(present.shape[:-1])
        for order, sel in self.classes:
            there = present[..., order]
            least = np.where(there[..., :, None], sel, 0.0).min(-2)
            found += np.where(there, least, 0.0).sum(-1)
        for mask, count in self.shares:
            members = [s for s in range(self.n) if mask >> s & 1]
            found += np.where(present[..., members].any(-1), 0.0, count)
        return found


def diagonal(squares: Any) -> Any:
    """The diagonals of the squares in the last two axes, to read and to write."""
    return np.einsum("...ii->...i", squares)


def _follow(choice: list[int], start: int, m: int) -> tuple[int, ...]:
    order, s = [], 1 << start
    for _ in range(m - 1):
        order.append(choice[s])
        s |= 1 << order[-1]
    return tuple(order)


@lru_cache(maxsize=32)
def subsets(m: int) -> tuple[Any, Any, Any, tuple[tuple[Any, Any], ...]]:
    """The subsets of m inputs: bits, as numbers and as flags; the subsets after adding each input; those of each size.

    The last: the largest size first; the subsets, and again those after.
    """
    numbers = np.arange(1 << m)
    bits = (numbers[:, None] >> np.arange(m) & 1).astype(float)
    after = numbers[:, None] | 1 << np.arange(m)
    count = bits.sum(1)
    layers = [np.flatnonzero(count == k) for k in range(m - 1, 0, -1)]
    return bits, bits > 0, after, tuple((layer, after[layer]) for layer in layers)
