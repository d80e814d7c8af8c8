"""Intake: rows of one window on their way into the kernel: in order, selected, and with their key columns as int64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.data import flat, timestamps
from watersmeet.engine.program.layout import DEAD
from watersmeet.engine.rows.gather import Gather
from watersmeet.engine.rows.partitions import Held, fields_of, is_hashed, newest, partition_keys, told_apart
from watersmeet.engine.rows.shed import Shed
from watersmeet.engine.rows.unmatched import Unmatched
from watersmeet.engine.rows.values import ROUTING, Key, encode, ranked
from watersmeet.engine.rows.vector import can_fail, truths, vector
from watersmeet.model.bind import BoundQuery, BoundSource
from watersmeet.model.expr import Column, Expr, type_of
from watersmeet.model.graph import JoinGraph
from watersmeet.model.needs import counted

_NUMBER = "_wm_row"  # a name that no column has
BEFORE = DEAD + 1  # when the rows of a static table came: before any row of a stream


@dataclass(frozen=True)
class Rows:
    """Rows of one window, in its order. `alive` marks those that can join (None: all can); the others only fill ROWS windows.

    shed: how many that passed the selections were given up, the last of them at `shed_until`.
    """

    ts: Any
    columns: tuple[Any, ...]
    alive: Any | None
    partition: tuple[Any, Any] | None
    payload: pa.Table
    shed: int = 0
    shed_until: int = DEAD

    @property
    def count(self) -> int:
        return len(self.ts)

    @property
    def thinned(self) -> float:
        """For each row here, how many there would be had none been shed; those of a ROWS window are all here."""
        return 1.0 if self.alive is not None or not self.count else (self.count + self.shed) / self.count

    @property
    def joining(self) -> int:
        """How many can join."""
        return self.count if self.alive is None else int(self.alive.sum())


class Intake:
    """`selections` and `columns`: expressions over this stream; `kept`: the columns that results need.

    implied: equalities among this stream's own attributes that follow from those between streams.
    unmatched: with a LEFT JOIN, of the preserved stream, what keeps its rows until they leave; chosen: the selections that WHERE has.
    sides: this stream's sides of join predicates that are not among `columns`; looked at only because they may fail.
    shed: which of the rows that pass the selections are given up; may be changed while it runs.
    """

    def __init__(
        self, source: BoundSource, selections: tuple[Expr, ...], columns: tuple[Expr, ...], kept: list[str],
        implied: tuple[Expr, ...] = (), sides: tuple[Expr, ...] = (), chosen: tuple[Expr, ...] = (),
        unmatched: Unmatched | None = None,
    ) -> None:  # fmt: skip
        self.source, self.selections, self.columns, self.kept = source, selections, columns, kept
        self.implied, self.sides = implied, tuple(filter(can_fail, sides))
        self.chosen, self.unmatched = chosen, unmatched
        self.shed: Shed | None = None
        self.counted = counted(source)

    def in_order(self, table: pa.Table) -> pa.Table:
        """Sorted by timestamp, and where rows are counted by the tie key too: elsewhere ties can't change the answer."""
        if self.source.static:
            return table
        ts = timestamps(table, self.source.timestamp)
        if bool((ts[1:] > ts[:-1] if self.counted else ts[1:] >= ts[:-1]).all()):
            return table
        keys = {"k0": pa.array(ts)}
        if self.counted:
            for i, name in enumerate(self.source.schema.names, 1):
                keys[f"k{i}"] = ranked(table.column(name).combine_chunks())
        order = pc.sort_indices(pa.table(keys), [(k, "ascending", "at_start") for k in keys])
        return table.take(order)

    def rows(self, table: pa.Table, key: Key = ROUTING, held: Held | None = None) -> Rows:
        """What the kernel needs of rows that are in order already. key: of hashes. held: what the window has of
        partitions; without it rows are of none."""
        n = table.num_rows
        ts = np.full(n, BEFORE) if self.source.static else timestamps(table, self.source.timestamp)
        partition = None
        if held is not None and fields_of(self.source):
            partition = partition_keys(self.source, table, key)
            if is_hashed(self.source):
                partition = partition[0], told_apart(self.source, table, *partition, held)
        if self.unmatched is not None:
            table = self.unmatched.enter(table, ts, self.selected(table, self.chosen), partition)
        passed, given_up, until = self.selected(table), 0, DEAD
        if self.shed is not None:
            dropped = passed & ~self.shed.kept(table)
            passed &= ~dropped
            given_up, until = int(dropped.sum()), int(ts[dropped].max(initial=DEAD))
        alive = passed.copy()
        columns = self.encoded(table, alive, key)
        for side in self.sides:
            vector(side, _reader(table.filter(pa.array(passed))), int(passed.sum()))
        for equality in self.implied:
            alive &= _truths_among(equality, table, passed)
        payload = table.select(self.kept)
        if alive.all():
            return Rows(ts, columns, None, partition, payload)
        if self.counted:
            return Rows(ts, columns, alive.view(np.uint8), partition, payload, given_up, until)
        kept = pa.array(alive)
        return Rows(ts[alive], tuple(c[alive] for c in columns), None, None, payload.filter(kept), given_up, until)

    def selected(self, table: pa.Table, selections: tuple[Expr, ...] | None = None) -> Any:
        """Selections in written order, each on the rows that passed those before it where it could fail on others."""
        alive = np.ones(table.num_rows, bool)
        for selection in self.selections if selections is None else selections:
            alive &= _truths_among(selection, table, alive)
        return alive

    def encoded(self, table: pa.Table, alive: Any, key: Key = ROUTING) -> tuple[Any, ...]:
        """The kernel's columns; rows with a NULL in one join nothing and are marked so in `alive`."""
        made = []
        passed = np.flatnonzero(alive) if any(map(can_fail, self.columns)) else None
        for expr in self.columns:
            if passed is None or not can_fail(expr):
                values, valid = encode(vector(expr, _reader(table), table.num_rows), type_of(expr), key)
                if valid is not None:
                    alive &= valid
            else:
                part = table.take(pa.array(passed))
                found, there = encode(vector(expr, _reader(part), len(passed)), type_of(expr), key)
                values = np.zeros(table.num_rows, np.int64)
                values[passed] = found
                if there is not None:
                    alive[passed[~there]] = False
            made.append(values)
        return tuple(made)

    def newest(self, table: pa.Table) -> Any:
        """Of rows of a PARTITION BY window, in any order: which of them are in it once all have come."""
        n = table.num_rows
        ordered = self.in_order(table.append_column(_NUMBER, pa.array(np.arange(n))))
        made = np.zeros(n, bool)
        made[ordered.column(_NUMBER).to_numpy()] = newest(self.source, ordered)
        return made


