"""What is wrong is said before anything runs; a checkpoint of another query is refused, and the difference is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import watersmeet as wm
from tests.spark.script import Script
from watersmeet.spark.plain_errors import plain_error
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", tz="UTC")
QUERY = "SELECT R.a, i.name FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS], items AS i WHERE R.a = S.a AND S.a = i.a"


@pytest.fixture(autouse=True)
def _no_query_left_running(spark: SparkSession) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


def _rate(spark: SparkSession, *columns: str) -> DataFrame:
    return spark.readStream.format("rate").load().selectExpr(*columns)


def test_spark_says_what_is_wrong_with_the_inputs(spark: SparkSession) -> None:
    text = "SELECT R.a FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a"
    good = _rate(spark, "value AS a", "timestamp AS ts")
    declared = "CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, ts TIMESTAMP); " + text
    with pytest.raises(wm.QueryError, match="stream 'R' has no timestamp column 'ts'"):
        wm.stream(text, {"R": _rate(spark, "value AS a", "timestamp AS t"), "S": good})
    with pytest.raises(wm.DataError, match=r"column 'a' is string in the DataFrame, and BIGINT in the query"):
        wm.stream(declared, {"R": _rate(spark, "CAST(value AS STRING) AS a", "timestamp AS ts"), "S": good})
    with pytest.raises(wm.DataError, match="stream 'R' has no column 'a'"):
        wm.stream(declared, {"R": _rate(spark, "value AS aa", "timestamp AS ts"), "S": good})
    with pytest.raises(wm.QueryError, match="can't compare BIGINT with STRING"):
        wm.stream(text, {"R": good, "S": _rate(spark, "CAST(value AS STRING) AS a", "timestamp AS ts")})
    with pytest.raises(wm.DataError, match="column 'x' has the Spark type array<int>, which is not supported"):
        wm.stream(text, {"R": good, "S": _rate(spark, "array(1) AS x", "value AS a", "timestamp AS ts")})
    with pytest.raises(wm.DataError, match=r"no stream 'Q'\n  known: R, S"):
        wm.stream(text, {"R": good, "S": good, "Q": good})
    with pytest.raises(wm.DataError, match="no DataFrame given for 'S'"):
        wm.stream(declared, {"R": good})
    with pytest.raises(wm.DataError, match="not a streaming DataFrame"):
        wm.stream(text, {"R": good, "S": spark.range(3).selectExpr("id AS a", "current_timestamp() AS ts")})
    with pytest.raises(wm.QueryError, match="order='random'"):
        wm.stream(text, {"R": good, "S": good}, order="random")
    with pytest.raises(wm.QueryError, match="cells=5000: from 1 to 4096"):
        wm.stream(text, {"R": good, "S": good}, cells=5000)


def test_spark_refuses_the_checkpoint_of_another_query(spark: SparkSession, tmp_path: Path) -> None:
    """And goes on with a changed static table only if it is told to."""
    schema = pa.schema([("a", pa.int64()), ("ts", UTC)])
    items = pa.table({"a": [1, 2], "name": ["one", "two"]})

    def rows(*times: int) -> pa.Table:
        return pa.table({"a": [1] * len(times), "ts": pa.array([t * 1_000_000 for t in times], UTC)})

    def refused(script: Script) -> str:
        script.start()
        with pytest.raises(PySparkException) as caught:
            script.run()
        script.stop()
        error = plain_error(caught.value)
        assert isinstance(error, wm.StateError)
        return str(error)

    script = Script(spark, tmp_path, QUERY, {"R": schema, "S": schema}, {"items": items}, cells=2)
    script.start().add({"R": rows(1, 2), "S": rows(1, 2)}).run().stop()
    script.add({"R": rows(3), "S": rows(3)})
    script.query = QUERY.replace("R [RANGE 10", "R [RANGE 20")
    told = refused(script)
    assert "belongs to another query" in told and "query: was SELECT" in told and "20 SECONDS" in told
    script.query, script.options["cells"] = QUERY, 3
    assert "made with another number of cells, pass that number (cells=)" in refused(script)
    script.options["cells"], script.tables = 2, {"items": items.slice(0, 1)}
    assert "table items: was 2 rows" in (told := refused(script)) and "refresh_tables=True" in told
    script.options["refresh_tables"] = True
    script.start().run().flush().stop()
    both = {"R": rows(1, 2, 3), "S": rows(1, 2, 3), "items": items}
    expected = wm.oracle(QUERY, both)
    assert (wrong := same_rows(script.answer(expected.schema), expected)) is None, wrong


def test_spark_stops_when_too_many_rows_wait_and_goes_on_with_a_higher_limit(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = pa.schema([("a", pa.int64()), ("ts", UTC)])

    def rows(*times: int) -> pa.Table:
        return pa.table({"a": [t % 3 for t in times], "ts": pa.array([t * 1_000_000 for t in times], UTC)})

    text = "SELECT R.a, R.ts AS r, S.ts AS s FROM R [RANGE 5 SECONDS], S [RANGE 5 SECONDS] WHERE R.a = S.a"
    script = Script(spark, tmp_path, text, {"R": schema, "S": schema}, cells=2)
    spark.conf.set("spark.watersmeet.waitingBytes", "1000")
    try:
        script.start().add({"R": rows(*range(20)), "S": rows(*range(10))}).run()
        assert 0 < script.metrics[-1]["waiting_bytes"] <= 1000
        script.add({"R": rows(*range(20, 400))})
        with pytest.raises(PySparkException) as caught:
            script.run()
        told = str(plain_error(caught.value))
        assert (
            "wait in a cell for stream 'S', more than the 1 KB allowed: it has come as far as 1970-01-01 00:00:09"
            in told
        )
        assert "'R' 1970-01-01 00:06:39" in told and "spark.watersmeet.waitingBytes" in told and "IDLE" in told
    finally:
        spark.conf.unset("spark.watersmeet.waitingBytes")
        script.stop()
    script.start().run().add({"S": rows(*range(10, 400))}).run().flush().stop()
    expected = wm.oracle(text, {"R": rows(*range(400)), "S": rows(*range(400))})
    assert (wrong := same_rows(script.answer(expected.schema), expected)) is None, wrong
