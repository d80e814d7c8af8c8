"""OPT-offline: the most results that room for k tuples allows, by minimum-cost flow; it knows the future.

k units of flow, one a place, move along time. A place takes a tuple when it arrives and leaves it at one of its
matches:

    idle(t) ─────────────────────────────▶ idle(t + 1)       cost 0, k units
       └─▶ x at its 1st match ─▶ at its 2nd ─▶ ...            cost -1 each, 1 unit (0 for matches before `after`)
                    └─▶ idle(that step)                       cost 0

so only matches have nodes, not every tuple at every step.

after: results before this step do not count.

>>> Problem.joining([1, 2, 3], [9, 1, 2]).count(OptOffline().keep(Problem.joining([1, 2, 3], [9, 1, 2]), k=1))
2

Source: heeb, Sections 2 and 7.1, which cite Das et al. for it.
Departs from the paper in: the graph has nodes for matches only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba.core import types

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import WORDS, Words, compiled
from watersmeet.retain.policy import BOTH
from watersmeet.retain.problem import Problem


def solver() -> Any:
    """The library that solves flows; it comes with the extra `experiments`."""
    try:
        from ortools.graph.python import min_cost_flow
    except ImportError as e:
        raise WatersmeetError(
            "flows need the package ortools, which is not installed\n  pip install 'watersmeet[experiments]'"
        ) from e
    return min_cost_flow.SimpleMinCostFlow()


@dataclass(frozen=True)
class OptOffline:
    name: ClassVar[str] = "opt_offline"
    about: ClassVar[str] = "the most results there can be (knows the future)"
    problems: ClassVar[frozenset[str]] = BOTH
    needs: ClassVar[frozenset[str]] = frozenset({"future", "solver"})
    after: int = 0

    def keep(self, problem: Problem, k: int, seed: int = 0) -> Words:
        found = self._matches(problem)
        steps, count = problem.steps, len(found) // 2
        kept, at = found[0::2], found[1::2]  # pairs: the tuple that waits, the step of the match; by tuple, then step
        first = np.ones(count, bool)
        first[1:] = kept[1:] != kept[:-1]
        node = steps + np.arange(count)
        came_from = np.where(first, problem.time[kept], node - 1)
        counts = (at >= self.after).astype(np.int64)
        tail = np.concatenate([np.arange(steps - 1), came_from, node])
        head = np.concatenate([np.arange(1, steps), node, at])
        room = np.concatenate([np.full(steps - 1, k), np.ones(2 * count, np.int64)])
        cost = np.concatenate([np.zeros(steps - 1, np.int64), -counts, np.zeros(count, np.int64)])
        flow = solver()
        arcs = flow.add_arcs_with_capacity_and_unit_cost(tail, head, room, cost)
        flow.set_nodes_supplies(np.array([0, steps - 1]), np.array([k, -k]))
        if steps > 1 and flow.solve() != flow.OPTIMAL:
            raise WatersmeetError("the flow of OPT-offline has no solution; this is a fault in Watersmeet")
        until = problem.time.copy()
        taken = flow.flows(arcs)[steps - 1 : steps - 1 + count] > 0
        np.maximum.at(until, kept[taken], at[taken])
        return until

    def _matches(self, problem: Problem) -> Words:
        order = np.lexsort((problem.time, problem.keys))
        made: Words = _pairs(problem.time, problem.side, problem.keys, order, problem.window)
        return made


@compiled(types.Array(types.int64, 1, "C")(WORDS, WORDS, WORDS, WORDS, types.int64))
def _pairs(time: Words, side: Words, keys: Words, order: Words, window: int) -> Words:
    """Each tuple with the steps at which it would match; a step at which two tuples match it comes twice."""
    made = [0 for _ in range(0)]
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and keys[order[end]] == keys[order[begin]]:
            end += 1
        for i in range(begin, end):
            kept = order[i]
            for j in range(i + 1, end):
                came = order[j]
                if window > 0 and time[came] - time[kept] > window:
                    break
                if side[came] != side[kept] and time[came] > time[kept]:
                    made.append(kept)
                    made.append(time[came])
        begin = end
    return np.array(made, dtype=np.int64)


POLICY = OptOffline
