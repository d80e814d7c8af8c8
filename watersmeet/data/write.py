"""Writing results: batches in; Parquet, CSV or JSON lines out; all of it or nothing.

A path that ends in the suffix of a format is one file; any other is a folder of part files. Either is written under a hidden
name beside its target and renamed at the end, so that a reader sees the whole or nothing; on failure the hidden one goes.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from watersmeet.data.encode import ROW_GROUP_ROWS, Encoder, encoder
from watersmeet.data.files import known_format, local_path
from watersmeet.data.place import Place
from watersmeet.errors import DataError
from watersmeet.model.location import Location, suffix_format

PART_ROWS: Final = 2_000_000
_NAME: Final = "output"
EXTENSION: Final = {"csv": "csv", "json": "jsonl", "parquet": "parquet"}


class TableWriter:
    """Takes batches of one schema; `close` puts the output in its place, `abort` leaves no trace. Use it in `with`.

    location: a path or a `Location`. overwrite: replace what is there (a folder only if it holds part files alone).
    part_rows: rows after which a folder gets its next part file.
    After `close`: `files` (in their final place), `rows` and `size_bytes`.
    """

    def __init__(
        self,
        location: str | Path | Location,
        schema: pa.Schema,
        *,
        overwrite: bool = False,
        part_rows: int = PART_ROWS,
    ) -> None:
        where = location if isinstance(location, Location) else Location(str(location), "")
        self.schema, self.overwrite, self.rows = schema, overwrite, 0
        self.target, self.folder, self.format = output_target(where)
        self._place = Place(_NAME, where.path)
        self.files: list[Path] = []
        self._encoder: Encoder | None = None
        self._part_rows, self._part_limit = 0, part_rows
        self._made_parents: list[Path] = []
        self._open = False
        if where.options:
            raise self._place.error(
                f"unknown option '{where.options[0][0]}' for output", hint="outputs have no options"
            )
        check_output(where, overwrite=overwrite)
        self._temporary = self.target.with_name(f".{self.target.name}.{os.getpid()}.tmp")
        try:
            self._make_parents()
            self._open = True
            _remove(self._temporary)
            if self.folder:
                self._temporary.mkdir()
            self._next_part()
        except (OSError, pa.ArrowException) as e:
            self.abort()
            raise self._failed(e) from None
        except BaseException:
            self.abort()
            raise

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows; the columns must be those of the schema."""
        if not self._open or self._encoder is None:
            raise ValueError("write to a closed TableWriter")
        try:
            table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            for piece in table.to_batches(max_chunksize=ROW_GROUP_ROWS):
                if self.folder and self._part_rows >= self._part_limit:
                    self._next_part()
                self._encoder.write(piece)
                self._part_rows += piece.num_rows
                self.rows += piece.num_rows
        except (OSError, pa.ArrowException) as e:
            raise self._failed(e) from None

    def close(self) -> None:
        """Finish the files and put them in place."""
        if not self._open:
            return
        try:
            if self._encoder is not None:
                self._encoder.close()
                self._encoder = None
            if self.folder:
                names = [f.name for f in self.files]
                self._rename_folder()
                self.files = [self.target / n for n in names]
            else:
                self._rename_file()
                self.files = [self.target]
            self._open = False
        except (OSError, pa.ArrowException) as e:
            self.abort()
            raise self._failed(e) from None
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove what was written so far."""
        if not self._open:
            return
        self._open = False
        if self._encoder is not None:
            self._encoder.discard()
            self._encoder = None
        _remove(self._temporary)
        for parent in self._made_parents:
            try:
                parent.rmdir()
            except OSError:
                break
        self.files = []

    @property
    def size_bytes(self) -> int:
        return sum(f.stat().st_size for f in self.files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _next_part(self) -> None:
        if self._encoder is not None:
            self._encoder.close()
            self._encoder = None
        path = self._temporary
        if self.folder:
            path = self._temporary / f"part-{len(self.files):05d}.{EXTENSION[self.format]}"
        self._encoder = encoder(self.format, path, self.schema)
        self._part_rows = 0
        self.files.append(path)

    def _rename_file(self) -> None:
        if self.target.exists() and not self.overwrite:
            raise self._place.error("has come into being meanwhile", hint="give --overwrite, or another name")
        self._temporary.replace(self.target)

    def _rename_folder(self) -> None:
        aside = self.target.with_name(f".{self.target.name}.{os.getpid()}.old")
        if self.target.exists() and any(self.target.iterdir()):
            if not self.overwrite:
                raise self._place.error("has come into being meanwhile", hint="give --overwrite, or another name")
            self.target.rename(aside)
        try:
            self._temporary.rename(self.target)
        except BaseException:
            if aside.exists():
                aside.rename(self.target)
            raise
        _remove(aside)

    def _make_parents(self) -> None:
        parent = self.target.parent
        missing = []
        while not parent.exists():
            missing.append(parent)
            parent = parent.parent
        if not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self._made_parents = missing

    def _failed(self, e: Exception) -> DataError:
        reason = os.strerror(e.errno) if isinstance(e, OSError) and e.errno else str(e)
        return self._place.error(f"can't be written: {reason}")


def write_table(table: pa.Table, location: str | Path | Location, *, overwrite: bool = False) -> list[Path]:
    """Write a whole table; returns the files."""
    with TableWriter(location, table.schema, overwrite=overwrite) as writer:
        writer.write(table)
    return writer.files


def output_target(where: Location) -> tuple[Path, bool, str]:
    """(path, whether it is a folder, format) of an output."""
    place = Place(_NAME, where.path)
    path = local_path(where.path, _NAME)
    if not path.name or path.name == "..":
        path = path.resolve()
        if not path.name:
            raise place.error("is no place to write to")
    by_suffix = suffix_format(path)
    try:
        folder = where.path.endswith("/") or path.is_dir() or by_suffix is None
    except OSError as e:
        raise place.error(f"can't be written: {e.strerror}") from None
    if where.format:
        return path, folder, known_format(where.format, place)
    if by_suffix is None and not folder:
        raise place.error("can't tell the format", hint="say FORMAT csv, parquet or json")
    return path, folder, by_suffix or "parquet"


def check_output(where: Location, *, overwrite: bool) -> None:
    """Refuse an output that is there already, before any work is done."""
    target, folder, _ = output_target(where)
    place = Place(_NAME, where.path)
    try:
        if not target.exists():
            return
        if not target.is_dir():
            if folder:
                raise place.error(
                    "is a file, but a folder is meant", hint="give it the suffix of its format, or another name"
                )
            if not overwrite:
                raise place.error("exists already", hint="give --overwrite to replace it, or name another INTO")
            return
        held = sorted(f.name for f in target.iterdir())
    except OSError as e:
        raise place.error(f"can't be written: {e.strerror}") from None
    if held and not overwrite:
        raise place.error(
            f"exists already and holds {len(held)} file{'s' * (len(held) > 1)}",
            hint="give --overwrite to replace it, or name another INTO",
        )
    foreign = [n for n in held if not n.startswith(("part-", "_", "."))]
    if foreign:
        raise place.error(
            f"holds files that are no part files, such as '{foreign[0]}'; it is not replaced", hint="name another INTO"
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
