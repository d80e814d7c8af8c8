"""Each stream has a timestamp column. Tuples are processed strictly in the global order: timestamp, FROM, tie key.

[ROWS 1] makes the order visible: of the tuples before an arrival only the last one is still there.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

import watersmeet as wm
from tests.oracle.events import events, expect, results
from tests.oracle.same import same


def test_oracle_timestamp_is_ts_unless_declared() -> None:
    R = events("""
        ts  id
        1   r1
    """)
    S = events("""
        seen_ts  id
        3        s1
    """)
    declared = (
        "CREATE STREAM R (id STRING, ts TIMESTAMP); CREATE STREAM S (id STRING, seen_ts TIMESTAMP) TIMESTAMP seen_ts;"
    )
    assert results(f"{declared} SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [ROWS 1]", R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  3
    """)
    with pytest.raises(wm.QueryError, match="has no timestamp column 'ts'"):
        results("SELECT R.id AS r FROM R [ROWS 1], S [ROWS 1]", R=R, S=S)


def test_oracle_order_is_by_timestamp_whatever_the_order_of_rows() -> None:
    R = events("""
        ts  id
        3   r3
        1   r1
        2   r2
    """)
    S = events("""
        ts   id
        2.5  s1
    """)
    assert results("SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [ROWS 1]", R=R, S=S) == expect("""
        r   s   result_ts
        r2  s1  2.5
        r3  s1  3
    """)


def test_oracle_order_of_equal_timestamps_is_the_position_in_from() -> None:
    R = events("""
        ts  id
        1   r1
        2   r2
    """)
    S = events("""
        ts  id
        2   s1
    """)
    # R first: r2 pushes r1 out of [ROWS 1] before s1 arrives.
    assert results("SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [ROWS 1]", R=R, S=S) == expect("""
        r   s   result_ts
        r2  s1  2
    """)
    # S first: s1 still finds r1, then r2 arrives and finds s1.
    assert results("SELECT R.id AS r, S.id AS s FROM S [ROWS 1], R [ROWS 1]", R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  2
        r2  s1  2
    """)


def test_oracle_order_within_a_stream_is_the_declared_columns_in_declared_order() -> None:
    R = events("""
        ts  a  b
        1   1  2
        1   2  1
    """)
    S = events("""
        ts  id
        2   s1
    """)
    for columns, last in (("a BIGINT, b BIGINT", "2 1"), ("b BIGINT, a BIGINT", "1 2")):
        declared = f"CREATE STREAM R ({columns}, ts TIMESTAMP); CREATE STREAM S (id STRING, ts TIMESTAMP);"
        assert results(f"{declared} SELECT R.a AS a, R.b AS b FROM R [ROWS 1], S [ROWS 1]", R=R, S=S) == expect(f"""
            a b  result_ts
            {last} 2
        """)


def test_oracle_order_without_a_declaration_is_the_columns_of_the_table() -> None:
    R = events("""
        ts  a  b
        1   1  2
        1   2  1
    """)
    S = events("""
        ts  id
        2   s1
    """)
    assert results("SELECT a, b FROM R [ROWS 1], S [ROWS 1]", R=R, S=S) == expect("""
        a  b  result_ts
        2  1  2
    """)


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        ("BIGINT", "NULL -1 0 7"),
        ("DOUBLE", "NULL -1.0 0.0 7.5 inf NaN"),
        ("STRING", "NULL '' B a ab é \uff5e \U0001d11e"),
        ("BOOLEAN", "NULL false true"),
    ],
)
def test_oracle_order_of_tie_keys_is_null_first_nan_last_strings_by_bytes(kind: str, ascending: str) -> None:
    cells = ascending.split()
    text = f"""
        CREATE STREAM R (v {kind}, ts TIMESTAMP); CREATE STREAM S (id STRING, ts TIMESTAMP);
        SELECT R.v AS v FROM R [ROWS 1], S [ROWS 1]
    """
    S = events("""
        ts  id
        2   s1
    """)
    for before, after in pairwise(cells):
        R = events(f"ts v\n1 {after}\n1 {before}")
        (found,) = results(text, R=R, S=S)
        assert same(found["v"], R[0]["v"]), f"{before} comes before {after}"


def test_oracle_order_takes_minus_zero_for_zero() -> None:
    R = events("""
        ts  v     id
        1   -0.0  r2
        1   0.0   r1
    """)
    S = events("""
        ts  id
        2   s1
    """)
    text = "SELECT R.id AS r FROM R [ROWS 1], S [ROWS 1]"
    declared = "CREATE STREAM R (v DOUBLE, id STRING, ts TIMESTAMP); CREATE STREAM S (id STRING, ts TIMESTAMP);"
    assert results(declared + text, R=R, S=S) == expect("""
        r   result_ts
        r2  2
    """)
