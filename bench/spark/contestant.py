"""One contestant in a process of its own: python -m bench.spark.contestant NAME JOB.json. Prints a JSON line for each batch as it ends.

NAME: watersmeet, noop (reads only), tuned noop (the same with the settings that Watersmeet makes), trivial (a transformWithState that
does nothing), hollow (Watersmeet without the join), hdfs or rocksdb (Spark's own join).
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bench.spark.data import FILES
from bench.spark.own_join import own_join
from watersmeet.spark.listener import metrics_of

MASTER = "local[2]"
STORE = "org.apache.spark.sql.execution.streaming.state.{}StateStoreProvider"


def session(folder: Path, store: str, **settings: str) -> SparkSession:
    builder = (
        SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
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


def nothing(frames: dict[str, DataFrame]) -> DataFrame:
    """All rows of all streams, as they are read."""
    names = list(dict.fromkeys(c for f in frames.values() for c in f.columns))
    parts = [f.select(*[F.col(c) if c in f.columns else F.lit(None).alias(c) for c in names]) for f in frames.values()]
    return reduce(DataFrame.union, parts)


def trivial(frames: dict[str, DataFrame]) -> DataFrame:
    """A stateful operator in Python that gets a row or none: what any such query takes to its first batch."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Nothing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            pass

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            for _ in rows:
                pass
            return iter([])

        def close(self) -> None:
            pass

    source = next(iter(frames.values()))
    first = source.where(F.col(source.columns[0]) == 0).select(F.lit(1).alias("k"), "ts")
    return first.groupBy("k").transformWithStateInPandas(Nothing(), "x BIGINT", "Append", "None")


def contest(name: str, job: dict[str, Any], frames: dict[str, DataFrame]) -> DataFrame:
    if name in ("hdfs", "rocksdb"):
        return own_join(frames, job["window_us"])
    if name == "trivial":
        return trivial(frames)
    if name in ("noop", "tuned noop"):
        return nothing(frames)
    import watersmeet as wm

    if name == "hollow":
        import watersmeet.spark.stream as way
        from bench.spark.hollow import HollowProcessor

        way.CellProcessor = HollowProcessor  # type: ignore[misc]
    stats = wm.Statistics(rate=job["rate"], distinct={(name, column): n for name, column, n in job["distinct"]})
    return wm.stream(job["text"], frames, cells=job["cells"], stats=stats)


def tell(progress: Any) -> dict[str, Any]:
    """A batch: its rows, how long it took, when it ended, and what cells say of it."""
    seconds = progress["durationMs"]["triggerExecution"] / 1000
    return {
        "batch": progress["batchId"], "rows": progress["numInputRows"], "seconds": seconds,
        "at": datetime.fromisoformat(progress["timestamp"]).timestamp() + seconds,
        "parts": dict(progress["durationMs"]), "observed": metrics_of(progress),
    }  # fmt: skip


def follow(running: StreamingQuery, limit_seconds: float | None) -> None:
    """Tell of each batch as it ends, until all rows are read, or until batches after the first have taken so long."""
    told, spent = 0, 0.0
    while True:
        ended = bool(running.awaitTermination(1))
        batches = [tell(p) for p in running.recentProgress if p["numInputRows"]]
        for batch in batches[told:]:
            print(json.dumps(batch), flush=True)
            spent += batch["seconds"] if batch is not batches[0] else 0.0
        told = len(batches)
        if ended:
            return
        if limit_seconds is not None and told > 1 and spent >= limit_seconds:
            running.stop()
            return


def main() -> None:
    name, job = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    folder = Path(job["folder"])
    from watersmeet.spark.session import settings_for

    tuned = name in ("watersmeet", "hollow", "tuned noop")
    spark = session(folder, "HDFSBacked" if name == "hdfs" else "RocksDB", **(settings_for(MASTER) if tuned else {}))
    if name == "tuned noop":
        from watersmeet.spark.stream import configure

        configure(spark, job["cells"])
    began = time.time()
    frames = {n: read(spark, folder, n) for n in job["columns"]}
    query = contest(name, job, frames).writeStream.format("noop")
    running = query.option("checkpointLocation", str(folder / f"checkpoint-{name}")).trigger(availableNow=True).start()
    follow(running, job["limit_seconds"])
    print(json.dumps({"began": began, "ended": time.time()}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
