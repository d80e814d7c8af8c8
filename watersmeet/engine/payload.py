"""Payload: the rows of one window as they came, in Arrow; looked at only when results are gathered.

Rows are numbered in the order in which they entered. They are kept in pieces, and the newest pieces are merged like the tiers of a
log-structured store, so that there are few of them and each row is copied only a few times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SMALL = 1 << 16  # pieces below this many rows are merged
FEW = 4  # so many rows for each that is asked for are put in one piece first: taking from several costs three times as much


class Payload:
    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.pieces: list[pa.Table] = []
        self.first = self.next = 0
        self._whole: pa.Table | None = None

    def append(self, rows: pa.Table) -> None:
        self.next += rows.num_rows
        if rows.num_rows == 0:
            return
        self.pieces.append(rows)
        self._whole = None
        while (
            len(self.pieces) > 1
            and self.pieces[-1].num_rows < SMALL
            and self.pieces[-2].num_rows < 2 * self.pieces[-1].num_rows
        ):
            last = self.pieces.pop()
            self.pieces[-1] = pa.concat_tables([self.pieces[-1], last]).combine_chunks()

    def forget(self, below: int) -> None:
        """No row numbered below this is asked for any more. A copy in one piece goes with the results that it was made for."""
        self._whole = None
        while self.pieces and self.first + self.pieces[0].num_rows <= below:
            self.first += self.pieces.pop(0).num_rows

    def keep(self, rows: Any) -> Any:
        """Keep only these rows (sorted numbers); returns their new numbers."""
        self.pieces, self._whole = ([self.take(rows)] if len(rows) else []), None
        self.first, self.next = 0, len(rows)  # not the piece's own count: without columns it has none
        return np.arange(len(rows))

    def take(self, rows: Any) -> pa.Table:
        """The rows with these numbers, in this order. They are ones that the kernel gave out, so they are not checked again."""
        if self._whole is None:
            self._whole = pa.concat_tables(self.pieces) if self.pieces else self.schema.empty_table()
        if self._whole.num_rows <= FEW * len(rows) and any(c.num_chunks > 1 for c in self._whole.columns):
            self._whole = self._whole.combine_chunks()
        return pc.take(self._whole, pa.array(rows - self.first), boundscheck=False)

    @property
    def rows(self) -> int:
        return self.next - self.first

    @property
    def bytes(self) -> int:
        return sum(p.nbytes for p in self.pieces)
