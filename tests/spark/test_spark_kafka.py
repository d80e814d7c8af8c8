"""Topics on Spark, by our own data source: exact over batches, restarts and kills, bad rows by policy, results with a key."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import watersmeet as wm
from tests.kafka_brokers import Broker, MockCluster, RealKafka
from watersmeet.data import as_table
from watersmeet.model.query import Location
from watersmeet.spark.kafka_source import has_connector
from watersmeet.spark.run import SparkJob
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
SELECT = "SELECT R.a, S.b, S.ts AS s FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a"
JOB = f"""
CREATE STREAM R (a BIGINT, ts TIMESTAMP) FROM 'R' {{0}} LATENESS 2 SECONDS ON BAD ROW INTO '{{1}}/bad';
CREATE STREAM S (a BIGINT FROM deep.a, b STRING METADATA FROM key, ts TIMESTAMP) FROM 'S' {{0}} LATENESS 2 SECONDS;
{SELECT}
"""
PLAIN = f"CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, b STRING, ts TIMESTAMP); {SELECT}"
Rows = dict[str, list[dict[str, Any]]]


def rows(rng: Random, start: float, count: int) -> list[dict[str, Any]]:
    """In order of time but for what lateness allows, so that no batch makes a row late."""
    times = [dt.datetime.fromtimestamp(start + 10 * i / count + rng.uniform(-1, 0.5), dt.UTC) for i in range(count)]
    return [{"a": rng.randint(0, 8), "ts": t.isoformat()} for t in times]


def send(broker: Broker, rng: Random, start: float, count: int) -> Rows:
    """Rows of both streams to their topics, with poison among those of R; returns the good ones as the declarations see them."""
    made = {"R": rows(rng, start, count), "S": rows(rng, start, count)}
    broker.send("R", [*made["R"], b"poison", None, *made["R"][-1:]])
    made["R"] += made["R"][-1:]
    broker.send("S", [{"deep": {"a": r["a"]}, "ts": r["ts"], "k": f"k{r['a']}"} for r in made["S"]], key="k")
    made["S"] = [{**r, "b": f"k{r['a']}"} for r in made["S"]]
    return made


def end(broker: Broker) -> None:
    """A last row of each stream, much later, releases all others; the two join nothing."""
    broker.send("R", [{"a": -1, "ts": "1970-01-01T01:00:00Z"}])
    broker.send("S", [{"ts": "1970-01-01T01:00:00Z"}])


def check(spark: SparkSession, folder: Path, sent: list[Rows]) -> None:
    """The answer is the oracle's, and each bad row was put aside once."""
    query = wm.parse(PLAIN)
    tables = {d.name: as_table([r for s in sent for r in s[d.name]], d.name, d.schema) for d in query.declarations}
    expected = wm.oracle(query, tables)
    found = spark.read.parquet(str(folder / "out")).toArrow().select(expected.column_names).cast(expected.schema)
    assert (wrong := same_rows(found, expected)) is None, wrong
    assert expected.num_rows > 500
    bad = [json.loads(line) for file in (folder / "bad").glob("part-*") for line in file.read_text().splitlines()]
    each = len(sent)
    assert sorted(row["reason"][:12] for row in bad) == ["a tombstone:"] * each + ["the message "] * each


def restarted(spark: SparkSession, folder: Path, broker: Broker) -> None:
    """Three runs from one checkpoint, each with some batches, while the topics grow."""
    assert not has_connector(spark)
    rng, sent, told = Random(5), list[Rows](), list[Any]()
    query = wm.parse(JOB.format(broker.location(maxOffsetsPerTrigger="100"), folder))
    for start in (0.0, 10.0, 20.0):
        sent.append(send(broker, rng, start, 150))
        if start == 20.0:
            end(broker)
        SparkJob(query, Location(str(folder / "out"), "parquet"), str(folder / "checkpoint"), "available-now").run(
            spark, told.append
        )
    check(spark, folder, sent)
    assert len(told) >= 6 and sum(t.get("bad", 0) for t in told) == 6


