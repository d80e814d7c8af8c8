"""Pareto JTree-Finder: every plan that no other plan beats in both CPU and memory, exactly, and so a qualified plan if there is one.

JTree-Finder (jtree_finder.py) keeps all sub-plans of every set of streams. But a plan's CPU and memory are sums over
its nodes, and a node's part depends only on the sets of streams that it joins. So of two plans for the same set, one
that needs no less CPU and no less memory can be replaced by the other wherever it is used: only non-dominated
sub-plans need to be kept. For each set V, smaller sets first:

    plans(V) = non-dominated of  node(B_1, ..., B_m) + Σ plans(B_i)      over all partitions of V into m ≥ 2 blocks

where node() is the least work over all probe orders (all partitions with m blocks are priced side by side). A
partition whose best conceivable corner (least CPU of all blocks, least memory of all blocks) is dominated is not
looked into. With limits, sub-plans that can't be completed within them are dropped: costs only grow.

problem: rates and prices; at most MAX_STREAMS streams (the partitions of 10 streams and their subsets number 678,569).
limits: CPU and memory; without them the whole front is found.

>>> from watersmeet.model.statistics import Costs
>>> qp = Costs(probe=0, match=2.2e-6, insert=2e-7, delete=2e-7)
>>> chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
>>> costs = NodeCosts(Problem.of(dict.fromkeys("ABCD", 20), 1000, chain, qp))
>>> for plan in pareto_front(costs):
...     print(f"{plan.cpu:.4f} {plan.memory:.0f} {costs.tree(plan.shape)}")
35.2073 74000 ((A B) (C D))
35.5585 24000 ((A B) C D)
36.1808 4000 (A B C D)
>>> pareto_front(costs, Limits(cpu=35.9, memory=50_000))[0].shape
((0, 1), 2, 3)

Source: qualified-plans 3.3, Algorithm 1, as docs/internals/papers.md repairs it.
Departs from the paper in: dominated sub-plans are dropped; no early stop when a size has no plan within the limits
(unsound: the test `four_cycle` has the counter-example).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf
from typing import Any

import numpy as np

from watersmeet.errors import PlanError
from watersmeet.optimize.cost import TOLERANCE, Limits
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.problem import Problem, members
from watersmeet.optimize.shape import Shape, normal

MAX_STREAMS = 10
CHUNK = 20_000  # partitions priced side by side
ROUNDING = 1e-12  # sums of the same states in another order are the same


@dataclass(frozen=True, order=True)
class Candidate:
    """A plan's tree with its CPU and its memory in the problem's unit."""

    cpu: float
    memory: float
    shape: Shape


@dataclass(frozen=True)
class _Sub:
    """A sub-plan: the blocks of its top node and which sub-plan of each block."""

    cpu: float
    memory: float
    blocks: tuple[int, ...] = ()
    picks: tuple[int, ...] = ()


def pareto_front(costs: NodeCosts, limits: Limits | None = None) -> list[Candidate]:
    """The non-dominated plans within the limits, cheapest CPU first; none if no plan fits."""
    n = len(costs.problem.streams)
    if n > MAX_STREAMS:
        raise PlanError(f"the exact search takes at most {MAX_STREAMS} streams, not {n}: use two_layer")
    front = _Search(costs, limits or Limits()).run()
    return _with_groups(costs, limits or Limits(), front) if costs.problem.grouped else front


def _with_groups(costs: NodeCosts, limits: Limits, front: list[Candidate]) -> list[Candidate]:
    """The front with the plan of one node as it is when rows go through it in groups: no other has less memory."""
    shape = tuple(range(len(costs.problem.streams)))
    mjoin = Candidate(costs.cpu(shape), costs.memory(shape), shape)
    others = [p for p in front if p.cpu < mjoin.cpu and normal(p.shape) != shape]
    return [*others, mjoin] if limits.allow(mjoin.cpu, mjoin.memory) else others


class _Search:
    def __init__(self, costs: NodeCosts, limits: Limits) -> None:
        self.costs, self.problem, self.limits = costs, costs.problem, limits
        n = len(self.problem.streams)
        self.work = _PartitionWork(self.problem)
        self.fronts: dict[int, list[_Sub]] = {}
        self.least_cpu = np.full(1 << n, inf)
        self.least_memory = np.full(1 << n, inf)
        for s in range(n):
            self._settle(1 << s, [_Sub(costs.upkeep(1 << s), costs.holding(1 << s))])
        rates = self.problem.rates
        self.output = (
            self.problem.root_passes * self.problem.costs.match * rates.made(self.problem.all, self.problem.all)
        )

    def run(self) -> list[Candidate]:
        n = len(self.problem.streams)
        for k in range(2, n + 1):
            sets = [sum(1 << s for s in chosen) for chosen in combinations(range(n), k)]
            tables = [(m, self._global(sets, local)) for m, local in partition_masks(k)]
            priced = [(blocks, self.work.of(blocks)) for _, blocks in tables]
            for at, mask in enumerate(sets):
                self._settle(mask, self._plans(mask, [(b[at], w[at]) for b, w in priced]))
        return [Candidate(p.cpu, p.memory, self._shape(p)) for p in self.fronts[self.problem.all]]

    def _global(self, sets: list[int], local: Any) -> Any:
        """Partitions of positions as partitions of each of the sets: [set, partition, block]."""
        made = np.zeros((len(sets), *local.shape), dtype=np.int64)
        for at, mask in enumerate(sets):
            for position, s in enumerate(members(mask)):
                made[at] |= (local >> position & 1) << s
        return made

    def _settle(self, mask: int, front: list[_Sub]) -> None:
        self.fronts[mask] = front
        if front:
            self.least_cpu[mask] = min(p.cpu for p in front)
            self.least_memory[mask] = min(p.memory for p in front)

    def _plans(self, mask: int, tables: list[tuple[Any, Any]]) -> list[_Sub]:
        """The non-dominated sub-plans of a set, from all its partitions and the work of their nodes."""
        whole = mask == self.problem.all
        passes = self.problem.root_passes if whole else self.problem.inner_passes
        own_cpu = 0.0 if whole else self.costs.upkeep(mask)
        own_memory = 0.0 if whole else self.costs.holding(mask)
        others = self.problem.all & ~mask
        spare_cpu = self.limits.cpu * (1 + TOLERANCE) - sum(self.costs.upkeep(1 << s) for s in members(others))
        if not whole:
            spare_cpu -= self.output
        spare_memory = self.limits.memory * (1 + TOLERANCE)
        spare_memory -= sum(self.costs.holding(1 << s) for s in members(others))
        front = _Front()
        for blocks, node, cpu, memory in self._corners(tables, passes, own_cpu, own_memory, spare_cpu, spare_memory):
            if front.dominates(cpu, memory):
                continue
            for sub in self._combined(blocks):
                total = _Sub(sub.cpu + node, sub.memory + own_memory, blocks, sub.picks)
                if total.cpu <= spare_cpu and total.memory <= spare_memory:
                    front.add(total)
        return front.plans

    def _corners(
        self, tables: list[tuple[Any, Any]], passes: int, own_cpu: float, own_memory: float, spare_cpu: float, spare_memory: float
    ) -> Iterator[tuple[tuple[int, ...], float, float, float]]:  # fmt: skip
        """Partitions that may hold something, least CPU first: blocks, the node's CPU, and the corner."""
        rows, nodes, cpus, memories = [], [], [], []
        for blocks, work in tables:
            node = passes * work + own_cpu
            cpu = node + self.least_cpu[blocks].sum(1)
            memory = own_memory + self.least_memory[blocks].sum(1)
            fits = np.flatnonzero((cpu <= spare_cpu) & (memory <= spare_memory) & (cpu < inf))
            rows += blocks[fits].tolist()
            nodes.append(node[fits])
            cpus.append(cpu[fits])
            memories.append(memory[fits])
        node, cpu, memory = (np.concatenate(x) for x in (nodes, cpus, memories))
        for i in np.lexsort((memory, cpu)).tolist():
            yield tuple(rows[i]), float(node[i]), float(cpu[i]), float(memory[i])

    def _combined(self, blocks: tuple[int, ...]) -> list[_Sub]:
        """The non-dominated sums of one sub-plan of each block."""
        made = [_Sub(0.0, 0.0)]
        for block in blocks:
            options = self.fronts[block]
            if len(made) == 1 and len(options) == 1:
                a, b = made[0], options[0]
                made = [_Sub(a.cpu + b.cpu, a.memory + b.memory, (), (*a.picks, 0))]
                continue
            front = _Front()
            sums = [(a.cpu + b.cpu, a.memory + b.memory, a, i) for a in made for i, b in enumerate(options)]
            for cpu, memory, a, i in sorted(sums, key=lambda s: s[:2]):
                if not front.plans or memory * (1 + ROUNDING) < front.plans[-1].memory:
                    front.plans.append(_Sub(cpu, memory, (), (*a.picks, i)))
            made = front.plans
        return made

    def _shape(self, sub: _Sub) -> Shape:
        inputs: list[Shape] = []
        for block, pick in zip(sub.blocks, sub.picks, strict=True):
            inputs.append(self._shape(self.fronts[block][pick]) if block & (block - 1) else block.bit_length() - 1)
        return tuple(inputs)


