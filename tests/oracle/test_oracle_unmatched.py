"""LEFT JOIN: a row of the preserved stream that is in no result comes out once, with NULLs, when it leaves its window."""

from __future__ import annotations

import pytest

import watersmeet as wm
from tests.oracle.events import events, expect, results

C = events("""
    ts  id  k     x
    1   c1  1     5
    2   c2  2     5
    3   c3  NULL  5
    30  c4  1     5
""")
P = events("""
    ts  id  k  x
    4   p1  1  6
    5   p2  9  1
""")


def test_oracle_unmatched_rows_come_with_nulls_when_they_leave_their_window() -> None:
    text = "SELECT c.id AS c, p.id AS p FROM C [RANGE 5 SECONDS] AS c LEFT JOIN P [RANGE 5 SECONDS] AS p ON c.k = p.k"
    assert results(text, C=C, P=P) == expect("""
        c   p     result_ts
        c1  p1    4
        c2  NULL  7.000001
        c3  NULL  8.000001
        c4  NULL  30
    """)


def test_oracle_unmatched_rows_of_a_rows_window_come_with_the_tuple_that_pushes_them_out() -> None:
    for window, when in (
        ("ROWS 1", {"c2": 3, "c3": 30}),
        ("ROWS 2", {"c2": 30, "c3": 30}),
        ("PARTITION BY x ROWS 1", {"c2": 3, "c3": 30}),
    ):
        text = f"SELECT c.id AS c, p.id AS p FROM C [{window}] AS c LEFT JOIN P [RANGE 5 SECONDS] AS p ON c.k = p.k"
        found = {row["c"]: row["result_ts"].second for row in results(text, C=C, P=P) if row["p"] is None}
        assert {c: found[c] for c in when} == when, window


def test_oracle_unmatched_rows_that_are_still_there_at_the_end_come_at_the_highest_timestamp() -> None:
    text = "SELECT c.id AS c, p.id AS p FROM C [{}] AS c LEFT JOIN P [RANGE 5 SECONDS] AS p ON c.k = p.k"
    for window in ("UNBOUNDED", "RANGE 40 SECONDS", "ROWS 100"):
        assert results(text.format(window), C=C, P=P) == expect("""
            c   p     result_ts
            c1  p1    4
            c2  NULL  30
            c3  NULL  30
            c4  NULL  30
        """)


def test_oracle_unmatched_rows_are_those_in_no_result_whatever_has_become_of_its_other_members() -> None:
    """c1 was in a result whose other member has left long since."""
    text = "SELECT c.id AS c, p.id AS p FROM C [UNBOUNDED] AS c LEFT JOIN P [RANGE 1 SECOND] AS p ON c.k = p.k"
    assert [row["c"] for row in results(text, C=C, P=P) if row["p"] is None] == ["c2", "c3", "c4"]


def test_oracle_unmatched_is_a_row_that_a_condition_of_on_rejects() -> None:
    """As in SQL: where ON is false nothing matches. A condition that only all members settle counts as well."""
    for on in ("c.k = p.k AND c.x > 9", "c.k = p.k AND c.x + p.x > 11", "c.k = p.k AND c.x > p.x"):
        text = f"SELECT c.id AS c, p.id AS p FROM C [RANGE 5 SECONDS] AS c LEFT JOIN P [RANGE 5 SECONDS] AS p ON {on}"
        assert [row["c"] for row in results(text, C=C, P=P)] == ["c1", "c2", "c3", "c4"], on
        assert not any(row["p"] for row in results(text, C=C, P=P))


def test_oracle_where_chooses_rows_of_the_preserved_stream_before_the_left_join() -> None:
    text = "SELECT c.id AS c, p.id AS p FROM C [{}] AS c LEFT JOIN P [RANGE 5 SECONDS] AS p ON c.k = p.k WHERE c.id <> 'c2'"
    assert [row["c"] for row in results(text.format("RANGE 5 SECONDS"), C=C, P=P)] == ["c1", "c3", "c4"]
    # Windows come before WHERE: c2 still pushes c1 out.
    assert [row["p"] for row in results(text.format("ROWS 1"), C=C, P=P)] == [None, None, None]
    with pytest.raises(wm.QueryError, match=r"WHERE names other streams than 'c'(.|\n)*put it into ON"):
        results(text.format("ROWS 1") + " AND p.id = 'p1'", C=C, P=P)


def test_oracle_unmatched_is_a_row_without_all_the_others() -> None:
    text = """
        SELECT c.id AS c, p.id AS p, q.id AS q
        FROM C [RANGE 5 SECONDS] AS c LEFT JOIN (P [RANGE 9 SECONDS] AS p JOIN P [ROWS 1] AS q ON p.x = q.x) ON c.k = p.k AND q.k = {}
    """
    assert [(r["c"], r["p"], r["q"]) for r in results(text.format(1), C=C[:1], P=P)] == [("c1", "p1", "p1")]
    assert [(r["c"], r["p"], r["q"]) for r in results(text.format(9), C=C[:1], P=P)] == [("c1", None, None)]


def test_oracle_outputs_of_unmatched_rows_are_computed_with_nulls() -> None:
    text = "SELECT c.x + p.x AS sum, c.x + 1 AS one FROM C [ROWS 9] AS c LEFT JOIN P [ROWS 9] AS p ON c.k = p.k AND c.x < 0"
    assert {(row["sum"], row["one"]) for row in results(text, C=C, P=P)} == {(None, 6)}


def test_oracle_late_rows_are_not_unmatched() -> None:
    text = "SELECT c.id AS c, p.id AS p FROM C [ROWS 9] AS c LEFT JOIN P [ROWS 9] AS p ON c.k = p.k"
    batches = [{"C": C[3:], "P": P}, {"P": [{**P[0], "ts": C[3]["ts"]}]}, {"C": C[:1]}]
    assert [row["c"] for row in results(text, batches)] == ["c4", "c4"]
