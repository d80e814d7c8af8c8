"""Batches: the watermark, late rows, idle streams. An id that begins with r is a row of R, with s one of S."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.oracle.events import events, expect, late_ids, results

JOIN = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED];"


def declared(r: str = "", s: str = "") -> str:
    return f"CREATE STREAM R (id STRING, ts TIMESTAMP) {r}; CREATE STREAM S (id STRING, ts TIMESTAMP) {s}; {JOIN}"


def batches(text: str) -> list[Mapping[str, Any]]:
    """Rows with the number of the batch in which they come."""
    made: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for row in events(text):
        stream = "R" if row["id"].startswith("r") else "S"
        made.setdefault(row.pop("batch"), {}).setdefault(stream, []).append(row)
    return [made.get(n, {}) for n in range(1, max(made) + 1)]


def test_oracle_a_row_is_late_if_it_is_below_the_watermark_of_the_batch_before() -> None:
    given = batches("""
        batch  ts        id
        1      10        r1
        1      10        s1
        2      9.999999  r_late
        2      10        r_on_time
        2      11        s2
    """)
    assert late_ids(declared(), given) == ["r_late"]
    assert results(declared(), given) == expect("""
        r          s   result_ts
        r1         s1  10
        r_on_time  s1  10
        r1         s2  11
        r_on_time  s2  11
    """)


def test_oracle_within_a_batch_no_row_is_late() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        1      10  s1
        1      1   r2
        1      1   s2
    """)
    assert late_ids(declared(), given) == []
    assert len(results(declared(), given)) == 4


def test_oracle_the_watermark_is_the_least_over_streams() -> None:
    given = batches("""
        batch  ts  id
        1      50  r1
        1      10  s1
        2      11  r2
        2      9   r_late
    """)
    assert late_ids(declared(), given) == ["r_late"]


def test_oracle_the_watermark_lies_behind_the_highest_timestamp_by_the_streams_lateness() -> None:
    given = batches("""
        batch  ts        id
        1      10        r1
        1      10        s1
        2      7         r2
        2      6.999999  r_late
    """)
    assert late_ids(declared("LATENESS 3 SECONDS"), given) == ["r_late"]
    assert late_ids(declared("LATENESS 3 SECONDS", "LATENESS 4 SECONDS"), given) == []


def test_oracle_the_highest_timestamp_is_that_of_this_and_all_earlier_batches() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        1      10  s1
        2      5   r_late1
        2      20  s2
        3      8   r_late2
    """)
    # After batch 2 R's highest timestamp is still 10.
    assert late_ids(declared(), given) == ["r_late1", "r_late2"]


def test_oracle_a_stream_without_rows_holds_the_watermark_back() -> None:
    given = batches("""
        batch  ts  id
        1      50  r1
        2      1   r2
        3      1   s1
    """)
    assert late_ids(declared(), given) == []


def test_oracle_released_rows_are_in_global_order_whatever_the_batches() -> None:
    text = """
        CREATE STREAM R (id STRING, ts TIMESTAMP) LATENESS 5 SECONDS; CREATE STREAM S (id STRING, ts TIMESTAMP);
        SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [UNBOUNDED]
    """
    given = batches("""
        batch  ts  id
        1      4   r4
        1      1   r1
        2      2   r2
        2      3   s3
        3      9   r9
        4      5   s5
    """)
    # In order r1 r2 s3 r4 s5 r9: s3 finds r2, r4 finds s3, s5 finds r4, r9 finds s3 and s5.
    assert results(text, given) == expect("""
        r   s   result_ts
        r2  s3  3
        r4  s3  4
        r4  s5  5
        r9  s3  9
        r9  s5  9
    """)


def test_oracle_a_row_within_its_own_streams_lateness_is_never_late() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        1      99  s1
        2      7   r2
        3      99  s2
        3      8   r3
        4      7   r4
    """)
    assert late_ids(declared("LATENESS 3 SECONDS"), given) == []


def test_oracle_how_later_rows_fare_may_depend_on_the_batches() -> None:
    rows = """
        batch  ts  id
        1      10  r1
        1      10  s1
        {}     5   r2
    """
    assert late_ids(declared(), batches(rows.format(1))) == []
    assert late_ids(declared(), batches(rows.format(2))) == ["r2"]


def test_oracle_a_late_row_of_a_self_join_is_counted_once() -> None:
    text = "SELECT p.id AS p, q.id AS q FROM R [UNBOUNDED] AS p, R [UNBOUNDED] AS q"
    given = batches("""
        batch  ts  id
        1      10  r1
        2      5   r2
    """)
    assert late_ids(text, given) == ["r2"]


def test_oracle_a_late_row_does_not_count_towards_rows() -> None:
    text = "SELECT R.id AS r, S.id AS s FROM R [ROWS 1], S [UNBOUNDED]"
    given = batches("""
        batch  ts  id
        1      4   r4
        1      10  s10
        2      12  r12
        2      2   r_late
        3      11  s11
    """)
    assert late_ids(text, given) == ["r_late"]
    assert results(text, given) == expect("""
        r    s    result_ts
        r4   s10  10
        r4   s11  11
        r12  s10  12
        r12  s11  12
    """)


def test_oracle_an_idle_stream_no_longer_holds_the_watermark_back() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        1      10  s1
        2      15  r2
        3      14  r_waits
        4      16  r3
        5      15  r_late
    """)
    # S stands at 10: at 15 it is 5 behind and holds W at 10; at 16 it is more than 5 behind, and W is R's 16.
    assert late_ids(declared("", "IDLE 5 SECONDS"), given) == ["r_late"]
    assert late_ids(declared("", ""), given) == []


def test_oracle_rows_of_a_stream_that_was_idle_may_be_late() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        1      10  s1
        2      30  r2
        3      11  s_late
        3      30  s2
    """)
    assert late_ids(declared("", "IDLE 5 SECONDS"), given) == ["s_late"]


def test_oracle_the_watermark_does_not_go_back_when_an_idle_stream_wakes() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        1      10  s1
        2      30  r2
        3      28  s_late
        4      29  r_late
    """)
    # After batch 2 W is 30. In batch 3 S moves up to 28, within 5 of R: it is waited for again, but W stays 30.
    assert late_ids(declared("", "IDLE 5 SECONDS"), given) == ["r_late", "s_late"]


def test_oracle_before_its_first_row_a_stream_is_idle_from_the_lowest_timestamp_on() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        2      15  r2
        3      12  r_waits
        4      16  r3
        5      15  r_late
    """)
    assert late_ids(declared("", "IDLE 5 SECONDS"), given) == ["r_late"]


def test_oracle_the_furthest_stream_is_never_idle() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        1      12  s1
        2      11  r_late
    """)
    assert late_ids(declared("IDLE 0 SECONDS", "IDLE 0 SECONDS"), given) == ["r_late"]


def test_oracle_at_the_end_all_waiting_rows_are_released() -> None:
    given = batches("""
        batch  ts  id
        1      10  r1
        2      99  s1
    """)
    assert results(declared("LATENESS 1 DAY"), given) == expect("""
        r   s   result_ts
        r1  s1  99
    """)
