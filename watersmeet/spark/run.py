"""Run a whole job on Spark: sources and sink by the FORMAT that the text names, from and to a checkpoint.

Files are bounded: the job reads all of them, flushes, and ends. Any other source, or a trigger with an interval, runs until it is stopped.
Stopping loses nothing: the same call goes on from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from watersmeet.data import Rejects, as_table, read_declared
from watersmeet.data.files import FORMATS
from watersmeet.data.kafka_options import KafkaOptions
from watersmeet.data.paced import no_place
from watersmeet.errors import DataError
from watersmeet.model.plan import Plan
from watersmeet.model.query import Declaration, Location, Query
from watersmeet.model.statistics import Statistics
from watersmeet.spark import check_paths as places
from watersmeet.spark.columns import spark_schema
from watersmeet.spark.control import flush
from watersmeet.spark.interrupt import Interrupt, deferred_interrupt
from watersmeet.spark.kafka_source import ReadMessages, topic_frame
from watersmeet.spark.listener import events_of, metrics_of
from watersmeet.spark.plain_errors import plain_error
from watersmeet.spark.read_files import Read, ReadFiles, listed, read_here
from watersmeet.spark.session import session
from watersmeet.spark.sink import Sink, in_files
from watersmeet.spark.stream import joined
from watersmeet.spark.trigger import Trigger
from watersmeet.spark.write_parts import BAD, write_part

BOUNDED = (*FORMATS, "orc", "text")
LINES = ("text", "socket")
# Before the options in the text.
DEFAULTS: Mapping[str, Mapping[str, str]] = {"socket": {"includeTimestamp": "true"}}
Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class SparkJob:
    """A job and how it is to be run.

    trigger: None (all there is, for files; as fast as it can, for other sources), an interval such as "10 seconds" (until it is
        stopped), or "available-now" (all there is, but what waits goes on waiting: rows to come may still join it).
    inputs: paths to read streams from instead of those in the text.
    bad_in_tables: after the start, how many rows of static tables were bad.
    """

    query: Query
    into: Location
    checkpoint: str
    trigger: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    plan: str | Plan = "auto"
    stats: Statistics | None = None
    cells: int | None = None
    bad_in_tables: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def bounded(self) -> bool:
        """Whether the job ends by itself, and all rows are released then."""
        return self.trigger is None and all(_of_files(self._place(d)) for d in self._streams())

    @cached_property
    def _trigger(self) -> Trigger | None:
        return None if self.trigger is None else Trigger.parse(self.trigger)

    def check(self) -> None:
        """Say what can't work, as far as it can be known without Spark."""
        _ = self._trigger
        for declared in self._streams():
            place = self._place(declared)
            if _of_files(place):
                places.check_source(declared, place, bounded=self.bounded)
            if place.format == "kafka":
                KafkaOptions.source(place, declared.name)
        if self.into.format == "kafka":
            KafkaOptions.sink(self.into)
        aside = [*([self.query.late] if self.query.late else []), *self._bad_row_places().values()]
        for where in aside:
            if not in_files(where):
                raise DataError(
                    f"'{where.path}' FORMAT {where.format}: late and bad rows go to csv, json or parquet files of this machine"
                )
        written = [*([self.into] if self.into.format in BOUNDED else []), *aside]
        for where in written:
            places.check_writable(where.path, "output")
        places.check_writable(self.checkpoint, "checkpoint")
        for where in written:
            places.check_together(where.path, self.checkpoint, ours=in_files(where), aside=where is not self.into)

    def _bad_row_places(self) -> dict[str, Location]:
        used = dict.fromkeys(s.stream for s in self.query.sources)
        found = [d for name in used if (d := self.query.declaration(name)) is not None]
        return {d.name: d.bad_rows.into for d in found if d.bad_rows.into is not None}

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
                        report(summary(progress) | {"events": events_of(progress)})
                if ended:
                    return
                interrupt.check()
        except (PySparkException, Py4JError) as e:
            raise plain_error(e) from None
        finally:
            with suppress(Py4JError, OSError):  # a driver that is gone has stopped
                query.stop()

    def _start(self, session: SparkSession) -> StreamingQuery:
        rejects: dict[str, Rejects] = {}
        frames: dict[str, Any] = {d.name: self._source(session, d) for d in self._streams()}
        frames |= self._tables(rejects)
        found = {d.name: (d, self._place(d)) for d in self._streams()}
        reads: dict[str, Read] = {n: ReadMessages(d) for n, (d, place) in found.items() if place.format == "kafka"}
        reads |= {name: ReadFiles.of(d, place) for name, (d, place) in found.items() if read_here(place.format)}
        bad = self._bad_row_places()
        made = joined(
            self.query, frames, self.plan, self.stats, self.query.budget, self.cells, late=self.query.late is not None,
            bad=bool(bad), reads=reads,
            control=self._control,  # whatever the trigger is, so that another one can be used next time
        )  # fmt: skip
        sink = Sink.of(made, self.into, self.query.late, bad)
        for name, bad_rows in rejects.items():
            for output in sink.outputs if bad_rows.found else ():
                if output.takes(BAD, name):
                    write_part(output, f"part-table-{name}", bad_rows.table())
        writer = sink.writer(made).option("checkpointLocation", _absolute(self.checkpoint))
        if self.bounded:
            writer = writer.trigger(availableNow=True)
        elif self._trigger:
            writer = writer.trigger(**self._trigger.options)
        try:
            started: StreamingQuery = writer.start()
            return started
        except (PySparkException, Py4JError) as e:
            raise plain_error(e) from None

    def _tables(self, rejects: dict[str, Rejects]) -> dict[str, Any]:
        """The static tables, read here; `rejects` gets their bad rows."""
        made = {}
        for name in dict.fromkeys(s.stream for s in self.query.sources if s.window is None):
            declared = self.query.declaration(name)
            assert declared is not None
            rejects[name] = Rejects(declared.bad_rows)
            if name in self.inputs:
                made[name] = as_table(self.inputs[name], name, declared.schema, rejects=rejects[name])
            else:
                made[name] = read_declared(declared, rejects[name])
            self.bad_in_tables[name] = rejects[name].count
        return made

    def _place(self, declared: Declaration) -> Location:
        """Where a stream is read from. Files that are given instead say by their names what they are, as in process."""
        place, given = declared.location, self.inputs.get(declared.name)
        if given is not None:
            other = place is not None and _of_files(place) and not read_here(place.format)
            return replace(place, path=given) if place is not None and other else Location(given, "")
        if place is None:
            raise no_place(declared.name)
        return place

    def _source(self, session: SparkSession, declared: Declaration) -> DataFrame:
        place = self._place(declared)
        path = place.path
        if read_here(place.format):
            try:
                return listed(session, place)
            except (PySparkException, Py4JError) as e:
                raise plain_error(e) from None
        if place.format == "kafka":
            return topic_frame(session, declared, place)
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
    """The declared columns of a source whose rows are lines: those that the source has itself (as `timestamp`) from there,
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
    found = metrics_of(progress)
    return {"batch": progress["batchId"], "rows": found.get("read", 0), "seconds": seconds, **found}


def _of_files(place: Location) -> bool:
    return not place.format or place.format in BOUNDED


def _absolute(path: str) -> str:
    """A path of this machine from its root: Java may have been started in another folder."""
    return path if ":/" in path else str(Path(path).absolute())


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
