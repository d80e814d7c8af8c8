"""JSON lines: one object on each line. Arrow's reader first; what it refuses is read line by line, and named if it is wrong.

The second way also takes what JSON leaves open: 1.0 for a BIGINT, "NaN" and "Infinity" for a DOUBLE, a DECIMAL as a number or
as a string. A key that a row lacks is NULL; a column that no row of the file has is missing.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from watersmeet.data.conform import Piece, check_timestamps, conform
from watersmeet.data.files import read_options, unreadable
from watersmeet.data.place import Place
from watersmeet.data.rows import columns_table
from watersmeet.data.schema import arrow_schema, arrow_type
from watersmeet.errors import nearest_name
from watersmeet.model.types import Field, Schema

_BLOCK_BYTES = 16 << 20
_SLICE_ROWS = 50_000


def read_json(
    file: Path, place: Place, schema: Schema | None, options: Mapping[str, str], timestamp: str | None
) -> pa.Table:
    """One file of JSON lines as a table in canonical types."""
    read_options(options, (), "json", place)
    lines = _Lines(file, place)
    piece = Piece(place, text=True, line_of=lines.line_of)
    try:
        if file.stat().st_size == 0:
            table = arrow_schema(schema or Schema(())).empty_table()
        else:
            keys = None if schema is None else lines.keys_of(schema)
            try:
                table = conform(_fast(file, schema, keys), schema, piece)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
                table = lines.slowly(schema)
            if schema is not None and keys is not None and table.num_rows:
                lines.check_missing(table, schema, keys)
    except (OSError, pa.ArrowException) as e:
        raise unreadable(place, e, "JSON lines") from None
    if timestamp is not None:
        check_timestamps(table, timestamp, piece)
    return table


def _fast(file: Path, schema: Schema | None, keys: list[str] | None) -> pa.Table:
    explicit = None
    if schema is not None and keys is not None:
        explicit = pa.schema([(k, _read_as(f)) for k, f in zip(keys, schema.fields, strict=True)])
    with pa.input_stream(str(file), compression="detect") as source:
        table = pajson.read_json(
            source,
            read_options=pajson.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=pajson.ParseOptions(
                explicit_schema=explicit, unexpected_field_behavior="infer" if explicit is None else "ignore"
            ),
        )
    table.validate(full=True)  # Arrow's reader takes any bytes for text
    return table if schema is None else table.rename_columns(list(schema.names))


def _read_as(field: Field) -> pa.DataType:
    if field.type.name == "DECIMAL":
        return pa.decimal128(38, field.type.scale)
    return pa.string() if field.type.name in ("TIMESTAMP", "DATE") else arrow_type(field.type)


class _Lines:
    """The file as Python sees it, line by line: to find names, errors, and what Arrow's reader can't read."""

    def __init__(self, file: Path, place: Place) -> None:
        self.file, self.place = file, place

    def objects(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """(row, line, object) for each line that is not blank."""
        row = 0
        raw = pa.input_stream(str(self.file), compression="detect")
        with io.BufferedReader(raw) as binary:
            for line, text in enumerate(binary, 1):
                if not text.strip():
                    continue
                row += 1
                try:
                    found = json.loads(text.decode("utf-8-sig" if line == 1 else "utf-8"), parse_float=Decimal)
                except UnicodeDecodeError:
                    raise self.place.error("is not UTF-8 text", row=row, line=line) from None
                except (ValueError, RecursionError) as e:
                    raise self.place.error(f"is not JSON: {e}", row=row, line=line) from None
                if not isinstance(found, dict):
                    raise self.place.error(
                        f"expected a JSON object, found {type(found).__name__}", row=row, line=line,
                        hint='one object on each line, such as {"id": 1, "ts": "2026-01-31T12:00:00Z"}',
                    )  # fmt: skip
                yield row, line, found

    def keys_of(self, schema: Schema) -> list[str]:
        """How the first row spells the declared names; as declared where it lacks them."""
        first = next((o for _, _, o in self.objects()), {})
        spelled = {k.lower(): k for k in first}
        return [n if n in first else spelled.get(n.lower(), n) for n in schema.names]

    def line_of(self, row: int) -> int | None:
        return next((line for number, line, _ in self.objects() if number == row), None)

    def slowly(self, schema: Schema | None) -> pa.Table:
        """The whole file through Python, in slices."""
        keys = None if schema is None else self.keys_of(schema)
        made, objects, before = [], self.objects(), 0
        while rows := [o for _, _, o in islice(objects, _SLICE_ROWS)]:
            piece = Piece(self.place, text=True, line_of=self.line_of, before=before)
            if schema is None or keys is None:
                names = dict.fromkeys(k for o in rows for k in o)
                made.append(columns_table({k: [_plain(o.get(k)) for o in rows] for k in names}, None, piece))
            else:
                columns = {n: [o.get(k) for o in rows] for n, k in zip(schema.names, keys, strict=True)}
                made.append(columns_table(columns, schema, piece))
            before += len(rows)
        try:
            return pa.concat_tables(made, promote_options="default")
        except pa.ArrowInvalid as e:
            raise self.place.error(f"a column changes its type: {e}", hint="declare the columns") from None

    def check_missing(self, table: pa.Table, schema: Schema, keys: list[str]) -> None:
        """A column that is NULL throughout may be one that no row has: then a name is wrong."""
        for key, field in zip(keys, schema.fields, strict=True):
            if table.column(field.name).null_count < table.num_rows:
                continue
            names: dict[str, None] = {}
            for _, _, found in self.objects():
                names.update(dict.fromkeys(found))
                if key in names:
                    break
            else:
                raise self.place.error(
                    f"no column '{field.name}'", hint=f"{nearest_name(field.name, names)} found: {', '.join(names)}"
                )


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
