"""Random legal caches for a plan, and runs in which they are audited."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from tests.engine.running import Run
from watersmeet.engine.control import Change, Observed
from watersmeet.engine.executor import Engine
from watersmeet.engine.program.compile import CACHE_BYTES
from watersmeet.engine.store.cache_shape import LEAST
from watersmeet.errors import PlanError
from watersmeet.model.bind import BoundQuery
from watersmeet.model.cache_places import places
from watersmeet.model.plan import Cache, Leaf, Node, Plan, nodes
from watersmeet.model.query import Query
from watersmeet.optimize.cache_candidates import candidates
from watersmeet.testing import random_plan

SIZES = (LEAST, 384, 1 << 10, 1 << 12, 1 << 16, None)


def cached_plan(rng: Random, query: Query, bound: BoundQuery, kind: str | None = None) -> Plan:
    """A random plan, more often than not one whose orders allow caches, with some of them, large and tiny."""
    plan = random_plan(rng, query, kind or rng.choice(("mjoin", "mjoin", "jtree")))
    if rng.random() < 0.8:
        plan = replace(plan, root=_laminar(rng, plan.root))
    if rng.random() < 0.2:
        inputs = [str(i) for node in nodes(plan.root) for i in node.inputs]
        plan = replace(plan, scan=tuple(i for i in inputs if rng.random() < 0.5))
    return with_caches(rng, bound, plan)


def with_caches(rng: Random, bound: BoundQuery, plan: Plan) -> Plan:
    """The plan with a random choice of the caches that it allows."""
    plan = replace(plan, caches=())
    possible = list(candidates(bound, plan, quota=rng.choice((0, 20)), shortest=rng.choice((1, 2, 2))))
    rng.shuffle(possible)
    return with_some(rng, bound, plan, possible[: rng.randint(1, 6)])


def with_some(rng: Random, bound: BoundQuery, plan: Plan, possible: list[Cache]) -> Plan:
    """The plan with these caches, as far as they can be together, each of some size."""
    for cache in possible:
        wider = replace(plan, caches=(*plan.caches, replace(cache, bytes=rng.choice(SIZES))))
        try:
            places(bound, wider)
        except PlanError:
            continue
        plan = wider
    return plan


def _laminar(rng: Random, tree: Node) -> Node:
    """The tree with orders by nested groups: each input joins its group before all else, so that groups can be cached."""
    n = len(tree.inputs)
    inputs = tuple(i if isinstance(i, Leaf) else _laminar(rng, i) for i in tree.inputs)
    shuffled = rng.sample(range(n), n)
    groups = [shuffled]
    while any(len(g) > 1 for g in groups[-2:]) and rng.random() < 0.9:
        widest = max(groups[-2:], key=len)
        cut = rng.randint(1, len(widest) - 1)
        groups += [widest[:cut], widest[cut:]]
    orders = []
    for i in range(n):
        inner = [g for g in reversed(groups) if i in g]
        order: list[int] = []
        for group in sorted(inner, key=len):
            more = [j for j in group if j != i and j not in order]
            # what is a group by itself stays together
            parts = [[j for j in g if j in more] for g in reversed(groups) if set(g) <= set(more)]
            for part in sorted(parts, key=len, reverse=True):
                order += [j for j in rng.sample(part, len(part)) if j not in order]
            order += [j for j in rng.sample(more, len(more)) if j not in order]
        orders.append(tuple(order))
    return Node(inputs, tuple(orders))


class Auditor:
    """A controller that changes nothing, and audits all caches after each so many arrivals."""

    def __init__(self, every: int = 1) -> None:
        self.every, self.entries = every, 0
        self.engine: Engine | None = None  # set before the first step

    def step(self, seen: Observed) -> Change | None:
        assert self.engine is not None
        self.entries += self.engine.audit()
        return None

    def memory(self) -> bytes:
        return b""

    def recall(self, memory: bytes) -> None:
        pass


class CacheChanges(Auditor):
    """A controller that audits, and then forces caches on, off, to another size, or into another plan, at random steps."""

    def __init__(self, rng: Random, query: Query, lengths: tuple[int, ...] = (1, 3, 10, 30)) -> None:
        super().__init__(rng.choice(lengths))
        self.rng, self.query, self.lengths = rng, query, lengths
        self.changes = self.kept = 0

    def step(self, seen: Observed) -> Change | None:
        assert self.engine is not None
        if self.changes:
            self.kept += self.engine.audit()
        self.every = self.rng.choice(self.lengths)
        self.changes += 1
        return self.change(seen.plan, self.engine.bound)

    def change(self, plan: Plan, bound: BoundQuery) -> Change:
        caches = plan.caches
        match self.rng.choice(("on", "on", "off", "resized", "dropped", "other")):
            case "on":
                return Change("on", plan=with_caches(self.rng, bound, plan))
            case "off":
                caches = ()
            case "dropped":
                caches = tuple(c for c in caches if self.rng.random() < 0.5)
            case "other":
                return Change("other", plan=cached_plan(self.rng, self.query, bound))
        return Change("resized", caches=tuple((c, self.rng.choice(SIZES) or CACHE_BYTES) for c in caches))


def audited(
    query: str | Query, inputs: Any, plan: str | Plan, every: int | Auditor = 1, groups: bool = True
) -> tuple[Run, Auditor]:
    """A run with caches, which are audited after each `every` arrivals, or by the controller that is given."""
    controller = Auditor(every) if isinstance(every, int) else every
    run = Run.of(query, inputs, plan, controller, groups)
    controller.engine = run.engine
    return run, controller


def counted(engine: Engine, into: Counter[str]) -> None:
    """Add up what the caches of an engine have done."""
    for name, count in engine.metrics().items():
        if name.startswith("cache_"):
            into[name] += count
