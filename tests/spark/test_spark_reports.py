"""What a user is told of a job on Spark: first results, a report, metrics, errors in words, another query's checkpoint at the start."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import watersmeet as wm
from tests.cli.test_run import call
from tests.spark.script import Script
from watersmeet.spark.kept_query import NAME, check_start

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("a", pa.int64()), ("ts", UTC)])
QUERY = "SELECT R.a, S.ts AS s FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a"


def rows(*times: int) -> pa.Table:
    return pa.table({"a": list(times), "ts": pa.array([t * 1_000_000 for t in times], UTC)})


def test_spark_command_shows_first_results_reports_and_refuses_another_query_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    declared = "".join(
        f"CREATE STREAM {n} (a BIGINT, ts TIMESTAMP) FROM '{tmp_path / n}' FORMAT parquet;\n" for n in ("R", "S")
    )
    for name in ("R", "S"):
        (tmp_path / name).mkdir()
        pq.write_table(rows(1, 2, 3), tmp_path / name / "0.parquet")
    Path("job.sql").write_text(f"{declared}{QUERY} EMIT ISTREAM INTO '{tmp_path / 'out'}' FORMAT parquet;")
    run = ("run", "job.sql", "--master", "local[2]", "--cells", "2")

    first = call(*run, "--rows", "2")
    assert first.exit_code == 0, first.output
    assert "1970-01-01 00:00:0" in first.stdout
    assert "... and 1 more results" in first.stdout

    report = call(*run, "--json", "--into", str(other := tmp_path / "other"))
    assert report.exit_code == 0, report.output
    told = json.loads(report.stdout)
    assert (told["engine"], told["plan"], told["checkpoint"]) == ("local[2]", "(R S)", f"{other}.checkpoint")
    assert (told["metrics"]["rows"], told["metrics"]["results"]) == (6, 3)
    assert sum(b["results"] for b in told["batches"]) == 3
    assert told["written"] == [str(other)]
    assert told["events"] == []

    Path("job.sql").write_text(Path("job.sql").read_text().replace("R [RANGE 10", "R [RANGE 20"))
    refused = call(*run)  # no row has come since
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        "error: the state in this checkpoint belongs to another query\n  query: was CREATE"
    )


def test_spark_tells_metrics_and_errors_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    script = Script(spark, tmp_path, QUERY, {"R": SCHEMA, "S": SCHEMA}, cells=2).start()
    try:
        assert script.running is not None
        assert wm.metrics(script.running) == {}
        script.add({"R": rows(1, 2), "S": rows(1, 2)}).run()
        told = wm.metrics(script.running)
        assert told["batch"] == 0 and told["events"] == []
        assert {**told, **script.metrics[-1]} == told
    finally:
        script.stop()
    script.query = QUERY.replace("R [RANGE 10", "R [RANGE 20")
    script.add(
        {"R": rows(3), "S": rows(3)}
    ).start()  # its control folder lies beside the checkpoint: the cells refuse it
    with pytest.raises(PySparkException) as caught:
        script.run()
    script.stop()
    error = wm.explain_error(caught.value)
    assert isinstance(error, wm.StateError)
    assert str(error).startswith("the state in this checkpoint belongs to another query\n")
    assert len(str(error)) < 1000
    assert wm.explain_error(error) is error


def test_spark_frames_given_to_run_are_refused(spark: SparkSession) -> None:
    text = "SELECT R.a FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a"
    whole = spark.range(3).selectExpr("id AS a", "timestamp_seconds(id) AS ts")
    with pytest.raises(wm.DataError, match=r"R: is a DataFrame of Spark.*\n.*toArrow\(\)"):
        wm.run(text, {"R": whole, "S": whole})
    assert wm.run(text, {"R": whole.toArrow(), "S": whole.toArrow()}).rows.num_rows == 3
    streaming = spark.readStream.format("rate").load().selectExpr("value AS a", "timestamp AS ts")
    with pytest.raises(wm.DataError, match=r"R: is a streaming DataFrame of Spark.*\n.*wm.stream\(query"):
        wm.run(text, {"R": streaming, "S": streaming})


def test_conform_a_checkpoint_knows_its_query_once_it_has_begun(tmp_path: Path) -> None:
    control = tmp_path / "checkpoint" / "control"
    control.mkdir(parents=True)
    one, two = {"query": "SELECT 1", "table t": "1 row"}, {"query": "SELECT 2", "table t": "1 row"}
    check_start(control, one, False)
    check_start(control, two, False)  # nothing has begun: it is two's now
    (tmp_path / "checkpoint" / "offsets").mkdir()
    (tmp_path / "checkpoint" / "offsets" / "0").touch()
    check_start(control, two, False)
    with pytest.raises(wm.StateError, match="query: was SELECT 2, is SELECT 1"):
        check_start(control, one, False)
    grown = two | {"table t": "2 rows"}
    with pytest.raises(wm.StateError, match="refresh_tables=True"):
        check_start(control, grown, False)
    check_start(control, grown, True)
    check_start(control, grown, False)
    (control / NAME).unlink()
    check_start(control, one, False)  # of an earlier version: left to the cells
    assert not (control / NAME).exists()
    check_start("hdfs://host/control", one, False)