class _Front:
    """Non-dominated sub-plans, rising CPU, falling memory."""

    def __init__(self) -> None:
        self.plans: list[_Sub] = []

    def dominates(self, cpu: float, memory: float) -> bool:
        at = bisect_right(self.plans, cpu, key=lambda p: p.cpu)
        return at > 0 and self.plans[at - 1].memory <= memory * (1 + ROUNDING)

    def add(self, plan: _Sub) -> None:
        if self.dominates(plan.cpu, plan.memory):
            return
        at = end = bisect_left(self.plans, plan.cpu, key=lambda p: p.cpu)
        while end < len(self.plans) and self.plans[end].memory * (1 + ROUNDING) >= plan.memory:
            end += 1
        self.plans[at:end] = [plan]


class _PartitionWork:
    """Least work of nodes, over all probe orders, for many nodes with equally many inputs at a time."""

    def __init__(self, problem: Problem) -> None:
        rates, n = problem.rates, len(problem.streams)
        masks = range(1 << n)
        self.costs, self.symmetric, self.plain = problem.costs, rates.symmetric, rates.equalities_only
        self.passed = np.array([rates.passed(m) for m in masks])
        self.turnover = np.array([rates.turnovers(m) for m in masks])
        around = np.zeros(1 << n, dtype=np.int64)
        for s in range(n):
            around[np.arange(1 << n) >> s & 1 == 1] |= rates.hash_links[s]
        self.around = around
        if self.symmetric:
            self.found = np.array([rates.matched(m) for m in masks])
        else:
            each = np.array([[rates.found(1 << k, m) if m >> k & 1 else 0.0 for m in masks] for k in range(n)])
            inside = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(float)
            self.found = inside @ each  # [arriving, set]

    def of(self, blocks: Any) -> Any:
        """Work of the nodes whose inputs are the blocks [..., m]; one pass."""
        flat = blocks.reshape(-1, blocks.shape[-1])
        made = [self._chunk(flat[i : i + CHUNK]) for i in range(0, len(flat), CHUNK)]
        return np.concatenate(made).reshape(blocks.shape[:-1])

    def _chunk(self, blocks: Any) -> Any:
        count, m = blocks.shape
        union = np.zeros((1 << m, count), dtype=np.int64)
        for s in range(1, 1 << m):
            low = s & -s
            union[s] = union[s ^ low] | blocks[:, low.bit_length() - 1]
        total = np.zeros(count)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.symmetric:
                least = self._least(blocks, union, self.found[union])
                for i in range(m):
                    turnover = self.turnover[blocks[:, i]]
                    total += np.where(turnover > 0, turnover * least[1 << i], 0.0)
            else:
                for i in range(m):
                    total += self._least(blocks, union, self.found[blocks[:, i], union])[1 << i]
        return total

    def _least(self, blocks: Any, union: Any, found: Any) -> Any:
        """[subset of inputs, node]: the least work from there to the end of the pipeline (mjoin_order.py)."""
        m, costs = blocks.shape[1], self.costs
        passed = self.passed[union]
        size = found if self.plain else found * passed
        least = np.zeros(size.shape)
        for s in range((1 << m) - 2, 0, -1):
            best: Any = inf
            for j in range(m):
                if s >> j & 1:
                    continue
                t = s | 1 << j
                returned = size[t]
                if not self.plain:
                    linked = self.around[blocks[:, j]] & union[s] != 0
                    returned = np.where(linked, found[t] * passed[s] * passed[1 << j], returned)
                best = np.minimum(best, costs.match * returned + least[t])
            least[s] = costs.probe * size[s] + best
        return least


@lru_cache(maxsize=16)
def partition_masks(k: int) -> tuple[tuple[int, Any], ...]:
    """The partitions of k positions by number of blocks m ≥ 2: (m, [partition, block] as sets of positions).

    >>> [(m, len(masks)) for m, masks in partition_masks(4)]
    [(2, 7), (3, 6), (4, 1)]
    """
    rows: list[list[int]] = [[1]]
    for position in range(1, k):
        bit = 1 << position
        rows = [
            [*row[:i], row[i] | bit, *row[i + 1 :]] if i < len(row) else [*row, bit]
            for row in rows
            for i in range(len(row) + 1)
        ]
    return tuple((m, np.array([r for r in rows if len(r) == m], dtype=np.int64)) for m in range(2, k + 1))
