"""One contestant in a process of its own: python -m bench.spark.contestant NAME JOB.json. Prints one JSON line for each batch.

NAME: watersmeet, noop (reads only), trivial (a transformWithState that does nothing), hdfs or rocksdb (Spark's own join).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.spark.data import FILES

STORE = "org.apache.spark.sql.execution.streaming.state.{}StateStoreProvider"


def session(folder: Path, store: str, **settings: str) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.providerClass", STORE.format(store))
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.local.dir", str(folder / "local")).config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    )  # fmt: skip
    for key, value in settings.items():
        builder = builder.config(key, value)
    made: SparkSession = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def read(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    example = next((folder / "in" / name).glob("*.parquet"))
    kinds = spark.read.parquet(str(example)).schema
    return spark.readStream.schema(kinds).option("maxFilesPerTrigger", FILES).parquet(str(folder / "in" / name))


def own_join(spark: SparkSession, folder: Path, window: str) -> DataFrame:
    """Spark's own stream-stream joins. As a user would write it Spark refuses it (several event-time columns); so one of them becomes
    a plain expression after the first join."""

    def stream(name: str) -> DataFrame:
        frame = read(spark, folder, name)
        return frame.select(*[F.col(c).alias(f"{name}_{c}") for c in frame.columns]).withWatermark(
            f"{name}_ts", "0 seconds"
        )

    def near(x: str, y: str) -> str:
        return f"{x} >= {y} - interval {window} and {x} <= {y} + interval {window}"

    rs = stream("R").join(stream("S"), F.expr(f"R_a = S_a and {near('S_ts', 'R_ts')}"))
    rs = rs.select("R_a", "S_b", "S_ts", F.expr("R_ts + interval 0 seconds as R_t"))
    return rs.join(stream("T"), F.expr(f"S_b = T_b and {near('T_ts', 'S_ts')} and {near('T_ts', 'R_t')}"))


def trivial(frames: dict[str, DataFrame]) -> DataFrame:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Nothing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            pass

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            for _ in rows:
                pass
            return iter([])

    source = next(iter(frames.values()))
    first = source.where(F.col(source.columns[0]) == 0).select(F.lit(1).alias("k"), "ts")
    return first.groupBy("k").transformWithStateInPandas(Nothing(), "x BIGINT", "Append", "None")


def main() -> None:
    name, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    folder = Path(job["folder"])
    from watersmeet.spark.session import SETTINGS

    spark = session(folder, "HDFSBacked" if name == "hdfs" else "RocksDB", **(SETTINGS if name == "watersmeet" else {}))
    began = time.perf_counter()
    if name in ("hdfs", "rocksdb"):
        made = own_join(spark, folder, job["window"])
    else:
        frames = {n: read(spark, folder, n) for n in job["streams"]}
        if name == "watersmeet":
            import watersmeet as wm

            made = wm.stream(
                job["text"], frames, cells=job["cells"], plan=wm.Plan.parse(job["plan"]) if job["plan"] else "auto"
            )
        elif name == "trivial":
            made = trivial(frames)
        else:
            names = list(dict.fromkeys(c for f in frames.values() for c in f.columns))
            parts = [
                f.select(*[F.col(c) if c in f.columns else F.lit(None).alias(c) for c in names])
                for f in frames.values()
            ]
            made = parts[0]
            for part in parts[1:]:
                made = made.union(part)
    query = made.writeStream.format("noop").option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    for progress in running.recentProgress:
        line = {
            "batch": progress["batchId"], "rows": progress["numInputRows"], "seconds": progress["durationMs"]["triggerExecution"] / 1000,
            "parts": dict(progress["durationMs"]), "observed": {},
        }  # fmt: skip
        seen = (progress["observedMetrics"] or {}).get("watersmeet")
        if seen is not None:
            line["observed"] = seen.asDict()
        print(json.dumps(line))
    print(json.dumps({"total": time.perf_counter() - began}))
    spark.stop()


if __name__ == "__main__":
    main()
