"""Results: a combination, one tuple from each stream, that satisfies every predicate and in which, when its last tuple
arrives, all the others are in their windows. Its `result_ts` is the last tuple's. It is produced once."""

from __future__ import annotations

from tests.oracle.events import events, expect, results


def test_oracle_a_result_has_one_tuple_from_each_stream_and_satisfies_every_predicate() -> None:
    R = events("""
        ts  id  a
        1   r1  1
        2   r2  2
    """)
    S = events("""
        ts  id  a  b
        3   s1  1  10
        4   s2  2  20
        5   s3  1  20
    """)
    T = events("""
        ts  id  b
        6   t1  10
        7   t2  20
    """)
    text = """
        SELECT R.id AS r, S.id AS s, T.id AS t
        FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS], T [RANGE 10 SECONDS] WHERE R.a = S.a AND S.b = T.b
    """
    assert results(text, R=R, S=S, T=T) == expect("""
        r   s   t   result_ts
        r1  s1  t1  6
        r2  s2  t2  7
        r1  s3  t2  7
    """)


def test_oracle_without_a_predicate_between_them_all_combinations_are_results() -> None:
    R = events("""
        ts  id
        1   r1
        2   r2
    """)
    S = events("""
        ts  id
        3   s1
        4   s2
    """)
    assert results("SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED]", R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  3
        r2  s1  3
        r1  s2  4
        r2  s2  4
    """)


def test_oracle_the_others_must_be_in_their_windows_when_the_last_arrives() -> None:
    R = events("""
        ts  id
        1   r1
    """)
    S = events("""
        ts  id
        3   s1
    """)
    T = events("""
        ts  id
        4   t1
    """)
    # r1 and s1 were there together at 3, but at 4, when t1 arrives, r1 is gone.
    text = "SELECT R.id AS r FROM R [RANGE 2 SECONDS], S [RANGE 9 SECONDS], T [RANGE 9 SECONDS]"
    assert results(text, R=R, S=S, T=T) == []
    text = "SELECT R.id AS r FROM R [RANGE 3 SECONDS], S [RANGE 9 SECONDS], T [RANGE 9 SECONDS]"
    assert results(text, R=R, S=S, T=T) == expect("""
        r   result_ts
        r1  4
    """)


def test_oracle_the_window_of_the_last_tuple_does_not_matter() -> None:
    R = events("""
        ts  id
        1   r1
    """)
    S = events("""
        ts  id
        9   s1
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 8 SECONDS], S [RANGE 0 SECONDS]"
    assert results(text, R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  9
    """)
    assert results("SELECT R.id AS r, S.id AS s FROM R [RANGE 0 SECONDS], S [RANGE 8 SECONDS]", R=R, S=S) == []


def test_oracle_result_ts_is_the_last_tuples_timestamp_whichever_stream_it_is_of() -> None:
    R = events("""
        ts  id  k
        1   r1  1
        8   r2  2
    """)
    S = events("""
        ts  id  k
        5   s1  1
        6   s2  2
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.k = S.k"
    assert results(text, R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  5
        r2  s2  8
    """)


def test_oracle_a_result_is_produced_once_also_when_all_its_tuples_have_one_timestamp() -> None:
    R = events("""
        ts  id
        1   r1
    """)
    S = events("""
        ts  id
        1   s1
    """)
    T = events("""
        ts  id
        1   t1
    """)
    text = "SELECT R.id AS r, S.id AS s, T.id AS t FROM R [RANGE 0 SECONDS], S [ROWS 1], T [UNBOUNDED]"
    assert results(text, R=R, S=S, T=T) == expect("""
        r   s   t   result_ts
        r1  s1  t1  1
    """)


def test_oracle_equal_rows_are_different_tuples() -> None:
    R = events("""
        ts  id
        1   twin
        1   twin
    """)
    S = events("""
        ts  id
        2   s1
    """)
    assert results("SELECT R.id AS r FROM R [RANGE 5 SECONDS], S [RANGE 5 SECONDS]", R=R, S=S) == expect("""
        r     result_ts
        twin  2
        twin  2
    """)
    assert results("SELECT R.id AS r FROM R [ROWS 1], S [RANGE 5 SECONDS]", R=R, S=S) == expect("""
        r     result_ts
        twin  2
    """)


def test_oracle_an_empty_stream_joins_nothing() -> None:
    R = events("""
        ts  id
        1   r1
    """)
    declared = "CREATE STREAM R (id STRING, ts TIMESTAMP); CREATE STREAM S (id STRING, ts TIMESTAMP);"
    text = f"{declared} SELECT R.id AS r FROM R [UNBOUNDED], S [UNBOUNDED]"
    assert results(text, R=R, S=[]) == []


def test_oracle_freshness_budget_and_overload_do_not_change_the_answer() -> None:
    R = events("""
        ts  id
        1   r1
    """)
    S = events("""
        ts  id
        2   s1
    """)
    plain = "SELECT R.id AS r, S.id AS s FROM R [RANGE 5 SECONDS], S [RANGE 5 SECONDS]"
    expected = expect("""
        r   s   result_ts
        r1  s1  2
    """)
    assert results(plain, R=R, S=S) == expected
    strict = " FRESHNESS (R 5 SECONDS) BUDGET (CPU 0.000001, MEMORY 1 TUPLES) ON OVERLOAD EVICT AND SHED"
    assert results(plain + strict, R=R, S=S) == expected


def test_oracle_selects_expressions_and_stars_and_adds_result_ts_last() -> None:
    R = events("""
        ts  id  x
        1   r1  3
    """)
    S = events("""
        ts  id  x
        2   s1  4
    """)
    text = "SELECT S.*, R.x * 2 + S.x AS sum, R.id FROM R [UNBOUNDED], S [UNBOUNDED]"
    assert results(text, R=R, S=S) == expect("""
        ts  S_id  x  sum  R_id  result_ts
        2   s1    4  10   r1    2
    """)
