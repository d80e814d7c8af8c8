"""Cover every susceptible state with the fewest resources: GH-WMSCP (greedy), and the exact cover by linear programming.

    Δμ = min Σ_l X_l · M_l    subject to  Σ_l φ_j^l · M_l ≥ R_j  for every state j,   0 ≤ M_l ≤ λ_l          (11, 12)

M_l is tuples per second that path l lets in, X_l what each costs along the whole path, φ_j^l how many combinations it
puts into state j (0 if j is not on the path).

GH-WMSCP, as specified here (the paper cites it): count each demand as 1. Take the path with the least resources for
each demand it meets, states that are covered no longer counted; raise it until a state is covered or all its tuples
are let in; repeat.

Without the limits λ it costs at most H_m = 1 + 1/2 + … + 1/m times the exact cover of m states: while u are open, the
exact cover meets all u for OPT, so some path meets demands for at most OPT / u each, and the open ones sum to at most u.

>>> from watersmeet.adapt.direction.half_joins import JoinTree
>>> from watersmeet.adapt.direction.paths import paths
>>> tree = JoinTree.of("((A B) C)", {"A": 500, "B": 700, "C": 500}, {"A": 0.5, "B": 5, "(A B)": 5, "C": 1})
>>> print(greedy_cover(paths(tree), {"(A B)": 100}))
B 20: 120 resources
>>> print(exact_cover(paths(tree), {"(A B)": 10_000}))
the states can't be refreshed: (A B) needs 10000 a second and gets 3750

Source: jaqpot 4.2, Problem 2 (equations 11 and 12); ln m, which the paper gives, is below 1 for m ≤ 2.
Departs from the paper in: M is not a whole number, as in GrePP, so the exact cover is a linear program; λ limits M.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from watersmeet.adapt.direction.paths import Path

MET = 1e-12  # of a demand: what rounding may leave open


@dataclass(frozen=True)
class Cover:
    """Tuples per second that paths let in to keep states fresh, and what this costs. short: (state, needed, got)."""

    let_in: tuple[tuple[str, float], ...]
    resources: float
    short: tuple[tuple[str, float, float], ...] = ()

    @property
    def feasible(self) -> bool:
        return not self.short

    def __str__(self) -> str:
        if self.short:
            each = ", ".join(f"{state} needs {need:.6g} a second and gets {got:.6g}" for state, need, got in self.short)
            return f"the states can't be refreshed: {each}"
        return f"{', '.join(f'{s} {m:.6g}' for s, m in self.let_in if m) or 'nothing'}: {self.resources:.6g} resources"


def refreshes(path: Path) -> dict[str, float]:
    """φ_j: combinations that each tuple let into a path puts into each state on it."""
    return {h.node: phi for h, phi in zip(path.halves[:-1], path.cardinalities[1:], strict=False)}


def harmonic(m: int) -> float:
    """H_m, the bound of the greedy cover."""
    return sum(1 / i for i in range(1, m + 1))


def greedy_cover(every: tuple[Path, ...], demand: Mapping[str, float]) -> Cover:
    """GH-WMSCP. demand: R by state."""
    short = _short(every, demand)
    if short:
        return Cover((), 0.0, short)
    brings = {p.stream: refreshes(p) for p in every}
    left = {state: 1.0 for state, need in demand.items() if need > 0}
    let_in = dict.fromkeys(brings, 0.0)
    usable = {p.stream: p for p in every}
    while left:
        met = {u: sum(brings[u].get(s, 0.0) / demand[s] for s in left) for u in usable}
        helps = [(usable[u].cost / demands, u) for u, demands in met.items() if demands > 0]
        if not helps:  # only rounding is open: all that helps is in use
            break
        best = usable[min(helps)[1]]
        here = {s: brings[best.stream].get(s, 0.0) / demand[s] for s in left}
        room = best.rate - let_in[best.stream]
        more = min([room, *(left[s] / part for s, part in here.items() if part)])
        let_in[best.stream] += more
        if more == room:
            del usable[best.stream]
        left = {s: open_ - more * here[s] for s, open_ in left.items() if open_ - more * here[s] > MET}
    return Cover(tuple(let_in.items()), sum(p.cost * let_in[p.stream] for p in every))


def exact_cover(every: tuple[Path, ...], demand: Mapping[str, float]) -> Cover:
    """The cover with the fewest resources, by HiGHS."""
    from scipy.optimize import linprog

    short = _short(every, demand)
    if short:
        return Cover((), 0.0, short)
    states = [s for s, need in demand.items() if need > 0]
    if not states:
        return Cover(tuple((p.stream, 0.0) for p in every), 0.0)
    brings = [refreshes(p) for p in every]
    rows = np.array([[-b.get(s, 0.0) / demand[s] for b in brings] for s in states])
    cost = np.array([p.cost for p in every])
    found = linprog(
        cost / cost.max(), A_ub=rows, b_ub=-np.ones(len(states)), bounds=[(0, p.rate) for p in every], method="highs"
    )
    let_in = [float(m) for m in found.x]
    return Cover(tuple(zip((p.stream for p in every), let_in, strict=True)), float(cost @ found.x))


def _short(every: tuple[Path, ...], demand: Mapping[str, float]) -> tuple[tuple[str, float, float], ...]:
    """The states that stay short even if every tuple is let in everywhere."""
    got = dict.fromkeys(demand, 0.0)
    for path in every:
        for state, phi in refreshes(path).items():
            if state in got:
                got[state] += phi * path.rate
    return tuple((s, need, got[s]) for s, need in demand.items() if need > got[s] * (1 + MET))
