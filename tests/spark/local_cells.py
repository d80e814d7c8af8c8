"""The Spark flow without Spark: packs and cells as they are, a dictionary for the state store, and mishaps on demand.

Fast enough for many random cases; what only Spark itself can get wrong is tested on Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from watersmeet.engine.rows.batches import Batches
from watersmeet.model.plan import Plan
from watersmeet.model.query import Query
from watersmeet.spark.blob import END, Parcel
from watersmeet.spark.cell import Cell
from watersmeet.spark.flow import Flow
from watersmeet.spark.shared_memory import Park
from watersmeet.spark.spec import METRICS


@dataclass
class DictStore:
    """The state store of one cell."""

    text: str | None = None
    chunks: dict[int, bytes] = field(default_factory=dict)

    def manifest(self) -> str | None:
        return self.text

    def set_manifest(self, text: str) -> None:
        self.text = text

    def chunk(self, number: int) -> bytes | None:
        return self.chunks.get(number)

    def put_chunk(self, number: int, data: bytes) -> None:
        self.chunks[number] = data

    def remove_chunk(self, number: int) -> None:
        del self.chunks[number]

    def copy(self) -> DictStore:
        return DictStore(self.text, dict(self.chunks))


@dataclass
class LocalCells:
    """A query in so many cells. mishaps: how often, for each cell and batch, it is thrown out of memory or run once in vain. parks: a
    folder that stands for shared memory; each batch then has a new worker."""

    query: Query
    plan: Plan
    cells: int
    rng: Random
    mishaps: float = 0.0
    parks: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    stores: list[DictStore] = field(default_factory=list)

    def run(self, batches: Iterable[Mapping[str, Any]], end: bool = True) -> pa.Table:
        """All that the cells give out."""
        batches = list(batches)
        self.given = Batches(self.query, batches)
        bound = self.given.bound
        tables = {s.alias: self.given.tables[s.stream] for s in bound.sources if s.static}
        self.flow = Flow.of(bound, self.plan, self.cells, tables, **self.options)
        self.stores = self.stores or [DictStore() for _ in range(self.cells)]
        self.hot: dict[int, Cell] = {}
        self.entered: list[Park | None] = []
        made: list[pa.RecordBatch] = []
        for batch in batches:
            made += self.batch(self._packed(batch))
        if end:
            made += self.batch([(key, 0, END, 0, 0, None) for key in self.flow.spec.route.keys])
        return pa.Table.from_batches(made, schema=self.flow.spec.output).drop_columns([METRICS])

    def _packed(self, batch: Mapping[str, Any]) -> list[Parcel]:
        """Each stream packed by one to three tasks."""
        parcels: list[Parcel] = []
        read = self.given.read(batch)
        for inlet in self.flow.inlets:
            table = read.get(inlet.stream)
            if table is None:
                continue
            cuts = sorted(self.rng.randint(0, table.num_rows) for _ in range(self.rng.randint(0, 2)))
            for low, high in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
                task = table.slice(low, high - low).select(list(inlet.columns)).to_batches()
                for packed in inlet.pack(iter(task)):
                    parcels += [tuple(row.values()) for row in packed.to_pylist()]
        return parcels

    def batch(self, parcels: list[Parcel]) -> list[pa.RecordBatch]:
        made = []
        for number, key in enumerate(self.flow.spec.route.keys):
            mine = [p for p in parcels if p[0] == key]
            if mine:
                self.rng.shuffle(mine)
                made += self._cell(number, mine)
        return made

    def _cell(self, number: int, parcels: list[Parcel]) -> list[pa.RecordBatch]:
        if self.rng.random() < self.mishaps:
            self.hot.pop(number, None)
            if self.parks is not None and self.rng.random() < 0.5:
                (self.parks / str(number) / "head").unlink(missing_ok=True)
        if self.rng.random() < self.mishaps:  # a run that ends somewhere, or whose state is never committed
            vain = self._at(number).batch(self.stores[number].copy(), parcels)
            for _ in range(self.rng.randint(0, 5)):
                next(vain, None)
            vain.close()  # type: ignore[attr-defined]
            self._leave()
        given = list(self._at(number).batch(self.stores[number], parcels))
        self._leave()
        self.metrics.append(json.loads(given.pop().column(METRICS)[0].as_py()))
        return given

    def _leave(self) -> None:
        for park in self.entered:
            if park is not None:
                park.leave()
        self.entered = []

    def _at(self, number: int) -> Cell:
        if self.parks is None:
            return self.hot.setdefault(number, Cell(self.flow.spec, number))
        cell = Cell(self.flow.spec, number)
        (self.parks / str(number)).mkdir(exist_ok=True)
        cell.park = Park(self.parks / str(number))
        if not cell.park.enter():
            cell.park = None
        self.entered.append(cell.park)
        return cell
