"""Python values to columns: a list of dicts, or a dict of lists. Strict, value by value: made for tests and small tables."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa

from watersmeet.data.conform import Piece, conform, find_column, text_reason
from watersmeet.data.epoch import epoch_us
from watersmeet.data.schema import arrow_schema, arrow_type
from watersmeet.data.text import timestamps
from watersmeet.model.types import Field, Schema, Type


def rows_table(rows: Sequence[Mapping[str, Any]], schema: Schema | None, piece: Piece) -> pa.Table:
    """A table of rows; a key that a row lacks is NULL, a column that no row has is missing (unless there are no rows)."""
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise piece.place.error(f"expected a row as a dict of columns, found {type(row).__name__}", row=number)
    keys = list(dict.fromkeys(str(k) for row in rows for k in row))
    return columns_table({key: [row.get(key) for row in rows] for key in keys}, schema, piece, empty=not rows)


def columns_table(
    columns: Mapping[str, Iterable[Any]], schema: Schema | None, piece: Piece, *, empty: bool = False
) -> pa.Table:
    """A table of columns by name."""
    values = {str(name): list(column) for name, column in columns.items()}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise piece.place.error("the columns differ in length", hint=", ".join(f"{n}: {k}" for n, k in lengths.items()))
    if schema is None:
        made = {name: _inferred(column, name, piece) for name, column in values.items()}
        return conform(pa.table(made), None, piece)
    if empty:
        return arrow_schema(schema).empty_table()
    names = list(values)
    found = [values[names[find_column(names, f.name, piece.place)]] for f in schema.fields]
    arrays = [_typed(column, f, piece) for column, f in zip(found, schema.fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _inferred(values: list[Any], name: str, piece: Piece) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as e:
        kinds = sorted({type(v).__name__ for v in values if v is not None})
        mixed = f"mixes {' and '.join(kinds)}" if len(kinds) > 1 else str(e)
        raise piece.place.error(mixed, column=name, hint="use one type in a column, or declare the columns") from None


def _typed(values: list[Any], field: Field, piece: Piece) -> pa.Array:
    made = []
    for number, value in enumerate(values, 1):
        try:
            made.append(convert_value(value, field))
        except ValueError:
            reason, hint = text_reason(value, field)
            raise piece.bad_value(reason, number, field.name, hint) from None
    return pa.array(made, type=arrow_type(field.type))


def convert_value(value: Any, field: Field) -> object:
    """A Python value as the column's type has it; raises ValueError if it does not fit exactly."""
    if value is None:
        return None
    try:
        if field.unit is not None and not isinstance(value, dt.date):
            return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=epoch_us(value, field.unit))
        return _CONVERT[field.type.name](value, field.type)
    except (TypeError, OverflowError, InvalidOperation):
        raise ValueError(value) from None


def _bigint(value: Any, kind: Type) -> int:
    whole = int(value) if not isinstance(value, str | bytes | bool) else None
    if whole is None or whole != value or not -(2**63) <= whole < 2**63:
        raise ValueError(value)
    return whole


def _double(value: Any, kind: Type) -> float:
    if isinstance(value, str):
        if value in _NOT_FINITE:
            return _NOT_FINITE[value]
        raise ValueError(value)
    if isinstance(value, bool | bytes):
        raise ValueError(value)
    number = float(value)
    if isinstance(value, int) and int(number) != value:
        raise ValueError(value)
    return number


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "INF": math.inf, "-INF": -math.inf}


def _string(value: Any, kind: Type) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    value.encode()  # half a surrogate pair is no text
    return value


def _boolean(value: Any, kind: Type) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _date(value: Any, kind: Type) -> dt.date:
    if isinstance(value, str):
        return dt.date.fromisoformat(value.strip())
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise ValueError(value)
    return value


def _timestamp(value: Any, kind: Type) -> dt.datetime:
    if isinstance(value, str):
        try:
            parsed: dt.datetime = timestamps(pa.chunked_array([[value]]))[0].as_py()
        except pa.ArrowInvalid:
            raise ValueError(value) from None
        return parsed
    if isinstance(value, dt.datetime):
        if getattr(value, "nanosecond", 0):  # pandas.Timestamp
            raise ValueError(value)
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    raise ValueError(value)


def _decimal(value: Any, kind: Type) -> Decimal:
    if isinstance(value, bool | float) or not isinstance(value, int | str | Decimal):
        raise ValueError(value)
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError(value)
    with localcontext(prec=200):
        scaled = exact.scaleb(kind.scale)
        if scaled != scaled.to_integral_value() or abs(scaled) >= 10**kind.precision:
            raise ValueError(value)
    return exact


_CONVERT: dict[str, Callable[[Any, Type], object]] = {
    "BIGINT": _bigint, "DOUBLE": _double, "STRING": _string, "BOOLEAN": _boolean, "DATE": _date, "TIMESTAMP": _timestamp,
    "DECIMAL": _decimal,
}  # fmt: skip
