"""Packing: the rows of one piece of a stream find their cells and become blobs.

This is the part of pack that needs the engine's encodings, and so numba; workers load it, the driver need not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from watersmeet.data import flat, timestamps
from watersmeet.engine.rows.intake import Intake
from watersmeet.engine.rows.shed import Shed
from watersmeet.engine.rows.values import ROUTING, add_column, encode
from watersmeet.errors import DataError
from watersmeet.model.bind import BoundSource
from watersmeet.model.types import Type
from watersmeet.spark.blob import AGAIN, ALIVE, BLOB_BYTES, ERROR, ROWS, SHOWN, Parcel, encode_table

if TYPE_CHECKING:
    from watersmeet.spark.pack import Branch, Pack

FAILURES: Final = 256  # rows of a piece on which a condition may fail and yet be no error, since they may be late
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class Packing:
    """One piece of a stream under one alias. `seen` is told which rows are sent."""

    def __init__(self, pack: Pack, branch: Branch, table: pa.Table, seen: Any, again: Any) -> None:
        self.pack, self.branch, self.lane = pack, branch, branch.lane
        passed = _mask(table, branch.mask)
        if not branch.counted and passed is not None:
            table, chosen = table.filter(pa.array(passed)), np.flatnonzero(passed)
        else:
            chosen = np.arange(table.num_rows)
        sides = tuple(side for side, _, _ in self.lane.dimensions if side is not None)
        intake = Intake(branch.source, branch.rest, sides, [])
        shown = None
        if branch.chosen is not None:
            shown = intake.selected(table, branch.chosen)
            if branch.source.window is None or branch.source.window.kind != "ROWS":
                table, chosen, shown = table.filter(pa.array(shown)), chosen[shown], shown[shown]
        alive = np.ones(table.num_rows, bool) if passed is None or not branch.counted else passed.copy()
        if branch.rest:
            some = np.flatnonzero(alive)
            alive[some] = intake.selected(table.take(pa.array(some)))
        self.shed, self.shed_until, self.shed_rows = 0, -(1 << 62), chosen[:0]
        if branch.keep < 1:
            dropped = alive & ~Shed(branch.keep, 0, branch.number, branch.needed).kept(table)
            ts = timestamps(table, branch.source.timestamp)
            self.shed, self.shed_until = int(dropped.sum()), int(ts[dropped].max(initial=self.shed_until))
            self.shed_rows = chosen[dropped]
            alive &= ~dropped
        columns = intake.encoded(table, alive)
        if not branch.counted and not alive.all():
            kept = np.flatnonzero(alive)
            table, chosen, columns = table.take(pa.array(kept)), chosen[kept], tuple(c[kept] for c in columns)
            alive = alive[kept]
        sent = table.select(list(branch.columns))
        self.base = self._bases(sent, columns)
        if again is not None:
            sent = sent.append_column(AGAIN, pa.array(again[chosen]))
        seen[chosen[alive if shown is None else shown]] = True
        self.table, self.alive, self.shown = sent, alive, shown

    def _bases(self, sent: pa.Table, columns: tuple[Any, ...]) -> Any:
        """The base cell of each row."""
        base = np.zeros(sent.num_rows, np.int64)
        encoded = iter(columns)
        for side, share, stride in self.lane.dimensions:
            values = next(encoded) if side is not None else _row_hash(sent, self.branch.source)
            base += part_of(values, share) * stride
        return base

    def parcels(self) -> Iterator[Parcel]:
        if self.table.num_rows == 0:
            return
        if self.lane.everywhere:
            for base in self.lane.bases:
                yield from self._send(base, self._flagged(self.base == base))
            return
        table = self._flagged(np.ones(self.table.num_rows, bool)) if self.branch.counted else self.table
        if len(self.lane.bases) == 1:
            yield from self._send(0, table)
            return
        order = self.base.astype(np.uint16).argsort(kind="stable")
        table = table.take(pa.array(order))
        ends = np.cumsum(np.bincount(self.base, minlength=self.lane.bases[-1] + 1))
        for base in self.lane.bases:
            first = int(ends[base - 1]) if base else 0
            if ends[base] > first:
                yield from self._send(base, table.slice(first, int(ends[base]) - first))

    def _flagged(self, here: Any) -> pa.Table:
        """The rows with what each is in a cell; outside its own share it only counts."""
        table = self.table.append_column(ALIVE, pa.array(self.alive & here))
        return table if self.shown is None else table.append_column(SHOWN, pa.array(self.shown & here))

    def _send(self, base: int, table: pa.Table) -> Iterator[Parcel]:
        step = max(1, int(table.num_rows * BLOB_BYTES / max(table.nbytes, 1)))
        for first in range(0, table.num_rows, step):
            blob = encode_table(table.slice(first, step), compress=False)  # the shuffle compresses
            for offset in self.lane.offsets:
                yield self.pack.keys[base + offset], self.branch.number, ROWS, 0, 0, blob


def packed_for(pack: Pack, table: pa.Table) -> tuple[list[Packing], Any]:
    """One piece of a stream under all its aliases, and which rows are sent. Raises a DataError if a condition fails on a row."""
    made: list[Packing] = []
    seen = np.zeros(table.num_rows, bool)
    for branch in pack.branches:
        made.append(Packing(pack, branch, table, seen, seen.copy() if made else None))
    return made, seen


def apart(pack: Pack, table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows on which no condition fails, and those on which one does, with the error: if they are late, it is none. A piece in which
    some row fails is halved until it is found. With more than FAILURES of them the error is raised, late or not: they will hardly all be
    late, and to find each takes long."""
    failed: dict[int, str] = {}
    pieces = [(0, table.num_rows)]
    while pieces:
        first, count = pieces.pop()
        try:
            packed_for(pack, table.slice(first, count))
        except DataError as e:
            if len(failed) == FAILURES:
                raise
            if count == 1:
                failed[first] = str(e)
            else:
                pieces += [(first, count // 2), (first + count // 2, count - count // 2)]
    rows = sorted(failed)
    fine = np.ones(table.num_rows, bool)
    fine[rows] = False
    why = pa.array([failed[row] for row in rows], pa.string())
    return table.filter(pa.array(fine)), table.take(pa.array(rows)).append_column(ERROR, why)


def part_of(values: Any, share: int) -> Any:
    """In which of `share` parts each value lies: the routing hash, the same for all time (`route_hash_check`)."""
    x = values.view(np.uint64) * _MIX
    x ^= x >> np.uint64(32)
    x *= _MIX
    return ((x >> np.uint64(33)) % np.uint64(share)).astype(np.int64)


def _row_hash(table: pa.Table, source: BoundSource) -> Any:
    total = np.zeros((2, table.num_rows), np.int64)
    for field in source.schema.fields:
        if field.name in table.column_names:
            add_column(flat(table.column(field.name)), field.type, ROUTING, total)
    return total[0]


@cache
def route_hash_check() -> str:
    """A few values hashed: equal as long as rows are routed as they were. Every cell asks, every batch."""
    table = pa.table(
        {"i": [0, 1, -5, 2**62], "s": ["", "a", "Malmö", "longer than eight bytes"], "d": [0.0, -1.5, 1e300, None]}
    )
    made = []
    for name, kind in (("i", "BIGINT"), ("s", "STRING"), ("d", "DOUBLE")):
        column = flat(table.column(name))
        values, valid = encode(column, Type(kind))
        total = np.zeros((2, len(values)), np.int64)
        add_column(column, Type(kind), ROUTING, total)
        there = values if valid is None else values[valid]
        made += [*part_of(np.ascontiguousarray(there), 4093).tolist(), *part_of(total[0], 4093).tolist()]
    return " ".join(map(str, made))


def _mask(table: pa.Table, name: str | None) -> Any | None:
    return None if name is None else table.column(name).combine_chunks().to_numpy(zero_copy_only=False)
