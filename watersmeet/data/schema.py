"""Column types in Arrow and in the language, both ways: the one table of which is which.

Inside Watersmeet a column has the *canonical* Arrow type of its language type; whatever arrives is brought to it once, at the
door (conform.py), so that nothing behind has to know of narrow integers, time units or dictionaries.
"""

from __future__ import annotations

import pyarrow as pa

from watersmeet.errors import DataError
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema, Type

_CANONICAL = {
    "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"), "INTERVAL": pa.duration("us"), "NULL": pa.null(),
}  # fmt: skip


def arrow_type(kind: Type) -> pa.DataType:
    """The canonical Arrow type of a language type.

    >>> str(arrow_type(TIMESTAMP)), str(arrow_type(Type("DECIMAL", 10, 2)))
    ('timestamp[us, tz=UTC]', 'decimal128(10, 2)')
    """
    if kind.name == "DECIMAL":
        return pa.decimal128(kind.precision, kind.scale)
    return _CANONICAL[kind.name]


def arrow_schema(schema: Schema) -> pa.Schema:
    """The canonical Arrow schema of declared columns, in their order."""
    return pa.schema([pa.field(f.name, arrow_type(f.type)) for f in schema.fields])


def language_type(kind: pa.DataType) -> Type | None:
    """The language type that holds all values of an Arrow type, or None where there is none.

    >>> [str(language_type(t)) for t in (pa.int8(), pa.large_string(), pa.timestamp("ns"), pa.list_(pa.int8()))]
    ['BIGINT', 'STRING', 'TIMESTAMP', 'None']
    """
    types = pa.types
    if types.is_dictionary(kind):
        return language_type(kind.value_type)
    if types.is_integer(kind):
        return BIGINT
    if types.is_floating(kind):
        return DOUBLE
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return STRING
    if types.is_boolean(kind):
        return BOOLEAN
    if types.is_date(kind):
        return DATE
    if types.is_timestamp(kind):
        return TIMESTAMP
    if types.is_decimal(kind) and 1 <= kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return Type("DECIMAL", kind.precision, kind.scale)
    return None


def schema_of(schema: pa.Schema, name: str = "") -> Schema:
    """The columns of an Arrow schema in language types; `name` (of the stream or table) is for the error's sake.

    >>> print(*schema_of(pa.schema([("id", pa.int32()), ("ts", pa.timestamp("ms"))])).fields)
    id BIGINT ts TIMESTAMP
    """
    place = f"{name}: " if name else ""
    fields: list[Field] = []
    taken: dict[str, str] = {}
    for field in schema:
        if field.name.lower() in taken:
            raise DataError(
                f"{place}two columns are named '{taken[field.name.lower()]}' and '{field.name}'\n"
                "  names must differ in more than their case: rename one"
            )
        taken[field.name.lower()] = field.name
        kind = language_type(field.type)
        if kind is None:
            raise DataError(f"{place}column '{field.name}' {_unsupported(field.type)}")
        fields.append(Field(field.name, kind))
    return Schema(tuple(fields))


def _unsupported(kind: pa.DataType) -> str:
    if pa.types.is_null(kind):
        return "has only NULLs, so its type is not known\n  declare the columns (CREATE STREAM ...), or give it a type"
    return (
        f"has the Arrow type {kind}, which is not supported\n  drop or convert it, or declare only the columns you need"
    )
