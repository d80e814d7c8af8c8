"""Observe: statistics from the rows at hand, for choosing a plan when none are given.

Rates from counts and the time they span; the selectivity of an edge from how often each key occurs on both sides (no cross product);
of a comparison from a sample of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.engine.rows.intake import Intake, Rows
from watersmeet.model.bind import BoundQuery, Comparison
from watersmeet.model.expr import Column, Expr
from watersmeet.model.graph import JoinGraph
from watersmeet.model.statistics import Costs, Statistics

SAMPLE = 1 << 15  # rows of each stream that are looked at
PAIRS = 512  # rows of each side of a comparison


def observe(bound: BoundQuery, tables: Mapping[str, pa.Table], costs: Costs | None = None) -> Statistics:
    """Statistics of tables by alias, from the first rows of each."""
    graph = JoinGraph.of(bound)
    columns: dict[str, list[Expr]] = {a: [] for a in bound.aliases}
    sides = [m for c in graph.classes for m in c.members]
    for side in [*sides, *(s for c in graph.comparisons for s in (c.left, c.right))]:
        if side.expr not in columns[side.stream]:
            columns[side.stream].append(side.expr)
    seen: dict[str, Rows] = {}
    rate, selection, table_rows = {}, {}, {}
    for source in bound.sources:
        table = tables.get(source.alias)
        head = table.slice(0, SAMPLE) if table is not None else None
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

    def values(alias: str, expr: Expr) -> Any:
        return seen[alias].columns[columns[alias].index(expr)]

    selectivity, distinct = {}, {}
    for left, right in combinations(bound.aliases, 2):
        shared, between = graph.shared(left, right), graph.between((left,), (right,))
        if not (shared or between) or left not in seen or right not in seen:
            continue
        fraction = 1.0
        for group in shared:
            a, b = group.of(left), group.of(right)
            assert a is not None and b is not None
            fraction *= _equal(values(left, a.expr), values(right, b.expr))
        for comparison in between:
            fraction *= _compared(comparison.seen_from(left), values, left, right)
        selectivity[(left, right)] = min(max(fraction, 1e-12), 1.0)
    for side in sides:
        if side.stream in seen and isinstance(side.expr, Column):
            distinct[(side.stream, side.expr.name)] = float(max(len(np.unique(values(side.stream, side.expr))), 1))
    rate = {a: r for a, r in rate.items() if not bound.source(a).static}
    return Statistics(rate, selectivity, distinct, selection, table_rows, costs=costs or Costs())


def _equal(a: Any, b: Any) -> float:
    """Fraction of pairs that are equal."""
    if len(a) == 0 or len(b) == 0:
        return 0.0
    (ka, na), (kb, nb) = np.unique(a, return_counts=True), np.unique(b, return_counts=True)
    _, ia, ib = np.intersect1d(ka, kb, assume_unique=True, return_indices=True)
    return float((na[ia] * nb[ib]).sum() / (len(a) * len(b)))


def _compared(c: Comparison, values: Any, left: str, right: str) -> float:
    a, b = values(left, c.left.expr)[:PAIRS, None], values(right, c.right.expr)[None, :PAIRS]
    if a.size == 0 or b.size == 0:
        return 0.0
    test = {"<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[c.op]
    return float(test(a, b).mean())
