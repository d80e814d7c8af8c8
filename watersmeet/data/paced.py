"""Inputs of a job, read at the pace that they ask for: all files at once, or maxFilesPerTrigger of a stream with each batch.

A row is late by the batches that came before it, so the pace is part of what a job means. Files come in the order of their times, then
of their names, as Spark's file source has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from watersmeet.data.bad_rows import Rejects
from watersmeet.data.files import find_files
from watersmeet.data.place import Place
from watersmeet.data.table import WHOLE, read_declared, read_files
from watersmeet.errors import DataError
from watersmeet.model.query import Declaration

_PACE = "maxfilespertrigger"


def read_inputs(
    declarations: Iterable[Declaration], paths: Mapping[str, str], rejects: Mapping[str, Rejects]
) -> dict[str, pa.Table] | Iterator[dict[str, pa.Table]]:
    """Tables by name, if all is read at once; else batches of them. paths: what is read instead of what a declaration says."""
    streams = {d.name: _Paced(d, paths.get(d.name), rejects[d.name]) for d in declarations}
    if all(s.pace is None for s in streams.values()):
        return {name: s.read(s.files) for name, s in streams.items()}
    return _batches(streams)


def _batches(streams: Mapping[str, _Paced]) -> Iterator[dict[str, pa.Table]]:
    number = 0
    while given := {name: files for name, s in streams.items() if (files := s.batch(number))}:
        yield {name: streams[name].read(files) for name, files in given.items()}
        number += 1


def no_place(name: str) -> DataError:
    """A declaration without FROM, where a job needs it."""
    return Place(name).error(
        "its declaration does not say where its rows are",
        hint=f"add FROM 'path' FORMAT parquet to it, or give --input {name}=PATH",
    )


class _Paced:
    """One stream or table: its files, and how many come with a batch (None: all with the first)."""

    def __init__(self, declared: Declaration, path: str | None, rejects: Rejects) -> None:
        self.declared, self.rejects = declared, rejects
        place = declared.location
        if path is None and place is None:
            raise no_place(declared.name)
        self.options = {} if path is not None or place is None else dict(place.options)
        form = None if path is not None or place is None else place.format or None
        self.whole = form in WHOLE
        self.files = [] if self.whole else find_files(path or (place.path if place else ""), declared.name, form)
        self.pace = None if declared.static else self._pace()
        if self.pace is not None:
            self.files.sort(key=lambda f: (f[0].stat().st_mtime_ns // 10**6, str(f[0])))

    def _pace(self) -> int | None:
        text = next((v for k, v in self.options.items() if k.lower() == _PACE), None)
        if text is None:
            return None
        if not text.isdecimal() or int(text) == 0:
            raise Place(self.declared.name).error(
                f"option 'maxFilesPerTrigger' is {text!r}", hint="how many files come with a batch: 1 or more"
            )
        return int(text)

    def batch(self, number: int) -> list[tuple[Path, str]]:
        if self.pace is None:
            return (self.files or [(Path(), "")]) if number == 0 else []
        return self.files[number * self.pace : (number + 1) * self.pace]

    def read(self, files: list[tuple[Path, str]]) -> pa.Table:
        declared = self.declared
        if self.whole:
            return read_declared(declared, self.rejects)
        timestamp = None if declared.static else declared.timestamp
        return read_files(files, declared.name, declared.schema, self.options, timestamp, self.rejects)
