"""Delta tables in this process, by way of the package deltalake: read whole, at one version; results become one new version.

Option 'versionAsOf' reads the table as it was at that version. A table keeps its own log, so a reader sees a version or not at all: the
results are added in one commit when the run ends. With --overwrite they replace what the table held, which older versions still show.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from watersmeet.data.conform import Piece, check_timestamps, conform
from watersmeet.data.place import Place
from watersmeet.errors import DataError, nearest_name
from watersmeet.model.location import Location
from watersmeet.model.query import Declaration

_READ: Final = ("versionAsOf",)


def library() -> Any:
    """deltalake, or how to get it."""
    try:
        import deltalake
    except ImportError:
        raise DataError("FORMAT delta needs the package deltalake\n  pip install 'watersmeet[delta]'") from None
    return deltalake


def read_delta(declared: Declaration) -> pa.Table:
    """The declared columns of all rows of a table."""
    assert declared.location is not None
    where = declared.location
    place = Place(declared.name, where.path)
    given = _options(where, _READ, place)
    version = given.get("versionasof")
    if version is not None and not (version.isascii() and version.isdecimal()):
        raise place.error(f"versionAsOf '{version}'", hint="the number of a version, such as 3")
    delta = library()
    try:
        table = delta.DeltaTable(where.path, version=None if version is None else int(version))
        found = table.to_pyarrow_table()
    except (delta.exceptions.DeltaError, OSError, ValueError) as e:
        raise place.error("can't be read as a Delta table", hint=_first_line(e)) from None
    piece = Piece(place)
    made = conform(found, declared.schema, piece)
    if not declared.static:
        check_timestamps(made, declared.timestamp, piece)
    return made


class DeltaWriter:
    """Takes batches of one schema; leaving the `with` commits them as one version, or nothing where the run failed."""

    def __init__(self, location: Location, schema: pa.Schema, *, overwrite: bool = False) -> None:
        self._place, self._path, self._schema = Place("output", location.path), location.path, schema
        self._mode = "overwrite" if overwrite else "append"
        _options(location, (), self._place)
        self._delta = library()
        self._batches: list[pa.RecordBatch] = []
        self.files: list[Path] = []
        self.size_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if kind is not None:
            return
        rows = pa.Table.from_batches(self._batches, self._schema)
        try:
            self._delta.write_deltalake(self._path, rows, mode=self._mode)
        except (self._delta.exceptions.DeltaError, OSError, ValueError, TypeError) as e:
            raise self._place.error("can't be written as a Delta table", hint=_first_line(e)) from None


def _options(where: Location, known: tuple[str, ...], place: Place) -> Mapping[str, str]:
    folded = {k.lower() for k in known}
    for name, _ in where.options:
        if name.lower() not in folded:
            hint = nearest_name(name, known) or "outputs have no options"
            raise place.error(f"FORMAT delta has no option '{name}'", hint=hint)
    return {k.lower(): v for k, v in where.options}


def _first_line(e: Exception) -> str:
    return next(iter(str(e).strip().splitlines()), type(e).__name__)
