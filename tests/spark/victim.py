"""A bounded job that dies at chosen places: python victim.py FOLDER MASTER SINK [WHO BATCH CELL POINT]...

WHO: worker (the Python worker of the cell) or jvm (the Java process it belongs to: executor or driver). POINT: start, results (after the
first results were given out), stored (after all state was written, before Spark commits it). It dies there once: a second run of
the same place goes through. SINK: files, or batches (foreachBatch with two actions).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame

import watersmeet.spark.stream as target
from watersmeet.spark.control import flush
from watersmeet.spark.processor import CellProcessor
from watersmeet.spark.session import session

SCHEMAS = {"R": "a BIGINT, ts TIMESTAMP", "S": "a BIGINT, b BIGINT, ts TIMESTAMP", "T": "b BIGINT, ts TIMESTAMP"}
QUERY = """
CREATE STREAM R (a BIGINT, ts TIMESTAMP) LATENESS 2 SECONDS;
CREATE STREAM S (a BIGINT, b BIGINT, ts TIMESTAMP) LATENESS 2 SECONDS;
CREATE STREAM T (b BIGINT, ts TIMESTAMP) LATENESS 2 SECONDS;
SELECT R.a, S.b, R.ts AS r, S.ts AS s, T.ts AS t FROM R [RANGE 10 SECONDS], S [ROWS 40], T [RANGE 10 SECONDS]
WHERE R.a = S.a AND S.b = T.b
"""


class Dying(CellProcessor):
    """Kills its worker, or the Java process above it, at a chosen place."""

    def __init__(self, spec: Any, folder: str, deaths: list[tuple[str, ...]]) -> None:
        super().__init__(spec)
        self.folder, self.deaths = folder, deaths

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        self.reached("start")
        for frame in super().handleInputRows(key, rows, timerValues):
            yield frame
            self.reached("results")
        self.reached("stored")

    def reached(self, point: str) -> None:
        context = TaskContext.get()
        assert context is not None
        here = (context.getLocalProperty("streaming.sql.batchId"), str(context.partitionId()), point)
        for number, (who, *place) in enumerate(self.deaths):
            if tuple(place) == here and _first(f"{self.folder}/died-{number}"):
                daemon = os.getppid()
                java = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
                os.kill(os.getpid() if who == "worker" else java, signal.SIGKILL)


def _first(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def twice(frame: DataFrame, folder: str, batch: int) -> None:
    """Two actions on one batch: the whole flow runs twice under one batch id."""
    frame.write.mode("overwrite").parquet(f"{folder}/out/batch={batch}")
    frame.count()


def main() -> None:
    folder, master, sink, *death = sys.argv[1:]
    spark = session(
        master, "victim",
        **{
            "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.executor.memory": "1g",
            "spark.local.dir": f"{folder}/local", "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        },
    )  # fmt: skip
    spark.sparkContext.setLogLevel("OFF")
    deaths = [tuple(death[i : i + 4]) for i in range(0, len(death), 4)]
    if deaths:
        target.CellProcessor = lambda spec: Dying(spec, folder, deaths)  # type: ignore[assignment,misc]
    for ended in (False, True):
        if ended:
            flush(f"{folder}/control")
        frames = {
            n: spark.readStream.schema(s).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in/{n}")
            for n, s in SCHEMAS.items()
        }
        made = target.stream(QUERY, frames, cells=2, control=f"{folder}/control")
        writer = made.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
        if sink == "files":
            query = writer.format("parquet").option("path", f"{folder}/out").start()
        else:
            query = writer.foreachBatch(lambda frame, batch: twice(frame, folder, batch)).start()
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
