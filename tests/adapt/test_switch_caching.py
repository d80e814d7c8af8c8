"""Caching changes no answer: random queries with a controller that takes nearly every cache, and gives most of them up soon."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

import pytest

from tests.engine.caching import cached_plan, counted
from tests.engine.running import Run, check
from watersmeet.adapt import cache_profile, caching, distinct
from watersmeet.adapt.caching import Caching
from watersmeet.adapt.reoptimizer import Reoptimizer
from watersmeet.engine.control import Change, Observed
from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.batches import Batches
from watersmeet.model.budget import Budget
from watersmeet.testing import Case, random_query, random_streams


@dataclass
class Eager(Caching):
    """Looks after each few rows. Each cache in use is audited, now and then judged useless, and the budget changes all the time."""

    rng: Random = field(default_factory=lambda: Random(0))
    engine: Engine | None = None
    audited: int = 0

    LEAST: ClassVar[int] = 6
    INTERVAL: ClassVar[int] = 12
    LONGEST: ClassVar[int] = 24

    def step(self, seen: Observed) -> Change | None:
        assert self.engine is not None
        self.audited += self.engine.audit()
        self.budget = Budget(memory=seen.state_bytes + self.rng.choice((0, 1 << 12, 1 << 14, 1 << 20)))
        self.nets = {}
        change = super().step(seen)
        if change is not None or not seen.plan.caches or self.rng.random() < 0.8:
            return change
        return Change("at random", caches=tuple((c, c.bytes or 4096) for c in seen.plan.caches[1:]))


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_switch_random_cases_with_a_controller_that_takes_and_drops_caches(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distinct, "LEAST", 2)
    monkeypatch.setattr(caching, "LOOKS", 1)
    monkeypatch.setattr(caching, "GAIN", -10.0)
    monkeypatch.setattr(cache_profile, "LOOKUP", -2.0)
    done, audited, events = Counter[str](), 0, Counter[str]()
    for seed in range(first, first + 20):
        rng = Random(seed)
        query = random_query(rng, streams=rng.choice((3, 3, 4, 5)))
        streams = random_streams(rng, query, rows=60)
        bound = Batches(query, streams).bound
        plan = cached_plan(rng, query, bound)
        controller = Eager(bound, every=6, rng=rng)
        run = Run.of(query, streams, plan, controller, True)
        controller.engine = run.engine
        check(Case(seed, query, streams, plan, []), run.rows())
        counted(run.engine, done)
        audited += controller.audited
        events.update(e.kind for e in run.engine.events.take())
    assert done["cache_hits"] > 300 and done["cache_updates"] > 50 and audited > 300 and events["caches"] > 20, (
        done,
        events,
    )


@pytest.mark.parametrize("seed", range(6))
def test_switch_random_cases_with_the_reoptimizer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LEAST", 8), ("INTERVAL", 16)):
        monkeypatch.setattr(Caching, name, value)
    monkeypatch.setattr(distinct, "LEAST", 4)
    for k in range(5):
        rng = Random(100 * seed + k)
        query = random_query(rng, streams=rng.choice((2, 3, 4, 5)))
        streams = random_streams(rng, query, rows=60)
        bound = Batches(query, streams).bound
        controller = Reoptimizer(bound)
        controller.caching.every = 8
        plan = cached_plan(rng, query, bound)
        run = Run.of(query, streams, plan, controller, True)
        check(Case(seed, query, streams, plan, []), run.rows())
