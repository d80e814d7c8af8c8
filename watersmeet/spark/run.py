"""Run a whole job on Spark: sources and sink by the FORMAT that the text names, from and to a checkpoint.

Files are bounded: the job reads all of them, flushes, and ends. Any other source, or a trigger with an interval, runs until it is stopped.
Stopping loses nothing: the same call goes on from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from watersmeet.errors import DataError
from watersmeet.model.plan import Plan
from watersmeet.model.query import Declaration, Location, Query
from watersmeet.model.statistics import Statistics
from watersmeet.spark import check_paths as places
from watersmeet.spark.columns import spark_schema
from watersmeet.spark.control import flush
from watersmeet.spark.interrupt import Interrupt, deferred_interrupt
from watersmeet.spark.listener import metrics_of
from watersmeet.spark.plain_errors import plain_error
from watersmeet.spark.session import session
from watersmeet.spark.stream import stream
from watersmeet.spark.trigger import Trigger

BOUNDED = ("parquet", "csv", "json", "orc", "text")
LINES = ("text", "socket", "kafka")
# Before the options in the text. A value that does not fit its column is an error, not a NULL.
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
    "socket": {"includeTimestamp": "true"},
}
Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class SparkJob:
    """A job and how it is to be run.

    trigger: None (all there is, for files; as fast as it can, for other sources), an interval such as "10 seconds" (until it is
        stopped), or "available-now" (all there is, but what waits goes on waiting: rows to come may still join it).
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
        """Whether the job ends by itself, and all rows are released then."""
        return self.trigger is None and all(d.location is None or d.location.format in BOUNDED for d in self._streams())

    @cached_property
    def _trigger(self) -> Trigger | None:
        return None if self.trigger is None else Trigger.parse(self.trigger)

    def check(self) -> None:
        """Say what can't work, as far as it can be known without Spark."""
        _ = self._trigger
        for declared in self._streams():
            place = self._place(declared)
            if place.format in BOUNDED:
                columns = declared.schema.names if place.format == "parquet" else ()
                places.check_source(declared.name, self.inputs.get(declared.name, place.path), columns)
        files = self.into.format in BOUNDED
        if files:
            places.check_writable(self.into.path, "output")
        places.check_writable(self.checkpoint, "checkpoint")
        if files:
            places.check_together(self.into.path, self.checkpoint)

    def _streams(self) -> list[Declaration]:
        used = dict.fromkeys(s.stream for s in self.query.sources if s.window)
        return [d for name in used if (d := self.query.declaration(name)) is not None]

    def run(self, session: SparkSession, report: Report) -> None:
        """Until the end of a bounded job, or until it is stopped. `report` is given what each batch did."""
        self.check()
        with deferred_interrupt() as interrupt:
            self._once(session, report, interrupt)
            if self.bounded:
                flush(self._control)
                self._once(session, report, interrupt)

    @property
    def _control(self) -> str:
        return f"{self.checkpoint.rstrip('/')}/control"  # goes with the checkpoint: an end that was told is not told to another run

    def _once(self, session: SparkSession, report: Report, interrupt: Interrupt) -> None:
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
                interrupt.check()
        except (PySparkException, Py4JError) as e:
            raise plain_error(e) from None
        finally:
            with suppress(Py4JError, OSError):  # a driver that is gone has stopped
                query.stop()

    def _start(self, session: SparkSession) -> StreamingQuery:
        frames: dict[str, Any] = {d.name: self._source(session, d) for d in self._streams()}
        for source in self.query.sources:
            if source.window is None and source.stream in self.inputs:
                frames[source.stream] = self.inputs[source.stream]
        made = stream(
            self.query, frames, plan=self.plan, stats=self.stats, budget=self.query.budget, cells=self.cells,
            control=self._control,  # whatever the trigger is, so that another one can be used next time
        )  # fmt: skip
        if self.into.format == "kafka":
            made = made.select(F.to_json(F.struct("*")).alias("value"))
        writer = made.writeStream.format(self.into.format).option("checkpointLocation", self.checkpoint)
        for name, value in self.into.options:
            writer = writer.option(name, value)
        if self.into.path:
            writer = writer.option("path", self.into.path)
        if self.into.format == "csv" and "header" not in dict(self.into.options):
            writer = writer.option("header", "true")
        if self.bounded:
            writer = writer.trigger(availableNow=True)
        elif self._trigger:
            writer = writer.trigger(**self._trigger.options)
        try:
            return writer.start()
        except (PySparkException, Py4JError) as e:
            raise plain_error(e) from None

    def _place(self, declared: Declaration) -> Location:
        if declared.location is None:
            raise DataError(
                f"stream '{declared.name}': its declaration does not say where its rows are\n  add FROM 'path' FORMAT ... to it"
            )
        return declared.location

    def _source(self, session: SparkSession, declared: Declaration) -> DataFrame:
        place = self._place(declared)
        path = self.inputs.get(declared.name, place.path)
        reader = session.readStream.format(place.format)
        if place.format in BOUNDED:
            if place.format != "text":
                reader = reader.schema(spark_schema([(f.name, f.type) for f in declared.schema.fields]))
            if "://" not in path and Path(path).is_file():  # Spark watches folders
                reader = reader.option("pathGlobFilter", Path(path).name)
                path = str(Path(path).absolute().parent)
        for name, value in (*DEFAULTS.get(place.format, {}).items(), *place.options):
            reader = reader.option(name, value)
        try:
            frame = reader.load(path) if path else reader.load()
        except (PySparkException, Py4JError) as e:
            raise plain_error(e) from None
        return from_lines(frame, declared) if place.format in LINES else frame


def from_lines(frame: DataFrame, declared: Declaration) -> DataFrame:
    """The declared columns of a source whose rows are lines: those that the source has itself (as Kafka its `timestamp`) from there,
    the others from `value`, which then is a JSON object."""
    fields = [f for f in declared.schema.fields if f.name not in frame.columns or f.name == "value"]
    text = F.col("value").cast("string")
    if [f.name for f in fields] == ["value"]:
        return frame.withColumn("value", text)
    found = F.from_json(text, spark_schema([(f.name, f.type) for f in fields]), {"mode": "FAILFAST"})
    inside = [f.name for f in fields]
    columns = [found[n].alias(n) if n in inside else F.col(n) for n in declared.schema.names]
    return frame.select(*columns)


def summary(progress: Any) -> dict[str, Any]:
    """What a batch did, from a query's progress."""
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    rows = sum(s["numInputRows"] for s in progress["sources"] if "/control]" not in s["description"])
    return {"batch": progress["batchId"], "rows": rows, "seconds": seconds, **metrics_of(progress)}


@contextmanager
def open_session(master: str, name: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """The session of this process, if there is one: it is used as it is, and stays. Else a new one, which is stopped at the end."""
    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    try:
        made = session(master, name, **settings)
    except (PySparkException, Py4JError) as e:
        raise plain_error(e) from None
    try:
        yield made
    finally:
        made.stop()
