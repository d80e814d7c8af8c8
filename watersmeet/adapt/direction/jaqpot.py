"""JAQPOT: refresh the states first, with as few resources as possible; the rest goes where it gives the most results.

    1: PathAssign[][] ← GH-WMSCP(τ_p[][1..k], R_S)
    2: Δμ ← Σ PathAssign
    3: PathAssign[][] ← GrePP(μ − Δμ, τ_p[][1..k])

Where the tolerances can't be kept, because states can't be refreshed so often or the resources do not suffice, the
answer says so, and all goes to GrePP; `least_tolerance` is what could be kept.

>>> rate, rho = {"A": 500, "B": 500, "C": 500}, {"A": 1, "B": 0.8, "(A B)": 1, "C": 2}
>>> states = {"A": 1000, "B": 1000, "C": 1000, "(A B)": 400}
>>> tree = JoinTree.of("((A B) C)", rate, rho, states=states)
>>> print(jaqpot(tree, 900, tolerances(tree, 1.5)))
A 400, (A B) 400, C 100: 600 results/s with 900, 800 of them for freshness
>>> print(jaqpot(tree, 700, tolerances(tree, 1.5)))
A 100, (A B) 100, C 500: 1100 results/s with 700; the tolerances can't be kept
>>> round(least_tolerance(tree, 700), 3)
1.571

Source: jaqpot 4.3, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

from watersmeet.adapt.direction.assignment import Assignment
from watersmeet.adapt.direction.grepp import grepp
from watersmeet.adapt.direction.half_joins import JoinTree
from watersmeet.adapt.direction.lemmas import refresh_rates, tolerances
from watersmeet.adapt.direction.paths import Path, paths
from watersmeet.adapt.direction.set_cover import Cover, greedy_cover

Covering = Callable[[tuple[Path, ...], Mapping[str, float]], Cover]
HIGHEST = 1e6  # times the window


def jaqpot(
    tree: JoinTree, resources: float, tolerance: Mapping[str, float], cover: Covering = greedy_cover
) -> Assignment:
    """The assignment of Algorithm 1. tolerance: seconds, by stream."""
    every = paths(tree)
    found = cover(every, refresh_rates(tree, tolerance))
    if not found.feasible or found.resources > resources:
        return replace(grepp(every, resources), feasible=False)
    cost = {p.stream: p.cost for p in every}
    taken = {stream: let_in * cost[stream] for stream, let_in in found.let_in}
    return replace(grepp(every, resources - found.resources, taken), for_freshness=found.resources)


def least_tolerance(tree: JoinTree, resources: float) -> float:
    """The least tolerance, in windows of each stream, that can be kept with these resources; inf: none."""
    every = paths(tree)

    def kept(times: float) -> bool:
        found = greedy_cover(every, refresh_rates(tree, tolerances(tree, times)))
        return found.feasible and found.resources <= resources

    if not kept(HIGHEST):
        return inf
    low, high = 1.0, HIGHEST
    while high / low > 1 + 1e-9:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high
