"""as_table: whatever the user has at hand, as an Arrow table in canonical types."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from watersmeet.data import conform as _conform
from watersmeet.data.bad_rows import Rejects
from watersmeet.data.conform import Piece, conform, find_column
from watersmeet.data.delta import read_delta
from watersmeet.data.files import find_files
from watersmeet.data.kafka import read_topic
from watersmeet.data.place import Place
from watersmeet.data.read_csv import read_csv
from watersmeet.data.read_json import read_json
from watersmeet.data.read_parquet import read_parquet
from watersmeet.data.rows import columns_table, rows_table
from watersmeet.data.stored_file import StoredFile
from watersmeet.model.query import Declaration, Location
from watersmeet.model.types import Schema

WHOLE = ("kafka", "delta")  # formats that are no files: read as they are now, all at once
_READERS = {"csv": read_csv, "json": read_json, "parquet": read_parquet}


def as_table(
    value: Any,
    name: str,
    schema: Schema | None = None,
    *,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
    timestamp: str | None = None,
    rejects: Rejects | None = None,
) -> pa.Table:
    """An Arrow table of a stream or table called `name`.

    value: an Arrow table, record batch, reader or dataset (or any object that exports an Arrow stream, as polars does), a
        pandas DataFrame, a list of dicts, a dict of lists, a `Location`, or a path: a file, a folder or a glob.
    schema: the declared columns; found by name whatever the case, put in their order, others dropped. Without it all columns.
    format, options: of files; the format is known by suffix where it is not given.
    timestamp: a column in which NULL is an error.
    rejects: takes the bad rows of files; without it the first one is an error.

    >>> from watersmeet.model.types import Field, Type
    >>> as_table([{"ID": 1, "x": 0}, {"ID": 2}], "orders", Schema((Field("id", Type("BIGINT")),))).to_pylist()
    [{'id': 1}, {'id': 2}]
    """
    if isinstance(value, Location):
        return as_table(
            value.path, name, schema, format=format or value.format or None, options={**dict(value.options), **(options or {})},
            timestamp=timestamp, rejects=rejects,
        )  # fmt: skip
    if isinstance(value, str | Path):
        files = find_files(str(value), name, format)
        return read_files(files, name, schema, options or {}, timestamp, rejects or Rejects())
    piece = Piece(Place(name))
    table = _from_memory(value, schema, piece)
    if timestamp is not None:
        _conform.check_timestamps(table, timestamp, piece)
    return table


def read_declared(declaration: Declaration, rejects: Rejects | None = None) -> pa.Table:
    """The rows of a CREATE STREAM or CREATE TABLE from where it says they are; bad ones by its policy, to `rejects` if given."""
    if declaration.location is None:
        raise Place(declaration.name).error(
            "no data", hint=f"say FROM 'path' in its declaration, or pass {declaration.name} by name"
        )
    if declaration.location.format == "kafka":
        return read_topic(declaration, rejects or Rejects(declaration.bad_rows))
    if declaration.location.format == "delta":
        return read_delta(declaration)
    timestamp = None if declaration.static else declaration.timestamp
    return as_table(
        declaration.location, declaration.name, declaration.schema, timestamp=timestamp,
        rejects=rejects or Rejects(declaration.bad_rows),
    )  # fmt: skip


def check_timestamps(table: pa.Table, name: str, column: str) -> None:
    """Refuse a table with a NULL in its timestamp column."""
    _conform.check_timestamps(table, column, Piece(Place(name)))


def read_file(
    file: StoredFile,
    format: str,
    schema: Schema | None,
    options: Mapping[str, str],
    timestamp: str | None,
    rejects: Rejects,
) -> Iterator[pa.Table]:
    """The rows of one file, in pieces: the one way that files are read, here and by Spark's workers."""
    return _READERS[format](file, schema, options, timestamp, rejects)


