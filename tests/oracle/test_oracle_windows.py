"""Windows: which tuples of a stream are there when another arrives."""

from __future__ import annotations

from tests.oracle.events import events, expect, results

S = events("""
    ts  id
    20  s1
""")


def test_oracle_range_holds_the_tuples_from_t_minus_its_length_to_t() -> None:
    R = events("""
        ts         id
        9.999999   just_out
        10         first_in
        15         inside
        20         last_in
        20.000001  after
    """)
    assert results("SELECT R.id AS r, S.id AS s FROM R [RANGE 10 SECONDS], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r         s   result_ts
        first_in  s1  20
        inside    s1  20
        last_in   s1  20
    """)


def test_oracle_range_of_zero_holds_the_tuples_of_the_same_microsecond() -> None:
    R = events("""
        ts         id
        19.999999  before
        20         same
        20         same_again
        20.000001  after
    """)
    assert results("SELECT R.id AS r FROM R [RANGE 0 SECONDS], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r           result_ts
        same        20
        same_again  20
    """)


def test_oracle_rows_holds_the_last_n() -> None:
    R = events("""
        ts  id
        1   r1
        2   r2
        3   r3
        4   r4
    """)
    assert results("SELECT R.id AS r FROM R [ROWS 2], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r   result_ts
        r3  20
        r4  20
    """)


def test_oracle_rows_holds_all_there_are_when_they_are_fewer() -> None:
    R = events("""
        ts  id
        1   r1
        2   r2
    """)
    assert results("SELECT R.id AS r FROM R [ROWS 5], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r   result_ts
        r1  20
        r2  20
    """)


def test_oracle_partition_by_holds_the_last_n_for_each_value() -> None:
    R = events("""
        ts  id  k
        1   a1  1
        2   a2  1
        3   b1  2
        4   a3  1
        5   c1  3
    """)
    assert results("SELECT R.id AS r FROM R [PARTITION BY k ROWS 2], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r   result_ts
        a2  20
        a3  20
        b1  20
        c1  20
    """)


def test_oracle_partition_by_several_columns_holds_the_last_n_for_each_combination() -> None:
    R = events("""
        ts  id   j  k
        1   x11  1  1
        2   y11  1  1
        3   x12  1  2
        4   x21  2  1
        5   y12  1  2
    """)
    assert results("SELECT R.id AS r FROM R [PARTITION BY j, k ROWS 1], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r    result_ts
        y11  20
        y12  20
        x21  20
    """)


def test_oracle_partition_by_takes_null_for_one_value_and_nan_for_one_and_minus_zero_for_zero() -> None:
    R = events("""
        ts  id     k
        1   null1  NULL
        2   null2  NULL
        3   nan1   NaN
        4   nan2   NaN
        5   zero1  0.0
        6   zero2  -0.0
    """)
    assert results("SELECT R.id AS r FROM R [PARTITION BY k ROWS 1], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r      result_ts
        null2  20
        nan2   20
        zero2  20
    """)


def test_oracle_unbounded_holds_all() -> None:
    R = events("""
        ts         id
        -99999999  long_ago
        1          r1
        20         r2
    """)
    assert results("SELECT R.id AS r FROM R [UNBOUNDED], S [RANGE 0 SECONDS]", R=R, S=S) == expect("""
        r         result_ts
        long_ago  20
        r1        20
        r2        20
    """)


def test_oracle_windows_belong_to_streams_and_may_differ() -> None:
    R = events("""
        ts  id
        10  r1
        20  r2
    """)
    S = events("""
        ts  id
        12  s1
        17  s2
    """)
    # r1 is held for 5 s: s1 finds it, s2 doesn't. s1 and s2 are held for 8 s and 3 s old: r2 finds both.
    assert results("SELECT R.id AS r, S.id AS s FROM R [RANGE 5 SECONDS], S [RANGE 8 SECONDS]", R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  12
        r2  s1  20
        r2  s2  20
    """)


def test_oracle_windows_of_all_kinds_mix_in_one_query() -> None:
    R = events("""
        ts  id
        1   r1
        9   r2
    """)
    S = events("""
        ts  id
        2   s1
        3   s2
    """)
    T = events("""
        ts  id  k
        4   t1  1
        5   t2  1
        6   t3  2
    """)
    U = events("""
        ts  id
        10  u1
    """)
    text = """
        SELECT R.id AS r, S.id AS s, T.id AS t, U.id AS u
        FROM R [RANGE 2 SECONDS], S [ROWS 1], T [PARTITION BY k ROWS 1], U [UNBOUNDED]
    """
    assert results(text, R=R, S=S, T=T, U=U) == expect("""
        r   s   t   u   result_ts
        r2  s2  t2  u1  10
        r2  s2  t3  u1  10
    """)


def test_oracle_a_row_that_a_predicate_rejects_still_counts_towards_rows() -> None:
    R = events("""
        ts  id  ok
        1   r1  1
        2   r2  1
        3   r3  0
    """)
    assert results("SELECT R.id AS r FROM R [ROWS 2], S [ROWS 1] WHERE R.ok = 1", R=R, S=S) == expect("""
        r   result_ts
        r2  20
    """)


def test_oracle_a_row_whose_key_is_null_still_counts_towards_rows() -> None:
    R = events("""
        ts  id  k
        1   r1  1
        2   r2  1
        3   r3  NULL
    """)
    S = events("""
        ts  id  k
        20  s1  1
    """)
    assert results("SELECT R.id AS r FROM R [ROWS 2], S [ROWS 1] WHERE R.k = S.k", R=R, S=S) == expect("""
        r   result_ts
        r2  20
    """)


def test_oracle_partitions_count_rejected_rows_too() -> None:
    R = events("""
        ts  id  k  ok
        1   a1  1  1
        2   b1  2  1
        3   a2  1  0
    """)
    assert results("SELECT R.id AS r FROM R [PARTITION BY k ROWS 1], S [ROWS 1] WHERE R.ok = 1", R=R, S=S) == expect("""
        r   result_ts
        b1  20
    """)
