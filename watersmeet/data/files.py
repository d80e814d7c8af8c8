"""Which files a path means: one file, the files of a folder, or a glob; and their format, by suffix or as said."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from watersmeet.data.place import Place
from watersmeet.errors import DataError, nearest_name
from watersmeet.model.location import suffix_format

FORMATS: Final = {"csv": "csv", "parquet": "parquet", "json": "json", "jsonl": "json", "ndjson": "json"}
# Settings of Spark's file source about pace, not content: in process all files are read at once.
PACE: Final = frozenset({"maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "filenameonly"})


def find_files(path: str, name: str, format: str | None) -> list[tuple[Path, str]]:
    """The files that a path means, by name, each with its format; at least one, or an error."""
    place = Place(name)
    local = local_path(path, name)
    try:
        if local.is_dir():
            found = sorted(f for f in local.iterdir() if f.is_file() and not f.name.startswith((".", "_")))
            if not found:
                raise place.error(
                    f"the folder '{path}' holds no files", hint="files whose names begin with . or _ don't count"
                )
        elif local.exists():
            found = [local]
        elif any(c in path for c in "*?["):
            start = Path(local.anchor or ".")
            matched = start.glob(str(local.relative_to(local.anchor)))
            found = sorted(f for f in matched if f.is_file() and not f.name.startswith((".", "_")))
            if not found:
                raise place.error(f"no file matches '{path}'", hint=_here(path))
        else:
            raise nowhere(path, place)
    except OSError as e:
        raise place.error(f"can't read '{path}': {e.strerror}") from None
    return [(f, file_format(f, format, place)) for f in found]


def nowhere(path: str, place: Place) -> DataError:
    """A path that leads nowhere."""
    return place.error(f"there is no file or folder '{path}'", hint=_here(path))


def local_path(path: str, name: str) -> Path:
    """The path on this machine; `file:` addresses are fine, other addresses are not for this process to read."""
    if not path or "\0" in path:
        raise Place(name).error(f"{path!r} is not a path")
    scheme, colon, rest = path.partition("://")
    if colon and scheme != "file":
        raise Place(name).error(
            f"'{path}' is not a local path", hint="in process only local files are read and written"
        )
    local = Path(rest if colon else path)
    try:
        return local.expanduser()
    except RuntimeError:  # ~ and the name of nobody
        return local


def known_format(format: str, place: Place) -> str:
    """The format by one of its names: csv, parquet, json (one object a line)."""
    if format.lower() not in FORMATS:
        raise place.error(f"unknown format '{format}'", hint=nearest_name(format, ("csv", "json", "parquet")))
    return FORMATS[format.lower()]


def read_options(options: Mapping[str, str], known: tuple[str, ...], format: str, place: Place) -> dict[str, str]:
    """Options by lower-case name; one that the format does not have is an error."""
    made = {}
    for key, value in options.items():
        if key.lower() in PACE:
            continue
        if key.lower() not in {k.lower() for k in known}:
            hint = nearest_name(key, known) or f"{format} has no options here"
            raise place.error(f"unknown option '{key}' for {format}", hint=hint)
        made[key.lower()] = str(value)
    return made


def unreadable(place: Place, e: Exception, what: str) -> DataError:
    """A file that can't be opened or is damaged, in one line."""
    if isinstance(e, OSError) and e.errno is not None and e.strerror:
        return place.error(f"can't be read: {os.strerror(e.errno)}")
    first = next(iter(str(e).strip().splitlines()), "") or type(e).__name__
    return place.error(f"is damaged or is not {what}", hint=first)


def file_format(file: Path, format: str | None, place: Place) -> str:
    """The format of a file: the one that is said, else by its name."""
    if format:
        return known_format(format, place)
    found = suffix_format(file)
    if found is None:
        raise Place(place.name, str(file)).error(
            "can't tell the format from the file's name", hint="say FORMAT csv, parquet or json, or pass format=..."
        )
    return found


def _here(path: str) -> str:
    return "" if Path(path).is_absolute() else f"paths are relative to the current directory: {Path.cwd()}"
