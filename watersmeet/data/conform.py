"""Conform: bring a table to the declared columns and their canonical types, or say which row and column can't be.

Nothing is rounded, cut or wrapped: a row with a value that does not fit its type exactly is a bad one. The good path is Arrow casts
over whole columns; only when one fails are the bad rows looked for, by halving.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.data.bad_rows import Reject, Rejects
from watersmeet.data.epoch import epoch_reason, from_epoch
from watersmeet.data.place import Place, shown
from watersmeet.data.schema import arrow_schema, arrow_type, language_type, schema_of
from watersmeet.data.text import dates, timestamps, too_fine
from watersmeet.errors import DataError, nearest_name
from watersmeet.model.types import Field, Schema, Type

Convert: TypeAlias = Callable[[pa.ChunkedArray], pa.ChunkedArray]
Locate: TypeAlias = Callable[[Sequence[int]], Mapping[int, tuple[int | None, str | None]]]
NO_TIME: Final = "NULL, but every row of a stream needs its timestamp"


@dataclass(frozen=True)
class Piece:
    """A table on its way in: where it comes from, and how its rows are counted there.

    text: from a text format, where times and decimals are written as strings.
    before: rows of the file that came before this piece. numbers: the numbers of its rows (from 1), where some in between are missing.
    locate: line and text of rows of the file, by their numbers; asked for bad rows only.
    unreadable: rows of the file, by number, that are not even in the table: column, reason, hint.
    parse: how a column is read where it is not by its Arrow type.
    """

    place: Place
    text: bool = False
    locate: Locate | None = None
    before: int = 0
    rejects: Rejects = field(default_factory=Rejects)
    numbers: Sequence[int] | None = None
    unreadable: Mapping[int, tuple[str | None, str, str]] = field(default_factory=dict)
    parse: Callable[[Field], Convert | None] | None = None

    def bad_value(self, message: str, row: int, column: str, hint: str = "") -> DataError:
        row += self.before
        line, _ = self.locate([row]).get(row, (None, None)) if self.locate else (None, None)
        return self.place.error(message, row=row, line=line, column=column, hint=hint)

    def reject(self, bad: Mapping[int, tuple[str | None, str, str]]) -> None:
        """Hand over bad rows, by position in the piece: column, reason, hint."""
        numbered = {
            self.numbers[at] if self.numbers is not None else self.before + at + 1: why for at, why in bad.items()
        }
        numbered |= self.unreadable
        wanted = sorted(numbered)[: None if self.rejects.kept else 1]
        found = self.locate(wanted) if self.locate else {}
        made = []
        for row in wanted:
            (line, text), (column, reason, hint) = found.get(row, (None, None)), numbered[row]
            made.append(Reject(self.place, reason, row, line, column, text, hint))
        self.rejects.take(made)


def conform(table: pa.Table, schema: Schema | None, piece: Piece, timestamp: str | None = None) -> pa.Table:
    """The table with exactly the declared columns in canonical types; with no schema all its columns, as they are.

    Rows that don't fit are handed to the piece's rejects, and left out. timestamp: a column in which NULL does not fit.
    """
    if schema is None:
        schema = schema_of(table.schema, str(piece.place))
        columns = table.columns
    else:
        columns = [table.column(find_column(table.schema.names, f.name, piece.place)) for f in schema.fields]
    bad: dict[int, tuple[str | None, str, str]] = {}
    made = [_conform_column(c, f, piece, bad) for c, f in zip(columns, schema.fields, strict=True)]
    done = pa.Table.from_arrays(made, schema=arrow_schema(schema))
    if timestamp is not None and (given := columns[schema.names.index(timestamp)]).null_count:
        for at in pc.indices_nonzero(given.is_null()).to_pylist():
            bad.setdefault(at, (timestamp, NO_TIME, ""))
    if bad or piece.unreadable:
        piece.reject(bad)
    if bad:
        good = np.ones(done.num_rows, bool)
        good[list(bad)] = False
        done = done.filter(pa.array(good))
    return done


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
        raise piece.bad_value(NO_TIME, row + 1, column)


def _conform_column(
    column: pa.ChunkedArray, field: Field, piece: Piece, bad: dict[int, tuple[str | None, str, str]]
) -> pa.ChunkedArray:
    """The column in its canonical type; what does not fit is NULL, and noted in `bad`."""
    if column.type == arrow_type(field.type) and field.type.name != "TIMESTAMP" and not piece.text:
        return column
    convert = piece.parse(field) if piece.parse else None
    convert = convert or converter(column.type, field, piece.text)
    if convert is None:
        have = language_type(column.type) or column.type
        wanted = f"numbers IN {field.unit} are" if field.unit else f"{field.type} is"
        raise piece.place.error(
            f"is {have}, but {wanted} declared", column=field.name, hint=_advice(have, field.type, field)
        )
    try:
        return convert(column)
    except pa.ArrowInvalid:
        wrong = bad_values(column, convert) if piece.rejects.kept else [first_bad(column, convert)]
    for at in wrong:
        reason, hint = _reason(column[at], field)
        bad.setdefault(at, (field.name, reason, hint))
    if not piece.rejects.kept:
        return pa.chunked_array([pa.nulls(len(column), arrow_type(field.type))])
    good = np.ones(len(column), bool)
    good[wrong] = False
    return convert(pc.if_else(pa.array(good), column, pa.scalar(None, column.type)))


def first_bad(column: pa.ChunkedArray, convert: Convert) -> int:
    """The first row that `convert` refuses, given that it refuses some."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(column.slice(low, middle - low), convert):
            low = middle
        else:
            high = middle
    return low


