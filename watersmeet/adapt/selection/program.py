"""Selection as an integer program: the optimum, its linear relaxation (a lower bound), and randomized rounding of that.

    minimise   sum of B_c x_c + sum of L_r z_r
    such that  each operator is covered once:  sum of x_c over the caches that cover it = 1
               z_r >= x_c for every cache c of group r;  0 <= x, z <= 1, and whole numbers for the integer program

Operators are caches of length zero in groups that cost nothing. Where any operator lies in at most two caches of non-zero length the linear
program has a whole-numbered optimum (noted in Appendix B without proof; the tests see it).

Rounding: for each group draw alpha in [0, 1] and take its caches with x_c >= alpha; repeat 3 log m times and take the union; of caches that
overlap the largest stays. The expected total is O(log n) times the best.

>>> from watersmeet.adapt.selection.problem import Candidate, Problem
>>> shared = (Candidate("T", 0, 1, "RS", 3.0), Candidate("U", 0, 1, "RS", 9.5))
>>> problem = Problem({(p, j): 5.0 for p in "TU" for j in range(2)}, shared, {"RS": 1.0})
>>> [str(c) for c in integer(problem)], round(lower_bound(problem), 6)
(['T[0..1] of RS', 'U[0..1] of RS'], 13.5)

Source: a-caching, Appendix B, "Integer Program", Theorem B.1. Solved by scipy's HiGHS.
Departs from the paper in: of the rounded solutions and their union the cheapest is taken, never worse than no cache; the seed is fixed, so
the same problem has the same answer. "at least 1/e" in the proof must read "at most".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from watersmeet.adapt.selection.problem import Candidate, Problem


def integer(problem: Problem) -> tuple[Candidate, ...]:
    """The optimum."""
    solution = _solve(problem, whole=True)
    return tuple(sorted(c for c, x in zip(problem.candidates, solution.x, strict=False) if x > 0.5))


def lower_bound(problem: Problem) -> float:
    """No selection has a lower total cost than this."""
    return float(_solve(problem, whole=False).fun)


def rounding(problem: Problem, seed: int = 0) -> tuple[Candidate, ...]:
    """The linear program, rounded at random."""
    share = dict(zip(problem.candidates, _solve(problem, whole=False).x, strict=False))
    rng = np.random.default_rng(seed)
    groups = problem.groups()
    drawn: list[list[Candidate]] = []
    for _ in range(max(1, math.ceil(3 * math.log(max(len(problem.proc), 2))))):
        alpha = dict(zip(groups, rng.uniform(size=len(groups)), strict=True))
        drawn.append([c for c in problem.candidates if share[c] >= alpha[c.group]])
    union = [c for c in problem.candidates if any(c in some for some in drawn)]
    found = [problem.tidied(some) for some in (*drawn, union)]
    return min((*found, ()), key=problem.total)


def _solve(problem: Problem, whole: bool) -> Any:
    """x of the candidates, then x of the operators as caches of length zero, then z of the groups."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    caches, operators, groups = problem.candidates, list(problem.proc), list(problem.upkeep)
    n, m, k = len(caches), len(operators), len(groups)
    price = np.array([*(c.proc for c in caches), *problem.proc.values(), *problem.upkeep.values()])
    once = np.zeros((m, n + m + k))
    for row, operator in enumerate(operators):
        once[row, n + row] = 1
        for column, c in enumerate(caches):
            once[row, column] = operator in c.operators
    rules = [LinearConstraint(once, 1, 1)]
    if caches:
        used = np.zeros((n, n + m + k))
        for row, c in enumerate(caches):
            used[row, n + m + groups.index(c.group)], used[row, row] = 1, -1
        rules.append(LinearConstraint(used, 0, np.inf))
    return milp(price, constraints=rules, bounds=Bounds(0, 1), integrality=np.full(n + m + k, int(whole)))
