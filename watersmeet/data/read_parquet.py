"""Parquet files: only the declared columns are read; text is checked to be UTF-8, which Arrow's reader does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from watersmeet.data.conform import Piece, check_timestamps, conform, find_column
from watersmeet.data.files import read_options, unreadable
from watersmeet.data.place import Place
from watersmeet.model.types import Schema


def read_parquet(
    file: Path, place: Place, schema: Schema | None, options: Mapping[str, str], timestamp: str | None
) -> pa.Table:
    """One Parquet file as a table in canonical types."""
    read_options(options, (), "parquet", place)
    try:
        with pq.ParquetFile(file) as opened:
            names = opened.schema_arrow.names
            wanted = None
            if schema is not None:
                wanted = [names[find_column(names, f.name, place)] for f in schema.fields]
            table = opened.read(columns=wanted)
        for name in table.schema.names:
            _check_text(table.column(name), name, place)
    except (OSError, pa.ArrowException) as e:
        raise unreadable(place, e, "a Parquet file") from None
    piece = Piece(place)
    table = conform(table, schema, piece)
    if timestamp is not None:
        check_timestamps(table, timestamp, piece)
    return table


def _check_text(column: pa.ChunkedArray, name: str, place: Place) -> None:
    if not pa.types.is_string(column.type):
        return
    row = 0
    for chunk in column.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid:
            for i, value in enumerate(chunk):
                try:
                    value.as_py()
                except UnicodeDecodeError:
                    raise place.error("is not UTF-8 text", row=row + i + 1, column=name) from None
            raise
        row += len(chunk)
