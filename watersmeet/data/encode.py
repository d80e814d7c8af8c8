"""Encoders: record batches to the bytes of one file. Parquet and CSV by Arrow; JSON lines by Arrow's string functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

ROW_GROUP_ROWS: Final = 131_072


class Encoder(Protocol):
    """One open file."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...
    def discard(self) -> None:
        """Let go of the file after a failure; it is removed by whoever opened it."""


def encoder(format: str, path: Path, schema: pa.Schema) -> Encoder:
    """An encoder for csv, json or parquet. Intervals are whole numbers of microseconds in all of them."""
    schema = pa.schema([(f.name, pa.int64() if pa.types.is_duration(f.type) else f.type) for f in schema])
    if format == "parquet":
        return _Parquet(path, schema)
    return _Csv(path, schema) if format == "csv" else _Json(path, schema)


class _Parquet:
    """Small batches are gathered into row groups."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self.writer, self.schema = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1), schema
        self.waiting: list[pa.RecordBatch] = []
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.waiting.append(batch)
        self.rows += batch.num_rows
        if self.rows >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        waiting, self.waiting, self.rows = [b.cast(self.schema) for b in self.waiting], [], 0
        self.writer.write_table(pa.Table.from_batches(waiting, self.schema), row_group_size=ROW_GROUP_ROWS)

    def close(self) -> None:
        if self.rows:
            self._flush()
        self.writer.close()

    def discard(self) -> None:
        with suppress(OSError, pa.ArrowException):
            self.writer.close()


class _Csv:
    """With a header; NULL is an empty value; times are ISO with Z."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.csv as pacsv

        self.schema = schema
        self.writer = pacsv.CSVWriter(path, schema, write_options=pacsv.WriteOptions(quoting_style="needed"))

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write(batch.cast(self.schema) if batch.schema != self.schema else batch)

    def close(self) -> None:
        self.writer.close()

    def discard(self) -> None:
        with suppress(OSError, pa.ArrowException):
            self.writer.close()


class _Json:
    """One object a line, NULLs written out, times ISO with Z, NaN and infinities as strings."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.names = schema.names
        self.file = path.open("wb")

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self.file.write(_buffer(json_objects(self.names, batch.columns, "}\n")))

    def close(self) -> None:
        self.file.close()

    def discard(self) -> None:
        with suppress(OSError):
            self.file.close()


def json_objects(names: Sequence[str], columns: Sequence[pa.Array], end: str = "}") -> pa.Array:
    """Rows as JSON objects in text."""
    parts: list[Any] = []
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        key = f"{json.dumps(name, ensure_ascii=False)}: "
        parts += [("{" if i == 0 else ", ") + key, _json_values(column).fill_null("null")]
    return pc.binary_join_element_wise(*parts, end, "")


def key_texts(column: pa.Array) -> pa.Array:
    """A column as the keys of messages: text as it is, other values as JSON writes them, without quotes; NULL stays NULL.

    >>> key_texts(pa.array([1, None])).to_pylist(), key_texts(pa.array(["a b"])).to_pylist()
    (['1', None], ['a b'])
    """
    return column if pa.types.is_string(column.type) else pc.utf8_trim(_json_values(column), characters='"')


_NEEDS_ESCAPE = r'["\\\x00-\x1f\x7f]'


def _json_values(column: pa.Array) -> pa.Array:
    """A column as JSON values in text; NULL stays NULL."""
    kind = column.type
    if pa.types.is_string(kind):
        if pc.any(pc.match_substring_regex(column, _NEEDS_ESCAPE)).as_py():
            return pa.array(
                [None if v is None else json.dumps(v, ensure_ascii=False) for v in column.to_pylist()], pa.string()
            )
        return pc.binary_join_element_wise('"', column, '"', "")
    if pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        return _json_doubles(column)
    if pa.types.is_timestamp(kind):
        text = pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ")
        return pc.binary_join_element_wise('"', text, '"', "")
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return pc.binary_join_element_wise('"', column.cast(pa.string()), '"', "")
    return column.cast(pa.int64()).cast(pa.string())


def _json_doubles(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    finite = pc.is_finite(column)
    if pc.all(finite.fill_null(True)).as_py():
        return text
    named = pc.if_else(pc.is_nan(column), '"NaN"', pc.if_else(pc.greater(column, 0.0), '"Infinity"', '"-Infinity"'))
    return pc.if_else(finite, text, named)


def _buffer(lines: pa.Array) -> bytes:
    """The characters of all strings, one after the other."""
    offsets, data = lines.buffers()[1], lines.buffers()[2]
    width = pa.int64() if pa.types.is_large_string(lines.type) else pa.int32()
    bounds = pa.Array.from_buffers(width, len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = bounds[0].as_py(), bounds[len(lines)].as_py()
    return bytes(memoryview(data)[first:last])
