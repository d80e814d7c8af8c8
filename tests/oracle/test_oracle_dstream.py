"""EMIT DSTREAM: a result is produced when its first member leaves its window. Time stops at the highest timestamp."""

from __future__ import annotations

from tests.oracle.events import events, expect, results

R = events("""
    ts  id
    1   r1
""")
S = events("""
    ts  id
    2   s1
""")


def test_oracle_dstream_of_a_range_window_comes_one_microsecond_after_its_length() -> None:
    R = events("""
        ts   id
        1    r1
        100  r2
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 5 SECONDS], S [RANGE 50 SECONDS] EMIT DSTREAM"
    assert results(text, R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  6.000001
    """)


def test_oracle_dstream_of_a_rows_window_comes_with_the_tuple_that_pushes_out() -> None:
    pushed = events("""
        ts  id
        1   r1
        4   r2
        7   r3
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [ROWS 2], S [UNBOUNDED] EMIT DSTREAM"
    assert results(text, R=pushed, S=S) == expect("""
        r   s   result_ts
        r1  s1  7
    """)


def test_oracle_dstream_of_a_partition_comes_with_a_tuple_of_the_same_value() -> None:
    pushed = events("""
        ts  id  k
        1   a1  1
        4   b1  2
        7   a2  1
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [PARTITION BY k ROWS 1], S [UNBOUNDED] EMIT DSTREAM"
    assert results(text, R=pushed, S=S) == expect("""
        r   s   result_ts
        a1  s1  7
    """)


def test_oracle_dstream_comes_once_when_the_first_member_leaves() -> None:
    more = events("""
        ts   id
        2    s1
        100  s2
    """)
    for first, second, when in (("5", "9", "6.000001"), ("9", "5", "7.000001")):
        text = f"SELECT R.id AS r, S.id AS s FROM R [RANGE {first} SECONDS], S [RANGE {second} SECONDS] EMIT DSTREAM"
        assert results(text, R=R, S=more) == expect(f"""
            r   s   result_ts
            r1  s1  {when}
        """)


def test_oracle_dstream_of_mixed_windows_takes_whichever_leaves_first() -> None:
    pushing = events("""
        ts  id
        2   s1
        4   s2
        50  s3
    """)
    # s1 is pushed out at 4; (r1, s2) ends when r1's 10 seconds do.
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 10 SECONDS], S [ROWS 1] EMIT DSTREAM"
    assert results(text, R=R, S=pushing) == expect("""
        r   s   result_ts
        r1  s1  4
        r1  s2  11.000001
    """)


def test_oracle_dstream_can_come_at_the_time_of_the_result_itself() -> None:
    same_time = events("""
        ts  id
        1   r1
        2   r2
    """)
    # S stands first, so at 2 s1 arrives and meets r1, and then r2 pushes r1 out.
    text = "SELECT R.id AS r, S.id AS s FROM S [UNBOUNDED], R [ROWS 1] EMIT DSTREAM"
    assert results(text, R=same_time, S=S) == expect("""
        r   s   result_ts
        r1  s1  2
    """)


def test_oracle_dstream_a_combination_that_never_was_a_result_does_not_end_either() -> None:
    same_time = events("""
        ts  id
        1   r1
        2   r2
    """)
    # R stands first: r1 is gone before s1 arrives; (r2, s1) is there to stay.
    text = "SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [UNBOUNDED] EMIT DSTREAM"
    assert results(text, R=same_time, S=S) == []


def test_oracle_dstream_what_has_not_left_at_the_highest_timestamp_is_not_emitted() -> None:
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 5 SECONDS], S [RANGE 50 SECONDS] EMIT DSTREAM"
    ends_before = events("""
        ts  id
        2   s1
        6   s2
    """)
    assert results(text, R=R, S=ends_before) == []


def test_oracle_dstream_what_leaves_at_the_highest_timestamp_itself_is_emitted() -> None:
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 5 SECONDS], S [RANGE 50 SECONDS] EMIT DSTREAM"
    ends_then = events("""
        ts        id
        2         s1
        6.000001  s2
    """)
    assert results(text, R=R, S=ends_then) == expect("""
        r   s   result_ts
        r1  s1  6.000001
    """)


def test_oracle_dstream_time_is_moved_on_by_tuples_that_where_rejects() -> None:
    S = events("""
        ts   id   ok
        2    s1   1
        100  end  0
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 5 SECONDS], S [RANGE 5 SECONDS] WHERE S.ok = 1 EMIT DSTREAM"
    assert results(text, R=R, S=S) == expect("""
        r   s   result_ts
        r1  s1  6.000001
    """)


def test_oracle_dstream_pushing_is_done_by_tuples_that_where_rejects() -> None:
    pushed = events("""
        ts  id  ok
        1   r1  1
        4   r2  0
    """)
    text = "SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [UNBOUNDED] WHERE R.ok = 1 EMIT DSTREAM"
    assert results(text, R=pushed, S=S) == expect("""
        r   s   result_ts
        r1  s1  4
    """)


def test_oracle_dstream_of_unbounded_windows_and_tables_never_comes() -> None:
    S = events("""
        ts        id
        2         s1
        99999999  end
    """)
    assert results("SELECT R.id AS r FROM R [UNBOUNDED], S [UNBOUNDED] EMIT DSTREAM", R=R, S=S) == []
    table = [{"id": "r1"}]
    text = "SELECT R.id AS r, S.id AS s FROM R, S [RANGE 5 SECONDS] EMIT DSTREAM"
    assert results(text, R=table, S=S) == expect("""
        r   s   result_ts
        r1  s1  7.000001
    """)
