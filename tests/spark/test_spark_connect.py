"""The same over Spark Connect, in a process of its own (a classic session and a remote one can't share one)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
JOB = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from pyspark.sql import SparkSession
import watersmeet as wm
from watersmeet.testing import same_rows

folder = Path(sys.argv[1])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
times = pa.array([i * 1_000_000 for i in range(100)], pa.timestamp("us", tz="UTC"))
tables = {n: pa.table({"a": [i * k % 7 for i in range(100)], "ts": times}) for n, k in (("R", 3), ("S", 5))}
for name, table in tables.items():
    (folder / name).mkdir()
    pq.write_table(table, folder / name / "0.parquet")
frames = {n: spark.readStream.schema("a BIGINT, ts TIMESTAMP").parquet(str(folder / n)) for n in tables}
text = "SELECT R.a, R.ts AS r, S.ts AS s FROM R [RANGE 10 SECONDS], S [ROWS 5] WHERE R.a = S.a AND R.a > 1"
made = wm.stream(text, frames, cells=2, control=folder / "control")
writer = made.writeStream.format("parquet").option("path", str(folder / "out"))
query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
query.processAllAvailable()
wm.flush(folder / "control")
query.processAllAvailable()
query.stop()
expected = wm.oracle(text, tables)
wrong = same_rows(spark.read.parquet(str(folder / "out")).toArrow().cast(expected.schema), expected)
spark.stop()
sys.exit(wrong or (0 if expected.num_rows > 20 else "too few results"))
"""


def test_spark_connect_gives_the_answer(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path)],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
