"""Folders that a job names, looked at before Spark starts: what can't work is said at once, in words.

Only places on this machine are looked at (hdfs://, s3a:// and patterns are left to Spark).
"""

from __future__ import annotations

import os
from pathlib import Path

from watersmeet.data.conform import find_column
from watersmeet.data.files import FORMATS, find_files, nowhere
from watersmeet.data.place import Place
from watersmeet.errors import DataError
from watersmeet.model.query import Declaration, Location


def check_source(declared: Declaration, where: Location, *, bounded: bool = True) -> None:
    """Refuse a folder or file that is not there, that can't be read, or, of Parquet, that lacks columns; and, if the job ends by itself,
    a folder without files."""
    name, path, form = declared.name, where.path, where.format
    if bounded and (not form or form in FORMATS) and "://" not in path:
        find_files(path, name, form)
    place = _local(path)
    if place is None:
        return
    try:
        if not place.exists():
            raise nowhere(path, Place(name))
        files = [place] if place.is_file() else [place, *(p for p in place.iterdir() if p.name[0] not in "._")]
    except PermissionError:
        raise Place(name).error(f"can't read '{path}': Permission denied") from None
    for file in files:
        if not os.access(file, os.R_OK | (os.X_OK if file.is_dir() else 0), effective_ids=True):
            if file == place and file.is_dir():
                raise Place(name).error(f"can't read '{path}': Permission denied")
            raise Place(name, _as_given(file, place, path)).error("can't be read: Permission denied")
    whole = sorted(f for f in files if f.is_file() and f.stat().st_size)
    if whole and form == "parquet":
        _check_columns(declared, whole[0], _as_given(whole[0], place, path))


def _check_columns(declared: Declaration, file: Path, shown: str) -> None:
    """Refuse a column that the first Parquet file lacks: what would be found as it is read can be said at once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(file).names
    except (OSError, pa.ArrowException):
        return  # whoever reads it will say what is wrong with it
    for column in declared.schema.names:
        find_column(names, column, Place(declared.name, shown))


def check_together(path: str, checkpoint: str, *, ours: bool = False, aside: bool = False) -> None:
    """Refuse an output that does not belong to the checkpoint: with a new checkpoint and an old output results would be lost, or there
    twice; with an old checkpoint and no output nothing would be written again.

    ours: whether our own tasks write there; of a folder that Spark's sink has written, Spark reads only the files that its log names.
    aside: it is for rows that are no results; the job may have been given it later.
    """
    place, kept = _local(path), _local(checkpoint)
    if place is None:
        return
    written = _numbered(place / "_spark_metadata") or (
        place.is_dir() and any(p.name[0] not in "._" for p in place.iterdir())
    )
    if ours and (place / "_spark_metadata").is_dir():
        raise DataError(
            f"the output '{path}' was written by Spark's own sink: what is added now would not be read with it\n"
            f"  name another INTO and another checkpoint, or remove '{path}' and '{checkpoint}'"
        )
    if kept is None or (not written and not _numbered(kept / "commits")):
        return
    if written and not _numbered(kept / "offsets"):
        raise DataError(
            f"the output '{path}' holds files already, and the checkpoint '{checkpoint}' is new: they do not belong together\n"
            f"  name another INTO, or remove '{path}'"
        )
    if not written and not aside:
        raise DataError(
            f"the output '{path}' is gone, but the checkpoint '{checkpoint}' says that results were written there\n"
            f"  to start again remove '{checkpoint}' too"
        )


def check_writable(path: str, what: str) -> None:
    """Refuse a folder that can't be made or written to."""
    place = _local(path)
    if place is None:
        return
    nearest = place.absolute()
    while not os.path.exists(nearest) and nearest != nearest.parent:  # noqa: PTH110 - False where it may not look
        nearest = nearest.parent
    if not nearest.is_dir():
        raise DataError(f"{what} '{path}': can't be written: {nearest.name} is a file, not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=True):
        raise DataError(f"{what} '{path}': can't be written: Permission denied")


def _numbered(folder: Path) -> bool:
    """Whether a log of Spark's has any batch."""
    return folder.is_dir() and any(p.name.split(".")[0].isdigit() for p in folder.iterdir())


def _local(path: str) -> Path | None:
    if path.startswith("file:"):
        return Path("/" + path[5:].lstrip("/"))
    return None if "://" in path or any(c in path for c in "*?[{") else Path(path)


def _as_given(file: Path, place: Path, path: str) -> str:
    return path if file == place else str(Path(path) / file.name)
