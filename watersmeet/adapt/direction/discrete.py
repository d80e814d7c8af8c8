"""The discrete knapsack: whole paths only, by dynamic programming over whole units of resources; the paper's bound for one cycle.

    best[m] = max(best[m − 1], max over paths of best[m − X] + r)

`at_most`: how often a path may be taken (None: as often as it fits). `first_fit` is the greedy way, which is not
optimal here: what is left over after the most productive path may fit no other.

>>> table_2 = (Entry("A", 15, 4), Entry("B", 16, 5), Entry("C", 10, 1))
>>> first_fit(table_2, 30), knapsack(table_2, 30), knapsack(table_2, 30, at_most=1)
((('B', 1), ('C', 1)), (('A', 2),), (('B', 1), ('C', 1)))
>>> [worth(table_2, c) for c in (first_fit(table_2, 30), knapsack(table_2, 30))]
[6, 8]

Source: jaqpot 4.1, Problem 1 (equations 9 and 10, with r = M·X·ρ_p for the printed M·ρ_p). O(k·μ).
"""

from __future__ import annotations

from watersmeet.adapt.direction.productivity import Entry
from watersmeet.errors import QueryError

Chosen = tuple[tuple[str, int], ...]


def knapsack(table: tuple[Entry, ...], resources: int, at_most: int | None = None) -> Chosen:
    """How often to take each path, so that the results are most. Resources must be whole numbers."""
    sizes = [int(e.resources) for e in table]
    if any(size != e.resources or size < 1 for size, e in zip(sizes, table, strict=True)):
        raise QueryError("the discrete knapsack needs whole numbers of resources, at least 1 for each path")
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, (0,) * len(table))] * (resources + 1)
    for k, (size, entry) in enumerate(zip(sizes, table, strict=True)):
        for _ in range(1 if at_most is None else at_most):
            before = best if at_most is None else list(best)  # itself: a path may be taken on top of itself
            for m in range(size, resources + 1):
                so_far, counts = before[m - size]
                if so_far + entry.output_rate > best[m][0]:
                    best[m] = so_far + entry.output_rate, (*counts[:k], counts[k] + 1, *counts[k + 1 :])
    return tuple((e.stream, n) for e, n in zip(table, best[resources][1], strict=True) if n)


def first_fit(table: tuple[Entry, ...], resources: float) -> Chosen:
    """The most productive path that still fits, again and again."""
    counts: dict[str, int] = {}
    for entry in sorted(table, key=lambda e: -e.productivity):
        times = int(resources // entry.resources)
        resources -= times * entry.resources
        if times:
            counts[entry.stream] = times
    return tuple(counts.items())


def worth(table: tuple[Entry, ...], chosen: Chosen) -> float:
    rate = {e.stream: e.output_rate for e in table}
    return sum(rate[stream] * times for stream, times in chosen)
