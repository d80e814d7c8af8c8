"""Every set of caches that do not overlap, and the cheapest of them: exact, and fast for up to some twenty candidates.

The idea: go through the candidates in order; take each, or leave it. What is chosen so far plus the most that the rest could still save,
upkeep forgotten, is a bound: a branch that can't beat the best found is left.

>>> from watersmeet.adapt.selection.problem import Candidate, Problem
>>> shared = (Candidate("T", 0, 1, "RS", 3.0), Candidate("U", 0, 1, "RS", 9.5))
>>> problem = Problem({(p, j): 5.0 for p in "TU" for j in range(2)}, shared, {"RS": 1.0})
>>> [str(c) for c in exhaustive(problem)], problem.total(exhaustive(problem))
(['T[0..1] of RS', 'U[0..1] of RS'], 13.5)

Source: a-caching 4.4 (exhaustive search is negligible for n <= 6) and Section 6 (over m candidates, where nothing approximates).
Departs from the paper in: branches are cut by a bound; the answer is the same.
"""

from __future__ import annotations

from watersmeet.adapt.selection.problem import Candidate, Problem


def exhaustive(problem: Problem) -> tuple[Candidate, ...]:
    useful = [c for c in problem.candidates if problem.benefit(c) > 0]
    useful.sort(key=lambda c: (-problem.benefit(c), c))
    saves = [problem.benefit(c) for c in useful]
    rest = [0.0] * (len(useful) + 1)
    for k in reversed(range(len(useful))):
        rest[k] = rest[k + 1] + saves[k]
    best: tuple[float, tuple[Candidate, ...]] = (0.0, ())

    def search(k: int, gained: float, chosen: tuple[Candidate, ...], groups: frozenset[str]) -> None:
        nonlocal best
        if gained > best[0]:
            best = gained, chosen
        if k == len(useful) or gained + rest[k] <= best[0]:
            return
        c = useful[k]
        if not any(c.overlaps(other) for other in chosen):
            upkeep = 0.0 if c.group in groups else problem.upkeep[c.group]
            search(k + 1, gained + saves[k] - upkeep, (*chosen, c), groups | {c.group})
        search(k + 1, gained, chosen, groups)

    search(0, 0.0, (), frozenset())
    return tuple(sorted(best[1]))