def killed(spark: SparkSession, folder: Path, broker: Broker, *deaths: str) -> None:
    """Runs that are killed in mid-batch, and started again."""
    sent = [send(broker, Random(8), start, 150) for start in (0.0, 10.0)]
    end(broker)
    (folder / "job.sql").write_text(JOB.format(broker.location(maxOffsetsPerTrigger="120"), folder))
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(Path(__file__).with_name("kafka_victim.py")), str(folder), "local[2,4]", *deaths]
    for _ in range(1 + deaths.count("jvm")):
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert all((folder / f"died-{i}").exists() for i in range(len(deaths) // 4)), "not all were killed"
    check(spark, folder, sent)


@pytest.fixture
def broker() -> MockCluster:
    return MockCluster()


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    made = RealKafka(tmp_path_factory.mktemp("kafka"))
    yield made
    made.stop()


@pytest.mark.long  # the kills below restart too
def test_spark_topics_exactly_once_over_restarts(spark: SparkSession, tmp_path: Path, broker: MockCluster) -> None:
    restarted(spark, tmp_path, broker)


def test_spark_topics_exactly_once_over_kills(spark: SparkSession, tmp_path: Path, broker: MockCluster) -> None:
    killed(spark, tmp_path, broker, "worker", "0", "0", "results", "jvm", "1", "1", "stored")


@pytest.mark.long
def test_spark_topics_of_a_real_broker(spark: SparkSession, tmp_path: Path, real: RealKafka) -> None:
    restarted(spark, tmp_path, real)


@pytest.mark.long
def test_spark_topics_of_a_real_broker_over_kills(spark: SparkSession, tmp_path: Path, real: RealKafka) -> None:
    killed(spark, tmp_path, real, "jvm", "0", "0", "results", "worker", "1", "0", "start", "jvm", "2", "1", "stored")


def written(spark: SparkSession, folder: Path, broker: Broker) -> None:
    send(broker, Random(6), 0.0, 50)
    query = wm.parse(JOB.format(broker.location(), folder))
    into = Location("joined", "kafka", (*broker.options, ("key", "b")))
    told: list[Any] = []
    SparkJob(query, into, str(folder / "checkpoint"), "available-now").run(spark, told.append)
    found = broker.received("joined")
    assert len(found) == sum(t.get("results", 0) for t in told) > 20 and sum(t.get("bad", 0) for t in told) == 2
    assert all(key == value["b"].encode() and value["b"] == f"k{value['a']}" for key, value in found)


def test_spark_writes_results_with_a_key(spark: SparkSession, tmp_path: Path, broker: MockCluster) -> None:
    written(spark, tmp_path, broker)


@pytest.mark.long
def test_spark_writes_results_to_a_real_broker(spark: SparkSession, tmp_path: Path, real: RealKafka) -> None:
    written(spark, tmp_path, real)


def test_spark_stops_at_poison_and_says_where(spark: SparkSession, tmp_path: Path, broker: MockCluster) -> None:
    send(broker, Random(7), 0.0, 20)
    text = JOB.format(broker.location(), tmp_path).replace(f"ON BAD ROW INTO '{tmp_path}/bad'", "")
    job = SparkJob(
        wm.parse(text), Location(str(tmp_path / "out"), "parquet"), str(tmp_path / "checkpoint"), "available-now"
    )
    with pytest.raises(wm.DataError, match=r"^R \(topic R, partition \d, offset \d+\): "):
        job.run(spark, print)
    gone = wm.parse(text.replace("'S'", "'none'"))
    with pytest.raises(wm.DataError, match=r"^S \(topic none\): can't be read: "):
        SparkJob(gone, Location(str(tmp_path / "o"), "parquet"), str(tmp_path / "c")).run(spark, print)
