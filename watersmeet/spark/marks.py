"""Marks: which rows of a preserved stream (LEFT JOIN) results have had, in the state store beside the rows.

A cell numbers the rows of the preserved stream as they come, and stores the numbers with them. The marks are one bit a number, from
the lowest that is still needed on, in a value of their own that each batch writes again: rows are written once, and stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import flat
from watersmeet.engine.program.layout import FAR
from watersmeet.engine.rows.unmatched import NUMBER, Unmatched
from watersmeet.errors import StateError
from watersmeet.spark.chunks import Manifest, Store


def numbered(manifest: Manifest, rows: pa.Table) -> pa.Table:
    """Rows of the preserved stream that have come, each with a number of its own."""
    first, manifest.numbered = manifest.numbered, manifest.numbered + rows.num_rows
    return rows.append_column(NUMBER, pa.array(np.arange(first, manifest.numbered)))


def store_marks(store: Store, manifest: Manifest, unmatched: Unmatched, waiting: list[pa.Table]) -> None:
    """Write the marks, in place of those of the batch before. waiting: the rows that have not entered their window yet."""
    lows: list[Any] = [flat(t.column(NUMBER)).to_numpy().min() for t in waiting if t.num_rows]
    unmatched.forget(int(min(lows, default=FAR)))
    if manifest.marks:
        store.remove_chunk(manifest.marks[0])
    manifest.marks = [manifest.next, unmatched.base, len(unmatched.done)]
    manifest.next += 1
    store.put_chunk(manifest.marks[0], np.packbits(unmatched.done).tobytes())


def load_marks(store: Store, manifest: Manifest, unmatched: Unmatched) -> None:
    """The marks as they were stored; before the rows enter their window again."""
    if manifest.marks:
        number, base, count = manifest.marks
        stored = store.chunk(number)
        if stored is None:
            raise StateError(
                f"the marks of matched rows are missing from the state store (chunk {number})\n  start from another checkpoint"
            )
        bits = np.unpackbits(np.frombuffer(stored, np.uint8), count=count)
        unmatched.base, unmatched.next, unmatched.done = base, base + count, bits.astype(bool)
