"""Columns of Arrow tables as plain arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def flat(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece; Arrow's own combine_chunks copies even a single one."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def timestamps(table: pa.Table, name: str) -> Any:
    """The microseconds of a column of timestamps."""
    return flat(table.column(name)).cast(pa.int64()).to_numpy(zero_copy_only=False)
