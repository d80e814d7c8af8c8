"""Sink: where the rows of a job go. Files of this machine are written by our own tasks; all else by Spark's sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from watersmeet.data.bad_rows import BAD_ROW_SCHEMA
from watersmeet.data.late_rows import LATE_SCHEMA
from watersmeet.model.query import RESULT_TS, Location
from watersmeet.spark.kafka_sink import topic_writer
from watersmeet.spark.read_files import is_remote, read_here
from watersmeet.spark.spec import LATE_COLUMNS
from watersmeet.spark.stream import Joined
from watersmeet.spark.unfold import unfolded
from watersmeet.spark.write_parts import BAD, LATE, RESULT, WRITTEN, Output, WriteParts, put_in_place

# As our own tasks write them, as far as Spark can.
_TEXT = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def in_files(place: Location) -> bool:
    """Whether rows go to files that our own tasks write."""
    return read_here(place.format) and not is_remote(place.path)


@dataclass(frozen=True)
class Sink:
    """into: where results go. outputs: what our own tasks write. results, columns: a result, and a row as cells give it out."""

    into: Location
    outputs: tuple[Output, ...]
    results: pa.Schema
    columns: T.StructType

    @classmethod
    def of(cls, made: Joined, into: Location, late: Location | None, bad: Mapping[str, Location]) -> Sink:
        """bad: where the bad rows of streams go, by name."""
        outputs = [Output.of(into, RESULT, made.results)] if in_files(into) else []
        outputs += [Output.of(late, LATE, LATE_SCHEMA)] if late is not None else []
        for place in dict.fromkeys(bad.values()):
            outputs.append(Output.of(place, BAD, BAD_ROW_SCHEMA, [n for n, p in bad.items() if p == place]))
        return cls(into, tuple(outputs), made.results, made.columns)

    def writer(self, made: Joined) -> Any:
        """A DataStreamWriter, ready but for its trigger and checkpoint."""
        if self.outputs:
            return made.blocks.writeStream.foreachBatch(self)
        return self._results(made.rows())

    def __call__(self, blocks: DataFrame, batch: int) -> None:
        """One batch; what an earlier try of it wrote is replaced. Only files are written exactly once."""
        beside = not any(o.kind == RESULT for o in self.outputs)
        if beside:
            blocks = blocks.persist()
        aside = len(self.columns) > len(self.results)
        task = WriteParts(self.outputs, self.results, aside, batch)
        written = [row.asDict() for row in blocks.mapInArrow(task, WRITTEN).collect()]
        put_in_place(self.outputs, batch, written)
        if beside:
            rows = unfolded(blocks, self.columns, led_by=RESULT_TS)
            rows = rows.where(F.col(LATE_COLUMNS[0]) == RESULT).drop(*LATE_COLUMNS)
            self._results(rows).save()
            blocks.unpersist()

    def _results(self, rows: DataFrame) -> Any:
        """A writer of results by Spark, streaming as they are."""
        rows = self._plain(rows)
        if self.into.format == "kafka":
            return topic_writer(rows, self.into)
        writer: Any = rows.writeStream if rows.isStreaming else rows.write.mode("append")
        writer = writer.format(self.into.format)
        options = dict(_TEXT) if self.into.format in ("csv", "json") else {}
        options |= {"header": "true"} if self.into.format == "csv" else {}
        for name, value in (options | dict(self.into.options)).items():
            writer = writer.option(name, value)
        return writer.option("path", self.into.path) if self.into.path else writer

    def _plain(self, rows: DataFrame) -> DataFrame:
        """Intervals as microseconds."""
        intervals = [f.name for f in self.columns.fields if isinstance(f.dataType, T.DayTimeIntervalType)]
        for name in intervals:
            start = F.timestamp_micros(F.lit(0))
            rows = rows.withColumn(name, F.unix_micros(start + F.col(f"`{name}`")))
        return rows
