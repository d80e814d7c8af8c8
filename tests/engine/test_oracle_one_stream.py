"""Queries over one stream: selection and projection, with every kind of window, in process and in cells."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import check, run_switching, stream
from tests.spark.local_cells import LocalCells
from watersmeet.model.window import Window
from watersmeet.spark.route import Route
from watersmeet.testing import random_case, same_rows


@pytest.mark.parametrize("seed", range(60))
def test_oracle_one_stream(seed: int) -> None:
    case = random_case(seed, over=1)
    assert str(case.plan.root) == f"({case.plan.root.inputs[0]})"
    assert wm.Plan.parse(str(case.plan)) == case.plan
    assert wm.parse(str(case.query)) == case.query
    for plan in (case.plan, "auto", "mjoin", "xjoin"):
        check(case, wm.run(case.query, case.streams, plan=plan).rows)
    check(case, wm.run(case.query, case.batches).rows)
    rows, _ = run_switching(Random(seed), case.query, case.streams, case.plan)
    check(case, rows)


def test_oracle_one_stream_cases_have_every_window_and_rows() -> None:
    cases = [random_case(seed, over=1) for seed in range(60)]
    windows = {s.window.kind + str(bool(s.window.partition)) for c in cases for s in c.query.sources if s.window}
    assert windows == {"RANGEFalse", "ROWSFalse", "ROWSTrue", "UNBOUNDEDFalse"}
    assert {c.query.emit for c in cases} == {"ISTREAM", "DSTREAM", "CHANGES"}
    assert sum(c.expected.num_rows > 0 for c in cases) > 30


@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("seed", range(20))
def test_oracle_one_stream_in_cells(seed: int, cells: int) -> None:
    case = random_case(seed, over=1)
    made = LocalCells(case.query, case.plan, cells, Random(seed), mishaps=0.3).run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"


def test_one_stream_keeps_nothing_unless_it_must_say_who_leaves() -> None:
    rows = stream(range(0, 1_000_000, 10_000), a=[k % 7 for k in range(100)])
    text = "SELECT R.a FROM R [UNBOUNDED] WHERE R.a > 2 EMIT {}"
    kept = {e: wm.run(text.format(e), {"R": rows}).metrics["peak_state_tuples"] for e in ("ISTREAM", "CHANGES")}
    assert kept == {"ISTREAM": 1, "CHANGES": 56}


def test_one_stream_is_split_by_its_rows_without_copies() -> None:
    from watersmeet.model.bind import bind

    declared = "CREATE STREAM R (a BIGINT, ts TIMESTAMP); SELECT R.a FROM R [RANGE 5 SECONDS] EMIT DSTREAM"
    route = Route.of(bind(wm.parse(declared)), 3)
    assert str(route) == "3 cells (rows of R: 3); each row of R to 1"


def test_one_stream_sheds_what_its_budget_can_not_pay() -> None:
    """static-optimization 5.1: the drop box of a query over one stream."""
    rows = stream(range(0, 60_000_000, 1_000), a=list(range(60_000)))
    text = "SELECT R.a FROM R [RANGE 1 SECOND] ON OVERLOAD SHED"
    stats = wm.Statistics(rate={"R": 1000.0}, costs=wm.Costs(0.0, 0.0, 0.001, 0.001))
    plan = wm.optimize(text, stats, wm.Budget(cpu=1.0))
    assert plan.drop == {"R": pytest.approx(0.5)}
    with pytest.warns(wm.BudgetWarning):
        result = wm.run(text, {"R": rows}, stats=stats, budget=wm.Budget(cpu=1.0))
    whole = set(wm.oracle(text, {"R": rows.slice(0, 500)})["a"].to_pylist())
    assert whole == set(range(500))
    assert result.metrics["shed"] + result.rows.num_rows == 60_000
    assert 0.4 < result.rows.num_rows / 60_000 < 0.5


def test_one_stream_window_is_as_written_in_words() -> None:
    text = "CREATE STREAM R (a BIGINT, ts TIMESTAMP); SELECT R.a FROM R [ROWS 3]"
    assert "[ROWS 3]" in wm.explain(text, wm.Statistics(rate={"R": 5.0}))
    assert Window.rows(3) == wm.parse(text).sources[0].window


def test_one_table_is_no_stream() -> None:
    with pytest.raises(wm.QueryError, match="at least one entry of FROM must be a stream"):
        wm.run("SELECT R.a FROM R", {"R": pa.table({"a": [1]})})
