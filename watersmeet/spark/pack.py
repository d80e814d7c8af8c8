"""Pack: rows of one stream become blobs, one for each cell that they go to, and a mark of how far the stream has come.

A pure function of its rows, so a task that is run again sends the same. The marks are taken before any row is dropped: every cell
learns how far each stream has come, although no row of it may come there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa

from watersmeet.data import arrow_type, check_timestamps, timestamps
from watersmeet.model.bind import BoundSource
from watersmeet.model.expr import Expr
from watersmeet.model.types import Schema, Type
from watersmeet.spark.blob import END, MARK, SHED, parcels_batch
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
    """The function for mapInArrow: `branches` are all entries of FROM that read this stream."""

    branches: tuple[Branch, ...]
    keys: tuple[int, ...]
    types: tuple[tuple[str, Type], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from watersmeet.spark.packing import Packing

        low, high = 1 << 62, -(1 << 62)
        shed: dict[int, tuple[int, int]] = {}
        for table in self._pieces(batches):
            source = self.branches[0].source
            check_timestamps(table, source.stream, source.timestamp)
            ts = timestamps(table, source.timestamp)
            low, high = min(low, int(ts.min())), max(high, int(ts.max()))
            seen = np.zeros(table.num_rows, bool)
            for branch in self.branches:
                again = seen.copy() if branch is not self.branches[0] else None
                packing = Packing(self, branch, table, seen, again)
                count, until = shed.get(branch.number, (0, low))
                shed[branch.number] = count + packing.shed, max(until, packing.shed_until)
                parcels = packing.parcels()
                while some := list(islice(parcels, TOGETHER)):
                    yield parcels_batch(some)
        settle()
        if high >= low:
            told = [(key, self.branches[0].number, MARK, low, high, None) for key in self.keys]
            told += [(self.keys[0], k, SHED, count, until, None) for k, (count, until) in shed.items() if count]
            yield parcels_batch(told)

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


@dataclass(frozen=True)
class PackEnd:
    """The function for mapInArrow of the control source: any row of it tells every cell that the end has come."""

    keys: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if sum(batch.num_rows for batch in batches):
            yield parcels_batch([(key, 0, END, 0, 0, None) for key in self.keys])