def intake_of(bound: BoundQuery, number: int, columns: tuple[Expr, ...], gather: Gather) -> Intake:
    """The intake of one entry of FROM. columns: those that the kernel sees."""
    source = bound.sources[number]
    implied = tuple(expr for alias, expr in JoinGraph.of(bound).implied if alias == source.alias)
    joins = (side for p in (*bound.equalities, *bound.comparisons) for side in (p.left, p.right))
    encoded = frozenset(columns)
    sides = dict.fromkeys(s.expr for s in joins if s.stream == source.alias and s.expr not in encoded)
    unmatched = gather.unmatched if source.alias == bound.preserved else None
    return Intake(
        source, bound.selections[source.alias], columns, gather.needs(source.alias), implied, tuple(sides), bound.chosen, unmatched
    )  # fmt: skip


def _truths_among(expr: Expr, table: pa.Table, rows: Any) -> Any:
    """Where a predicate is true, looked at in these rows only if it could fail on others."""
    if not can_fail(expr):
        return truths(expr, _reader(table), table.num_rows)
    made = np.zeros(table.num_rows, bool)
    made[rows] = truths(expr, _reader(table.filter(pa.array(rows))), int(rows.sum()))
    return made


def _reader(table: pa.Table) -> Any:
    def read(column: Column) -> pa.Array:
        return flat(table.column(column.name))

    return read
