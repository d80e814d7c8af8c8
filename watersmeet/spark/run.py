"""Run a whole job on Spark: sources and sink by the FORMAT that the text names, from and to a checkpoint.

Files are bounded: the job reads all of them, flushes, and ends. Any other source, or a trigger with an interval, runs until it is stopped.
Stopping loses nothing: the same call goes on from the checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from watersmeet.errors import DataError, StateError, WatersmeetError
from watersmeet.model.plan import Plan
from watersmeet.model.query import Declaration, Location, Query
from watersmeet.model.statistics import Statistics
from watersmeet.spark.columns import spark_schema
from watersmeet.spark.control import flush
from watersmeet.spark.listener import metrics_of
from watersmeet.spark.stream import stream

BOUNDED = ("parquet", "csv", "json", "orc", "text")
Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class SparkJob:
    """A job and how it is to be run.

    trigger: None (all there is, for files; as fast as it can, for other sources), or an interval such as "10 seconds".
    inputs: paths to read streams from instead of those in the text.
    """

    query: Query
    into: Location
    checkpoint: str
    trigger: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    plan: str | Plan = "auto"
    stats: Statistics | None = None
    cells: int | None = None

    @property
    def bounded(self) -> bool:
        return self.trigger is None and all(d.location is None or d.location.format in BOUNDED for d in self._streams())

    def _streams(self) -> list[Declaration]:
        used = dict.fromkeys(s.stream for s in self.query.sources if s.window)
        return [d for name in used if (d := self.query.declaration(name)) is not None]

    def run(self, session: SparkSession, report: Report) -> None:
        """Until the end of a bounded job, or until it is stopped. `report` is given what each batch did."""
        self._once(session, report)
        if self.bounded:
            flush(self._control)
            self._once(session, report)

    @property
    def _control(self) -> str:
        return f"{self.checkpoint.rstrip('/')}.control"

    def _once(self, session: SparkSession, report: Report) -> None:
        query = self._start(session)
        told = -1
        try:
            while True:
                ended = bool(query.awaitTermination(1))
                for progress in query.recentProgress:
                    if progress["batchId"] > told and progress["numInputRows"]:
                        told = progress["batchId"]
                        report(summary(progress))
                if ended:
                    return
        except PySparkException as e:
            raise plain_error(e) from None
        finally:
            query.stop()

    def _start(self, session: SparkSession) -> StreamingQuery:
        frames: dict[str, Any] = {d.name: self._source(session, d) for d in self._streams()}
        for source in self.query.sources:
            if source.window is None and source.stream in self.inputs:
                frames[source.stream] = self.inputs[source.stream]
        made = stream(
            self.query, frames, plan=self.plan, stats=self.stats, budget=self.query.budget, cells=self.cells,
            control=self._control if self.bounded else None,
        )  # fmt: skip
        writer = made.writeStream.format(self.into.format).option("checkpointLocation", self.checkpoint)
        for name, value in self.into.options:
            writer = writer.option(name, value)
        if self.into.path:
            writer = writer.option("path", self.into.path)
        if self.into.format == "csv" and "header" not in dict(self.into.options):
            writer = writer.option("header", "true")
        if self.bounded:
            writer = writer.trigger(availableNow=True)
        elif self.trigger:
            writer = writer.trigger(processingTime=self.trigger)
        try:
            return writer.start()
        except PySparkException as e:
            raise plain_error(e) from None

    def _source(self, session: SparkSession, declared: Declaration) -> DataFrame:
        place = declared.location
        if place is None:
            raise DataError(f"stream '{declared.name}' says not where its rows are\n  add FROM 'path' FORMAT ...")
        path = self.inputs.get(declared.name, place.path)
        reader = session.readStream.format(place.format)
        if place.format in BOUNDED:
            if "://" not in path and not any(c in path for c in "*?[{") and not Path(path).exists():
                raise DataError(
                    f"stream '{declared.name}': there is no file or folder '{path}'\n  looked in {Path.cwd()}"
                )
            reader = reader.schema(spark_schema([(f.name, f.type) for f in declared.schema.fields]))
            if "://" not in path and Path(path).is_file():  # Spark watches folders
                reader = reader.option("pathGlobFilter", Path(path).name)
                path = str(Path(path).absolute().parent)
            if place.format == "csv":
                reader = reader.option("header", "true").option("mode", "FAILFAST").option("enforceSchema", "false")
        for name, value in place.options:
            reader = reader.option(name, value)
        try:
            return reader.load(path) if path else reader.load()
        except PySparkException as e:
            raise plain_error(e) from None


def summary(progress: Any) -> dict[str, Any]:
    """What a batch did, from a query's progress."""
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    rows = sum(s["numInputRows"] for s in progress["sources"] if ".control]" not in s["description"])
    return {"batch": progress["batchId"], "rows": rows, "seconds": seconds, **metrics_of(progress)}


def plain_error(error: PySparkException) -> WatersmeetError:
    """Our own error out of Spark's wrapping, or Spark's in a few words."""
    text = str(error)
    for kind, name in ((StateError, "StateError"), (DataError, "DataError"), (WatersmeetError, "WatersmeetError")):
        mark = f"watersmeet.errors.{name}: "
        if mark in text:
            lines = text.split(mark, 1)[1].splitlines()
            more = [line for line in lines[1:] if line.startswith("  ")]
            return kind("\n".join([lines[0], *more[:12]]))
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if missing:
        return DataError(
            f"a Python worker of Spark has no module '{missing[1]}'\n  ship the environment to executors: docs/deploy.md"
        )
    first = next((line for line in text.splitlines() if line.strip()), "Spark failed")
    return DataError(f"Spark: {first.strip()[:500]}")
