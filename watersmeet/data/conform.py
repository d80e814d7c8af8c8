"""Conform: bring a table to the declared columns and their canonical types, or say which row and column can't be.

Nothing is rounded, cut or wrapped: a value that does not fit its type exactly is an error. The good path is Arrow casts over
whole columns; only when one fails is the first bad row looked for, by halving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.data.place import Place, shown
from watersmeet.data.schema import arrow_schema, arrow_type, language_type, schema_of
from watersmeet.data.text import dates, timestamps, too_fine
from watersmeet.errors import DataError, nearest_name
from watersmeet.model.types import Field, Schema, Type

Convert: TypeAlias = Callable[[pa.ChunkedArray], pa.ChunkedArray]


@dataclass(frozen=True)
class Piece:
    """A table on its way in: where it comes from, and how its rows are counted there.

    text: from a text format, where times and decimals are written as strings.
    line_of: line of the file on which a data row (from 1) begins; asked for errors only.
    before: rows of the file that came before this piece.
    """

    place: Place
    text: bool = False
    line_of: Callable[[int], int | None] | None = None
    before: int = 0

    def bad_value(self, message: str, row: int, column: str) -> DataError:
        row += self.before
        line = self.line_of(row) if self.line_of else None
        return self.place.error(message, row=row, line=line, column=column)


def conform(table: pa.Table, schema: Schema | None, piece: Piece) -> pa.Table:
    """The table with exactly the declared columns in canonical types; with no schema all its columns, as they are."""
    if schema is None:
        schema = schema_of(table.schema, str(piece.place))
        columns = table.columns
    else:
        columns = [table.column(find_column(table.schema.names, f.name, piece.place)) for f in schema.fields]
    wanted = arrow_schema(schema)
    made = [_conform_column(c, f, piece) for c, f in zip(columns, schema.fields, strict=True)]
    return pa.Table.from_arrays(made, schema=wanted)


def find_column(names: list[str], wanted: str, place: Place) -> int:
    """The position of a column by name: the very name, else the one that differs only in case."""
    exact = [i for i, n in enumerate(names) if n == wanted]
    close = exact or [i for i, n in enumerate(names) if n.lower() == wanted.lower()]
    if not close:
        hint = nearest_name(wanted, names)
        found = f"found: {', '.join(names)}" if names else "it has no columns"
        raise place.error(f"no column '{wanted}'", hint=f"{hint} {found}" if hint.startswith("did") else found)
    if len(close) > 1:
        raise place.error(f"column '{wanted}' is there {len(close)} times", hint="rename or drop the others")
    return close[0]


def check_timestamps(table: pa.Table, column: str, piece: Piece) -> None:
    """Refuse a NULL in a stream's timestamp column: such a row has no place in the order."""
    times = table.column(column)
    if times.null_count:
        row = int(pc.index(times.is_null(), value=True).as_py())
        raise piece.bad_value("NULL, but every row of a stream needs its timestamp", row + 1, column)


def _conform_column(column: pa.ChunkedArray, field: Field, piece: Piece) -> pa.ChunkedArray:
    if column.type == arrow_type(field.type) and field.type.name != "TIMESTAMP" and not piece.text:
        return column
    convert = _converter(column.type, field.type, piece.text)
    if convert is None:
        have = language_type(column.type) or column.type
        raise piece.place.error(
            f"is {have}, but {field.type} is declared", column=field.name, hint=_advice(have, field.type)
        )
    try:
        return convert(column)
    except pa.ArrowInvalid:
        row = first_bad(column, convert)
        raise piece.bad_value(_reason(column[row], field.type), row + 1, field.name) from None


