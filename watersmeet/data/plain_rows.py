"""Tables as plain rows and back, in the values that model/evaluate.py computes with: for the oracle and for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from watersmeet.data.schema import arrow_schema, schema_of
from watersmeet.data.table import as_table, check_timestamps, read_declared
from watersmeet.errors import DataError, nearest_name
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.conditions import Tuple
from watersmeet.model.evaluate import evaluator
from watersmeet.model.query import Query
from watersmeet.model.types import Schema

Tables: TypeAlias = Mapping[str, Any]
Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = dict[str, list[Row]]
"""Rows by the name of their stream or table."""

_PLAIN = {pa.timestamp("us", tz="UTC"): pa.int64(), pa.duration("us"): pa.int64(), pa.date32(): pa.int32()}


def plain_rows(table: pa.Table) -> list[Row]:
    """The rows of a table of canonical types: timestamps and intervals as microseconds, dates as days.

    >>> plain_rows(pa.table({"ts": pa.array([5], pa.timestamp("us", tz="UTC")), "x": [None]}))
    [{'ts': 5, 'x': None}]
    """
    columns = [column.cast(_PLAIN.get(column.type, column.type)).to_pylist() for column in table.columns]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def plain_table(schema: Schema, columns: Sequence[Sequence[Any]]) -> pa.Table:
    """A table of canonical types from columns of plain values."""
    made = arrow_schema(schema)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, made, strict=True)], schema=made)


def plain_results(bound: BoundQuery, results: Sequence[tuple[float, str, Mapping[str, Tuple]]]) -> pa.Table:
    """The table of results, each a time, a change and a combination: the selected columns, then `result_ts` and, if asked for, `change`."""
    absent = {source.alias: dict.fromkeys(source.schema.names) for source in bound.sources}
    rows = [absent | {alias: member.row for alias, member in combination.items()} for _, _, combination in results]
    columns = [[value(r) for r in rows] for value in (evaluator(e) for _, e in bound.outputs)]
    added: list[list[Any]] = [[ts for ts, _, _ in results], [change for _, change, _ in results]]
    return plain_table(bound.results, [*columns, *added[: len(bound.results.fields) - len(columns)]])


def plain_batches(query: Query, data: Tables | Iterable[Tables]) -> tuple[BoundQuery, Rows, list[Rows]]:
    """The query bound to its data, the rows of the static tables, and the batches of stream rows; whole tables are one batch.

    A batch that lacks a stream has no rows of it. A static table comes with the first batch. What is declared with a place and
    not given is read from there: static tables always, streams where the data is whole tables.
    """
    whole, used = isinstance(data, Mapping), {source.stream for source in query.sources}
    schemas = {d.name: d.schema for d in query.declarations}
    placed = [d for d in query.declarations if d.location and d.name in used and (whole or d.static)]
    read: list[dict[str, pa.Table]] = []
    for batch in [data] if isinstance(data, Mapping) else data:
        given = {d.name: read_declared(d) for d in placed if not read and d.name not in batch} | dict(batch)
        read.append({name: as_table(value, name, schemas.get(name)) for name, value in given.items()})
        schemas |= {name: schema_of(table.schema, name) for name, table in read[-1].items() if name not in schemas}
    bound = bind(query, schemas)
    for name in schemas:
        if name not in used and not query.declaration(name):
            raise DataError(f"the query has no stream '{name}'\n  {nearest_name(name, used)}")
    tables: Rows = {source.stream: [] for source in bound.sources if source.static}
    times = {source.stream: source.timestamp for source in bound.sources if source.window}
    if whole and (absent := [name for name in times if name not in read[0]]):
        raise DataError(f"no rows given for stream '{absent[0]}'\n  pass it by name, or declare it with FROM 'path'")
    batches: list[Rows] = []
    for number, one in enumerate(read, 1):
        batches.append({})
        for name, table in one.items():
            if name in tables:
                if number > 1 and table.num_rows:
                    raise DataError(
                        f"table '{name}': rows in batch {number}\n  a static table comes with the first batch"
                    )
                tables[name] += plain_rows(table)
            elif name in times:
                check_timestamps(table, name, times[name])
                batches[-1][name] = plain_rows(table)
    return bound, tables, batches
