"""Caching: caches come where there are dead ends, go when they do not pay, stay within the budget, and change no answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.adapt.dead_end import ORDERS, TEXT, after, dead_end
from watersmeet.adapt.caching import LOOKS, Caching
from watersmeet.engine.control import Change, Event, Observed
from watersmeet.engine.executor import Engine
from watersmeet.model.bind import bind
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Plan
from watersmeet.testing import same_rows

BOUND = bind(wm.parse(TEXT))
PLAN = Plan.parse(ORDERS)


class Watched(Caching):
    """Notes what it sees at each step."""

    def step(self, seen: Observed) -> Change | None:
        change = super().step(seen)
        self.__dict__.setdefault("seen", []).append((seen, change))
        return change


def run(tables: Any, controller: Any = None, plan: Any = PLAN) -> wm.Result:
    return wm.run(TEXT, tables, plan=plan, controller=controller)


@pytest.mark.parametrize("fan", [3, 10])
def test_adapts_a_dead_end_gets_a_cache_after_four_looks_and_it_is_hit(fan: int) -> None:
    tables = dead_end(60_000, fan)
    made, plain = run(tables, Caching(BOUND)), run(tables)
    first = made.events[0]
    assert first.kind == "caches" and first.now.startswith("T: S R / ") and "would save" in first.reason
    assert first.arrivals <= LOOKS * Caching.LEAST
    assert made.metrics["cache_hits"] > 0.8 * 60_000 * (1 - first.arrivals / 72_000)
    assert made.metrics["probes"] + made.metrics["matches"] < 0.5 * (plain.metrics["probes"] + plain.metrics["matches"])
    assert same_rows(made.rows, plain.rows) is None


def test_adapts_a_cache_whose_keys_never_come_again_is_dropped_and_not_tried_at_once() -> None:
    tables = after(dead_end(100_000), dead_end(300_000, fresh=True, seed=1))
    made = run(tables, Caching(BOUND))
    assert [e.now == "none" for e in made.events[:2]] == [False, True], made.events
    drop = made.events[1]
    boundary = 120_000
    assert 0 < drop.arrivals - boundary <= 10 * Caching.INTERVAL
    assert "of lookups miss" in drop.reason and len(made.events) == 2
    assert same_rows(made.rows, run(tables).rows) is None


def test_adapts_stays_without_caches_where_none_pays() -> None:
    tables = dead_end(200_000, fresh=True)
    made = run(tables, Caching(BOUND))
    assert made.events == () and made.metrics["cache_hits"] == made.metrics["cache_misses"] == 0


def test_adapts_does_not_flap_while_nothing_changes() -> None:
    made = run(dead_end(400_000), Caching(BOUND))
    assert len([e for e in made.events if "may have" not in e.reason]) == 1, made.events


@pytest.mark.parametrize("memory", [None, "1 MiB", "220 KiB", "160 KiB", "100 KiB"])
def test_adapts_caches_take_only_what_the_plan_leaves_of_the_budget(memory: str | None) -> None:
    tables = dead_end(100_000, 3)
    budget = None if memory is None else Budget(memory=memory)
    controller = Watched(BOUND, budget=budget)
    made = run(tables, controller)
    limit = float("inf") if budget is None else float(budget.memory_bytes or 0)
    alone = max(s.state_bytes - sum(c.bytes for c in s.caches) for s, _ in controller.seen)  # type: ignore[attr-defined]
    assert all(s.state_bytes <= max(limit, alone) for s, _ in controller.seen)  # type: ignore[attr-defined]
    assert all(c.used_bytes <= c.bytes for s, _ in controller.seen for c in s.caches)  # type: ignore[attr-defined]
    if limit < alone:
        assert made.metrics["cache_hits"] == 0
    elif limit > 2 * alone:
        assert made.metrics["cache_hits"] > 10_000
    assert same_rows(made.rows, run(tables).rows) is None


def test_adapts_memory_is_given_back_when_the_budget_falls_and_taken_when_it_rises() -> None:
    tables = dead_end(200_000, 3)

    class Changing(Watched):
        def step(self, seen: Observed) -> Change | None:
            self.budget = Budget(memory="4 KiB" if 60_000 < seen.arrivals < 90_000 else "1 MiB")
            return super().step(seen)

    controller = Changing(BOUND)
    made = run(tables, controller)
    sizes = [sum(c.bytes for c in s.caches) for s, _ in controller.seen]  # type: ignore[attr-defined]
    assert max(sizes) > 0 and any("of the budget" in e.reason for e in made.events)
    assert made.events[1].now == "none" and made.events[-1].now != "none"
    assert same_rows(made.rows, run(tables).rows) is None


@pytest.mark.parametrize("batches", [3, 12])
def test_meta_snapshots_carry_statistics_and_caches(batches: int) -> None:
    """From batch to batch in engines of their own: the same cache at the same time or a batch's end later, and hits go on."""
    tables, span = dead_end(60_000), 600_000
    whole = run(tables, Caching(BOUND))
    engine, got, events, low = Engine(BOUND, PLAN, Caching(BOUND)), [], list[Event](), 0
    for edge in range(span // batches, span + 1, span // batches):
        part = {}
        for name, table in tables.items():
            ts = table["ts"].cast(pa.int64()).to_numpy()
            part[name] = table.filter((low <= ts) & (ts < edge))
        got += list(engine.feed(part))
        events += engine.events.take()
        engine = Engine.resume(BOUND, engine.snapshot(), Caching(BOUND))
        low = edge
    assert same_rows(pa.Table.from_batches(got, schema=engine.output), whole.rows) is None
    assert events[0].now.startswith("T: S R") and events[0].arrivals <= LOOKS * Caching.LEAST
    assert engine.metrics()["cache_hits"] > 0.9 * whole.metrics["cache_hits"]


def test_auto_has_it_and_a_named_plan_does_not() -> None:
    tables = dead_end(100_000)
    assert wm.run(TEXT, tables).events or wm.run(TEXT, tables).plan.kind != "mjoin"
    assert wm.run(TEXT, tables, plan="mjoin").metrics["cache_misses"] == 0
