"""Observe: statistics from the rows at hand, for choosing a plan when none are given, and from the windows of a join that runs.

Rates from counts and the time they span; the selectivity of an edge from how often each key occurs on both sides (no cross product);
of a comparison from a sample of pairs. What a PARTITION BY window holds, and an UNBOUNDED one of whole tables, is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import check_timestamps, flat, timestamps
from watersmeet.engine.rows.intake import Intake, Rows
from watersmeet.engine.rows.partitions import fields_of
from watersmeet.engine.rows.values import ranked
from watersmeet.engine.sample import WindowSample
from watersmeet.model.bind import BoundQuery, BoundSource
from watersmeet.model.expr import Column, Expr
from watersmeet.model.graph import JoinGraph
from watersmeet.model.statistics import Costs, Statistics

SAMPLE = 1 << 15  # rows of each stream that are looked at
COUNTED = 1 << 20  # rows of each stream whose partitions are counted
PAIRS = 512  # rows of each side of a comparison


def observe(
    bound: BoundQuery, tables: Mapping[str, pa.Table], costs: Costs | None = None, whole: bool = False
) -> Statistics:
    """Statistics of tables by alias, from the first rows of each. whole: the tables are all that will come."""
    graph = JoinGraph.of(bound)
    columns: dict[str, dict[Expr, int]] = {a: {} for a in bound.aliases}
    sides = [m for c in graph.classes for m in c.members]
    for side in [*sides, *(s for c in graph.comparisons for s in (c.left, c.right))]:
        columns[side.stream].setdefault(side.expr, len(columns[side.stream]))
    seen: dict[str, Rows] = {}
    rate, selection, table_rows, window_tuples = {}, {}, {}, {}
    for source in bound.sources:
        table = tables.get(source.alias)
        head = table.slice(0, SAMPLE) if table is not None else None
        if head is not None and not source.static:
            check_timestamps(head, source.stream, source.timestamp)
        if table is not None and (held := _held(source, table, whole)) is not None:
            window_tuples[source.alias] = held
        if head is None or head.num_rows == 0:
            rate[source.alias] = 1e-6
            continue
        intake = Intake(source, bound.selections[source.alias], tuple(columns[source.alias]), [])
        intake.counted = False
        seen[source.alias] = intake.rows(head)
        selection[source.alias] = max(seen[source.alias].count, 0.5) / head.num_rows  # none of n is less than one in n
        if source.static:
            assert table is not None
            table_rows[source.alias] = table.num_rows
        else:
            ts = timestamps(head, source.timestamp)
            rate[source.alias] = head.num_rows / max((int(ts.max()) - int(ts.min())) / 1e6, 1e-6)
    values = {a: dict(zip(columns[a], rows.columns, strict=True)) for a, rows in seen.items()}
    rate = {a: r for a, r in rate.items() if not bound.source(a).static}
    return statistics(bound, values, rate, selection, table_rows, window_tuples, costs)


def observe_windows(
    bound: BoundQuery, windows: Mapping[str, WindowSample], rate: Mapping[str, float], costs: Costs | None = None
) -> Statistics:
    """Statistics of a join that runs, from the newest tuples of its windows. rate: rows that come to each window per second."""
    values = {
        a: dict(zip(w.exprs, w.columns, strict=True)) for a, w in windows.items() if w.columns and len(w.columns[0])
    }
    selection = {a: max(w.joining, 0.5 / max(w.held, 1)) for a, w in windows.items()}
    tables = {s.alias: windows[s.alias].held for s in bound.sources if s.static}
    rates = {s.alias: max(rate.get(s.alias, 0.0), 1e-6) for s in bound.sources if not s.static}
    held = {
        s.alias: float(max(windows[s.alias].held, 1))
        for s in bound.sources
        if s.window is not None and (s.window.partition or s.window.kind == "UNBOUNDED")
    }
    return statistics(bound, values, rates, selection, tables, held, costs)


def statistics(
    bound: BoundQuery,
    values: Mapping[str, Mapping[Expr, Any]],
    rate: dict[str, float],
    selection: dict[str, float],
    table_rows: dict[str, int],
    window_tuples: dict[str, float],
    costs: Costs | None,
) -> Statistics:
    """values: by alias, the key columns of some of its rows."""
    graph = JoinGraph.of(bound)
    selectivity, distinct = {}, {}
    for left, right in combinations(bound.aliases, 2):
        shared, between = graph.shared(left, right), graph.between((left,), (right,))
        if not (shared or between) or left not in values or right not in values:
            continue
        fraction = 1.0
        for group in shared:
            a, b = group.of(left), group.of(right)
            assert a is not None and b is not None
            fraction *= _equal(values[left][a.expr], values[right][b.expr])
        for comparison in between:
            c = comparison.seen_from(left)
            if c.left.expr in values[left] and c.right.expr in values[right]:
                fraction *= _compared(c.op, values[left][c.left.expr], values[right][c.right.expr])
        selectivity[(left, right)] = min(max(fraction, 1e-12), 1.0)
    for side in [m for c in graph.classes for m in c.members]:
        if side.stream in values and isinstance(side.expr, Column):
            distinct[(side.stream, side.expr.name)] = float(max(len(np.unique(values[side.stream][side.expr])), 1))
    return Statistics(rate, selectivity, distinct, selection, table_rows, window_tuples, costs=costs or Costs())


def _held(source: BoundSource, table: pa.Table, whole: bool) -> float | None:
    """The rows that a window holds once all these have come, where neither its size nor the rate says it."""
    window = source.window
    if window is None or (window.kind != "UNBOUNDED" and not window.partition):
        return None
    if not window.partition:
        return float(max(table.num_rows, 1)) if whole else None
    rows = table.slice(0, COUNTED)
    by = pa.table({f.name: ranked(flat(rows.column(f.name))) for f in fields_of(source)})
    counts = by.group_by(by.column_names).aggregate([([], "count_all")]).column("count_all")
    return float(max(np.minimum(counts.to_numpy(), window.size).sum(), 1))


def _equal(a: Any, b: Any) -> float:
    """Fraction of pairs that are equal."""
    if len(a) == 0 or len(b) == 0:
        return 0.0
    (ka, na), (kb, nb) = np.unique(a, return_counts=True), np.unique(b, return_counts=True)
    _, ia, ib = np.intersect1d(ka, kb, assume_unique=True, return_indices=True)
    return float((na[ia] * nb[ib]).sum() / (len(a) * len(b)))


def _compared(op: str, left: Any, right: Any) -> float:
    a, b = left[:PAIRS, None], right[None, :PAIRS]
    if a.size == 0 or b.size == 0:
        return 0.0
    test = {"<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op]
    return float(test(a, b).mean())
