"""On Spark the answer is the oracle's: any query, any number of cells, with stops and starts in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.script import Script
from watersmeet.engine.rows.batches import Batches
from watersmeet.testing import Case, random_case, same_rows

pytestmark = pytest.mark.spark

UTC = pa.timestamp("us", tz="UTC")


@pytest.fixture(autouse=True)
def _no_query_left_running(spark: SparkSession) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


def _script(spark: SparkSession, folder: Path, case: Case, **options: object) -> Script:
    sources = Batches(case.query, case.streams).bound.sources
    static = {s.stream for s in sources if s.static}
    schemas = {n: t.schema for n, t in case.streams.items() if n not in static}
    tables = {n: t for n, t in case.streams.items() if n in static}
    return Script(spark, folder, case.query, schemas, tables, plan=case.plan, **options)


def _merged(batches: list[dict[str, pa.Table]], most: int) -> list[dict[str, pa.Table]]:
    """At most so many batches, neighbours put together, which makes no row late."""
    step = -(-len(batches) // most)
    made = []
    for first in range(0, len(batches), step):
        group = batches[first : first + step]
        names = dict.fromkeys(n for b in group for n in b)
        made.append({n: pa.concat_tables([b[n] for b in group if n in b]) for n in names})
    return made


def _check(
    spark: SparkSession,
    folder: Path,
    seed: int,
    cells: int,
    batches: int,
    preserves: bool = False,
    over: int | None = None,
) -> None:
    case, rng = random_case(seed, preserves=preserves, over=over), Random(seed)
    script = _script(spark, folder, case, cells=cells).start()
    for batch in _merged(case.batches, batches):
        script.add(batch).run()
        if rng.random() < 0.4:
            script.stop().start()
    script.flush().stop()
    assert (wrong := same_rows(script.answer(case.expected.schema), case.expected)) is None, f"{wrong}\n{case}"


# Seeds with results, of 2 to 5 streams, and among them all kinds of windows, DSTREAM, CHANGES, static tables and self-joins.
@pytest.mark.parametrize(("seed", "cells"), [(52, 3), (22, 2), (25, 8), (26, 1), (29, 2)])
def test_spark_gives_the_answer(spark: SparkSession, tmp_path: Path, seed: int, cells: int) -> None:
    _check(spark, tmp_path, seed, cells, 2)


def test_spark_gives_unmatched_rows_once(spark: SparkSession, tmp_path: Path) -> None:
    _check(spark, tmp_path, 36, 3, 3, preserves=True)


def test_spark_one_stream(spark: SparkSession, tmp_path: Path) -> None:
    _check(spark, tmp_path, 5, 2, 2, over=1)


def test_spark_batches_that_are_looked_at_more_than_once(spark: SparkSession, tmp_path: Path) -> None:
    """In foreachBatch: a look that does not read all rows, then two whole actions, then half a look again."""
    case = random_case(22)
    script = _script(spark, tmp_path, case, cells=2)

    def write(frame: DataFrame, batch: int) -> None:
        if not frame.isEmpty():
            frame.write.mode("overwrite").parquet(str(tmp_path / "out" / f"batch={batch}"))
        frame.count()
        frame.head(1)

    for batch in _merged(case.batches, 3):
        script.add(batch)
        writer = (
            script.frame().writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(write)
        )
        script.running = writer.start()
        script.run().stop()
    script.running = writer.start()
    script.flush().stop()
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch").toArrow().cast(case.expected.schema)
    assert (wrong := same_rows(found, case.expected)) is None, f"{wrong}\n{case}"
    assert case.expected.num_rows


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 230))
def test_spark_gives_the_answer_to_many_queries(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    _check(spark, tmp_path, seed, (1, 2, 3, 8)[seed % 4], 5)
