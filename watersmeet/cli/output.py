"""Where `watersmeet run` puts results: INTO, or what --into says instead; and the report of --json."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watersmeet.errors import WatersmeetError
from watersmeet.model.query import Location, Query

if TYPE_CHECKING:
    import pyarrow as pa

STDOUT = "-"


def output_place(query: Query, into: str | None) -> Location | None:
    """INTO, or `into` instead: in the format that its suffix names, else in that of INTO, else in Parquet.

    >>> from watersmeet.lang import parse
    >>> query = parse("SELECT a.k FROM a [ROWS 1], b [ROWS 1] WHERE a.k = b.k EMIT ISTREAM INTO 'out' FORMAT csv")
    >>> for into in (None, "other/", "other.jsonl"):
    ...     print(output_place(query, into))
    'out' FORMAT csv
    'other/' FORMAT csv
    'other.jsonl' FORMAT json
    """
    from watersmeet.model.location import suffix_format

    meant = query.into
    if into is None:
        return meant
    named = None if into.endswith("/") else suffix_format(Path(into))
    if meant is not None and named in (None, meant.format):
        return Location(into, meant.format, meant.options)
    return Location(into, named or "parquet")


@contextmanager
def printed(query: Query) -> Iterator[Location]:
    """A place that is copied to stdout when all is written: as CSV if that is INTO's format, else as JSON lines."""
    kind = "csv" if query.into is not None and query.into.format == "csv" else "json"
    with tempfile.TemporaryDirectory(prefix="watersmeet-") as folder:
        place = Location(str(Path(folder) / f"results.{kind}"), kind)
        yield place
        sys.stdout.flush()
        with Path(place.path).open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def first_rows(where: Location, count: int) -> pa.Table | None:
    """Some of the results in the files of an output; None if they can't be read here."""
    import pyarrow as pa

    from watersmeet.data import as_table
    from watersmeet.data.files import FORMATS, find_files

    if where.format not in FORMATS:
        return None
    found: list[pa.Table] = []
    try:
        for file, kind in find_files(where.path, "output", where.format):
            found.append(as_table(str(file), "output", format=kind).slice(0, count))
            count -= found[-1].num_rows
            if count <= 0:
                break
        return pa.concat_tables(t for t in found if t.num_columns)
    except (WatersmeetError, pa.ArrowException):
        return None


def report(told: Mapping[str, Any]) -> None:
    """What a run did, as one JSON object on stdout."""
    sys.stdout.write(f"{json.dumps(told, default=str)}\n")
