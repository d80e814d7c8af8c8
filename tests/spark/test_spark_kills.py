"""Kill -9 the Python worker, an executor, or the driver, in the middle of a batch: after a restart each result is there once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import watersmeet as wm
from tests.spark.victim import QUERY
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
BATCHES = 2


def _data(folder: Path, seed: int) -> dict[str, pa.Table]:
    """Files for each stream, in order of time but for what lateness allows."""
    rng, whole = Random(seed), {}
    for name, columns in (("R", "a"), ("S", "ab"), ("T", "b")):
        pieces = []
        (folder / "in" / name).mkdir(parents=True)
        for batch in range(BATCHES):
            times = [int((batch * 10 + rng.uniform(-1, 9)) * 1e6) for _ in range(100)]
            data = {c: [rng.randint(0, 8) for _ in times] for c in columns}
            pieces.append(pa.table(data | {"ts": pa.array(times, pa.timestamp("us", tz="UTC"))}))
            path = folder / "in" / name / f"{batch:03d}.parquet"
            pq.write_table(pieces[-1], path)
            os.utime(path, (1e9 + batch, 1e9 + batch))
        whole[name] = pa.concat_tables(pieces)
    return whole


def _run(folder: Path, master: str, sink: str, death: tuple[str, ...], restarts: int) -> None:
    """Run the victim until it ends by itself; `restarts`: how often it may have to be started again."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    told = ""
    for _ in range(restarts + 1):
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("victim.py")), str(folder), master, sink, *death],
            env=os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        told = done.stderr[-4000:]
        if done.returncode == 0:
            return
    raise AssertionError(f"the job did not end\n{told}")


def _check(spark: SparkSession, folder: Path, seed: int, master: str, sink: str, *deaths: tuple[str, ...]) -> None:
    whole = _data(folder, seed)
    expected = wm.oracle(QUERY, whole)
    drivers = sum(who == "jvm" for who, *_ in deaths) if master.startswith("local[") else 0
    _run(folder, master, sink, tuple(word for death in deaths for word in death), restarts=drivers)
    assert [(folder / f"died-{i}").exists() for i in range(len(deaths))] == [True] * len(deaths), "not all were killed"
    read = spark.read.option("recursiveFileLookup", "true") if sink == "batches" else spark.read
    found = read.parquet(str(folder / "out")).toArrow().select(expected.column_names).cast(expected.schema)
    assert (wrong := same_rows(found, expected)) is None, f"seed {seed}: {wrong}"
    assert expected.num_rows > 100


def test_spark_kill_a_worker_and_the_driver_in_mid_batch(spark: SparkSession, tmp_path: Path) -> None:
    """With two actions for each batch."""
    deaths = (("worker", "0", "0", "results"), ("jvm", "1", "1", "stored"))
    _check(spark, tmp_path, 1, "local[2,4]", "batches", *deaths)


def test_spark_kill_an_executor_in_mid_batch(spark: SparkSession, tmp_path: Path) -> None:
    _check(spark, tmp_path, 3, "local-cluster[2,1,1024]", "files", ("jvm", "1", "1", "results"))


@pytest.mark.long
@pytest.mark.parametrize("point", ["start", "results", "stored"])
@pytest.mark.parametrize("batch", range(BATCHES + 1))
@pytest.mark.parametrize("who", ["worker", "driver", "executor"])
def test_spark_kill_everywhere(spark: SparkSession, tmp_path: Path, who: str, batch: int, point: str) -> None:
    master = "local-cluster[2,1,1024]" if who == "executor" else "local[2,4]"
    sink = "files" if batch % 2 else "batches"
    death = ("worker" if who == "worker" else "jvm", str(batch), str(batch % 2), point)
    _check(spark, tmp_path, 100 + batch, master, sink, death)
