"""Outputs by their FORMAT: files, a topic, or a Delta table."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from watersmeet.data.delta import DeltaWriter
from watersmeet.data.kafka import TopicWriter
from watersmeet.data.write import TableWriter
from watersmeet.model.location import Location


class Writer(Protocol):
    """Takes batches; to be used in `with`. Afterwards `files` are those that were written, if files it is."""

    files: list[Path]

    @property
    def size_bytes(self) -> int: ...
    def write(self, batch: pa.RecordBatch, /) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...


def open_output(location: Location, schema: pa.Schema, *, overwrite: bool = False) -> Writer:
    """Where results are written."""
    if location.format == "kafka":
        return TopicWriter(location, schema)
    if location.format == "delta":
        return DeltaWriter(location, schema, overwrite=overwrite)
    return TableWriter(location, schema, overwrite=overwrite)
