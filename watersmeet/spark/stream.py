"""wm.stream: a query over streaming DataFrames, as a streaming DataFrame."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import ceil, prod
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from watersmeet.api import adaptive, choose
from watersmeet.data import arrow_schema, as_table
from watersmeet.errors import DataError, QueryError, nearest_name
from watersmeet.lang import parse
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.budget import Budget
from watersmeet.model.expr import streams_of
from watersmeet.model.plan import Plan
from watersmeet.model.query import RESULT_TS, Query
from watersmeet.model.statistics import Statistics
from watersmeet.model.types import STRING, Schema
from watersmeet.spark.blob import ARROW_SCHEMA, BLOB_BYTES
from watersmeet.spark.columns import column, conform, is_streaming, schema_of, spark_schema
from watersmeet.spark.control import control_source
from watersmeet.spark.flow import Flow, Inlet
from watersmeet.spark.kept_query import check_start
from watersmeet.spark.listener import observed
from watersmeet.spark.pack import PackEnd
from watersmeet.spark.processor import CellProcessor
from watersmeet.spark.read_files import Read, ReadAndPack
from watersmeet.spark.selection import in_spark, mask
from watersmeet.spark.spec import LATE_COLUMNS
from watersmeet.spark.unfold import block_schema, unfolded
from watersmeet.spark.waiting import SETTING, waiting_limit

CELLS = 2  # unless the query's budget or the caller says otherwise: fixed, because state can't be split again later
_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # Commits as small as the batch.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # With any lower limit of bytes Spark adds up those of the batch again for each row, which takes as long as writing it;
    # the number of records keeps a batch of blobs below the 2 GB that Arrow can take.
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str((1 << 30) // BLOB_BYTES),
    # Rows go to Python in fewer, larger writes.
    "spark.sql.execution.python.udf.buffer.size": str(1 << 20),
    # Workers of cells never have it; if those of pack had it, they would be others, of a second daemon.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
# On local files Spark's usual way to commit starts a process (readlink) for every file that it looks at: 60 a batch, a fifth of a second.
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_PARCELS = from_arrow_schema(ARROW_SCHEMA)  # not as text: Spark takes a third of a second to read its first
_log = logging.getLogger("watersmeet")


def stream(
    text: str | Query,
    streams: Mapping[str, Any],
    plan: str | Plan = "auto",
    stats: Statistics | None = None,
    budget: Budget | None = None,
    cells: int | None = None,
    order: str = "event",
    late: bool = False,
    control: str | Path | None = None,
    refresh_tables: bool = False,
) -> DataFrame:
    """Run a query on Spark: takes streaming DataFrames, gives a streaming DataFrame to be written wherever Spark can write.

    streams: {stream name: streaming DataFrame}; static tables as a batch DataFrame, Arrow table, pandas frame or path.
    cells: into how many parts the join is split, one for each core that it may use; set for the life of the checkpoint. Default: the
        CPU of the budget, rounded up, else 2.
    order: "event" (by timestamp, exact), or "arrival" (batch by batch, no waiting, not repeatable).
    late: also give the rows that came too late: adds the columns kind ("result" or "late"), late_stream and late_row (JSON).
    control: a folder that `wm.flush` uses to say that the input has ended. If it lies in the checkpoint (<checkpoint>/control), a changed
        query on that checkpoint is refused here, and not only when rows come.
    refresh_tables: go on although a static table has changed since the checkpoint was made.

    Reads spark.watersmeet.waitingBytes (how much may wait in a cell for a stream that is behind: 1 GiB unless set).
    Sets in the session of the DataFrames: spark.sql.shuffle.partitions to the number of cells, the state store to RocksDB, the limits
    of Arrow batches (spark.sql.execution.arrow.maxBytesPerBatch, maxRecordsPerBatch), the buffer to Python (spark.sql.execution.python
    .udf.buffer.size), whole tracebacks of UDFs, and with a local master, unless it is set, the checkpointFileManagerClass
    (docs/deploy.md, "Settings").
    """
    made = joined(
        text, streams, plan, stats, budget, cells, order=order, late=late, control=control, refresh_tables=refresh_tables
    )  # fmt: skip
    return made.rows()


@dataclass(frozen=True)
class Joined:
    """What comes from the cells: blocks of rows (`blocks.py`), and the columns of a row; those of a result come first."""

    blocks: DataFrame
    columns: T.StructType
    results: pa.Schema

    def rows(self) -> DataFrame:
        """The rows themselves."""
        return unfolded(self.blocks, self.columns, led_by=RESULT_TS)


def joined(
    text: str | Query,
    streams: Mapping[str, Any],
    plan: str | Plan = "auto",
    stats: Statistics | None = None,
    budget: Budget | None = None,
    cells: int | None = None,
    *,
    order: str = "event",
    late: bool = False,
    bad: bool = False,
    control: str | Path | None = None,
    refresh_tables: bool = False,
    reads: Mapping[str, Read] | None = None,
) -> Joined:
    """The join of `stream`, with its results still in blocks. bad: also give bad rows. reads: streams that were given as DataFrames of
    files or messages, and how these are read."""
    query = parse(text) if isinstance(text, str) else text
    if order not in ("event", "arrival"):
        raise QueryError(f"order='{order}'", hint="order='event' or order='arrival'")
    session = _session(streams)
    reads = reads or {}
    bound = _bind(query, streams, text)
    frames, tables = _inputs(bound, streams, reads)
    limit = budget or query.budget
    given = prod(n for _, n in plan.cells) if isinstance(plan, Plan) and plan.cells else None
    count = cells or given or _cells(limit)
    read_aliases = {s.alias for s in bound.sources if s.stream in reads}
    flow = Flow.of(
        bound, choose(bound, plan, stats, limit, cells=count), count, tables,
        in_spark=lambda e: in_spark(e) and not streams_of(e) & read_aliases,
        late=late, bad=bad, order=order, refresh_tables=refresh_tables,
        waiting_bytes=waiting_limit(session.conf.get(SETTING, None)), controller=adaptive(plan, stats, _part(limit, count)),
    )  # fmt: skip
    configure(session, flow.spec.route.cells)
    parcels = [_packed(frames[i.stream], i, reads.get(i.stream)) for i in flow.inlets]
    if control is not None:
        parcels.append(control_source(session, control).mapInArrow(PackEnd(flow.spec.route.keys), _PARCELS))
        check_start(control, flow.spec.fingerprint, refresh_tables)
    united = reduce(DataFrame.union, parcels)
    results = _output(bound, late or bad)
    blocks = united.groupBy("cell").transformWithStateInPandas(
        CellProcessor(flow.spec), block_schema(results), "Append", "None"
    )
    return Joined(observed(blocks), results, arrow_schema(bound.results))


def _session(streams: Mapping[str, Any]) -> SparkSession:
    for frame in streams.values():
        if is_streaming(frame):
            found: SparkSession = frame.sparkSession
            return found
    raise DataError(
        "wm.stream needs at least one streaming DataFrame\n  spark.readStream...; for tables that are whole use wm.run"
    )


def _bind(query: Query, streams: Mapping[str, Any], text: str | Query) -> BoundQuery:
    used = dict.fromkeys(s.stream for s in query.sources)
    for name in streams:
        if name not in used and not query.declaration(name):
            raise DataError(f"the query has no stream '{name}'\n  {nearest_name(name, used)}")
    schemas: dict[str, Schema] = {d.name: d.schema for d in query.declarations}
    for name, frame in streams.items():
        if name not in schemas and hasattr(frame, "schema") and isinstance(frame.schema, T.StructType):
            schemas[name] = schema_of(frame, name)
        elif name not in schemas:
            from watersmeet.data import schema_of as arrow_schema_of

            schemas[name] = arrow_schema_of(as_table(frame, name, None).schema, name)
    try:
        return bind(query, schemas)
    except QueryError as e:
        raise e.at(str(text)) from None


def _inputs(
    bound: BoundQuery, streams: Mapping[str, Any], reads: Mapping[str, Read]
) -> tuple[dict[str, DataFrame], dict[str, Any]]:
    """Streaming DataFrames by stream name, static tables (whole, here) by alias."""
    frames: dict[str, DataFrame] = {}
    tables: dict[str, Any] = {}
    for source in bound.sources:
        name = source.stream
        declared = bound.query.declaration(name)
        given = streams.get(
            name, str(declared.location.path) if declared and declared.location and source.static else None
        )
        if given is None:
            raise DataError(f"no DataFrame given for '{name}'\n  pass it by name: {{'{name}': spark.readStream...}}")
        if source.static:
            tables[source.alias] = _table(given, name, source.schema, declared)
        elif not is_streaming(given):
            raise DataError(
                f"'{name}' has a window, but what was given is not a streaming DataFrame\n  use spark.readStream"
            )
        else:
            frames[name] = given if name in reads else conform(given, name, source.schema)
    return frames, tables


def _table(given: Any, name: str, schema: Schema, declared: Any) -> Any:
    """The rows of a static table, in an order that does not depend on how they were read."""
    from watersmeet.data import read_declared

    if is_streaming(given):
        raise DataError(
            f"'{name}' has no window, so it is a static table, but a streaming DataFrame was given\n  use spark.read"
        )
    if isinstance(given, str) and declared is not None:
        table = read_declared(declared)
    elif hasattr(given, "sparkSession"):
        found = conform(given, name, schema).toArrow()
        table = found.cast(arrow_schema(schema))
    else:
        table = as_table(given, name, schema)
    return table.sort_by([(n, "ascending") for n in table.column_names]) if table.num_rows else table


def _cells(budget: Budget | None) -> int:
    return max(1, ceil(budget.cpu)) if budget is not None and budget.cpu else CELLS


def _part(budget: Budget | None, cells: int) -> Budget | None:
    """What one cell may use."""
    if budget is None:
        return None
    tuples, size = budget.memory_tuples, budget.memory_bytes
    return Budget(
        None if budget.cpu is None else budget.cpu / cells,
        None if tuples is None else max(1, tuples // cells),
        None if size is None else max(1, size // cells),
    )


def configure(session: SparkSession, cells: int) -> None:
    """What the stateful operator needs of the session; says so where it changes something."""
    settings = {"spark.sql.shuffle.partitions": str(cells), **_SETTINGS}
    if str(session.conf.get("spark.master", "")).startswith("local") and session.conf.get(_FILE_MANAGER, None) is None:
        settings[_FILE_MANAGER] = _BY_FILE_SYSTEM
    for name, value in settings.items():
        was = session.conf.get(name, None)
        if was != value:
            session.conf.set(name, value)
            _log.info("%s was %s, is now %s", name, was, value)


def _packed(frame: DataFrame, inlet: Inlet, read: Read | None) -> DataFrame:
    if read is not None:
        return frame.mapInArrow(ReadAndPack(read, inlet.pack), _PARCELS)
    columns = [column(n) for n in inlet.columns] + [mask(p).alias(n) for n, p in inlet.masks]
    return frame.select(*columns).mapInArrow(inlet.pack, _PARCELS)


def _output(bound: BoundQuery, aside: bool) -> T.StructType:
    fields = [(f.name, f.type) for f in bound.results.fields]
    return spark_schema(fields + [(n, STRING) for n in LATE_COLUMNS if aside])


__all__ = ["CellProcessor", "Joined", "configure", "joined", "stream"]
