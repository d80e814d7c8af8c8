"""Predicates that Spark evaluates for us mean what ours mean; types come over as they are; and Spark's own join agrees."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import watersmeet as wm
from tests.spark.script import Script
from watersmeet.data.plain_rows import plain_batches
from watersmeet.engine.rows.batches import Batches
from watersmeet.model.evaluate import evaluator
from watersmeet.spark.columns import conform, schema_of
from watersmeet.spark.selection import in_spark, mask
from watersmeet.testing import random_case, same_rows

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", tz="UTC")


def test_conform_spark_evaluates_selections_as_we_do(spark: SparkSession) -> None:
    """The selections of many random queries, over the rows of their streams, in a session that is not in UTC."""
    checked = 0
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for seed in range(60):
            case = random_case(seed, rows=40)
            bound = Batches(case.query, case.streams).bound
            for source in [s for s in bound.sources if not s.static]:
                predicates = [p for p in bound.selections[source.alias] if in_spark(p)]
                if not predicates or checked >= 25:
                    continue
                table = case.streams[source.stream].select(list(source.schema.names))
                frame = conform(spark.createDataFrame(table), source.stream, source.schema)
                found = frame.select(*[mask((p,)).alias(f"p{i}") for i, p in enumerate(predicates)]).toArrow()
                rows = plain_batches(case.query, case.streams)[2][0][source.stream]
                for i, predicate in enumerate(predicates):
                    holds = evaluator(predicate)
                    wanted = [holds({source.alias: row}) is True for row in rows]
                    assert found.column(f"p{i}").to_pylist() == wanted, f"seed {seed}: {predicate}"
                    checked += 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert checked >= 20


def test_a_time_without_a_zone_is_utc(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql("SELECT TIMESTAMP_NTZ'2026-01-02 03:04:05.000006' AS ts, CAST(7 AS SMALLINT) AS a, 1.5F AS f")
        made = conform(frame, "R", schema_of(frame, "R"))
        row = made.select(F.unix_micros("ts").alias("t"), "a", "f").collect()[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    assert row["t"] == int(moment.timestamp()) * 1_000_000 + 6
    assert [f.dataType.simpleString() for f in made.schema.fields] == ["timestamp", "bigint", "double"]


def test_spark_own_join_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """An interval join of two streams that Spark itself accepts, and late rows beside it."""
    schema = pa.schema([("a", pa.int64()), ("ts", UTC)])

    def rows(times: range, key: int) -> pa.Table:
        data = {"a": [t * key % 7 for t in times], "ts": pa.array([t * 1_000_000 for t in times], UTC)}
        return pa.table(data)

    text = (
        "SELECT R.a, R.ts AS r, S.ts AS s FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a AND R.a > 0"
    )
    script = Script(spark, tmp_path, text, {"R": schema, "S": schema}, cells=2, late=True).start()
    script.add({"R": rows(range(60), 3), "S": rows(range(50), 5)}).run()
    script.add({"R": rows(range(60, 90), 3), "S": rows(range(50, 90), 5)}).run()
    script.add({"R": rows(range(5, 8), 3)}).run()  # a = 1, 4 and 0: late, whatever WHERE says
    assert script.metrics[-1]["late"] == 3
    script.flush().stop()
    out = spark.read.parquet(str(tmp_path / "out"))
    late = out.where("kind = 'late'").select("late_stream", "late_row").collect()
    assert sorted(json.loads(r["late_row"])["a"] for r in late) == [0, 1, 4]
    assert {r["late_stream"] for r in late} == {"R"}
    own = {n: spark.read.parquet(str(tmp_path / "in" / n)) for n in ("R", "S")}
    own["R"] = own["R"].distinct()  # the late rows are copies of rows that came in time
    on = F.expr("R.a = S.a AND R.a > 0 AND R.ts BETWEEN S.ts - INTERVAL 10 SECONDS AND S.ts + INTERVAL 10 SECONDS")
    joined = own["R"].alias("R").join(own["S"].alias("S"), on).selectExpr("R.a", "R.ts AS r", "S.ts AS s")
    expected = wm.oracle(text, {"R": rows(range(90), 3), "S": rows(range(90), 5)}).select(["a", "r", "s"])
    found = out.where("kind = 'result'").select("a", "r", "s").toArrow().cast(expected.schema)
    assert (wrong := same_rows(found, expected)) is None, wrong
    assert (wrong := same_rows(joined.toArrow().cast(expected.schema), expected)) is None, wrong
