"""Payload: the rows of one window as they came, in Arrow; looked at only when results are gathered.

Rows are numbered in the order in which they entered. They are kept in pieces, and the newest pieces are merged like the tiers of a
log-structured store, so that there are few of them and each row is copied only a few times.

From a window of several pieces, values of 8 bytes are taken from where they lie, with their cache lines asked for ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.engine.native.mark import Table, Words, compiled, prefetch_at, put_word, word_at

SMALL = 1 << 16  # pieces below this many rows are merged
BITS = 16  # the search for a row's piece begins with the one that its number without so many bits names
PREFETCHED = 256  # rows whose values are asked for before they are taken
SPREAD = 4  # so many rows for each that is asked for are put in one piece first: taking from several costs more


class Payload:
    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.pieces: list[pa.Table] = []
        self.first = self.next = 0
        self._whole: pa.Table | None = None
        self._laid: _Laid | None = None

    def append(self, rows: pa.Table) -> None:
        self.next += rows.num_rows
        self._whole = self._laid = None
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
        self._whole = self._laid = None
        while self.pieces and self.first + self.pieces[0].num_rows <= below:
            self.first += self.pieces.pop(0).num_rows

    def keep(self, rows: Any) -> Any:
        """Keep only these rows (sorted numbers); returns their new numbers."""
        self.pieces = [self.take(rows)] if len(rows) else []
        self._whole = self._laid = None
        self.first, self.next = 0, len(rows)  # not the piece's own count: without columns it has none
        return np.arange(len(rows))

    def take(self, rows: Any) -> pa.Table:
        """The rows with these numbers, in this order. They are ones that the kernel gave out, so they are not checked again."""
        at = rows - self.first
        if self._whole is None and (len(self.pieces) < 2 or not self.schema.names or self.rows <= SPREAD * len(rows)):
            self._whole = pa.concat_tables(self.pieces).combine_chunks() if self.pieces else self.schema.empty_table()
        return self._from_pieces(at) if self._whole is None else _take(self._whole, at)

    def _from_pieces(self, at: Any) -> pa.Table:
        """Take without putting all pieces in one first, as Arrow would at each call."""
        if self._laid is None:
            self._laid = _Laid(self.pieces)
        laid, schema, made = self._laid, self.pieces[0].schema, {}
        if laid.direct:
            rooms = [pa.allocate_buffer(8 * len(at)) for _ in laid.direct]
            values = np.array([room.address for room in rooms], np.int64)
            _take_words(at, laid.starts, laid.near, laid.addresses, values, np.empty((2, PREFETCHED), np.int64))
            for field, room in zip(laid.direct, rooms, strict=True):
                made[field.name] = pa.Array.from_buffers(field.type, len(at), [None, room])
        rest = [name for name in schema.names if name not in made]
        if rest:
            others = self._by_arrow(at, laid, rest)
            made |= {name: others.column(name) for name in rest}
        return pa.table([made[name] for name in schema.names], schema=schema)

    def _by_arrow(self, at: Any, laid: _Laid, names: list[str]) -> pa.Table:
        """Take from each piece what is in it, and then bring it in order."""
        if len(at) == 0:
            return self.pieces[0].slice(0, 0).select(names)
        ends = np.zeros(len(self.pieces) + 1, np.int64)
        inner, place = np.empty_like(at), np.empty_like(at)
        _by_piece(at, laid.starts, laid.near, ends, inner, place)
        parts = [
            _take(p.select(names), inner[low:high])
            for p, low, high in zip(self.pieces, ends, ends[1:], strict=False)
            if low < high
        ]
        return _take(pa.concat_tables(parts).combine_chunks(), place)

    @property
    def rows(self) -> int:
        return self.next - self.first

    @property
    def bytes(self) -> int:
        return sum(p.nbytes for p in self.pieces)


class _Laid:
    """Where pieces begin (near: the pieces of rows 0, 2^BITS, ..., where the search for one's piece begins), and in each the values of
    those columns that have 8 bytes each and no NULLs."""

    def __init__(self, pieces: list[pa.Table]) -> None:
        self.starts = np.cumsum([0, *(p.num_rows for p in pieces)])
        self.near = np.searchsorted(self.starts, np.arange(0, self.starts[-1], 1 << BITS), side="right") - 1
        self.direct = [
            field for field in pieces[0].schema
            if pa.types.is_primitive(field.type) and field.type.bit_width == 64
            and all((c := p.column(field.name)).num_chunks == 1 and c.null_count == 0 for p in pieces)
        ]  # fmt: skip
        self.addresses = np.zeros((len(pieces), len(self.direct)), np.int64)
        for k, piece in enumerate(pieces):
            for c, field in enumerate(self.direct):
                chunk = piece.column(field.name).chunk(0)
                self.addresses[k, c] = chunk.buffers()[1].address + 8 * chunk.offset


@compiled
def _take_words(at: Words, starts: Words, near: Words, addresses: Table, values: Words, scratch: Table) -> None:
    """Values of 8 bytes from the pieces that rows are in. Column c of piece k begins at addresses[k, c], what is taken at values[c]."""
    for first in range(0, at.shape[0], PREFETCHED):
        count = min(PREFETCHED, at.shape[0] - first)
        for i in range(count):
            row = at[first + i]
            k = near[row >> BITS]
            while row >= starts[k + 1]:
                k += 1
            scratch[0, i] = k
            scratch[1, i] = 8 * (row - starts[k])
        for c in range(values.shape[0]):
            for i in range(count):
                prefetch_at(addresses[scratch[0, i], c] + scratch[1, i])
        for c in range(values.shape[0]):
            to = values[c] + 8 * first
            for i in range(count):
                put_word(to + 8 * i, word_at(addresses[scratch[0, i], c] + scratch[1, i]))


@compiled
def _by_piece(at: Words, starts: Words, near: Words, ends: Words, inner: Words, place: Words) -> None:
    """Sort rows by the piece that they are in: those of piece k are inner[ends[k]:ends[k + 1]], numbered from its first row, and
    row i comes to lie at place[i]."""
    pieces = starts.shape[0] - 1
    for i in range(at.shape[0]):
        k = near[at[i] >> BITS]
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
