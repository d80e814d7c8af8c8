"""JSON lines: one object on each line. Arrow's reader first; lines that it refuses are read one by one, and named if they are wrong.

The second way also takes what JSON leaves open: 1.0 for a BIGINT, "NaN" and "Infinity" for a DOUBLE, a DECIMAL as a number or
as a string. A key that a row lacks is NULL; a column that no row of the file has is missing. Keys are found whatever their case, as
the first row spells them. A file of no bytes has no rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from watersmeet.data.bad_rows import Rejects
from watersmeet.data.conform import NO_TIME, Piece, conform, text_reason
from watersmeet.data.files import read_options, unreadable
from watersmeet.data.rows import columns_table, convert_value
from watersmeet.data.schema import arrow_schema, arrow_type
from watersmeet.data.stored_file import StoredFile
from watersmeet.errors import nearest_name
from watersmeet.model.types import Field, Schema

_BLOCK_BYTES = 64 << 20  # of whole lines, read at a time
_ARROW_BYTES = 16 << 20  # Arrow's share of it
_FEW_BYTES = 1 << 13  # a block that Arrow refuses is halved down to this, and then read line by line
_OBJECT = 'one object on each line, such as {"id": 1, "ts": "2026-01-31T12:00:00Z"}'


def read_json(
    file: StoredFile, schema: Schema | None, options: Mapping[str, str], timestamp: str | None, rejects: Rejects
) -> Iterator[pa.Table]:
    """One file of JSON lines as tables in canonical types."""
    read_options(options, (), "json", file.place)
    try:
        if file.size == 0:
            yield arrow_schema(schema or Schema(())).empty_table()
        elif schema is None:
            yield _undeclared(file)
        else:
            yield from _Lines(file, schema, timestamp, rejects).tables()
    except (OSError, pa.ArrowException) as e:
        raise unreadable(file.place, e, "JSON lines") from None


class _Bad(Exception):
    """A line that is no row: column, reason, hint."""

    def __init__(self, column: str | None, reason: str, hint: str = "") -> None:
        self.why = (column, reason, hint)


class _Lines:
    """The file in blocks of whole lines, with declared columns."""

    def __init__(self, file: StoredFile, schema: Schema, timestamp: str | None, rejects: Rejects) -> None:
        self.file, self.place, self.schema, self.timestamp, self.rejects = file, file.place, schema, timestamp, rejects
        self.keys = self._keys()
        self.explicit = pa.schema([(k, _read_as(f)) for k, f in zip(self.keys, schema.fields, strict=True)])

    def tables(self) -> Iterator[pa.Table]:
        rows, there = 0, set[str]()
        before = 0
        for block in _blocks(self.file):
            for part in _halved(block, self._arrow):
                if isinstance(part, pa.Table):
                    piece = Piece(self.place, True, self._locate, before, self.rejects)
                    table = conform(part, self.schema, piece, self.timestamp)
                    before += part.num_rows
                else:
                    table, count = self._by_line(part, before)
                    before += count
                rows += table.num_rows
                there |= {n for n in self.schema.names if table.column(n).null_count < table.num_rows}
                yield table
        if rows:
            self._check_missing([f for f in self.schema.fields if f.name not in there])

    def _arrow(self, block: bytes) -> pa.Table | None:
        """The rows of whole lines by Arrow's reader; None if they are for Python to read."""
        try:
            table = pajson.read_json(
                pa.BufferReader(block),
                read_options=pajson.ReadOptions(block_size=_ARROW_BYTES),
                parse_options=pajson.ParseOptions(explicit_schema=self.explicit, unexpected_field_behavior="ignore"),
            )
            table.validate(full=True)  # Arrow's reader takes any bytes for text
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None
        # It also takes two objects on a line, or one on two.
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        if table.num_rows != lines and table.num_rows != sum(1 for line in block.split(b"\n") if line.strip()):
            return None
        return table.rename_columns(list(self.schema.names))

    def _by_line(self, block: bytes, before: int) -> tuple[pa.Table, int]:
        """The rows of a block through Python, and how many lines had something on them."""
        made: list[list[object]] = []
        bad: dict[int, tuple[str | None, str, str]] = {}
        row = 0
        for text in block.split(b"\n"):
            if not text.strip():
                continue
            row += 1
            try:
                made.append(self._row(text))
            except _Bad as e:
                bad[before + row] = e.why
        if bad:
            Piece(self.place, True, self._locate, rejects=self.rejects, unreadable=bad).reject({})
        columns = zip(*made, strict=True) if made else [()] * len(self.schema.fields)
        arrays = [pa.array(c, arrow_type(f.type)) for c, f in zip(columns, self.schema.fields, strict=True)]
        return pa.Table.from_arrays(arrays, schema=arrow_schema(self.schema)), row

    def _row(self, text: bytes) -> list[object]:
        found, made = _object(text), []
        for key, field in zip(self.keys, self.schema.fields, strict=True):
            try:
                made.append(convert_value(found.get(key), field))
            except ValueError:
                raise _Bad(field.name, *text_reason(found[key], field)) from None
            if made[-1] is None and field.name == self.timestamp:
                raise _Bad(field.name, NO_TIME)
        return made

    def _keys(self) -> list[str]:
        """How the first row that can be read spells the declared names; as declared where it lacks them."""
        for _, _, text in _numbered(self.file):
            try:
                first = _object(text)
            except _Bad:
                if self.rejects.kept:
                    continue
                break
            spelled = {k.lower(): k for k in first}
            return [n if n in first else spelled.get(n.lower(), n) for n in self.schema.names]
        return list(self.schema.names)

    def _locate(self, rows: Sequence[int]) -> dict[int, tuple[int | None, str | None]]:
        wanted = set(rows)
        made: dict[int, tuple[int | None, str | None]] = {}
        for row, line, text in _numbered(self.file):
            if row in wanted:
                made[row] = line, text.rstrip(b"\r").decode("utf-8", "backslashreplace")
                if len(made) == len(wanted):
                    break
        return made

    def _check_missing(self, fields: Sequence[Field]) -> None:
        """A column that is NULL throughout may be one that no row has: then a name is wrong."""
        if not fields:
            return
        names: dict[str, None] = {}
        for _, _, text in _numbered(self.file):
            try:
                names.update(dict.fromkeys(_object(text)))
            except _Bad:
                continue
        keys = dict(zip(self.schema.names, self.keys, strict=True))
        for field in fields:
            if keys[field.name] not in names:
                found = f"{nearest_name(field.name, names)} found: {', '.join(names)}"
                raise self.place.error(f"no column '{field.name}'", hint=found)


