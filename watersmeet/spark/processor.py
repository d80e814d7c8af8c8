"""The stateful processor: connects a cell to Spark's state store. Runs in a Python worker of an executor."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType

from watersmeet.errors import StateError
from watersmeet.spark.worker import settle

if TYPE_CHECKING:
    import pandas as pd

    from watersmeet.spark.blob import Parcel
    from watersmeet.spark.spec import CellSpec


class CellProcessor(StatefulProcessor):
    """One for each task. `handleInputRows` is called once for each cell and batch.

    The spec travels as bytes: Spark plans the operator in a process of its own, which calls `init` only, and need not load Arrow for it.
    """

    def __init__(self, spec: CellSpec) -> None:
        self._given = pickle.dumps(spec)

    @cached_property
    def spec(self) -> CellSpec:
        made: CellSpec = pickle.loads(self._given)
        return made

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.manifest = handle.getValueState("manifest", _struct(text=StringType()))
        self.chunks = handle.getMapState("chunks", _struct(number=LongType()), _struct(rows=BinaryType()))

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[pd.DataFrame]:
        from watersmeet.spark import warm_cells
        from watersmeet.spark.blocks import blocks

        number = self._cell_number(int(key[0]))
        with warm_cells.cell(self.spec, number) as cell:
            for batch in cell.batch(SparkStore(self.manifest, self.chunks), _parcels(rows)):
                yield blocks(batch)
        settle()

    def close(self) -> None:
        pass

    def _cell_number(self, key: int) -> int:
        from pyspark import TaskContext

        number = self.spec.route.keys.index(key)
        context = TaskContext.get()
        if context is not None and context.partitionId() != number:
            raise StateError(
                f"cell {number} runs in shuffle partition {context.partitionId()}: the query does not run with as many partitions as"
                f" cells, {self.spec.route.cells}\n  if the checkpoint was made with another number of cells, pass that number (cells=); a"
                " checkpoint keeps its partitions\n"
                f"  else set spark.sql.shuffle.partitions to {self.spec.route.cells} before the query starts"
            )
        return number


class SparkStore:
    """Spark's state variables of one cell as a `chunks.Store`."""

    def __init__(self, manifest: ValueState, chunks: MapState) -> None:
        self._manifest, self._chunks = manifest, chunks

    def manifest(self) -> str | None:
        found = self._manifest.get()
        return None if found is None else str(found[0])

    def set_manifest(self, text: str) -> None:
        self._manifest.update((text,))

    def chunk(self, number: int) -> bytes | None:
        found = self._chunks.getValue((number,))
        return None if found is None else bytes(found[0])

    def put_chunk(self, number: int, data: bytes) -> None:
        self._chunks.updateValue((number,), (data,))

    def remove_chunk(self, number: int) -> None:
        self._chunks.removeKey((number,))


def _struct(**fields: DataType) -> StructType:
    """A schema of the state; as text Spark would parse it again for each task."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _parcels(frames: Iterator[pd.DataFrame]) -> Iterator[Parcel]:
    for frame in frames:
        for source, kind, low, high, rows in frame[["source", "kind", "low", "high", "rows"]].itertuples(
            index=False, name=None
        ):
            yield 0, int(source), int(kind), int(low), int(high), rows
