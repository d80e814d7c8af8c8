"""same_rows: two result tables as multisets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

SHOWN = 20
_INTEGERS = {"timestamp": pa.int64(), "duration": pa.int64(), "date32": pa.int32()}


def same_rows(actual: pa.Table, expected: pa.Table) -> str | None:
    """None if both tables hold the same rows, each as often, in any order; otherwise what differs, to be read by a person.

    Values are equal as in Spark: NaN equals NaN, -0.0 equals 0.0, NULL is NULL. Column names, order and types count too.

    >>> print(same_rows(pa.table({"x": [1, 2, 2]}), pa.table({"x": [2, 1, 3]})))
    3 rows, expected 3: 1 missing, 1 too many
      columns: x
      missing   1 x (3)
      too many  1 x (2)
    >>> same_rows(pa.table({"x": [0.0, float("nan")]}), pa.table({"x": [float("nan"), -0.0]})) is None
    True
    """
    if actual.schema != expected.schema:
        return f"columns differ\n  found     {_columns(actual)}\n  expected  {_columns(expected)}"
    found, wanted = Counter(_keys(actual)), Counter(_keys(expected))
    if found == wanted:
        return None
    missing, extra = wanted - found, found - wanted
    lines = [
        f"{actual.num_rows} rows, expected {expected.num_rows}: {missing.total()} missing, {extra.total()} too many",
        f"  columns: {', '.join(actual.column_names)}",
    ]
    for word, rows in (("missing ", missing), ("too many", extra)):
        some = sorted(((_text(key, actual.schema), count) for key, count in rows.items()))
        lines += [f"  {word}  {count} x ({text})" for text, count in some[:SHOWN]]
        if len(some) > SHOWN:
            lines.append(f"  {word}  ... and {len(some) - SHOWN} more")
    return "\n".join(lines)


def _keys(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as hashable keys that are equal where the values are."""
    columns = []
    for column in table.columns:
        integers = _INTEGERS.get(str(column.type).split("[")[0])
        values = (column.cast(integers) if integers else column).to_pylist()
        columns.append(["NaN" if v != v else v for v in values] if pa.types.is_floating(column.type) else values)
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _text(key: tuple[Any, ...], schema: pa.Schema) -> str:
    shown = []
    for value, field in zip(key, schema, strict=True):
        if value is None:
            shown.append("NULL")
        elif pa.types.is_duration(field.type):
            shown.append(f"{value} us")
        elif str(field.type).split("[")[0] in _INTEGERS:
            shown.append(str(pa.scalar(value, field.type).cast(pa.string())))
        else:
            shown.append(repr(value) if isinstance(value, str) and value != "NaN" else str(value))
    return ", ".join(shown)


def _columns(table: pa.Table) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in table.schema)
