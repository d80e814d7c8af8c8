"""Blocks of results: what a cell gives back to Spark. One row holds some thousand results, an array for each column; Spark unfolds it.

    Python: results -> columns cut in blocks, nothing copied -> Spark: metrics taken from the few rows -> posexplode -> results

Spark handles the rows of a Python operator one by one, in several steps; the unfolding is one loop of compiled code.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

BLOCK_RESULTS = 4096
BLOCK_BYTES = 1 << 20  # a block of long texts is cut shorter


class Blocks(pd.DataFrame):
    """A frame of Arrow columns that PySpark sends as they are."""

    @property
    def _constructor_sliced(self) -> Any:
        return _Arrays


class _Arrays(pd.Series):
    """A column of arrays. PySpark would make Python lists of them (`Series.apply`), only for Arrow to read those again."""

    def apply(self, *_: Any, **__: Any) -> Any:
        return self


def blocks(batch: pa.RecordBatch) -> Blocks:
    """A batch of a cell as rows for Spark. The last column, metrics, is a plain one; where it has a value, there is no result.

    Columns have numbers for names, and so are taken by position; by name pandas would first put them in order.
    """
    *results, metrics = batch.columns
    n = batch.num_rows
    if metrics.null_count < n:
        cuts = [0] * (n + 1)
    else:
        cuts = [*range(0, n, _size(batch)), n]
        metrics = metrics.slice(0, len(cuts) - 1)
    offsets = pa.array(cuts, pa.int32())
    arrays = [pa.ListArray.from_arrays(offsets, c, type=pa.list_(pa.field("element", c.type))) for c in results]
    columns = (pd.arrays.ArrowExtensionArray(pa.chunked_array([c])) for c in (*arrays, metrics))
    return Blocks({i: pd.Series(c) for i, c in enumerate(columns)}, copy=False)


def _size(batch: pa.RecordBatch) -> int:
    """How many results go in a block."""
    each: int = batch.nbytes // max(1, batch.num_rows)
    return max(1, min(BLOCK_RESULTS, BLOCK_BYTES // max(1, each)))
