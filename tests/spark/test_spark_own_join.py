"""Where Spark's own stream-stream join accepts a query, both give the same results: rows of the benchmark, in several batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import watersmeet as wm
from bench.engine.workload import Workload, common
from bench.spark.data import FILES, write
from bench.spark.own_join import own_join
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
BATCHES = 3
COLUMNS = ("a", "b", "r", "s", "t")
# Spark's own watermark begins at 1970-01-01 00:00: to its join a row of that very moment, with which the workload begins, is late.
START_US = 1_767_225_600_000_000  # 2026-01-01


@pytest.fixture
def rows(tmp_path: Path) -> Workload:
    """28,000 rows over 24 s, windows of 10 s, keys skewed so that some meet many and some none."""
    made = common(4000, skew=0.3, seed=11)
    made = replace(made, streams={n: (ts + START_US, columns) for n, (ts, columns) in made.streams.items()})
    write(made, tmp_path / "in", BATCHES)
    return made


def _frames(spark: SparkSession, folder: Path, names: str) -> dict[str, DataFrame]:
    made = {}
    for name in names:
        kinds = spark.read.parquet(str(folder / "in" / name)).schema
        made[name] = (
            spark.readStream.schema(kinds).option("maxFilesPerTrigger", FILES).parquet(str(folder / "in" / name))
        )
    return made


def _collect(spark: SparkSession, frame: DataFrame, folder: Path, control: Path | None = None) -> pa.Table:
    """Run to the end of the input (and release what waits), and take the results from the sink."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.processAllAvailable()
    batches = sum(1 for p in query.recentProgress if p["numInputRows"])
    if control is not None:
        wm.flush(control)
        query.processAllAvailable()
    query.stop()
    assert batches == BATCHES
    return spark.read.parquet(str(folder / "out")).toArrow()


def test_spark_three_way_join_equals_sparks_own(spark: SparkSession, tmp_path: Path, rows: Workload) -> None:
    theirs = own_join(_frames(spark, tmp_path, "RST"), rows.window_us).select(
        F.col("R_a").alias("a"), F.col("S_b").alias("b"), F.col("R_t").alias("r"), F.col("S_ts").alias("s"), F.col("T_ts").alias("t")
    )  # fmt: skip
    expected = _collect(spark, theirs, tmp_path / "theirs")
    control = tmp_path / "control"
    ours = wm.stream(rows.text, _frames(spark, tmp_path, "RST"), cells=2, control=control).select(*COLUMNS)
    found = _collect(spark, ours, tmp_path / "ours", control)
    assert (wrong := same_rows(found.cast(expected.schema), expected)) is None, wrong
    assert expected.num_rows > 5000


def test_spark_two_way_join_equals_sparks_own(spark: SparkSession, tmp_path: Path, rows: Workload) -> None:
    """As a user writes it, with an expression as key and windows of two lengths."""
    given = _frames(spark, tmp_path, "ST")
    s, t = (
        given["S"].withWatermark("ts", "0 seconds").alias("S"),
        given["T"].withWatermark("ts", "0 seconds").alias("T"),
    )
    near = "T.ts >= S.ts - interval 2 seconds and T.ts <= S.ts + interval 7 seconds"
    theirs = s.join(t, F.expr(f"S.b = T.b + 1 and S.a % 3 <> 0 and {near}")).selectExpr(
        "S.a", "T.b", "S.ts s", "T.ts t"
    )
    expected = _collect(spark, theirs, tmp_path / "theirs")
    text = """SELECT S.a, T.b, S.ts AS s, T.ts AS t FROM S [RANGE 7 SECONDS], T [RANGE 2 SECONDS]
              WHERE S.b = T.b + 1 AND S.a % 3 <> 0"""
    control = tmp_path / "control"
    ours = wm.stream(text, _frames(spark, tmp_path, "ST"), cells=2, control=control).select("a", "b", "s", "t")
    found = _collect(spark, ours, tmp_path / "ours", control)
    assert (wrong := same_rows(found.cast(expected.schema), expected)) is None, wrong
    assert expected.num_rows > 1000
