"""Files on Spark: Spark says which files are new, our own reader reads them, in the task that packs their rows.

    Spark's file source (paths, exactly once) ──mapInArrow──▶ watersmeet.data readers ──▶ pack

So a job file means the same rows, and is refused in the same words, in process and on Spark; and rows need not pass through Java.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from watersmeet.data import Rejects
from watersmeet.data.files import FORMATS, PACE, file_format
from watersmeet.data.place import Place
from watersmeet.data.stored_file import StoredFile
from watersmeet.data.table import read_file
from watersmeet.model.query import Declaration, Location
from watersmeet.spark.pack import Pack

_LISTED: Final = T.StructType(
    [
        T.StructField("path", T.StringType()),
        T.StructField("modificationTime", T.TimestampType()),
        T.StructField("length", T.LongType()),
        T.StructField("content", T.BinaryType()),
    ]
)


def read_here(format: str) -> bool:
    """Whether files of a format are read by our own readers; without one their names say what they are."""
    return not format or format in FORMATS


def is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file:")


@dataclass(frozen=True)
class ReadFiles:
    """Reads the files of one stream whose paths Spark gives. format: empty if their names say it. here: the folder that paths are shown
    relative to, or None."""

    declared: Declaration
    format: str
    options: Mapping[str, str]
    here: str | None

    @classmethod
    def of(cls, declared: Declaration, place: Location) -> ReadFiles:
        relative = ":/" not in place.path and not place.path.startswith("~") and not Path(place.path).is_absolute()
        return cls(declared, place.format, dict(place.options), str(Path.cwd()) if relative else None)

    def tables(self, batches: Iterator[pa.RecordBatch], rejects: Rejects) -> Iterator[pa.Table]:
        """The rows of the files, in canonical types."""
        declared = self.declared
        timestamp = None if declared.static else declared.timestamp
        for batch in batches:
            contents = batch.column(1) if batch.num_columns > 1 else None
            for i, name in enumerate(batch.column(0).to_pylist()):
                path, shown = self._path(name)
                content = None if contents is None else contents[i].as_buffer()
                file = StoredFile(Place(declared.name, shown), Path(path), content)
                form = file_format(Path(shown), self.format, Place(declared.name))
                yield from read_file(file, form, declared.schema, self.options, timestamp, rejects)

    def _path(self, name: str) -> tuple[str, str]:
        """The path to read, and how errors call it."""
        if not name.startswith("file:"):
            return name, name
        path = "/" + name[5:].lstrip("/")
        return path, path if self.here is None else os.path.relpath(path, self.here)


class Read(Protocol):
    """Makes rows of what Spark gives for a stream: paths of files, or messages."""

    @property
    def declared(self) -> Declaration: ...
    def tables(self, batches: Iterator[pa.RecordBatch], rejects: Rejects) -> Iterator[pa.Table]: ...


@dataclass(frozen=True)
class ReadAndPack:
    """The function for mapInArrow: files or messages become parcels."""

    read: Read
    pack: Pack

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rejects = Rejects(self.read.declared.bad_rows)
        yield from self.pack.packed(self.read.tables(batches, rejects), rejects)


@dataclass(frozen=True)
class Rows:
    """The function for mapInArrow over paths: files become their rows."""

    read: ReadFiles

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in self.read.tables(batches, Rejects(self.read.declared.bad_rows)):
            yield from table.to_batches()


def listed(session: SparkSession, where: Location, *, streaming: bool = True) -> DataFrame:
    """The files of a stream as a DataFrame of paths; with their bytes where only Spark can reach them."""
    reader = (session.readStream if streaming else session.read).format("binaryFile").schema(_LISTED)
    for name, value in where.options:
        if name.lower() in PACE:
            reader = reader.option(name, value)
    path = where.path
    remote = is_remote(path)
    if not remote:
        place = Path("/" + path[5:].lstrip("/") if path.startswith("file:") else path).expanduser().absolute()
        if place.is_file():  # Spark watches folders
            reader, place = reader.option("pathGlobFilter", _literal(place.name)), place.parent
        path = f"file://{_literal(str(place)) if place.exists() else place}"
    return reader.load(path).select("path", "content") if remote else reader.load(path).select("path")


def _literal(name: str) -> str:
    """A name in which no character stands for others."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", name)
