"""The controller seam: what a controller sees adds up, what it decides is done and logged, what can't be done is refused whole."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import RandomChanges, Run, Scripted, check, in_time_order, stream
from watersmeet.engine.control import Change, Observed, Static
from watersmeet.model.plan import Plan, Retention
from watersmeet.testing import random_case

TEXT = "SELECT R.k FROM R [RANGE 20 MICROSECONDS], S [ROWS 5], T [UNBOUNDED] WHERE R.k = S.k AND S.k = T.k"


def streams(n: int = 60) -> dict[str, pa.Table]:
    return {name: stream(range(i, n + i), k=[(i + j) % 4 for j in range(n)]) for i, name in enumerate("RST")}


@pytest.mark.parametrize("every", [1, 7, 1000])
@pytest.mark.parametrize("plan", ["(R S T)", "((R S) T)"])
def test_what_a_controller_sees_adds_up(plan: str, every: int) -> None:
    seen: list[Observed] = []
    tables = streams()
    run = Run.of(TEXT, [{n: t.slice(0, 40) for n, t in tables.items()}, {n: t.slice(40) for n, t in tables.items()}],
                 plan, Scripted(seen.append, every))  # fmt: skip
    rows = run.rows()
    assert all(sum(s.rows_in.values()) <= every for s in seen)
    ends = 3  # of two batches, and of the end
    assert len(seen) == 180 // every + ends if every != 7 else 180 // 7 < len(seen) <= 180 // 7 + ends
    for alias in "RST":
        assert sum(s.rows_in[alias] for s in seen) == 60
    assert sum(s.results for s in seen) == rows.num_rows > 0
    assert seen[-1].arrivals == 180 and seen[-1].event_time_us == 61
    for k, op in enumerate(run.engine.operators()):
        parts = [s.operators[k] for s in seen]
        assert {(p.pipeline, p.step) for p in parts} == {(op.pipeline, op.step)}
        assert (sum(p.tuples_in for p in parts), sum(p.matches for p in parts)) == (op.tuples_in, op.matches)
    for k, store in enumerate(run.engine.stores()):
        assert sum(s.stores[k].inserts for s in seen) == store.inserts
        assert sum(s.stores[k].expiries for s in seen) == store.expiries
        assert (seen[-1].stores[k].tuples, seen[-1].stores[k].bytes) == (store.tuples, store.bytes)
    spent = sum(s.cpu_seconds for s in seen)
    assert 0 < spent <= run.engine.metrics()["cpu_seconds"] and min(s.cpu_seconds for s in seen) >= 0
    assert (seen[-1].state_tuples, seen[-1].state_bytes) == tuple(
        run.engine.metrics()[n] for n in ("state_tuples", "state_bytes")
    )


def test_rates_are_by_event_time() -> None:
    seen: list[Observed] = []
    tables = {
        "R": stream([s * 1_000_000 for s in range(11)], k=[1] * 11),
        "S": stream([s * 500_000 for s in range(21)], k=[1] * 21),
    }
    text = "SELECT R.k FROM R [ROWS 1], S [ROWS 1] WHERE R.k = S.k"
    Run.of(text, tables, "(R S)", Scripted(seen.append, 1 << 20)).rows()
    assert seen[0].rates == {"R": 1.1, "S": 2.1}  # 11 and 21 rows in 10 seconds
    one = {"R": tables["R"].slice(0, 1), "S": tables["S"].slice(0, 1)}
    Run.of(text, one, "(R S)", Scripted(seen.append, 1 << 20)).rows()
    assert seen[1].rates == {} and seen[1].rows_in == {"R": 1, "S": 1}


def test_static_tables_are_neither_seen_nor_changed_while_they_are_loaded() -> None:
    seen: list[Observed] = []
    tables = {"R": stream([1, 2, 3], k=[1, 2, 3]), "A": pa.table({"k": [1, 2, 3]})}
    run = Run.of("SELECT R.k FROM R [UNBOUNDED], A WHERE R.k = A.k", tables, "(R A)", Scripted(seen.append, 2))
    assert seen == []
    run.rows()
    assert [s.rows_in for s in seen] == [{"R": 2}, {"R": 1}]
    assert sum(s.stores[1].inserts for s in seen) == 0 and seen[0].stores[1].tuples == 3


def test_changes_are_logged_with_their_reason_and_given_out() -> None:
    tables = streams()
    plans = {20: "((R S) T)", 100: "(R (S T))"}

    def step(seen: Observed) -> Change | None:
        wanted = plans.get(seen.arrivals)
        return Change(f"at {seen.arrivals} arrivals", plan=Plan.parse(wanted)) if wanted else None

    result = wm.run(TEXT, tables, plan=Plan.parse("(R S T)"), controller=Scripted(step, 10))
    assert [(e.number, e.kind, e.was, e.now, e.reason, e.arrivals) for e in result.events] == [
        (0, "plan", "(R S T)", "((R S) T)", "at 20 arrivals", 20),
        (1, "plan", "((R S) T)", "(R (S T))", "at 100 arrivals", 100),
    ]
    assert result.events[0].event_time_us == 7 and result.metrics["plan_switches"] == 2
    assert [json.loads(line) for line in result.event_log().splitlines()] == [asdict(e) for e in result.events]
    assert str(result.plan) == "(R (S T))"
    still = wm.run(TEXT, tables, plan=Plan.parse("(R S T)"), controller=Static())
    assert still.events == () and still.event_log() == ""
    assert sorted(map(str, still.rows.to_pylist())) == sorted(map(str, result.rows.to_pylist()))


@pytest.mark.parametrize(
    ("name", "part"),
    [("retention", Retention("rand"))],
)
def test_refuses_what_it_can_not_do_before_anything_is_changed(name: str, part: Any) -> None:
    run = Run.of(TEXT, streams(), "(R S T)")
    with pytest.raises(wm.PlanError, match=f"can't change '{name}' yet(.|\n)*leave it out"):
        run.engine.apply(Change("to see", plan=Plan.parse("((R S) T)"), **{name: part}))
    assert str(run.engine.plan) == "(R S T)" and run.engine.events.take() == ()
    assert run.engine.metrics()["plan_switches"] == 0


def test_refuses_a_plan_of_other_streams_and_stays_as_it_is() -> None:
    run = Run.of(TEXT, streams(), "(R S T)")
    with pytest.raises(wm.PlanError, match="the plan joins"):
        run.engine.apply(Change("to see", plan=Plan.parse("(R S)")))
    assert str(run.engine.plan) == "(R S T)" and run.engine.events.take() == ()


@pytest.mark.parametrize(("reason", "plan"), [("", "(R S)"), ("  ", "(R S)"), ("because", None)])
def test_refuses_a_change_without_a_reason_or_without_a_change(reason: str, plan: str | None) -> None:
    with pytest.raises(wm.PlanError, match=r"needs a reason|changes nothing"):
        Change(reason, plan=Plan.parse(plan) if plan else None)


def test_what_flows_is_frozen_and_prints() -> None:
    seen: list[Observed] = []
    Run.of(TEXT, streams(3), "(R S T)", Scripted(seen.append, 100)).rows()
    assert "OpCount(pipeline='R', step='S'" in str(seen[0])
    for made in (seen[0], Change("why", plan=Plan.parse("(R S)"))):
        with pytest.raises(FrozenInstanceError):
            made.plan = Plan.parse("(S R)")  # type: ignore[misc]


def test_switch_with_the_same_seed_makes_the_same_changes() -> None:
    case = random_case(5)
    logs = []
    for _ in range(2):
        run = Run.of(case.query, in_time_order(case, 20), case.plan, RandomChanges(Random(1), case.query))
        check(case, run.rows())
        logs.append(run.engine.events.take())
    assert logs[0] == logs[1] and len(logs[0]) > 5
