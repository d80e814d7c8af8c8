"""Random cache selection problems as MJoins have them: caches that overlap contain each other, and groups span pipelines."""

from __future__ import annotations

import numpy as np

from watersmeet.adapt.selection import Candidate, Problem
from watersmeet.adapt.selection.problem import Operator


def random_problem(seed: int, streams: int, sharing: bool = True) -> Problem:
    """Sets of streams that satisfy the prefix invariant form a tree (merge two, then merge again); every stream outside a set that has it
    side by side in its pipeline has a candidate, and all of these share."""
    rng = np.random.default_rng(seed)
    names = [chr(ord("A") + i) for i in range(streams)]
    roots = [frozenset(n) for n in names]
    sets: list[frozenset[str]] = []
    while len(roots) > 2:
        first, second = (roots[i] for i in rng.choice(len(roots), 2, replace=False))
        roots = [r for r in roots if r not in (first, second)] + [first | second]
        if rng.random() < 0.8:
            sets.append(first | second)
    sets = [s for s in sets if len(s) < streams]
    proc: dict[Operator, float] = {}
    candidates: list[Candidate] = []
    upkeep: dict[str, float] = {}
    for name in names:
        order = _order(rng, name, names, sets)
        for j in range(streams - 1):
            proc[name, j] = float(rng.exponential(10))
        for members in sets:
            places = sorted(order.index(m) for m in members) if name not in members else []
            if places and places[-1] - places[0] + 1 == len(members):
                group = "".join(sorted(members)) + ("" if sharing else f"/{name}")
                whole = sum(proc[name, j] for j in range(places[0], places[-1] + 1))
                candidates.append(Candidate(name, places[0], places[-1], group, float(rng.uniform(0.05, 1.3)) * whole))
                upkeep.setdefault(group, float(rng.exponential(8)))
    return Problem(proc, tuple(candidates), upkeep)


def _order(rng: np.random.Generator, name: str, names: list[str], sets: list[frozenset[str]]) -> list[str]:
    """A probe order that keeps the smallest sets together, so that there are candidates."""
    blocks: list[list[str]] = [[n] for n in names if n != name]
    for members in sorted(sets, key=len):
        inside = [b for b in blocks if members >= set(b)]
        if name not in members and inside:
            outside = [b for b in blocks if not members >= set(b)]
            rng.shuffle(inside)
            blocks = [*outside, [n for b in inside for n in b]]
    rng.shuffle(blocks)
    return [n for b in blocks for n in b]
