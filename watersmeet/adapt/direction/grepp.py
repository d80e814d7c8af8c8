"""GrePP: all resources to the most productive path, then to the next; as much of each as its stream has tuples.

    JAQPOT Policy: allocate μ iteratively to the most productive path remaining until μ is completely consumed

With fractions allowed this is the continuous knapsack, and greedy is optimal for it. `capped=False` lets a path take
more tuples than arrive, as the paper's example does (20.625 of 11 a second).

>>> from watersmeet.adapt.direction.half_joins import JoinTree
>>> from watersmeet.adapt.direction.paths import paths
>>> figure_4 = JoinTree.of("((A B) C)", {"A": 11, "B": 11, "C": 10}, {"A": 4 / 11, "B": 5 / 11, "(A B)": 1, "C": 0.1})
>>> print(grepp(paths(figure_4), 30, capped=False))
(A B) 9.375, B 20.625: 9.375 results/s with 30
>>> print(grepp(paths(figure_4), 30))
A 10.2667, (A B) 8.73333, B 11: 8.73333 results/s with 30

Source: jaqpot 4.1, "The Greedy Knapsack Solver".
Departs from the paper in: λ' ≤ λ, which Table 1 of the paper asks for and its example breaks.
"""

from __future__ import annotations

from collections.abc import Mapping

from watersmeet.adapt.direction.assignment import Assignment, along_paths
from watersmeet.adapt.direction.paths import Path


def grepp(
    every: tuple[Path, ...], resources: float, taken: Mapping[str, float] | None = None, *, capped: bool = True
) -> Assignment:
    """The best division of resources among paths. taken: what paths have been given before, which is on top of it."""
    given = dict(taken or {})
    left = resources
    for path in sorted(every, key=lambda p: (-p.productivity, p.stream)):
        before = given.get(path.stream, 0.0)
        more = min(left, max(path.rate * path.cost - before, 0.0)) if capped else left
        given[path.stream] = before + more
        left -= more
    return along_paths(every, given)
