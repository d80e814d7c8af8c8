"""What a run and explain say of a query that asks for what is not carried out yet, or that joins everything with everything."""

from __future__ import annotations

import datetime as dt
import warnings

import pytest

import watersmeet as wm

ROW = {"k": 1, "ts": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)}
INPUTS = {"a": [ROW], "b": [ROW]}
DECLARED = "CREATE STREAM a (k BIGINT, ts TIMESTAMP); CREATE STREAM b (k BIGINT, ts TIMESTAMP);\n"
CROSS = "SELECT a.k FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE]"
JOIN = f"{CROSS} WHERE a.k = b.k"


def test_run_says_that_freshness_is_not_carried_out() -> None:
    with pytest.warns(wm.BudgetWarning) as told:
        wm.run(f"{JOIN} FRESHNESS (a 2 MINUTES)", INPUTS)
    said = "FRESHNESS (a 2 MINUTES) is not carried out yet: older results are given out, too"
    assert [str(w.message) for w in told] == [said]
    assert told[0].filename == __file__


def test_explain_says_what_is_not_carried_out() -> None:
    query = f"{DECLARED}{JOIN} FRESHNESS (a 2 MINUTES) BUDGET (CPU 1) ON OVERLOAD"
    after = wm.explain(f"{query} EVICT AND DIRECT").split("Not carried out yet\n")[1]
    assert after.startswith(
        "  FRESHNESS (a 2 MINUTES): older results are given out, too\n"
        "  ON OVERLOAD EVICT: a run is exact, and may fall behind\n\n"
    )
    assert "OVERLOAD" not in wm.explain(f"{query} SHED").split("Not carried out yet\n")[1]
    assert "carried out" not in wm.explain(f"{DECLARED}{JOIN}")


@pytest.mark.parametrize("plan", ["auto", wm.Plan.parse("(a b)")])
def test_run_says_that_it_is_a_cross_product(plan: str | wm.Plan) -> None:
    with pytest.warns(wm.QueryWarning) as told:
        wm.run(CROSS, INPUTS, plan=plan)
    assert len(told) == 1
    assert str(told[0].message) == (
        "a cross product: a | b: no condition links them, so every combination is a result\n"
        "  add a condition between them to WHERE, if this is not meant"
    )


def test_run_is_silent_where_there_is_nothing_to_say() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wm.run(JOIN, INPUTS)
        wm.run(f"{CROSS} WHERE a.k + b.k > 0", INPUTS)