def read_files(
    files: Iterable[tuple[Path, str]], name: str, schema: Schema | None, options: Mapping[str, str], timestamp: str | None,
    rejects: Rejects,
) -> pa.Table:  # fmt: skip
    """The rows of several files, in their order."""
    tables: list[pa.Table] = []
    first = ""
    for file, kind in files:
        place = Place(name, str(file))
        table = pa.concat_tables(read_file(StoredFile(place, file), kind, schema, options, timestamp, rejects))
        if tables and table.schema != tables[0].schema:
            if tables[0].num_columns == 0:
                tables = []  # empty files without a declared schema say nothing of the columns
            elif table.num_columns == 0:
                continue
            else:
                raise place.error(f"its columns are not those of {first}", hint="declare the columns that you need")
        first = first or str(file)
        tables.append(table)
    return pa.concat_tables(tables)


def _from_memory(value: Any, schema: Schema | None, piece: Piece) -> pa.Table:
    if isinstance(value, pa.Table):
        return conform(value, schema, piece)
    if isinstance(value, pa.RecordBatch):
        return conform(pa.Table.from_batches([value]), schema, piece)
    pandas = sys.modules.get("pandas")  # a DataFrame can only come from a pandas that is loaded
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return conform(_from_pandas(value, schema, piece), schema, piece)
    if isinstance(value, Mapping):
        return columns_table(value, schema, piece)
    if hasattr(value, "sparkSession"):
        _refuse_spark(value, piece.place)
    if hasattr(value, "__arrow_c_stream__"):
        try:
            return conform(pa.table(value), schema, piece)
        except (OSError, pa.ArrowException) as e:
            raise piece.place.error(f"can't be read: {e}") from None
    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is not None and isinstance(value, dataset.Dataset):
        names = value.schema.names
        wanted = None if schema is None else [names[find_column(names, f.name, piece.place)] for f in schema.fields]
        try:
            return conform(value.to_table(columns=wanted), schema, piece)
        except (OSError, pa.ArrowException) as e:
            raise piece.place.error(f"can't be read: {e}") from None
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return rows_table(value, schema, piece)
    raise piece.place.error(
        f"can't make a table of {type(value).__name__}",
        hint="an Arrow table, a pandas DataFrame, a list of dicts, or a path to csv, parquet or json files",
    )


def _refuse_spark(frame: Any, place: Place) -> NoReturn:
    """Say what to do with a Spark DataFrame: what it would be to fetch its rows here is for the user to know."""
    if frame.isStreaming:
        raise place.error(
            "is a streaming DataFrame of Spark, but here rows are joined in this process",
            hint=f"join it on Spark: wm.stream(query, {{'{place.name}': frame, ...}})",
        )
    raise place.error(
        "is a DataFrame of Spark, but here rows are joined in this process",
        hint="fetch its rows: frame.toArrow(); or join on Spark: wm.stream with spark.readStream",
    )


def _from_pandas(frame: Any, schema: Schema | None, piece: Piece) -> pa.Table:
    """Column by column, so that the error names the one at fault. NaN in a pandas column is NULL, as pandas means it."""
    names = [str(c) for c in frame.columns]
    wanted = range(len(names)) if schema is None else [find_column(names, f.name, piece.place) for f in schema.fields]
    columns, taken = [], []
    for i in wanted:
        try:
            columns.append(pa.Array.from_pandas(frame.iloc[:, i]))
        except (pa.ArrowException, TypeError, OverflowError):
            kinds = sorted({type(v).__name__ for v in frame.iloc[:, i] if v is not None})
            raise piece.place.error(
                f"mixes {' and '.join(kinds)}" if len(kinds) > 1 else f"holds {kinds[0]}", column=names[i],
                hint="a column needs values of one type",
            ) from None  # fmt: skip
        taken.append(names[i])
    return pa.Table.from_arrays([pa.chunked_array([c]) if isinstance(c, pa.Array) else c for c in columns], names=taken)
