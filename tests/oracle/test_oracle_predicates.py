"""Predicates: equalities and comparisons between streams, predicates on one stream, NULL, self-joins, static tables."""

from __future__ import annotations

import pytest

import watersmeet as wm
from tests.oracle.events import events, expect, results

R = events("""
    ts  id  a  x
    1   r1  1  10
    2   r2  2  20
""")
S = events("""
    ts  id  a  y
    3   s1  1  15
    4   s2  2  15
""")


@pytest.mark.parametrize(
    ("predicate", "pairs"),
    [
        ("R.a = S.a", "r1 s1, r2 s2"),
        ("R.a <> S.a", "r1 s2, r2 s1"),
        ("R.x < S.y", "r1 s1, r1 s2"),
        ("R.x >= S.y", "r2 s1, r2 s2"),
        ("R.x <= S.y - 5", "r1 s1, r1 s2"),
        ("R.x > S.y + 5", ""),
        ("R.x BETWEEN S.y - 5 AND S.y + 4", "r1 s1, r1 s2"),
        ("R.x + S.y = 25", "r1 s1, r1 s2"),
        ("R.x + S.a > S.y + R.a * 3", "r2 s2"),
        ("R.a = S.a AND R.x < S.y", "r1 s1"),
        ("NOT R.a = S.a", "r1 s2, r2 s1"),
        ("R.a IN (S.a, 9)", "r1 s1, r2 s2"),
        ("R.id || S.id LIKE '%1s1'", "r1 s1"),
        ("R.ts + INTERVAL 2 SECONDS = S.ts", "r1 s1, r2 s2"),
        ("S.ts - R.ts <= INTERVAL 2 SECONDS", "r1 s1, r2 s1, r2 s2"),
    ],
)
def test_oracle_predicates_between_streams(predicate: str, pairs: str) -> None:
    found = results(f"SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE {predicate}", R=R, S=S)
    assert sorted(f"{row['r']} {row['s']}" for row in found) == [pair for pair in pairs.split(", ") if pair]


def test_oracle_predicates_on_one_stream() -> None:
    text = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE (R.x > 15 OR R.x IS NULL) AND S.id LIKE '%2'"
    assert results(text, R=R, S=S) == expect("""
        r   s   result_ts
        r2  s2  4
    """)


def test_oracle_a_predicate_without_columns_holds_for_all_or_none() -> None:
    assert len(results("SELECT R.id AS r FROM R [UNBOUNDED], S [UNBOUNDED] WHERE 1 = 1", R=R, S=S)) == 4
    assert results("SELECT R.id AS r FROM R [UNBOUNDED], S [UNBOUNDED] WHERE 1 = 2", R=R, S=S) == []


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_oracle_null_joins_nothing(op: str) -> None:
    nulls = events("""
        ts  id  a
        1   r1  NULL
        2   r2  5
    """)
    others = events("""
        ts  id  a
        3   s1  NULL
    """)
    declared = (
        "CREATE STREAM R (id STRING, a BIGINT, ts TIMESTAMP); CREATE STREAM S (id STRING, a BIGINT, ts TIMESTAMP);"
    )
    text = f"{declared} SELECT R.id AS r FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.a {op} S.a"
    assert results(text, R=nulls, S=others) == []


def test_oracle_nan_joins_nan_and_minus_zero_joins_zero() -> None:
    doubles = events("""
        ts  id   v
        1   r1   NaN
        2   r2   0.0
        3   r3   1.0
    """)
    others = events("""
        ts  id   v
        4   s1   NaN
        5   s2   -0.0
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.v = S.v"
    assert results(text, R=doubles, S=others) == expect("""
        r   s   result_ts
        r1  s1  4
        r2  s2  5
    """)


def test_oracle_int_joins_double_as_double() -> None:
    doubles = events("""
        ts  id   a
        3   one  1.0
        4   two  2.5
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.a = S.a"
    assert results(text, R=R, S=doubles) == expect("""
        r   s    result_ts
        r1  one  3
    """)


def test_oracle_the_same_stream_may_occur_twice_under_two_aliases() -> None:
    text = "SELECT p.id AS p, q.id AS q FROM R [UNBOUNDED] AS p, R [UNBOUNDED] AS q WHERE p.x <= q.x"
    # Each row arrives once as p and once as q, so it also meets itself.
    assert results(text, R=R) == expect("""
        p   q   result_ts
        r1  r1  1
        r1  r2  2
        r2  r2  2
    """)


def test_oracle_in_a_self_join_the_first_alias_arrives_first() -> None:
    text = "SELECT p.id AS p, q.id AS q FROM R [ROWS 1] AS p, R [ROWS 1] AS q"
    # At 2 r2 arrives as p and meets r1 as q; then it arrives as q and meets itself.
    assert results(text, R=R) == expect("""
        p   q   result_ts
        r1  r1  1
        r2  r1  2
        r2  r2  2
    """)


def test_oracle_a_static_table_is_there_from_the_beginning_and_never_expires() -> None:
    table = [{"a": 1, "name": "one"}, {"a": 2, "name": "two"}]
    text = """
        SELECT R.id AS r, i.name AS name, S.id AS s
        FROM R [UNBOUNDED], items AS i, S [UNBOUNDED] WHERE R.a = i.a AND i.a = S.a
    """
    assert results(text, R=R, S=S, items=table) == expect("""
        r   name  s   result_ts
        r1  one   s1  3
        r2  two   s2  4
    """)


def test_oracle_a_static_table_needs_no_time_and_makes_no_result_by_arriving() -> None:
    table = events("""
        ts  a
        99  1
    """)
    text = "SELECT R.id AS r FROM R [RANGE 0 SECONDS], items WHERE R.a = items.a"
    assert results(text, R=R, items=table) == expect("""
        r   result_ts
        r1  1
    """)


def test_oracle_or_across_streams_is_refused() -> None:
    with pytest.raises(wm.QueryError, match="OR across streams"):
        results("SELECT R.id AS r FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.a = S.a OR R.x = S.y", R=R, S=S)
