"""Replan: under a stated drift the plan that is best then is reached, without a change of the answer; without one nothing moves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from watersmeet.adapt.replan import Replan
from watersmeet.model.bind import bind
from watersmeet.model.plan import Plan
from watersmeet.testing import same_rows

TEXT = """
    CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, b BIGINT, ts TIMESTAMP); CREATE STREAM T (b BIGINT, ts TIMESTAMP);
    SELECT R.a, S.b, result_ts AS at FROM R [ROWS 1000], S [ROWS 1000], T [ROWS 1000] WHERE R.a = S.a AND S.b = T.b
""".replace(", result_ts AS at", "")
PHASE = 30_000  # rows of each stream


def drifting(seed: int, phases: tuple[str, ...], rows: int = PHASE) -> dict[str, pa.Table]:
    """Streams of three equal rates. In a phase named `x`, the matches of S in x are many, and those in the other stream few."""
    rng = np.random.default_rng(seed)
    many, few = 40, 4000  # values of the attribute
    ts = np.arange(rows * len(phases)) * 1000
    a = np.concatenate([rng.integers(0, many if p == "R" else few, rows) for p in phases])
    b = np.concatenate([rng.integers(0, many if p == "T" else few, rows) for p in phases])
    r = np.concatenate([rng.integers(0, many if p == "R" else few, rows) for p in phases])
    t = np.concatenate([rng.integers(0, many if p == "T" else few, rows) for p in phases])
    times = pa.array(ts, pa.timestamp("us", tz="UTC"))
    return {
        "R": pa.table({"a": r, "ts": times}), "S": pa.table({"a": a, "b": b, "ts": times}), "T": pa.table({"b": t, "ts": times})
    }  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_adapts_to_where_the_matches_are(seed: int) -> None:
    """Where S finds much in one of the others, the pair with the other should be joined first. When that changes, the plan must, within the
    longest span between two looks and one more (windows must have turned over)."""
    tables = drifting(seed, ("R", "T", "R"))
    bound = bind(wm.parse(TEXT))
    moving = wm.run(TEXT, tables, plan=Plan.parse("(R S T) orders {S: R T}"), controller=Replan(bound))
    assert [e.now for e in moving.events] == ["(R (S T))", "((R S) T)", "(R (S T))"]
    boundary = 3 * PHASE
    for event, phase in zip(moving.events[-2:], (1, 2), strict=True):
        assert 0 < event.arrivals - phase * boundary <= Replan.MOST + Replan.LEAST, event
    still = wm.run(TEXT, tables, plan="mjoin")
    assert moving.metrics["plan_switches"] == len(moving.events) and still.metrics["plan_switches"] == 0
    same_rows(moving.rows, still.rows)


def test_adapts_saves_probes_after_a_drift() -> None:
    """Work, not time: what the adaptive run probes and matches against a plan that was right at first only."""
    tables = drifting(3, ("T", "R", "R", "R"))
    first = Plan.parse("(R S T) orders {S: R T}")  # right while T has the many matches
    moving = wm.run(TEXT, tables, plan=first, controller=Replan(bind(wm.parse(TEXT))))
    still = wm.run(TEXT, tables, plan=first)
    assert moving.events

    def work(result: wm.Result) -> int:
        return int(result.metrics["probes"] + result.metrics["matches"])

    assert work(moving) < 0.8 * work(still)


def test_adapts_stays_where_it_is_while_nothing_changes() -> None:
    result = wm.run(TEXT, drifting(4, ("R", "R", "R", "R")))
    assert len(result.events) <= 1, [e.reason for e in result.events]


def test_auto_adapts_and_a_named_plan_does_not() -> None:
    tables = drifting(5, ("R", "T"))
    assert wm.run(TEXT, tables).metrics["plan_switches"] > 0
    for plan in ("mjoin", "xjoin"):
        assert wm.run(TEXT, tables, plan=plan).metrics["plan_switches"] == 0


def test_replan_remembers() -> None:
    first = Replan(bind(wm.parse(TEXT)), every=4096, before={"rate of R": 2.0})
    second = Replan(first.bound)
    second.recall(first.memory())
    assert (second.every, second.before) == (4096, {"rate of R": 2.0})
