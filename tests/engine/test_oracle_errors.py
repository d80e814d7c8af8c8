"""An expression that fails stops the query exactly when it does in the oracle; a plan that is not the query's is refused."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, Scripted, stream
from watersmeet.testing import random_plan, random_query, random_streams, same_rows

BIG = (1 << 63) - 1


def outcome(run: Any, *args: Any, **named: Any) -> Any:
    """The result, or the error's kind."""
    try:
        return run(*args, **named)
    except wm.DataError:
        return wm.DataError


def same_outcome(query: Any, streams: Any, plan: Any) -> Any:
    """What the oracle gives, after seeing that the engine gives the same."""
    expected = outcome(wm.oracle, query, streams)
    found = outcome(lambda: wm.run(query, streams, plan=plan).rows)
    if expected is wm.DataError or found is wm.DataError:
        assert found is expected, f"{query}\nplan {plan}\noracle: {expected}\nengine: {found}"
    else:
        difference = same_rows(found, expected)
        assert difference is None, f"{query}\nplan {plan}\n{difference}"
    return expected


@pytest.mark.parametrize("first", range(0, 240, 80))
def test_oracle_errors_of_random_queries(first: int) -> None:
    failed = 0
    for seed in range(first, first + 80):
        rng = Random(seed)
        query = random_query(rng, errors=True)
        streams = random_streams(rng, query)
        failed += same_outcome(query, streams, random_plan(rng, query)) is wm.DataError
    assert 15 < failed < 75


R = stream(
    [1, 2, 3, 4], k=[1, 2, 3, 4], z=pa.array([0, 1, None, 2]), big=[BIG, 1, BIG, 0], f=[0.5, 0.0, float("nan"), 1e300],
    m=pa.array([Decimal("100.00"), Decimal("0.01"), None, Decimal("9.99")], pa.decimal128(5, 2)),
)  # fmt: skip
S = stream([2, 3, 9], k=[1, 2, 4], z=pa.array([0, 5, None]), big=[1, 1, BIG])

FAIL = [
    "R.k / R.z > 0", "R.big + R.k > 0", "S.k % S.z = 0", "-(-R.big - 2) > 0", "R.k / 0 = 1", "CAST(R.f AS BIGINT) = 1",
    "R.k = S.k / S.z", "R.k = S.k AND R.k / R.z = S.k", "R.k + R.big < S.k", "R.k = S.k AND (R.k + S.k) / R.z > 1",
    "R.k = S.k AND R.big + S.big > 0", "R.k = 99 AND S.k / S.z > 1", "R.z = 1 AND S.k = S.k / S.z",
    "R.k = S.k AND R.z = S.k AND 1 / R.z = S.k", "CAST(R.m AS DECIMAL(20, 18)) < CAST(S.k AS DECIMAL(20, 18))",
    "CAST(R.m AS DECIMAL(3, 1)) = CAST(S.k AS DECIMAL(3, 1))", "R.z = 0 OR R.k / R.z > 2 OR 1 / (R.z - 1) > 0",
    "R.k IN (7, 5 % R.z)", "R.z BETWEEN 0 AND 1 / R.z",
]  # fmt: skip
PASS = [
    "R.z <> 0 AND R.k / R.z > 0", "R.z = 0 OR R.k / R.z > 0", "R.k IN (1, 5 % R.z)", "(R.z <> 0 AND 10 / R.z > 1) OR R.k = 1",
    "R.z > 0 AND S.z > 0 AND R.k = S.k / S.z", "R.k = S.k AND R.k <> 1 AND (R.k + S.k) / R.z > 1",
    "R.k = S.k AND R.z + S.k > 1 AND (R.k + S.k) / R.z > 1", "NOT (R.z <> 0 AND R.k / R.z > 100)",
    "R.z BETWEEN 1 AND 1 / R.z", "NULL AND 1 / 0 > 1", "R.k = 2 AND R.big + R.k > 0", "R.m < 100 AND CAST(R.m AS DECIMAL(3, 1)) > 9",
    "R.z + R.k / (R.z + 1) > 0",
]  # fmt: skip


@pytest.mark.parametrize("plan", ["mjoin", "xjoin"])
@pytest.mark.parametrize(("where", "fails"), [(w, True) for w in FAIL] + [(w, False) for w in PASS])
def test_oracle_errors_of(where: str, fails: bool, plan: str) -> None:
    text = f"SELECT R.k AS r, S.k AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE {where}"
    assert (same_outcome(text, {"R": R, "S": S}, plan) is wm.DataError) == fails


