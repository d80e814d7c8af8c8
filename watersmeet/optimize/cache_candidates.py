"""Candidate caches: those that a plan's orders allow.

First all that satisfy the prefix invariant (Definition 3.2), then globally-consistent ones, as many as fit into the quota m of
Section 6: segments of all streams but one come first, then of all but two, and so on. Each takes as few witnesses as it can.

Source: Babu, Munagala, Widom, Motwani, "Adaptive Caching for Continuous Queries", 4.2, 6.
Departs from the paper in: a cache without a key (one entry for everything) is no candidate; each node of a tree has candidates.
Unclear in the paper, settled as: which of a group of globally-consistent caches are taken when the quota ends within it: those whose
pipelines and segments come first in the plan.

>>> from watersmeet.lang import parse
>>> from watersmeet.model.bind import bind
>>> text = "".join(f"CREATE STREAM R{k} (a BIGINT, ts TIMESTAMP) FROM 'R{k}' FORMAT csv;" for k in range(1, 4))
>>> query = parse(text + "SELECT R1.a FROM R1 [ROWS 1], R2 [ROWS 1], R3 [ROWS 1] WHERE R1.a = R2.a AND R2.a = R3.a")
>>> plan = Plan.parse("(R1 R2 R3) orders {R1: R2 R3; R2: R3 R1; R3: R2 R1}")
>>> [str(c) for c in candidates(bind(query), plan)]
['R1: R2 R3']
>>> [str(c) for c in candidates(bind(query), plan, quota=6)]
['R1: R2 R3', 'R2: R3 R1 | R2', 'R3: R2 R1 | R3']
"""

from __future__ import annotations

from collections.abc import Iterator

from watersmeet.errors import PlanError
from watersmeet.model.bind import BoundQuery
from watersmeet.model.cache_places import Place, place, way
from watersmeet.model.plan import Cache, Node, Plan, nodes


def candidates(bound: BoundQuery, plan: Plan, quota: int = 0, shortest: int = 2) -> tuple[Cache, ...]:
    """All caches that satisfy the prefix invariant; if these are fewer than `quota`, globally-consistent ones up to it.

    shortest: inputs that a segment has at least. A segment of one is worth caching only where finding its matches is dear (a scan).
    """
    segments = [c for c in _segments(plan) if len(c.segment) >= shortest]
    found = [c for c in segments if _legal(bound, plan, c)]
    if len(found) < quota:
        others = [c for c in segments if c not in found]
        others.sort(key=lambda c: -len(_streams(plan, c.segment)))
        wider = (w for c in others if (w := _with_witnesses(bound, plan, c)) is not None)
        found += [w for w, _ in zip(wider, range(quota - len(found)), strict=False)]
    return tuple(found)


def _segments(plan: Plan) -> Iterator[Cache]:
    for node in nodes(plan.root):
        for below, order in zip(node.inputs, node.orders, strict=True):
            names = [str(node.inputs[j]) for j in order]
            for first in range(len(names)):
                for last in range(first + 1, len(names) + 1):
                    yield Cache(str(below), tuple(names[first:last]))


def _legal(bound: BoundQuery, plan: Plan, cache: Cache) -> Place | None:
    try:
        found = place(bound, plan, cache)
    except PlanError:
        return None
    return found if found.key else None


def _streams(plan: Plan, inputs: tuple[str, ...]) -> frozenset[str]:
    every = {str(i): i.streams for n in nodes(plan.root) for i in n.inputs}
    return frozenset().union(*(every[i] for i in inputs))


def _with_witnesses(bound: BoundQuery, plan: Plan, cache: Cache) -> Cache | None:
    """The cache with the fewest witnesses that make it legal, if any do: X and Y are what some member of X joins before all else."""
    segment = _streams(plan, cache.segment)
    node = next(n for n in nodes(plan.root) if cache.pipeline in map(str, n.inputs))
    first = {s.have for m in segment for s in way(plan, m)} | {plan.streams}
    for told in sorted(first, key=lambda t: (len(t), sorted(t))):
        if segment < told:
            wider = Cache(cache.pipeline, cache.segment, _beside(node, cache, told))
            if segment | _streams(plan, wider.witnesses) == told and _legal(bound, plan, wider):
                return wider
    return None


def _beside(node: Node, cache: Cache, told: frozenset[str]) -> tuple[str, ...]:
    return tuple(str(i) for i in node.inputs if str(i) not in cache.segment and i.streams <= told)
