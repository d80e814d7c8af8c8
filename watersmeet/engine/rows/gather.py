"""Gather: candidates (row numbers) become results: what the kernel could not decide is filtered, then columns are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import arrow_schema, arrow_type, flat
from watersmeet.engine.program import layout as L
from watersmeet.engine.rows.payload import Payload
from watersmeet.engine.rows.vector import truths, vector
from watersmeet.model.bind import BoundQuery
from watersmeet.model.expr import Column, Expr, walk
from watersmeet.model.types import TIMESTAMP

_CHANGES = pa.array(["insert", "delete"])  # in the order of L.INSERT and L.DELETE


class Gather:
    def __init__(self, bound: BoundQuery, late: tuple[Expr, ...]) -> None:
        self.bound, self.late = bound, late
        used: dict[str, dict[str, None]] = {a: {} for a in bound.aliases}
        for expr in (*late, *(e for _, e in bound.outputs)):
            for node in walk(expr):
                if isinstance(node, Column) and node.stream is not None:
                    used[node.stream][node.name] = None
        self.used = used
        self.output = arrow_schema(bound.results)

    def needs(self, alias: str) -> list[str]:
        """The columns of a stream that filters and results look at."""
        return list(self.used[alias])

    def schema(self, alias: str) -> pa.Schema:
        source = self.bound.source(alias)
        return pa.schema(
            [pa.field(f.name, arrow_type(f.type)) for f in source.schema.fields if f.name in self.used[alias]]
        )

    def results(self, payloads: list[Payload], candidates: Any) -> pa.RecordBatch:
        """`candidates`: a row of row numbers for each stream in FROM order, then the result timestamps, then what they are."""
        for expr in self.late:
            if candidates.shape[1] == 0:
                break
            keep = truths(expr, _Columns(self.bound, payloads, candidates).read, candidates.shape[1])
            if not keep.all():
                candidates = candidates[:, keep]
        n = candidates.shape[1]
        columns = _Columns(self.bound, payloads, candidates)
        made = [
            _typed(vector(expr, columns.read, n), field.type)
            for (_, expr), field in zip(self.bound.outputs, self.output)
        ]
        made.append(pa.array(candidates[-2].copy()).cast(arrow_type(TIMESTAMP)))
        if self.bound.query.emit == "CHANGES":
            kinds = pa.array((candidates[-1] == L.DELETE).astype(np.int8))
            made.append(pa.DictionaryArray.from_arrays(kinds, _CHANGES).cast(pa.string()))
        return pa.RecordBatch.from_arrays(made, schema=self.output)


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
