"""Results as files: tasks write them with the encoders that also write in process, and the driver puts them in place, batch by batch.

    blocks of cells ──mapInArrow──▶ .part-BATCH-TASK-ATTEMPT.tmp ──the driver, when all tasks are done──▶ part-BATCH-TASK.csv

A batch that is run again replaces its own files, so each result is there once. One pass writes results, late rows and bad rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from watersmeet.data.bad_rows import BAD_ROW_SCHEMA
from watersmeet.data.encode import ROW_GROUP_ROWS, Encoder, encoder
from watersmeet.data.late_rows import LATE_SCHEMA
from watersmeet.data.write import EXTENSION
from watersmeet.errors import DataError
from watersmeet.model.query import Location

RESULT: Final = "result"
LATE: Final = "late"
BAD: Final = "bad"
WRITTEN: Final = "output INT, name STRING"


@dataclass(frozen=True)
class Output:
    """A folder that gets rows of one kind. streams: of bad rows, those whose bad rows go there."""

    folder: str
    format: str
    kind: str
    schema: pa.Schema
    streams: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: Location, kind: str, schema: pa.Schema, streams: Sequence[str] = ()) -> Output:
        path = "/" + place.path[5:].lstrip("/") if place.path.startswith("file:") else place.path
        return cls(str(Path(path).expanduser().absolute()), place.format, kind, schema, tuple(streams))

    def takes(self, kind: str, stream: str | None) -> bool:
        return self.kind == kind and (not self.streams or stream in self.streams)


@dataclass(frozen=True)
class WriteParts:
    """The function for mapInArrow over blocks of results. results: the columns of the results, without those of late and bad rows."""

    outputs: tuple[Output, ...]
    results: pa.Schema
    aside: bool
    batch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        task, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
        name = f".part-{self.batch:06d}-{task:04d}-{attempt}.tmp"
        open_: dict[int, Encoder] = {}
        try:
            for batch in batches:
                for number, table in self._tables(batch):
                    if number not in open_:
                        to = self.outputs[number]
                        Path(to.folder).mkdir(parents=True, exist_ok=True)
                        open_[number] = encoder(to.format, Path(to.folder) / name, to.schema)
                    for piece in table.to_batches(max_chunksize=ROW_GROUP_ROWS):
                        open_[number].write(piece)
            for each in open_.values():
                each.close()
        except OSError as e:
            raise DataError(f"output: can't be written: {e.strerror or e}") from None
        numbers = pa.array(list(open_), pa.int32())
        yield pa.RecordBatch.from_arrays(
            [numbers, pa.array([name] * len(open_), pa.string())], names=["output", "name"]
        )

    def _tables(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
        """Rows by the number of the output that they go to."""
        columns = [c.flatten() for c in batch.columns[:-1]]
        if not len(columns[0]):
            return
        count = len(self.results)
        results = pa.Table.from_arrays(
            [c.cast(f.type) for c, f in zip(columns[:count], self.results, strict=True)], schema=self.results
        )
        if not self.aside:
            yield from ((i, results) for i, o in enumerate(self.outputs) if o.kind == RESULT)
            return
        kinds = columns[count]
        for i, output in enumerate(self.outputs):
            if output.kind == RESULT:
                made = results.filter(pa.compute.equal(kinds, RESULT))
            else:
                made = _aside_rows(output, kinds, columns[count + 1], columns[count + 2], results.column(count - 1))
            if made.num_rows:
                yield i, made


def _aside_rows(output: Output, kinds: pa.Array, streams: pa.Array, rows: pa.Array, times: pa.ChunkedArray) -> pa.Table:
    """Late or bad rows, in the columns in which they are written."""
    there = pa.compute.equal(kinds, output.kind)
    if output.streams:
        there = pa.compute.and_(there, pa.compute.is_in(streams, pa.array(output.streams)))
    streams, rows = streams.filter(there), rows.filter(there)
    if output.kind == LATE:
        return pa.Table.from_arrays([streams, times.filter(there), rows], schema=LATE_SCHEMA)
    import json

    found = [json.loads(text) for text in rows.to_pylist()]
    return pa.Table.from_pylist(found, schema=BAD_ROW_SCHEMA)


def put_in_place(outputs: Sequence[Output], batch: int, written: Sequence[Mapping[str, Any]]) -> None:
    """What the tasks of a batch wrote takes the place of what an earlier try of the batch may have left."""
    for number, output in enumerate(outputs):
        folder = Path(output.folder)
        folder.mkdir(parents=True, exist_ok=True)
        names = {row["name"] for row in written if row["output"] == number}
        for left in (*folder.glob(f"part-{batch:06d}-*"), *folder.glob(f".part-{batch:06d}-*")):
            if left.name not in names:
                left.unlink(missing_ok=True)
        for name in names:
            task = name.split("-")[2]
            (folder / name).rename(folder / f"part-{batch:06d}-{task}.{EXTENSION[output.format]}")
        if not any(f.startswith("part-") for f in os.listdir(folder)):  # noqa: PTH208
            begin(output)


def begin(output: Output, name: str = "part-000000-0000") -> None:
    """An output without rows: one file that says which columns there would be."""
    write_part(output, name, output.schema.empty_table())


def write_part(output: Output, name: str, table: pa.Table) -> None:
    """One whole file of an output."""
    folder = Path(output.folder)
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}.tmp"
    made = encoder(output.format, hidden, output.schema)
    for piece in table.to_batches():
        made.write(piece)
    made.close()
    hidden.rename(folder / f"{name}.{EXTENSION[output.format]}")