def first_bad(column: pa.ChunkedArray, convert: Convert) -> int:
    """The first row that `convert` refuses, given that it refuses some."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(column.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _converter(source: pa.DataType, target: Type, text: bool) -> Convert | None:
    """How a column of an Arrow type becomes one of a language type; None where that makes no sense."""
    final = arrow_type(target)
    have = language_type(source)
    if pa.types.is_null(source):
        return lambda c: c.cast(final)
    if have is None:
        return None
    plain = source.value_type if pa.types.is_dictionary(source) else source
    if have.name == "STRING":
        if target.name == "STRING":
            return _strings
        if text and target.name in ("TIMESTAMP", "DATE"):
            parse = timestamps if target.name == "TIMESTAMP" else dates
            return lambda c: _within_years(parse(c.cast(pa.string())))
        if text and target.name == "DECIMAL":
            return lambda c: pc.utf8_trim_whitespace(c.cast(pa.string())).cast(final)
        return None
    if target.name == "TIMESTAMP" and have.name in ("TIMESTAMP", "DATE"):
        return lambda c: _within_years(c.cast(plain).cast(pa.timestamp("us", getattr(plain, "tz", None))).cast(final))
    if target.name == "DECIMAL" and have.name == "BIGINT":
        return lambda c: c.cast(pa.int64()).cast(pa.decimal256(19 + target.scale, target.scale)).cast(final)
    if target.name == "DECIMAL" and have.name == "DECIMAL":
        # By way of 256 bits: Arrow's text readers don't check the precision, and a cast to the same type checks nothing.
        return lambda c: c.cast(pa.decimal256(76, plain.scale)).cast(final)
    if (have.name, target.name) in _WIDENS:
        return lambda c: c.cast(plain).cast(final)
    return None


def _strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings with 32-bit offsets; chunks of more than 2 GB are cut into several."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        pieces = []
        for chunk in column.chunks:
            rows = max(1, (len(chunk) << 28) // max(chunk.nbytes, 1))
            parts = [chunk.slice(at, rows) for at in range(0, len(chunk), rows)]
            pieces += [part.take(pa.array(range(len(part)))).cast(pa.string()) for part in parts]
        return pa.chunked_array(pieces, pa.string())


_WIDENS = {
    ("BIGINT", "BIGINT"), ("DOUBLE", "BIGINT"), ("DECIMAL", "BIGINT"), ("DOUBLE", "DOUBLE"), ("BIGINT", "DOUBLE"),
    ("DECIMAL", "DOUBLE"), ("BOOLEAN", "BOOLEAN"), ("DATE", "DATE"),
}  # fmt: skip
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # 0001-01-01 to the end of 9999


def _within_years(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """The years 1 to 9999, as SQL and Python have them."""
    if not pa.types.is_timestamp(times.type):
        return times
    bounds = pc.min_max(times.cast(pa.int64())).as_py()
    if bounds["min"] is not None and (bounds["min"] < _FIRST_US or bounds["max"] > _LAST_US):
        raise pa.ArrowInvalid("outside the years 1 to 9999")
    return times


def _reason(value: pa.Scalar, target: Type) -> str:
    """Why a value does not fit; only values that were refused come here."""
    kind = value.type
    if pa.types.is_timestamp(kind):
        ticks = value.cast(pa.int64()).as_py()
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        if _FIRST_US <= ticks * 10**6 // per_second <= _LAST_US:
            return f"{value.cast(pa.string()).as_py()} is finer than a microsecond"
        return f"{ticks} {kind.unit} since 1970 is outside the years 1 to 9999"
    text = shown(value.as_py())
    if pa.types.is_floating(kind) and target.name == "BIGINT":
        return f"{text} is not a whole number that fits a BIGINT"
    if isinstance(value.as_py(), str):
        fine = target.name == "TIMESTAMP" and too_fine(value.as_py())
        return f"{text} is finer than a microsecond" if fine else f"{text} is not a {target}"
    return f"{text} does not fit a {target}"


def _advice(have: Type | pa.DataType, target: Type) -> str:
    if str(have) == "STRING" and target.name in ("TIMESTAMP", "DATE"):
        return f"convert the strings to {target.name.lower()}s before they come here, or declare the column STRING"
    if str(have) == "BIGINT" and target.name == "TIMESTAMP":
        return "numbers have no time unit: convert the column to a timestamp first"
    return f"declare it {have}, or convert the column" if isinstance(have, Type) else "convert or drop the column"
