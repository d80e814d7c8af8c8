"""Pack: rows of one stream become blobs, one for each cell that they go to, and a mark of how far the stream has come.

A pure function of its rows, so a task that is run again sends the same. The marks are taken before any row is dropped: every cell
learns how far each stream has come, although no row of it may come there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa

from watersmeet.data import Rejects, arrow_type, timestamps
from watersmeet.data.bad_rows import Reject
from watersmeet.data.conform import NO_TIME
from watersmeet.data.late_rows import row_texts
from watersmeet.data.place import Place
from watersmeet.errors import DataError
from watersmeet.model.bind import BoundSource
from watersmeet.model.expr import Expr
from watersmeet.model.location import BadRows
from watersmeet.model.types import Schema, Type
from watersmeet.spark.blob import END, ERROR, FAILED, MARK, SHED, TALLY, UNSENT, Parcel, encode_table, parcels_batch
from watersmeet.spark.route import Lane
from watersmeet.spark.worker import settle

PIECE_BYTES: Final = 32 << 20  # input that is packed at a time
TOGETHER: Final = 32  # blobs that are handed to Spark at a time


@dataclass(frozen=True)
class Branch:
    """One entry of FROM that reads the stream.

    number: its position in FROM. mask: the column that says which rows passed the selections that Spark evaluates. rest: the
    selections that are left. columns: what is sent. counted: whether rows that can't join are sent too (ROWS windows,
    LEFT JOIN). keep: the share of rows that is not shed, by the columns that are needed. chosen: of the preserved stream of a LEFT JOIN,
    the selections that WHERE has.
    """

    source: BoundSource
    number: int
    lane: Lane
    columns: tuple[str, ...]
    mask: str | None
    rest: tuple[Expr, ...]
    counted: bool
    keep: float
    needed: Schema
    chosen: tuple[Expr, ...] | None = None


@dataclass(frozen=True)
class Pack:
    """The function for mapInArrow: `branches` are all entries of FROM that read this stream. bad_rows: what becomes of a row without a
    timestamp. late: whether rows that can't join are sent whole, as they may be late; else only their timestamps are."""

    branches: tuple[Branch, ...]
    keys: tuple[int, ...]
    types: tuple[tuple[str, Type], ...]
    bad_rows: BadRows = field(default=BadRows())
    late: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rejects = Rejects(self.bad_rows)
        return self.packed(self._timed(self._pieces(batches), rejects), rejects)

    def packed(self, tables: Iterator[pa.Table], rejects: Rejects) -> Iterator[pa.RecordBatch]:
        """The parcels of tables in canonical types, every row with its timestamp; `rejects` are counted at the end."""
        from watersmeet.spark.packing import apart, packed_for

        low, high, rows = 1 << 62, -(1 << 62), 0
        shed: dict[int, tuple[int, int]] = {}
        source, number = self.branches[0].source, self.branches[0].number
        for table in cut(tables):
            rows += table.num_rows
            ts = timestamps(table, source.timestamp)
            low, high = min(low, int(ts.min())), max(high, int(ts.max()))
            try:
                packings, seen = packed_for(self, table)
            except DataError:
                table, failed = apart(self, table)
                yield parcels_batch([(self.keys[0], number, FAILED, 0, 0, self._aside(failed, [ERROR]))])
                packings, seen = packed_for(self, table)
            given_up = np.zeros(table.num_rows, bool)
            for packing in packings:
                count, until = shed.get(packing.branch.number, (0, low))
                shed[packing.branch.number] = count + packing.shed, max(until, packing.shed_until)
                given_up[packing.shed_rows] = True
                parcels = packing.parcels()
                while some := list(islice(parcels, TOGETHER)):
                    yield parcels_batch(some)
            if not (seen | given_up).all():  # some of these may be late: whole if they are given out, else only counted
                rest = table.filter(pa.array(~(seen | given_up)))
                yield parcels_batch([(self.keys[0], number, UNSENT, 0, 0, self._aside(rest))])
        settle()
        made: list[Parcel] = [(key, number, MARK, low, high, None) for key in self.keys] if high >= low else []
        made += [(self.keys[0], k, SHED, count, until, None) for k, (count, until) in shed.items() if count]
        if rows or rejects.count:
            bad = encode_table(rejects.table(), compress=False) if rejects.found else None
            made.append((self.keys[0], number, TALLY, rows + rejects.count, rejects.count, bad))
        if made:
            yield parcels_batch(made)

    def _aside(self, rows: pa.Table, more: list[str] | None = None) -> bytes:
        """What a cell must know of rows that are not in its windows."""
        source = self.branches[0].source
        names = list(source.schema.names) if self.late else [source.timestamp]
        return encode_table(rows.select(names + (more or [])), compress=False)

    def _timed(self, tables: Iterator[pa.Table], rejects: Rejects) -> Iterator[pa.Table]:
        """Rows without a timestamp are bad ones."""
        source = self.branches[0].source
        for table in tables:
            times = table.column(source.timestamp)
            if times.null_count:
                without = table.filter(times.is_null())
                texts = row_texts(without.select([n for n, _ in self.types])).to_pylist()
                place = Place(source.stream)
                rejects.take(Reject(place, NO_TIME, column=source.timestamp, text=text) for text in texts)
                table = table.filter(times.is_valid())
            yield table

    def _pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Input in pieces that are worth packing, in the canonical types."""
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
                size += batch.nbytes
            if size >= PIECE_BYTES:
                yield self._canonical(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._canonical(waiting)

    def _canonical(self, batches: list[pa.RecordBatch]) -> pa.Table:
        table = pa.Table.from_batches(batches).combine_chunks()
        for name, kind in self.types:
            at, wanted = table.schema.get_field_index(name), arrow_type(kind)
            if table.schema.field(at).type != wanted:
                table = table.set_column(at, name, table.column(at).cast(wanted))
        return table


def cut(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of some size, each column in one piece."""
    for table in tables:
        step = max(1, table.num_rows * PIECE_BYTES // max(table.nbytes, 1))
        for first in range(0, table.num_rows, step):
            yield table.slice(first, step).combine_chunks()


@dataclass(frozen=True)
class PackEnd:
    """The function for mapInArrow of the control source: any row of it tells every cell that the end has come."""

    keys: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if sum(batch.num_rows for batch in batches):
            yield parcels_batch([(key, 0, END, 0, 0, None) for key in self.keys])
