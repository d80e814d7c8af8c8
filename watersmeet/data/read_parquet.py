"""Parquet files: only the declared columns are read; text is checked to be UTF-8, which Arrow's reader does not. No bytes, no rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from watersmeet.data.bad_rows import Rejects
from watersmeet.data.conform import Convert, Piece, conform, find_column
from watersmeet.data.files import read_options, unreadable
from watersmeet.data.place import shown
from watersmeet.data.schema import arrow_schema, schema_of
from watersmeet.data.stored_file import StoredFile
from watersmeet.model.types import STRING, Field, Schema, Type

_ROWS = 1 << 21  # row groups are read together up to so many rows


def read_parquet(
    file: StoredFile, schema: Schema | None, options: Mapping[str, str], timestamp: str | None, rejects: Rejects
) -> Iterator[pa.Table]:
    """One Parquet file as tables in canonical types."""
    read_options(options, (), "parquet", file.place)
    try:
        if file.size == 0:
            yield arrow_schema(schema or Schema(())).empty_table()
            return
        with pq.ParquetFile(file.raw()) as opened:
            names = opened.schema_arrow.names
            wanted = None
            if schema is not None:
                wanted = [names[find_column(names, f.name, file.place)] for f in schema.fields]
            before = 0
            for groups in _together(opened.metadata):
                table = opened.read_row_groups(groups, columns=wanted)
                yield _canonical(table, file, schema, timestamp, rejects, before)
                before += table.num_rows
    except (OSError, pa.ArrowException) as e:
        raise unreadable(file.place, e, "a Parquet file") from None


def _together(metadata: Any) -> Iterator[list[int]]:
    """The row groups, those of few rows together; one piece of none if there are none."""
    groups, rows = list[int](), 0
    for number in range(metadata.num_row_groups):
        groups.append(number)
        rows += metadata.row_group(number).num_rows
        if rows >= _ROWS:
            yield groups
            groups, rows = [], 0
    if groups or not metadata.num_row_groups:
        yield groups


def _canonical(
    table: pa.Table, file: StoredFile, schema: Schema | None, timestamp: str | None, rejects: Rejects, before: int
) -> pa.Table:
    damaged = set[str]()
    for at, name in enumerate(table.schema.names):
        if pa.types.is_string(table.schema.field(at).type) and not _is_text(table.column(at)):
            table = table.set_column(at, name, table.column(at).cast(pa.binary()))
            damaged.add(name.lower())
    if schema is None and damaged:
        schema = Schema(tuple(Field(n, _type_of(table, n)) for n in table.schema.names))

    def parse(field: Field) -> Convert | None:
        return (lambda c: c.cast(pa.string())) if field.name.lower() in damaged else None

    def locate(rows: Sequence[int]) -> dict[int, tuple[int | None, str | None]]:
        return {row: (None, _row_text(table.slice(row - before - 1, 1))) for row in rows}

    piece = Piece(file.place, False, locate, before, rejects, parse=parse if damaged else None)
    return conform(table, schema, piece, timestamp)


def _is_text(column: pa.ChunkedArray) -> bool:
    try:
        for chunk in column.chunks:
            chunk.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _type_of(table: pa.Table, name: str) -> Type:
    kind = table.schema.field(name).type
    return STRING if pa.types.is_binary(kind) else schema_of(pa.schema([(name, kind)])).fields[0].type


def _row_text(row: pa.Table) -> str:
    """A row as JSON; what JSON can't hold as text."""
    return json.dumps(
        row.to_pylist()[0], default=lambda v: shown(v) if isinstance(v, bytes) else str(v), ensure_ascii=False
    )
