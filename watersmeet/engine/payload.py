"""Payload: the rows of one window as they came, in Arrow; looked at only when results are gathered.

Rows are numbered in the order in which they entered. They are kept in pieces, and the newest pieces are merged like the tiers of a
log-structured store, so that there are few of them and each row is copied only a few times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.engine.compiled import Words, compiled

SMALL = 1 << 16  # pieces below this many rows are merged
FEW = 4  # so many rows for each that is asked for are put in one piece first: taking from several costs more


class Payload:
    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.pieces: list[pa.Table] = []
        self.first = self.next = 0
        self._whole: pa.Table | None = None

    def append(self, rows: pa.Table) -> None:
        self.next += rows.num_rows
        self._whole = None
        if any(column.num_chunks > 1 for column in rows.columns):
            for batch in rows.to_batches():
                self._append(pa.Table.from_batches([batch]))
        elif rows.num_rows:
            self._append(rows)

    def _append(self, piece: pa.Table) -> None:
        self.pieces.append(piece)
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
        at = rows - self.first
        if self._whole is None and (len(self.pieces) < 2 or not self.schema.names or self.rows <= FEW * len(rows)):
            self._whole = pa.concat_tables(self.pieces).combine_chunks() if self.pieces else self.schema.empty_table()
        return self._from_pieces(at) if self._whole is None else _take(self._whole, at)

    def _from_pieces(self, at: Any) -> pa.Table:
        """Take from each piece what is in it, and then bring it in order: Arrow would put all pieces in one first, at each call."""
        if len(at) == 0:
            return self.pieces[0].slice(0, 0)
        starts = np.cumsum([0, *(p.num_rows for p in self.pieces)])
        ends = np.zeros(len(self.pieces) + 1, np.int64)
        near = np.searchsorted(starts, np.arange(0, starts[-1], SMALL), side="right") - 1
        inner, place = np.empty_like(at), np.empty_like(at)
        _by_piece(at, starts, near, SMALL, ends, inner, place)
        parts = [
            _take(p, inner[low:high]) for p, low, high in zip(self.pieces, ends, ends[1:], strict=False) if low < high
        ]
        return _take(pa.concat_tables(parts).combine_chunks(), place)

    @property
    def rows(self) -> int:
        return self.next - self.first

    @property
    def bytes(self) -> int:
        return sum(p.nbytes for p in self.pieces)


@compiled
def _by_piece(at: Words, starts: Words, near: Words, step: int, ends: Words, inner: Words, place: Words) -> None:
    """Sort rows by the piece that they are in: those of piece k are inner[ends[k]:ends[k + 1]], numbered from its first row, and
    row i comes to lie at place[i]. near: the piece of every `step`-th row, where the search for one's piece begins."""
    pieces = starts.shape[0] - 1
    for i in range(at.shape[0]):
        k = near[at[i] // step]
        while at[i] >= starts[k + 1]:
            k += 1
        place[i] = k
        ends[k + 1] += 1
    for k in range(pieces):
        ends[k + 1] += ends[k]
    for i in range(at.shape[0]):
        k = place[i]
        place[i] = ends[k]
        inner[ends[k]] = at[i] - starts[k]
        ends[k] += 1
    for k in range(pieces, 0, -1):
        ends[k] = ends[k - 1]
    ends[0] = 0


def _take(table: pa.Table, rows: Any) -> pa.Table:
    return pc.take(table, pa.array(rows), boundscheck=False)
