"""Ends: the steps that tuples of bounded streams have left, for policies of the time when that was all one knew of a
stream.

The paper gives RAND, PROB and LIFE the bounds of the noise as a sliding window: tuples outside it leave first.
"""

from __future__ import annotations

from watersmeet.retain.benefit import Table, lives
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.problem import Problem


def ends(problem: Problem) -> list[list[Table]]:
    """For each stream the steps left by value, where it is bounded and moves; else none."""
    if "ends" not in problem._known:
        rising = [m for m in problem.models if isinstance(m, Trend) and m.a > 0]
        problem._known["ends"] = [[lives(m)] for m in rising] if len(rising) == 2 else [[], []]
    made: list[list[Table]] = problem._known["ends"]
    return made
