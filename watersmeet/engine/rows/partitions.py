"""Partitions: which rows of a PARTITION BY window belong together. 128 bits stand for a partition, and they are exact.

One column that fits a word is itself one half of these bits. Anything else is hashed, and each row is held against the values of a row that
is in the partition already: if they differ, the row's partition is the one with the next higher check, and so on. A partition that exists
has always a row in its window, so there is one to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.data import flat
from watersmeet.engine.rows import values
from watersmeet.engine.rows.values import Key
from watersmeet.model.bind import BoundSource
from watersmeet.model.types import Field

Held = Callable[[Any, Any], tuple[Any, pa.Table]]
"""(keys, checks) -> which of these partitions exist, and a row of each that does."""


def fields_of(source: BoundSource) -> tuple[Field, ...]:
    """The PARTITION BY columns of a window; none if it has none."""
    by = source.window.partition if source.window else ()
    return tuple(field for name in by if (field := source.schema.find(name)) is not None)


def is_hashed(source: BoundSource) -> bool:
    """Whether partitions are told apart by hashes, so that rows must show what they are of."""
    fields = fields_of(source)
    return len(fields) > 1 or any(f.type.name == "STRING" or f.type.precision > 18 for f in fields)


def partition_keys(source: BoundSource, table: pa.Table, key: Key) -> tuple[Any, Any]:
    """Key and check of each row's partition, not held against anything yet."""
    total = np.zeros((2, table.num_rows), np.int64)
    columns = [(flat(table.column(f.name)), f.type) for f in fields_of(source)]
    for column, kind in columns:
        values.add_column(column, kind, key, total)
    if is_hashed(source):
        return total[0], total[1]
    found, there = values.encode(*columns[0])
    if there is None:
        return total[0] | 1, np.ascontiguousarray(found)
    return np.where(there, total[0] | 1, total[0] & ~1), np.where(there, found, 0)


def told_apart(source: BoundSource, table: pa.Table, keys: Any, checks: Any, held: Held) -> Any:
    """The checks, made different for rows of different partitions whose hashes are equal."""
    columns = [f.name for f in fields_of(source)]
    mine = table.select(columns)
    checks = checks.copy()
    open_rows = np.arange(table.num_rows)
    while len(open_rows):
        exists, theirs = held(keys[open_rows], checks[open_rows])
        known, new = open_rows[exists], open_rows[~exists]
        wrong = known[_differ(mine.take(pa.array(known)), theirs.select(columns))]
        order = new[np.lexsort((checks[new], keys[new]))]
        begins = np.ones(len(order), bool)
        begins[1:] = (keys[order][1:] != keys[order][:-1]) | (checks[order][1:] != checks[order][:-1])
        first = order[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
        clash = order[_differ(mine.take(pa.array(order)), mine.take(pa.array(first)))]
        moved = np.concatenate([wrong, clash])
        checks[moved] += 1
        open_rows = np.concatenate([wrong, new]) if len(moved) else moved
    return checks


def newest(source: BoundSource, table: pa.Table) -> Any:
    """Which rows of a table that is in order are among the newest of their partition: sorted and compared, nothing is hashed."""
    assert source.window is not None
    n, columns = table.num_rows, [f.name for f in fields_of(source)]
    ranked = pa.table({name: values.ranked(flat(table.column(name))) for name in columns} | {"row": np.arange(n)})
    order = pc.sort_indices(ranked, [(name, "ascending", "at_start") for name in ranked.column_names])
    by = table.select(columns).take(order)
    last = np.append(_differ(by.slice(1), by.slice(0, max(n - 1, 0))), True)[:n]
    end = np.flatnonzero(last)[np.cumsum(last) - last]
    keep = np.zeros(n, bool)
    keep[order.to_numpy()] = end - np.arange(n) < source.window.size
    return keep


def _differ(a: pa.Table, b: pa.Table) -> Any:
    """Where rows differ; NULL is NULL, NaN is NaN, -0.0 is 0.0."""
    made = np.zeros(a.num_rows, bool)
    for x, y in zip(a.columns, b.columns, strict=True):
        x, y = values.ranked(flat(x)), values.ranked(flat(y))
        other = pc.fill_null(pc.not_equal(x, y), False)
        made |= pc.or_(other, pc.xor(pc.is_null(x), pc.is_null(y))).to_numpy(zero_copy_only=False)
    return made