def test_oracle_errors_in_outputs_come_from_results_only() -> None:
    text = "SELECT (R.k + S.k) / R.z AS q FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.k = S.k"
    assert same_outcome(text, {"R": R, "S": S}, "mjoin") is wm.DataError
    assert same_outcome(f"{text} AND R.k > 1", {"R": R, "S": S}, "mjoin").num_rows == 2
    assert same_outcome(f"{text} EMIT DSTREAM", {"R": R, "S": S}, "mjoin").num_rows == 0


@pytest.mark.parametrize("plan", ["mjoin", "xjoin"])
def test_oracle_errors_in_residuals_of_dstream_come_from_what_is_about_to_be_emitted_only(plan: str) -> None:
    for window, fails in (
        ("UNBOUNDED", False),
        ("RANGE 9 MICROSECONDS", False),
        ("RANGE 3 MICROSECONDS", True),
        ("ROWS 2", True),
    ):
        text = f"""SELECT R.k AS r, S.k AS s FROM R [{window}], S [UNBOUNDED]
            WHERE R.k = S.k AND (R.k + S.k) / R.z > 1"""
        assert same_outcome(text, {"R": R, "S": S}, plan) is wm.DataError  # as soon as R(1) meets S(1)
        assert (same_outcome(f"{text} EMIT DSTREAM", {"R": R, "S": S}, plan) is wm.DataError) == fails, window


def test_oracle_errors_in_late_rows_are_none() -> None:
    text = "SELECT R.k AS r, S.k AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.k / R.z > 0"
    on_time = {"R": R.slice(1, 1), "S": S.slice(2, 1)}
    later = {"R": stream([9], k=[1], z=[1], big=[0], f=[0.0], m=R.column("m").slice(0, 1)), "S": S.slice(2, 1)}
    late = {"R": R.slice(0, 1), "S": S.slice(2, 1)}
    assert same_outcome(text, [on_time, later, late], "mjoin") is not wm.DataError
    assert same_outcome(text, [late, on_time, later], "mjoin") is wm.DataError


def test_errors_name_the_expression() -> None:
    for where, what in (("R.k / R.z > 0", "division by zero"), ("R.big + R.k > 0", "overflow")):
        with pytest.raises(wm.DataError, match=what):
            wm.run(f"SELECT R.k FROM R [UNBOUNDED], S [UNBOUNDED] WHERE {where}", {"R": R, "S": S})


@pytest.mark.parametrize("plan", ["(R T)", "(R S T)", "((R S) (T U))", "(r S)"])
def test_errors_a_plan_of_other_streams_is_refused_and_both_are_named(plan: str) -> None:
    text = "SELECT R.k FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.k = S.k"
    with pytest.raises(wm.PlanError, match="R, S"):
        wm.run(text, {"R": R, "S": S}, plan=wm.Plan.parse(plan))
    with pytest.raises(wm.PlanError, match="R, S"):
        Run.of(text, {"R": R, "S": S}, "(R S)", Scripted(lambda seen: plan, every=1)).rows()


@pytest.mark.parametrize("plan", ["best", "", "(R S)", "MJOIN"])
def test_errors_a_word_that_is_no_plan(plan: str) -> None:
    with pytest.raises(wm.PlanError, match="mjoin"):
        wm.run("SELECT R.k FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.k = S.k", {"R": R, "S": S}, plan=plan)


@pytest.mark.parametrize("clause", ["retain heeb {R: 10}"])
def test_error_for_what_a_plan_asks_and_the_engine_can_not_do_yet(clause: str) -> None:
    text = "SELECT R.a FROM R [ROWS 1], S [ROWS 1], T [ROWS 1] WHERE R.a = S.a AND S.a = T.a"
    rows = pa.table({"a": [1], "ts": pa.array([0], pa.timestamp("us", tz="UTC"))})
    with pytest.raises(wm.PlanError, match=f"can't do '{clause.split(maxsplit=1)[0]}' yet"):
        wm.run(text, {"R": rows, "S": rows, "T": rows}, plan=wm.Plan.parse(f"(R S T) {clause}"))


def test_error_in_a_name_shows_the_place_in_the_text() -> None:
    rows = pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us", tz="UTC"))})
    text = "SELECT R.kk FROM R [ROWS 1], S [ROWS 1] WHERE R.k = S.k"
    with pytest.raises(wm.QueryError) as caught:
        wm.run(text, {"R": rows, "S": rows})
    assert str(caught.value).splitlines()[1:3] == [f"  {text}", "         ^"]
