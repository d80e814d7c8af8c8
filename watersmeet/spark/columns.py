"""Columns of Spark DataFrames in the types of the language, and back."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from watersmeet.errors import DataError, nearest_name
from watersmeet.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    EPOCH_UNITS,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    Type,
)

_PLAIN: dict[type[T.DataType], Type] = {
    T.ByteType: BIGINT, T.ShortType: BIGINT, T.IntegerType: BIGINT, T.LongType: BIGINT, T.FloatType: DOUBLE,
    T.DoubleType: DOUBLE, T.StringType: STRING, T.VarcharType: STRING, T.CharType: STRING, T.BooleanType: BOOLEAN,
    T.DateType: DATE, T.TimestampType: TIMESTAMP, T.TimestampNTZType: TIMESTAMP,
}  # fmt: skip
_SPARK = {
    "BIGINT": T.LongType(), "DOUBLE": T.DoubleType(), "STRING": T.StringType(), "BOOLEAN": T.BooleanType(), "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampType(), "INTERVAL": T.DayTimeIntervalType(),
}  # fmt: skip


def language_type(kind: T.DataType) -> Type | None:
    """The language type that holds all values of a Spark type, or None where there is none."""
    if isinstance(kind, T.DecimalType):
        return Type("DECIMAL", kind.precision, kind.scale) if 0 <= kind.scale <= kind.precision else None
    return _PLAIN.get(type(kind))


def spark_type(kind: Type) -> T.DataType:
    """The Spark type of a language type."""
    return T.DecimalType(kind.precision, kind.scale) if kind.name == "DECIMAL" else _SPARK[kind.name]


def schema_of(frame: DataFrame, name: str) -> Schema:
    """The columns of a DataFrame, for a stream that the query does not declare."""
    fields = []
    for field in frame.schema.fields:
        kind = language_type(field.dataType)
        if kind is None:
            raise DataError(
                f"stream '{name}', column '{field.name}' has the Spark type {field.dataType.simpleString()}, which is not supported\n"
                "  drop or cast it, or declare only the columns you need (CREATE STREAM ...)"
            )
        fields.append(Field(field.name, kind))
    return Schema(tuple(fields))


def conform(frame: DataFrame, name: str, schema: Schema) -> DataFrame:
    """The declared columns, in declared order and canonical types. What does not fit is an error, not a cast."""
    made = []
    found = {f.name.lower(): f for f in frame.schema.fields}
    for wanted in schema.fields:
        field = found.get(wanted.name.lower())
        if field is None:
            raise DataError(
                f"stream '{name}' has no column '{wanted.name}'\n  {nearest_name(wanted.name, frame.columns)}"
            )
        kind = language_type(field.dataType)
        if kind == BIGINT and wanted.unit is not None:
            made.append(_from_epoch(column(field.name), wanted).alias(wanted.name))
            continue
        if kind is None or not _fits(kind, wanted.type):
            raise DataError(
                f"stream '{name}', column '{wanted.name}' is {field.dataType.simpleString()} in the DataFrame, and {wanted.type} in the"
                f" query\n  change the declaration, or cast it: .withColumn('{wanted.name}', ...)"
            )
        made.append(_canonical(column(field.name), field.dataType, wanted.type).alias(wanted.name))
    return frame.select(*made)


def _fits(kind: Type, wanted: Type) -> bool:
    if kind.name == wanted.name == "DECIMAL":
        return kind.scale <= wanted.scale and kind.precision - kind.scale <= wanted.precision - wanted.scale
    return kind == wanted


def _canonical(value: Column, kind: T.DataType, wanted: Type) -> Column:
    if isinstance(kind, T.TimestampNTZType):  # a time without a zone is UTC, whatever the session's zone is
        epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        return F.timestamp_micros(F.timestamp_diff("MICROSECOND", epoch, value))
    return value if kind == spark_type(wanted) else value.cast(spark_type(wanted))


def _from_epoch(value: Column, wanted: Field) -> Column:
    """Timestamps of whole numbers since 1970."""
    per_second = EPOCH_UNITS[wanted.unit or "MICROSECONDS"]
    number = value.cast("bigint")
    if per_second <= 10**6:
        return F.timestamp_micros(number * F.lit(10**6 // per_second))
    said = F.concat(F.lit(f"column '{wanted.name}': "), number, F.lit(f" {wanted.unit} is finer than a microsecond"))
    step = per_second // 10**6
    return F.timestamp_micros(
        F.when(number % step == 0, F.call_function("div", number, F.lit(step))).when(
            number.isNotNull(), F.raise_error(said)
        )
    )


def column(name: str) -> Column:
    """A column by its name, whatever characters are in it."""
    return F.col("`" + name.replace("`", "``") + "`")


def spark_schema(fields: list[tuple[str, Type]]) -> T.StructType:
    return T.StructType([T.StructField(name, spark_type(kind), True) for name, kind in fields])


def is_streaming(frame: Any) -> bool:
    return bool(getattr(frame, "isStreaming", False))
