"""Waiting rows have a limit: the error names the stream that the others wait for, and a restart with more room goes on."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.spark.local_cells import LocalCells
from watersmeet.spark.waiting import WAITING_BYTES, waiting_limit
from watersmeet.testing import same_rows

QUERY = """
CREATE STREAM R (a BIGINT, ts TIMESTAMP);
CREATE STREAM S (a BIGINT, ts TIMESTAMP) LATENESS 2 SECONDS;
CREATE STREAM T (a BIGINT, ts TIMESTAMP);
SELECT R.a, R.ts AS r, S.ts AS s, T.ts AS t FROM R [RANGE 9 SECONDS], S [RANGE 9 SECONDS], T [RANGE 9 SECONDS]
WHERE R.a = S.a AND S.a = T.a
"""


def _rows(*times: int) -> pa.Table:
    data = {"a": [t % 3 for t in times], "ts": pa.array([t * 1_000_000 for t in times], pa.timestamp("us", tz="UTC"))}
    return pa.table(data)


BATCHES = [
    {"R": _rows(*range(10)), "S": _rows(*range(8)), "T": _rows(*range(10))},
    {"R": _rows(*range(10, 40)), "T": _rows(*range(10, 35))},
    {"R": _rows(*range(40, 45)), "S": _rows(*range(8, 45)), "T": _rows(*range(35, 45))},
]


def _cells(query: str, limit: int, stores: list[object] | None = None) -> LocalCells:
    made = LocalCells(wm.parse(query), wm.Plan.parse("(R S T)"), 2, Random(1), options={"waiting_bytes": limit})
    made.stores = stores or []  # type: ignore[assignment]
    return made


def test_too_many_waiting_rows_stop_the_query_and_a_higher_limit_goes_on() -> None:
    first = _cells(QUERY, 300)
    results = [first.run(BATCHES[:1], end=False)]
    stored = [s.copy() for s in first.stores]
    with pytest.raises(wm.DataError) as caught:
        first.run(BATCHES[1:2], end=False)
    told = str(caught.value)
    assert (
        "wait in a cell for stream 'S', more than the 300 B allowed: it has come as far as 1970-01-01 00:00:07" in told
    )
    assert "its LATENESS is 2 SECONDS; 'R' 1970-01-01 00:00:39, 'T' 1970-01-01 00:00:34" in told
    assert "IDLE 1 MINUTE" in told and "spark.watersmeet.waitingBytes" in told
    # Spark commits nothing of a batch that failed, in any cell.
    again = _cells(QUERY, WAITING_BYTES, [s.copy() for s in stored])
    results.append(again.run(BATCHES[1:]))
    assert (wrong := same_rows(pa.concat_tables(results), wm.oracle(QUERY, BATCHES))) is None, wrong
    # Or with another lateness or idle: what is stored depends on neither.
    idle = _cells(QUERY.replace("LATENESS 2 SECONDS", "IDLE 5 SECONDS"), 300, [s.copy() for s in stored])
    idle.run(BATCHES[1:2], end=False)
    assert idle.metrics[-1]["watermark_us"] == 34_000_000


def test_a_stream_that_never_came_is_named() -> None:
    with pytest.raises(
        wm.DataError, match=r"for stream 'S', more than the 100 B allowed: it has had no row yet; 'R' 1970"
    ):
        _cells(QUERY, 100).run([{n: t for n, t in BATCHES[0].items() if n != "S"}], end=False)


@pytest.mark.parametrize(
    ("text", "limit"),
    [(None, 1 << 30), ("2g", 2 << 30), ("512m", 512 << 20), ("4 GB", 4 * 10**9), ("77", 77), ("9k", 9216)],
)
def test_reads_the_limit(text: str | None, limit: int) -> None:
    assert waiting_limit(text) == limit


@pytest.mark.parametrize("text", ["0", "much", "-1", "3 apples", ""])
def test_refuses_a_limit_that_is_none(text: str) -> None:
    with pytest.raises(wm.QueryError, match=r"spark.watersmeet.waitingBytes"):
        waiting_limit(text)
