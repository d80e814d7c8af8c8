"""FLOWEXPECT: at every step, the best sequence of decisions fixed in advance over the next few steps, by minimum-cost
flow.

Nodes are tuples at steps, those to come among them. k units of flow, one a place:

    idle(t) ─▶ x, when it arrives ─▶ x a step later ─▶ ...     cost: minus the expected results of x in that step, 1 unit
                   └─▶ idle, from then on                        cost 0

What x earns follows from the models; what a tuple to come earns is the probability that two tuples to come are equal.
The plan is made again at each step. It is not optimal, however far it looks: a sequence that is fixed in advance can't
wait for what arrives (Section 4).

look_ahead: steps. The paper does not say how many.

The paper's example, of tuples R 1, S 2, R -, and S 3 at the next step:

>>> earns = np.array([[0, 0.8, 0.8], [1, 0, 0.5], [0, 0, 0], [0, 0.5, 0]])
>>> best_sequence(earns, arrives=np.array([0, 0, 0, 1]), k=1)
(1.6, [0])

Source: heeb, Section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from watersmeet.errors import WatersmeetError
from watersmeet.retain.bounds.opt_offline import solver
from watersmeet.retain.compiled import Floats, Words
from watersmeet.retain.models.model import Forecast, Model, Place
from watersmeet.retain.policy import JOINING
from watersmeet.retain.problem import FOREVER, Problem

SCALE = 100_000  # flows have whole costs


class Graph(NamedTuple):
    """Arcs for given arrivals; `holding[a]` is the tuple and step of an arc that earns, -1 elsewhere."""

    tail: Words
    head: Words
    room: Words
    holding: Words
    starts: Words
    sink: int


@cache
def _graph(arrives: tuple[int, ...], steps: int, k: int) -> Graph:
    idle = list(range(steps + 1))
    arcs: list[tuple[int, int, int, int]] = [(t, t + 1, k, -1) for t in range(steps)]
    node = steps + 1
    starts = []
    for x, first in enumerate(arrives):
        starts.append(len(arcs))
        arcs.append((idle[first], node, 1, -1))
        for t in range(first, steps):
            after = node + 1 if t + 1 < steps else idle[steps]
            arcs.append((node, after, 1, x * steps + t))
            if t + 1 < steps:
                arcs.append((after, idle[t + 1], 1, -1))
            node += 1
    tail, head, room, holding = (np.array(c, np.int64) for c in zip(*arcs, strict=True))
    return Graph(tail, head, room, holding, np.array(starts), steps)


def best_sequence(earns: Floats, arrives: Words, k: int) -> tuple[float, list[int]]:
    """The most that a sequence fixed now can earn, and the tuples of now that it keeps. earns: by tuple and step from now."""
    graph = _graph(tuple(int(a) for a in arrives), earns.shape[1], k)
    cost = np.where(graph.holding >= 0, -np.rint(earns.reshape(-1)[graph.holding] * SCALE).astype(np.int64), 0)
    flow = solver()
    arcs = flow.add_arcs_with_capacity_and_unit_cost(graph.tail, graph.head, graph.room, cost)
    flow.set_nodes_supplies(np.array([0, graph.sink]), np.array([k, -k]))
    if flow.solve() != flow.OPTIMAL:
        raise WatersmeetError("the flow of FLOWEXPECT has no solution; this is a fault in Watersmeet")
    used = flow.flows(arcs)[graph.starts] > 0
    return -flow.optimal_cost() / SCALE, [int(x) for x in np.flatnonzero(used & (arrives == 0))]


@dataclass(frozen=True)
class FlowExpect:
    name: ClassVar[str] = "flowexpect"
    about: ClassVar[str] = "keeps what the best fixed sequence keeps, solved at every step"
    problems: ClassVar[frozenset[str]] = frozenset({JOINING})
    needs: ClassVar[frozenset[str]] = frozenset({"models", "solver"})
    look_ahead: int = 10

    def keep(self, problem: Problem, k: int, seed: int = 0) -> Words:
        models = [m for m in problem.models if m is not None]
        if len(models) != 2 or problem.pace != (1.0, 1.0):
            raise WatersmeetError(
                "FLOWEXPECT needs a model of both streams, and one tuple a step of each\n  use heeb instead"
            )
        until = np.full(len(problem.time), FOREVER)
        see = [_forecasts(m, self.look_ahead) for m in models]
        cross = _cross(see, self.look_ahead)
        ahead = np.repeat(np.arange(1, self.look_ahead), 2)
        held: Words = np.zeros(0, np.int64)
        streams = [problem.stream(side) for side in (0, 1)]
        for t in range(problem.steps):
            now = np.concatenate([held, [2 * t, 2 * t + 1]])
            if problem.window:
                late = t + 1 - problem.time[now] > problem.window
                until[now[late]] = t
                now = now[~late]
            if len(now) > k:
                places = [m.place(s[: t + 1]) for m, s in zip(models, streams, strict=True)]
                earns = np.concatenate([self._now(problem, now, t, places, see), cross(*places)])
                _, kept = best_sequence(earns, np.concatenate([np.zeros(len(now), np.int64), ahead]), k)
                # places that the sequence leaves idle take those that earn most
                rank = earns[: len(now)].sum(axis=1)
                rank[kept] += 1e9
                stay = np.sort(np.argsort(-rank, kind="stable")[:k])
                out = np.setdiff1d(np.arange(len(now)), stay)
                until[now[out]] = t
                now = now[stay]
            held = now
        return until

    def _now(
        self, problem: Problem, now: Words, t: int, places: list[Place], see: list[Callable[[int], Forecast]]
    ) -> Floats:
        """What each candidate earns in each of the next steps."""
        earns = np.zeros((len(now), self.look_ahead))
        for side in (0, 1):
            mine = np.flatnonzero(problem.side[now] == side)
            low, p = see[1 - side](places[1 - side].row)
            column = problem.value[now[mine]] - places[1 - side].shift - low
            inside = (column >= 0) & (column < p.shape[1])
            earns[mine[inside]] = p[:, column[inside]].T
        if problem.window:
            age = t - problem.time[now][:, None] + np.arange(1, self.look_ahead + 1)
            earns[age > problem.window] = 0.0
        return earns


def _forecasts(model: Model, steps: int) -> Callable[[int], Forecast]:
    return cache(lambda row: model.forecast(row, steps))


def _cross(see: list[Callable[[int], Forecast]], steps: int) -> Callable[[Place, Place], Floats]:
    """What tuples to come earn: those of R and S at each step but the last, in that order."""

    @cache
    def of(row_r: int, row_s: int, apart: int) -> Any:
        (low_r, r), (low_s, s) = see[0](row_r), see[1](row_s)
        low, high = min(low_r, low_s + apart), max(low_r + r.shape[1], low_s + apart + s.shape[1])
        wide = np.zeros((2, steps, high - low))
        wide[0, :, low_r - low : low_r - low + r.shape[1]] = r
        wide[1, :, low_s + apart - low : low_s + apart - low + s.shape[1]] = s
        equal = wide[0] @ wide[1].T  # by the step of R, by the step of S
        made = np.zeros((2 * (steps - 1), steps))
        for t in range(1, steps):
            made[2 * t - 2, t:] = equal[t - 1, t:]
            made[2 * t - 1, t:] = equal[t:, t - 1]
        return made

    return lambda r, s: of(r.row, s.row, s.shift - r.shift)


POLICY = FlowExpect
