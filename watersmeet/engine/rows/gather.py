"""Gather: candidates (row numbers) become results: what the kernel could not decide is filtered, then columns are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import arrow_schema, arrow_type, flat
from watersmeet.engine.program import layout as L
from watersmeet.engine.rows.partitions import fields_of, is_hashed
from watersmeet.engine.rows.payload import Payload
from watersmeet.engine.rows.unmatched import NUMBER, Unmatched
from watersmeet.engine.rows.vector import truths, vector
from watersmeet.model.bind import BoundQuery
from watersmeet.model.expr import Column, Expr, walk
from watersmeet.model.types import BIGINT, NULL, TIMESTAMP

_CHANGES = pa.array(["insert", "delete"])  # in the order of L.INSERT and L.DELETE


class Gather:
    """unmatched: what is told which rows of the preserved stream results had (LEFT JOIN)."""

    def __init__(self, bound: BoundQuery, late: tuple[Expr, ...]) -> None:
        self.bound, self.late = bound, late
        used: dict[str, dict[str, None]] = {a: {} for a in bound.aliases}
        for expr in (*late, *(e for _, e in bound.outputs)):
            for node in walk(expr):
                if isinstance(node, Column) and node.stream is not None:
                    used[node.stream][node.name] = None
        for source in bound.sources:
            if is_hashed(source):
                used[source.alias] |= dict.fromkeys(f.name for f in fields_of(source))
        self.used = used
        self.output = arrow_schema(bound.results)
        self.unmatched: Unmatched | None = None
        if bound.preserved:
            used[bound.preserved][NUMBER] = None
            window = bound.source(bound.preserved).window
            assert window is not None
            self.unmatched = Unmatched(window, self.schema(bound.preserved))

    def needs(self, alias: str) -> list[str]:
        """The columns of a stream that filters and results look at, and those that prove which partition a row is of."""
        return list(self.used[alias])

    def schema(self, alias: str) -> pa.Schema:
        source = self.bound.source(alias)
        fields = [pa.field(f.name, arrow_type(f.type)) for f in source.schema.fields if f.name in self.used[alias]]
        return pa.schema([*fields, pa.field(NUMBER, pa.int64())] if NUMBER in self.used[alias] else fields)

    def results(self, payloads: list[Payload], candidates: Any) -> pa.RecordBatch:
        """`candidates`: a row of row numbers for each stream in FROM order, then the result timestamps, then what they are."""
        for expr in self.late:
            if candidates.shape[1] == 0:
                break
            keep = truths(expr, _Columns(self.bound, payloads, candidates).read, candidates.shape[1])
            if not keep.all():
                candidates = candidates[:, keep]
        columns = _Columns(self.bound, payloads, candidates)
        if self.unmatched is not None:
            self.unmatched.match(columns.read(Column(self.bound.preserved, NUMBER, BIGINT)).to_numpy())
        made = self._selected(columns.read, candidates[-2])
        if self.bound.query.emit == "CHANGES":
            kinds = pa.array((candidates[-1] == L.DELETE).astype(np.int8))
            made.append(pa.DictionaryArray.from_arrays(kinds, _CHANGES).cast(pa.string()))
        return pa.RecordBatch.from_arrays(made, schema=self.output)

    def alone(self, rows: pa.Table, times: Any) -> pa.RecordBatch:
        """Rows of the preserved stream that come out with NULLs for all others."""

        def read(column: Column) -> pa.Array:
            mine = column.stream == self.bound.preserved
            return flat(rows.column(column.name)) if mine else pa.nulls(rows.num_rows, arrow_type(column.type or NULL))

        return pa.RecordBatch.from_arrays(self._selected(read, times), schema=self.output)

    def _selected(self, read: Callable[[Column], pa.Array], times: Any) -> list[pa.Array]:
        """The columns of SELECT and `result_ts`."""
        fields = zip(self.bound.outputs, self.output, strict=False)
        made = [_typed(vector(expr, read, len(times)), field.type) for (_, expr), field in fields]
        return [*made, pa.array(times.copy()).cast(arrow_type(TIMESTAMP))]


class _Columns:
    """Columns of the candidates, fetched once each."""

    def __init__(self, bound: BoundQuery, payloads: list[Payload], candidates: Any) -> None:
        self.place = {a: i for i, a in enumerate(bound.aliases)}
        self.payloads, self.candidates = payloads, candidates
        self.tables: dict[str, pa.Table] = {}

    def read(self, column: Column) -> pa.Array:
        assert column.stream is not None
        k = self.place[column.stream]
        if column.stream not in self.tables:
            self.tables[column.stream] = self.payloads[k].take(np.ascontiguousarray(self.candidates[k]))
        return flat(self.tables[column.stream].column(column.name))


def _typed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
