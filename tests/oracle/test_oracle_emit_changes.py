"""EMIT CHANGES: a result is produced when it comes about ('insert'), and again when its first member leaves ('delete')."""

from __future__ import annotations

import pytest

import watersmeet as wm
from tests.oracle.events import events, expect, results

R = events("""
    ts  id
    1   r1
    4   r2
    20  r3
""")
S = events("""
    ts  id
    2   s1
    3   s2
""")


def test_oracle_changes_are_both_ends_of_a_results_life() -> None:
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 5 SECONDS], S [ROWS 1] EMIT CHANGES"
    assert results(text, R=R, S=S) == expect("""
        r   s   result_ts  change
        r1  s1  2          insert
        r1  s1  3          delete
        r1  s2  3          insert
        r2  s2  4          insert
        r1  s2  6.000001   delete
        r2  s2  9.000001   delete
        r3  s2  20         insert
    """)


def test_oracle_changes_of_what_has_not_left_at_the_highest_timestamp_are_insertions_alone() -> None:
    text = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [RANGE 1 SECOND] EMIT CHANGES"
    found = results(text, R=R[:2], S=S)
    assert [row["change"] for row in found].count(
        "delete"
    ) == 1  # s1 leaves at 3.000001, s2 after the highest timestamp
    assert [row["change"] for row in found].count("insert") == 3


def test_oracle_changes_have_both_although_a_result_lives_for_no_time() -> None:
    tied = events("""
        ts  id
        3   s1
        3   s2
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [ROWS 1] EMIT CHANGES"
    assert results(text, R=R[:1], S=tied) == expect("""
        r   s   result_ts  change
        r1  s1  3          insert
        r1  s1  3          delete
        r1  s2  3          insert
    """)


def test_oracle_changes_add_the_column_change_behind_result_ts() -> None:
    text = "SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [ROWS 1] EMIT CHANGES"
    assert wm.oracle(text, {"R": R, "S": S}).column_names == ["r", "s", "result_ts", "change"]


def test_oracle_changes_take_the_name_change_with_emit_changes_only() -> None:
    text = "SELECT R.id AS change, S.id AS s FROM R [ROWS 1], S [ROWS 1]"
    assert wm.oracle(text, {"R": R, "S": S}).column_names == ["change", "s", "result_ts"]
    with pytest.raises(wm.QueryError, match="two result columns are named 'change'"):
        wm.oracle(f"{text} EMIT CHANGES", {"R": R, "S": S})
    own = [{"change": row.pop("id"), **row} for row in [dict(row) for row in R]]
    starred = "SELECT R.*, S.id FROM R [ROWS 1], S [ROWS 1] EMIT CHANGES"
    assert wm.oracle(starred, {"R": own, "S": S}).column_names == ["R_change", "ts", "id", "result_ts", "change"]
