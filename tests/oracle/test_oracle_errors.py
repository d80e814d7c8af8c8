"""Errors in expressions stop the query, if the expression is evaluated at all: when that is, is promised too."""

from __future__ import annotations

import pytest

import watersmeet as wm
from tests.oracle.events import events, expect, results

R = events("""
    ts  id  k  zero
    1   r1  1  0
""")
S = events("""
    ts  id  k  zero
    2   s1  1  0
    3   s2  2  0
""")


def join(where: str, select: str = "R.id AS r, S.id AS s", r: str = "[UNBOUNDED]") -> str:
    return f"SELECT {select} FROM R {r}, S [UNBOUNDED] WHERE {where}"


def test_oracle_an_error_stops_the_query_and_names_the_expression() -> None:
    with pytest.raises(wm.DataError, match=r"division by zero in R\.k|division by zero in CAST\(R\.k AS DOUBLE\)"):
        results(join("R.k / R.zero > 1"), R=R, S=S)


def test_oracle_selections_are_evaluated_in_written_order_on_rows_that_passed_those_before() -> None:
    assert results(join("R.zero <> 0 AND R.k / R.zero > 1"), R=R, S=S) == []
    with pytest.raises(wm.DataError):
        results(join("R.k / R.zero > 1 AND R.zero <> 0"), R=R, S=S)


def test_oracle_a_null_condition_does_not_pass_either() -> None:
    assert results(join("R.k = NULL AND R.k / R.zero > 1"), R=R, S=S) == []


def test_oracle_selections_are_evaluated_on_arrival_though_nothing_joins() -> None:
    with pytest.raises(wm.DataError):
        results(join("R.k = 99 AND S.k / S.zero > 1"), R=R, S=S)


def test_oracle_sides_of_join_predicates_are_evaluated_on_rows_that_pass_all_selections_though_nothing_joins() -> None:
    with pytest.raises(wm.DataError):
        results(join("R.k = S.k / S.zero AND R.k = 99"), R=R, S=S)
    assert results(join("R.k = S.k / S.zero AND S.zero <> 0"), R=R, S=S) == []


def test_oracle_residuals_are_evaluated_on_combinations_that_satisfy_all_else_only() -> None:
    # Only (r1, s2) would divide by zero, and it does not satisfy R.k = S.k.
    fragile = "(R.k + S.k) / (2 - S.k) > 0"
    assert results(join(f"{fragile} AND R.k = S.k"), R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  2
    """)
    with pytest.raises(wm.DataError):
        results(join(fragile), R=R, S=S)


def test_oracle_residuals_are_evaluated_in_written_order() -> None:
    assert len(results(join("R.k + S.k < 3 AND (R.k + S.k) / (2 - S.k) > 0"), R=R, S=S)) == 1
    with pytest.raises(wm.DataError):
        results(join("(R.k + S.k) / (2 - S.k) > 0 AND R.k + S.k < 3"), R=R, S=S)


def test_oracle_residuals_are_not_evaluated_on_tuples_outside_their_windows() -> None:
    # s2 comes at 3, when r1 has left [RANGE 1 SECOND].
    assert len(results(join("(R.k + S.k) / (2 - S.k) > 0", r="[RANGE 1 SECOND]"), R=R, S=S)) == 1


def test_oracle_outputs_are_evaluated_on_results_only() -> None:
    fragile = "(R.k + S.k) / (2 - S.k) AS q"
    assert results(join("R.k = S.k", fragile), R=R, S=S) == expect("""
        q    result_ts
        2.0  2
    """)
    with pytest.raises(wm.DataError):
        results(join("R.k <= S.k", fragile), R=R, S=S)


def test_oracle_outputs_of_dstream_are_evaluated_on_what_is_emitted_only() -> None:
    text = join("R.k <= S.k", "(R.k + S.k) / (2 - S.k) AS q")
    assert results(f"{text} EMIT DSTREAM", R=R, S=S) == []


def test_oracle_residuals_of_dstream_are_evaluated_on_what_is_about_to_be_emitted_only() -> None:
    # r1 leaves [RANGE 3 SECONDS] at 4.000001: (r1, s2), which divides by zero, is there from 3 until then.
    text = f"{join('(R.k + S.k) / (2 - S.k) > 0', r='[RANGE 3 SECONDS]')} EMIT DSTREAM"
    assert results(text, R=R, S=S) == []
    with pytest.raises(wm.DataError):
        results(text, R=R, S=[*S, *events("ts id k zero\n9 s3 1 0")])


def test_oracle_a_late_row_is_not_evaluated() -> None:
    first = {"R": R, "S": events("ts id k zero\n9 s1 1 1"), "T": events("ts\n9")}
    second = {"R": events("ts id k zero\n9 r2 1 0"), "S": events("ts id k zero\n0 s_late 1 0")}
    text = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED], T [UNBOUNDED] WHERE S.k / S.zero > 0"
    assert len(results(text, [first, second])) == 2
    with pytest.raises(wm.DataError):
        results(text, [first | second, {"S": first["S"]}])