def bad_values(column: pa.ChunkedArray, convert: Convert) -> list[int]:
    """All rows that `convert` refuses: halves that it takes whole are not looked at again."""
    found, waiting = [], [(0, len(column))]
    while waiting:
        low, high = waiting.pop()
        if _fits(column.slice(low, high - low), convert):
            continue
        if high - low == 1:
            found.append(low)
        else:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]
    return found


def _fits(column: pa.ChunkedArray, convert: Convert) -> bool:
    try:
        convert(column)
    except pa.ArrowInvalid:
        return False
    return True


def converter(source: pa.DataType, field: Field, text: bool) -> Convert | None:
    """How a column of an Arrow type becomes a declared one; None where that makes no sense."""
    target, final = field.type, arrow_type(field.type)
    have = language_type(source)
    if pa.types.is_null(source):
        return lambda c: c.cast(final)
    if have is None:
        return None
    plain = source.value_type if pa.types.is_dictionary(source) else source
    if (unit := field.unit) is not None and have.name not in ("TIMESTAMP", "DATE"):
        takes = have.numeric or (text and have.name == "STRING")
        return (lambda c: within_years(from_epoch(c.cast(plain), unit))) if takes else None
    if have.name == "STRING":
        if target.name == "STRING":
            return _strings
        if text and target.name in ("TIMESTAMP", "DATE"):
            parse = timestamps if target.name == "TIMESTAMP" else dates
            return lambda c: within_years(parse(c.cast(pa.string())))
        if text and target.name == "DECIMAL":
            return lambda c: pc.utf8_trim_whitespace(c.cast(pa.string())).cast(final)
        return None
    if target.name == "TIMESTAMP" and have.name in ("TIMESTAMP", "DATE"):
        return lambda c: within_years(c.cast(plain).cast(pa.timestamp("us", getattr(plain, "tz", None))).cast(final))
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


def within_years(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """The years 1 to 9999, as SQL and Python have them."""
    if not pa.types.is_timestamp(times.type):
        return times
    bounds = pc.min_max(times.cast(pa.int64())).as_py()
    if bounds["min"] is not None and (bounds["min"] < _FIRST_US or bounds["max"] > _LAST_US):
        raise pa.ArrowInvalid("outside the years 1 to 9999")
    return times


def _reason(value: pa.Scalar, field: Field) -> tuple[str, str]:
    """Why a value does not fit, and what to do; only values that were refused come here."""
    kind, target = value.type, field.type
    if pa.types.is_timestamp(kind):
        ticks = value.cast(pa.int64()).as_py()
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        if _FIRST_US <= ticks * 10**6 // per_second <= _LAST_US:
            return f"{value.cast(pa.string()).as_py()} is finer than a microsecond", ""
        return f"{ticks} {kind.unit} since 1970 is outside the years 1 to 9999", ""
    try:
        plain = value.as_py()
        plain = plain.decode() if isinstance(plain, bytes) else plain
    except UnicodeDecodeError:
        return "is not UTF-8 text", ""
    text = shown(plain)
    if field.unit is not None:
        return epoch_reason(plain, text, field.unit), ""
    if pa.types.is_floating(kind) and target.name == "BIGINT":
        return f"{text} is not a whole number that fits a BIGINT", ""
    if isinstance(plain, str):
        return text_reason(plain, field)
    return f"{text} does not fit a {target}", ""


def text_reason(value: object, field: Field) -> tuple[str, str]:
    """Why a value of a text format does not fit, and what to do."""
    if field.unit is not None:
        return epoch_reason(value, shown(value), field.unit), ""
    if field.type.name == "TIMESTAMP" and too_fine(str(value)):
        return f"{shown(value)} is finer than a microsecond", ""
    number = field.type.name == "TIMESTAMP" and re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", str(value))
    return f"{shown(value)} is not a {field.type}", _number_hint(field) if number else ""


def _number_hint(field: Field) -> str:
    return f"if it counts the time since 1970, say in what: TIMESTAMP {field.name} IN MILLISECONDS"


def _advice(have: Type | pa.DataType, target: Type, field: Field) -> str:
    if str(have) == "STRING" and target.name in ("TIMESTAMP", "DATE") and not field.unit:
        return f"convert the strings to {target.name.lower()}s before they come here, or declare the column STRING"
    if str(have) in ("BIGINT", "DOUBLE") and target.name == "TIMESTAMP":
        return _number_hint(field)
    if field.unit:
        return "convert the column to numbers or timestamps"
    return f"declare it {have}, or convert the column" if isinstance(have, Type) else "convert or drop the column"