def _read_as(field: Field) -> pa.DataType:
    if field.unit is not None:
        return pa.decimal128(38, 9)
    if field.type.name == "DECIMAL":
        return pa.decimal128(38, field.type.scale)
    return pa.string() if field.type.name in ("TIMESTAMP", "DATE") else arrow_type(field.type)


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text.decode(), parse_float=Decimal)
    except UnicodeDecodeError:
        raise _Bad(None, "is not UTF-8 text") from None
    except json.JSONDecodeError as e:
        raise _Bad(None, f"is not JSON: {e.msg} at character {e.colno}") from None
    except (ValueError, RecursionError):
        raise _Bad(None, "is not JSON that can be read: a number too long, or too deep") from None
    if not isinstance(found, dict):
        raise _Bad(None, f"expected a JSON object, found {type(found).__name__}", _OBJECT)
    return found


def _blocks(file: StoredFile) -> Iterator[bytes]:
    """The file in blocks of whole lines, without the mark that some editors put before UTF-8."""
    rest, first = b"", True
    with file.stream() as stream:
        while piece := stream.read(_BLOCK_BYTES):
            if first:
                piece, first = piece.removeprefix(b"\xef\xbb\xbf"), False
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield rest + piece[:cut]
                rest = piece[cut:]
            else:
                rest += piece
    if rest:
        yield rest


def _numbered(file: StoredFile) -> Iterator[tuple[int, int, bytes]]:
    """(row, line, text) of each line that is not blank."""
    row = line = 0
    for block in _blocks(file):
        for text in block.removesuffix(b"\n").split(b"\n"):
            line += 1
            if text.strip():
                row += 1
                yield row, line, text


def _halved(block: bytes, read: Any) -> Iterator[Any]:
    """What `read` makes of the block, in parts where it refuses the whole; the parts that it refuses as they are, once they are small."""
    waiting = [block]
    while waiting:
        part = waiting.pop()
        made = read(part)
        if made is not None:
            yield made
            continue
        cut = part.find(b"\n", len(part) // 2) + 1
        if len(part) <= _FEW_BYTES or cut in (0, len(part)):
            yield part
        else:
            waiting += [part[cut:], part[:cut]]


def _undeclared(file: StoredFile) -> pa.Table:
    """All columns, in the types that their values have."""
    piece = Piece(file.place, text=True)
    try:
        with file.stream() as stream:
            table = pajson.read_json(stream, read_options=pajson.ReadOptions(block_size=_ARROW_BYTES))
        table.validate(full=True)
        return conform(table, None, piece)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        pass
    rows = []
    for row, line, text in _numbered(file):
        try:
            rows.append(_object(text))
        except _Bad as e:
            raise file.place.error(e.why[1], row=row, line=line, hint=e.why[2]) from None
    names = dict.fromkeys(k for o in rows for k in o)
    return columns_table({k: [_plain(o.get(k)) for o in rows] for k in names}, None, piece)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
