"""Whole jobs: sources and sink by FORMAT, flushed at the end of bounded inputs; and what wm.learn measures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import watersmeet as wm
from watersmeet.model.query import Location
from watersmeet.spark.history import history
from watersmeet.spark.run import SparkJob
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", tz="UTC")
JOB = """
CREATE STREAM R (a BIGINT, name STRING, ts TIMESTAMP) FROM '{0}/R.csv' FORMAT csv;
CREATE STREAM S (a BIGINT, b DOUBLE, ts TIMESTAMP) FROM '{0}/S' FORMAT parquet LATENESS 1 SECOND;
CREATE TABLE K (a BIGINT, kind STRING) FROM '{0}/K.csv' FORMAT csv;
SELECT R.name, S.b, K.kind FROM R [RANGE 5 SECONDS], S [ROWS 20], K WHERE R.a = S.a AND S.b > 2.5 AND R.a = K.a
"""


def _tables() -> dict[str, pa.Table]:
    times = [pa.scalar(t * 500_000, pa.int64()).cast(UTC) for t in range(120)]
    return {
        "R": pa.table({"a": [t * 7 % 11 for t in range(120)], "name": [f"n{t % 5}" for t in range(120)], "ts": pa.array(times, UTC)}),
        "S": pa.table({"a": [t * 5 % 11 for t in range(120)], "b": [t % 8 / 2 for t in range(120)], "ts": pa.array(times, UTC)}),
        "K": pa.table({"a": list(range(9)), "kind": ["even" if a % 2 == 0 else "odd" for a in range(9)]}),
    }  # fmt: skip


def _write(folder: Path) -> dict[str, pa.Table]:
    tables = _tables()
    pyarrow.csv.write_csv(tables["R"].set_column(2, "ts", tables["R"]["ts"].cast(pa.string())), folder / "R.csv")
    pyarrow.csv.write_csv(tables["K"], folder / "K.csv")
    (folder / "S").mkdir()
    pq.write_table(tables["S"], folder / "S" / "0.parquet")
    return tables


def test_spark_runs_a_job_from_files_to_files(spark: SparkSession, tmp_path: Path) -> None:
    tables = _write(tmp_path)
    query = wm.parse(JOB.format(tmp_path))
    expected = wm.oracle(query, tables)
    told: list[int] = []
    job = SparkJob(query, Location(str(tmp_path / "out"), "parquet"), str(tmp_path / "checkpoint"))
    assert job.bounded
    job.run(spark, lambda batch: told.append(batch["rows"]))
    found = spark.read.parquet(str(tmp_path / "out")).toArrow().cast(expected.schema)
    assert (wrong := same_rows(found, expected)) is None, wrong
    assert sum(told) == 240 and expected.num_rows > 20
    missing = wm.parse(JOB.format(tmp_path).replace("/S'", "/nowhere'"))
    with pytest.raises(wm.DataError, match=r"S: there is no file or folder '.*nowhere'"):
        SparkJob(missing, Location(str(tmp_path / "o2"), "parquet"), str(tmp_path / "c2")).run(spark, print)


def test_spark_learns_what_counting_pairs_gives(spark: SparkSession, tmp_path: Path) -> None:
    tables = _write(tmp_path)
    query = wm.parse(JOB.format(tmp_path))
    steps: list[tuple[int, int]] = []
    made = wm.learn(query, history(spark, query.declarations), lambda done, total: steps.append((done, total)))
    r, s = (
        tables["R"]["a"].to_pylist(),
        [a for a, b in zip(*(tables["S"][c].to_pylist() for c in "ab"), strict=True) if b > 2.5],
    )
    assert made.selectivity["R", "S"] == pytest.approx(sum(x == y for x in r for y in s) / (len(r) * len(s)))
    assert made.rate["R"] == pytest.approx(120 / 59.5)
    assert made.selection["S"] == pytest.approx(len(s) / 120)
    assert made.distinct["R", "a"] == 11 and made.table_rows == {"K": 9}
    key, part = made.heavy["R", "a"][0]
    assert key == "0" and part == pytest.approx(11 / 120)
    assert steps[-1][0] == steps[-1][1]
    windows = wm.parse(
        f"{JOB.format(tmp_path).split('SELECT')[0]} SELECT R.a FROM R [PARTITION BY a ROWS 4], S [UNBOUNDED] WHERE R.a = S.a"
    )
    held = sum(min(n, 4) for n in Counter(r).values())
    assert wm.learn(windows, history(spark, windows.declarations)).window_tuples == {"R": held, "S": 120}
    made.save(tmp_path / "stats.json")
    assert wm.Statistics.load(tmp_path / "stats.json").selectivity == made.selectivity
