"""Probe orders of one node on arrays: the decisions of mjoin_order.py for problems with symmetric selectivities, much faster.

There D(J, P) = ν_J · |P|, so an order depends on its start only through the set it starts from, and sizes are sums of
logarithms:

    log |P| = Σ_i log W_i + Σ_{i<j} log f_ij  +  classes and copies, which are no sums over pairs

*Exact*: one pass over all subsets of the inputs serves every start. *Least next*: all starts take their steps side by
side.

>>> from watersmeet.optimize.problem import Problem
>>> set_4 = Problem.of(dict.fromkeys("ABCD", 20), 1000, {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05})
>>> work, orders = ArrayOrders(set_4).exact((1, 2, 4, 8))
>>> orders[2]
(1, 0, 3)

Source: the same as mjoin_order.py, which is the reference; a test compares the two.
"""

from __future__ import annotations

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

    def exact(self, blocks: tuple[int, ...]) -> tuple[float, tuple[tuple[int, ...], ...]]:
        """Least work of the node and the order of each input that has it."""
        m = len(blocks)
        inside, weight, equal, compared, linked = self._blocks(blocks)
        bits, after, layers = subsets(m)
        log_size = bits @ weight + 0.5 * ((bits @ (equal + compared)) * bits).sum(1)
        growth = bits @ equal + weight
        growth += np.where(bits @ linked > 0, 0.0, bits @ compared)
        if self.special:
            extra = self._special(bits @ inside > 0)
            log_size += extra
            growth += extra[after] - extra[:, None]
        costs = self.problem.costs
        with np.errstate(over="ignore"):
            step = costs.probe * np.exp(log_size)[:, None] + costs.match * np.exp(log_size[:, None] + growth)
        step[bits > 0] = np.inf
        least = np.zeros(1 << m)
        choice = np.zeros(1 << m, dtype=int)
        for layer in layers:
            work = step[layer] + least[after[layer]]
            best = work.argmin(1)
            choice[layer] = best
            least[layer] = work[np.arange(len(layer)), best]
        turnover = inside @ self.turnover
        total = float(sum(t * least[1 << i] for i, t in enumerate(turnover) if t))
        return total, tuple(_follow(choice, i, m) for i in range(m))

    def least_next(self, blocks: tuple[int, ...]) -> tuple[float, tuple[tuple[int, ...], ...]]:
        """Work of the greedy orders, and the orders."""
        if not self.special and self.problem.rates.equalities_only:
            return self._least_next_by_pairs(blocks)
        m = len(blocks)
        inside, weight, equal, compared, linked = self._blocks(blocks)
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

    def _least_next_by_pairs(self, blocks: tuple[int, ...]) -> tuple[float, tuple[tuple[int, ...], ...]]:
        """The same where sizes are sums over pairs: what each block adds to each prefix is all there is to keep."""
        m = len(blocks)
        inside, weight, equal, _, _ = self._blocks(blocks)
        rows = np.arange(m)
        growth = equal + weight
        np.fill_diagonal(growth, np.inf)
        log_size = np.empty((m, m))
        log_size[0] = weight
        orders = np.empty((m - 1, m), dtype=int)
        for t in range(m - 1):
            pick = growth.argmin(1)
            orders[t] = pick
            np.add(log_size[t], growth[rows, pick], out=log_size[t + 1])
            growth += equal[pick]
            growth[rows, pick] = np.inf
        costs = self.problem.costs
        with np.errstate(over="ignore"):
            size = np.exp(log_size)
            total = costs.probe * size[:-1].sum(0) + costs.match * size[1:].sum(0)
        work = float(sum(t * w for t, w in zip((inside @ self.turnover).tolist(), total.tolist(), strict=True) if t))
        return work, tuple(map(tuple, orders.T.tolist()))

    def _blocks(self, blocks: tuple[int, ...]) -> tuple[Any, Any, Any, Any, Any]:
        """Membership, log size (classes and copies apart) and log selectivities between the blocks of a node."""
        inside = np.array([[mask >> s & 1 for s in range(self.n)] for mask in blocks], dtype=float)
        equal = inside @ self.equal @ inside.T
        compared = inside @ self.compared @ inside.T
        weight = inside @ self.window + 0.5 * (np.diag(equal) + np.diag(compared))
        np.fill_diagonal(equal, 0.0)
        np.fill_diagonal(compared, 0.0)
        return inside, weight, equal, compared, inside @ self.hashed @ inside.T

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


def _follow(choice: Any, start: int, m: int) -> tuple[int, ...]:
    order, s = [], 1 << start
    for _ in range(m - 1):
        order.append(int(choice[s]))
        s |= 1 << order[-1]
    return tuple(order)


@lru_cache(maxsize=32)
def subsets(m: int) -> tuple[Any, Any, tuple[Any, ...]]:
    """For the subsets of m inputs: their bits, the subset after adding each input, and those of each size, largest first."""
    numbers = np.arange(1 << m)
    bits = (numbers[:, None] >> np.arange(m) & 1).astype(float)
    after = numbers[:, None] | 1 << np.arange(m)
    count = bits.sum(1)
    layers = tuple(np.flatnonzero(count == k) for k in range(m - 1, 0, -1))
    return bits, after, layers
