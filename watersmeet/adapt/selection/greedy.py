"""Greedy selection: cover operators at the least cost for each, group by group. At most H(m) times the best total cost.

The idea: as greedy set cover. Of each group the best subset is a prefix of its caches sorted by cost for each operator that is not covered
yet; the group with the lowest rate is taken, its operators are covered, and so on until all are. Operators count as caches of length zero.

    D_r = min over prefixes S of (L_r + sum of B_c) / (sum of n_c)

m is the number of operators; H(m) is 2.45, 3.10, 3.60, 3.99 for MJoins of 3 to 6 streams (m = n(n - 1)).

>>> from watersmeet.adapt.selection.problem import Candidate, Problem
>>> shared = (Candidate("T", 0, 1, "RS", 3.0), Candidate("U", 0, 1, "RS", 9.5))
>>> problem = Problem({(p, j): 5.0 for p in "TU" for j in range(2)}, shared, {"RS": 1.0})
>>> [str(c) for c in greedy(problem)]
['T[0..1] of RS', 'U[0..1] of RS']

Source: a-caching, Appendix B, "Greedy Algorithm".
Departs from the paper in: caches that turn out not to pay (their operators cost less) are dropped at the end, which only lowers the total.
Unclear in the paper, settled as: a cache whose operators are partly covered keeps its whole cost and counts the rest of its operators.
Of chosen caches that overlap the one that covers most stays, as printed; operators that no cache covers any more cost what they cost.
"""

from __future__ import annotations

from watersmeet.adapt.selection.problem import Candidate, Operator, Problem


def greedy(problem: Problem) -> tuple[Candidate, ...]:
    open_operators = set(problem.proc)
    picked: list[Candidate] = []
    groups = problem.groups()
    while open_operators:
        # "find that group which yields the smallest D_r value, and pick all the caches in the corresponding set S_r"
        rate, least = min((problem.proc[o], o) for o in open_operators)
        chosen: list[Candidate] = []
        for name, members in groups.items():
            paid = 0.0 if any(c.group == name for c in picked) else problem.upkeep[name]
            found = _best_prefix([c for c in members if c not in picked], open_operators, paid)
            if found and found[0] < rate:
                rate, chosen = found
        if chosen:
            picked += chosen
            for c in chosen:
                open_operators -= c.operators
        else:
            open_operators.discard(least)
    return problem.tidied(picked)


def _best_prefix(
    members: list[Candidate], open_operators: set[Operator], paid: float
) -> tuple[float, list[Candidate]] | None:
    counted = [(len(c.operators & open_operators), c) for c in members]
    ranked = sorted(((n, c) for n, c in counted if n), key=lambda nc: (nc[1].proc / nc[0], nc[1]))
    best: tuple[float, list[Candidate]] | None = None
    cost, covered = paid, 0
    for k, (n, c) in enumerate(ranked):
        cost, covered = cost + c.proc, covered + n
        if best is None or cost / covered < best[0]:
            best = cost / covered, [c for _, c in ranked[: k + 1]]
    return best
