"""Results travel to Spark in blocks: all of them arrive, in their types, with NULL and NaN apart."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import watersmeet as wm
from tests.spark.script import Script
from watersmeet.spark.blocks import BLOCK_BYTES, BLOCK_RESULTS, blocks
from watersmeet.spark.columns import column
from watersmeet.testing import same_rows

UTC = pa.timestamp("us", tz="UTC")


def batch(texts: list[str], metrics: list[str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(texts), pa.array(metrics, pa.string())], names=["x", "metrics"])


def lengths(given: pa.RecordBatch) -> list[int]:
    return [len(values) for values in blocks(given)[0]]


def test_results_are_cut_in_blocks() -> None:
    n = 2 * BLOCK_RESULTS + 7
    given = batch([str(i) for i in range(n)], [None] * n)
    assert lengths(given) == [BLOCK_RESULTS, BLOCK_RESULTS, 7]
    assert [v for values in blocks(given)[0] for v in values] == [str(i) for i in range(n)]
    part = given.slice(5, BLOCK_RESULTS)  # as a view of a longer batch
    assert [v for values in blocks(part)[0] for v in values] == [str(i) for i in range(5, 5 + BLOCK_RESULTS)]
    assert lengths(given.slice(0, 0)) == []


def test_long_texts_make_short_blocks() -> None:
    found = lengths(batch(["x" * (BLOCK_BYTES // 4)] * 10, [None] * 10))
    assert sum(found) == 10
    assert max(found) <= 4
    assert lengths(batch(["x" * (2 * BLOCK_BYTES)] * 2, [None] * 2)) == [1, 1]


def test_metrics_are_a_block_without_results() -> None:
    made = blocks(batch([""], ["{}"]))
    assert [len(v) for v in made[0]] == [0]
    assert list(made[1]) == ["{}"]


@pytest.mark.spark
@pytest.mark.parametrize("late", [False, True])
def test_spark_gives_results_of_all_types_in_several_blocks(spark: SparkSession, tmp_path: Path, late: bool) -> None:
    n = 150  # on one key, so that one cell gives n * n results
    values = {
        "k": pa.array([1] * n),
        "i": pa.array([None if t % 5 == 0 else -t for t in range(n)], pa.int64()),
        "d": pa.array([None if t % 3 == 0 else float("nan") if t % 3 == 1 else t / 2 for t in range(n)], pa.float64()),
        "s": pa.array([None if t % 7 == 0 else "ä" * (t % 4) for t in range(n)], pa.string()),
        "b": pa.array([(None, True, False)[t % 3] for t in range(n)], pa.bool_()),
        "day": pa.array([None if t % 4 == 0 else dt.date(1969, 12, 1) + dt.timedelta(t) for t in range(n)]),
        "m": pa.array([None if t % 6 == 0 else Decimal(t) / 4 for t in range(n)], pa.decimal128(10, 2)),
        "wide": pa.array([None if t % 6 == 1 else Decimal(10**30 + t) for t in range(n)], pa.decimal128(38, 0)),
        "at": pa.array([None if t % 8 == 0 else t * 3_600_000_000 - 1 for t in range(n)], UTC),
        "ts": pa.array([t * 1_000_000 for t in range(n)], UTC),
    }
    rows = {"R": pa.table(values), "S": pa.table({"k": values["k"], "ts": values["ts"]})}
    text = (
        "SELECT R.i, R.d, R.s, R.b, R.day, R.m, R.wide, R.at, R.ts - S.ts AS apart, R.i AS `x.y 0`, S.ts AS place"
        " FROM R [RANGE 1 HOURS], S [RANGE 1 HOURS] WHERE R.k = S.k"
    )
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        schemas = {name: table.schema for name, table in rows.items()}
        script = Script(spark, tmp_path, text, schemas, cells=2, late=late).start()
        script.add(rows).run()
        script.add({"S": rows["S"].slice(0, 1)}).run()  # late, and no result
        script.flush().stop()
        shown = script.frame().schema
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    expected = wm.oracle(text, rows)
    assert expected.num_rows == n * n > 4 * BLOCK_RESULTS
    out = spark.read.schema(shown).parquet(str(tmp_path / "out"))
    kinds = ["bigint", "double", "string", "boolean", "date", "decimal(10,2)", "decimal(38,0)", "timestamp"]
    kinds += ["interval day to second", "bigint", "timestamp", "timestamp"]
    assert [f.dataType.simpleString() for f in shown.fields][: len(kinds)] == kinds
    assert all(f.nullable for f in shown.fields)
    assert shown.names == expected.column_names + (["kind", "late_stream", "late_row"] if late else [])
    if late:
        behind = out.where("kind = 'late'").selectExpr("late_stream", "i", "unix_micros(result_ts)").collect()
        assert [tuple(r) for r in behind] == [("S", None, 0)]
        out = out.where("kind = 'result'")
    found = out.select(*map(column, expected.column_names)).toArrow().cast(expected.schema)
    assert (wrong := same_rows(found, expected)) is None, wrong
