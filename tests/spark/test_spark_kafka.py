"""Topics on Spark, by our own data source: exact over batches and restarts, bad rows by policy, results with a key."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import watersmeet as wm
from tests.kafka_brokers import MockCluster
from watersmeet.data import as_table
from watersmeet.model.query import Location
from watersmeet.spark.kafka_source import has_connector
from watersmeet.spark.run import SparkJob
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
JOB = """
CREATE STREAM R (a BIGINT, ts TIMESTAMP) FROM 'R{2}' {0} LATENESS 2 SECONDS ON BAD ROW INTO '{1}/bad';
CREATE STREAM S (a BIGINT FROM deep.a, b STRING METADATA FROM key, ts TIMESTAMP) FROM 'S{2}' {0} LATENESS 2 SECONDS;
SELECT R.a, S.b, S.ts AS s FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a
"""


def rows(rng: Random, start: float, count: int) -> list[dict[str, Any]]:
    """In order of time but for what lateness allows, so that no batch makes a row late."""
    times = [dt.datetime.fromtimestamp(start + 10 * i / count + rng.uniform(-1, 0.5), dt.UTC) for i in range(count)]
    return [{"a": rng.randint(0, 8), "ts": t.isoformat()} for t in times]


def send(broker: MockCluster, name: str, rng: Random, start: float, count: int) -> dict[str, list[dict[str, Any]]]:
    """Rows of both streams to their topics, with poison among them; returns the good ones as the declarations see them."""
    made = {"R": rows(rng, start, count), "S": rows(rng, start, count)}
    broker.send(f"R{name}", [*made["R"], b"poison", None, *made["R"][-1:]])
    made["R"] += made["R"][-1:]
    broker.send(f"S{name}", [{"deep": {"a": r["a"]}, "ts": r["ts"], "k": f"k{r['a']}"} for r in made["S"]], key="k")
    made["S"] = [{**r, "b": f"k{r['a']}"} for r in made["S"]]
    return made


def test_spark_reads_topics_exactly_once_over_batches_and_restarts(spark: SparkSession, tmp_path: Path) -> None:
    assert not has_connector(spark)
    rng, broker, whole, told = Random(5), MockCluster(), {"R": [], "S": []}, []  # type: ignore[var-annotated]
    place = broker.location.replace("OPTIONS (", "OPTIONS ('maxOffsetsPerTrigger' = '100', ")
    text = JOB.format(place, tmp_path, "")
    query = wm.parse(text)
    for start in (
        0.0,
        10.0,
        20.0,
    ):  # each a run of its own, from the checkpoint; a last row of each stream releases all others
        for name, found in send(broker, "", rng, start, 150).items():
            whole[name] += found
        if start == 20.0:
            for name in "RS":
                broker.send(name, [{"a": -1, "ts": "1970-01-01T01:00:00Z"}])
        job = SparkJob(query, Location(str(tmp_path / "out"), "parquet"), str(tmp_path / "checkpoint"), "available-now")
        job.run(spark, told.append)
    plain = wm.parse(
        "CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, b STRING, ts TIMESTAMP);"
        + text[text.index("SELECT") :]
    )
    tables = {n: as_table(whole[n], n, plain.declarations[i].schema) for i, n in enumerate("RS")}
    expected = wm.oracle(plain, tables)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow().select(expected.column_names).cast(expected.schema)
    assert (wrong := same_rows(found, expected)) is None, wrong
    assert expected.num_rows > 500 and len(told) >= 6
    assert sum(t.get("bad", 0) for t in told) == 6
    bad = [json.loads(line) for file in (tmp_path / "bad").iterdir() for line in file.read_text().splitlines()]
    reasons = sorted(row["reason"][:12] for row in bad)
    assert len(bad) == 6 and reasons == ["a tombstone:"] * 3 + ["the message "] * 3


def test_spark_writes_results_with_a_key(spark: SparkSession, tmp_path: Path) -> None:
    rng, broker = Random(6), MockCluster()
    send(broker, "k", rng, 0.0, 50)
    query = wm.parse(JOB.format(broker.location, tmp_path, "k"))
    options = (("kafka.bootstrap.servers", broker.servers), ("key", "b"))
    job = SparkJob(query, Location("joined", "kafka", options), str(tmp_path / "checkpoint"), "available-now")
    told: list[Any] = []
    job.run(spark, told.append)
    found = broker.received("joined")
    assert len(found) == sum(t.get("results", 0) for t in told) > 20
    assert all(key == value["b"].encode() and value["b"] == f"k{value['a']}" for key, value in found)


def test_spark_stops_at_poison_and_says_where(spark: SparkSession, tmp_path: Path) -> None:
    rng, broker = Random(7), MockCluster()
    send(broker, "p", rng, 0.0, 20)
    text = JOB.format(broker.location, tmp_path, "p").replace(f"ON BAD ROW INTO '{tmp_path}/bad'", "")
    job = SparkJob(
        wm.parse(text), Location(str(tmp_path / "out"), "parquet"), str(tmp_path / "checkpoint"), "available-now"
    )
    with pytest.raises(wm.DataError, match=r"^R \(topic Rp, partition \d, offset \d+\): "):
        job.run(spark, print)
    gone = wm.parse(text.replace("'Sp'", "'none'"))
    with pytest.raises(wm.DataError, match=r"^S \(topic none\): can't be read: "):
        SparkJob(gone, Location(str(tmp_path / "o"), "parquet"), str(tmp_path / "c")).run(spark, print)
