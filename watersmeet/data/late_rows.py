"""Late rows as they are written: the stream, the timestamp, and the row as a JSON object."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from watersmeet.data.columns import flat
from watersmeet.data.encode import json_objects

LATE_SCHEMA: Final = pa.schema([("stream", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("row", pa.string())])


def late_table(stream: str, rows: pa.Table, timestamp: str) -> pa.Table:
    """
    >>> rows = pa.table({"k": [1], "at": pa.array([0], pa.timestamp("us", tz="UTC"))})
    >>> late_table("orders", rows, "at").column("row")[0].as_py()
    '{"k": 1, "at": "1970-01-01T00:00:00.000000Z"}'
    """
    arrays = [pa.repeat(pa.scalar(stream), rows.num_rows), flat(rows.column(timestamp)), row_texts(rows)]
    return pa.Table.from_arrays(arrays, schema=LATE_SCHEMA)


def row_texts(rows: pa.Table) -> pa.Array:
    """Rows as JSON objects in text."""
    return json_objects(rows.column_names, [flat(c) for c in rows.columns]).cast(pa.string())
