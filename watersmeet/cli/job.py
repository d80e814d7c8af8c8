"""A job file: its text, the query, and the data that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from watersmeet.errors import DataError, QueryError, nearest_name
from watersmeet.model.query import Declaration, Location, Query

if TYPE_CHECKING:
    import pyarrow as pa

    from watersmeet.model.bind import BoundQuery


@dataclass(frozen=True)
class Job:
    """A job file that was read and understood."""

    path: Path
    text: str
    query: Query
    bound: BoundQuery

    @classmethod
    def load(cls, path: Path) -> Job:
        """Read, parse and bind; an error in the query names the file too. A job file declares its streams."""
        from watersmeet.lang import parse
        from watersmeet.model.bind import bind

        text = read_text(path)
        try:
            query = parse(text)
            return cls(path, text, query, bind(query))
        except QueryError as e:
            raise QueryError(f"{path}, {e.at(text)}" if e.line is not None else f"{path}: {e}") from None

    def sources(self) -> list[Declaration]:
        """The declarations that the query uses, each once, in the order of FROM."""
        used = dict.fromkeys(s.stream for s in self.query.sources)
        return [d for name in used if (d := self.query.declaration(name)) is not None]

    def timestamp(self, stream: str) -> str:
        """The timestamp column of a stream."""
        return next(s.timestamp for s in self.bound.sources if s.stream == stream and not s.static)

    def bad_row_places(self) -> dict[str, Location]:
        """Where bad rows are written, by stream or table."""
        return {d.name: d.bad_rows.into for d in self.sources() if d.bad_rows.into is not None}

    def check_apart(self, into: Location | None, inputs: Mapping[str, str]) -> None:
        """Refuse an output that would change an input, or another output."""
        from watersmeet.data.apart import check_apart

        read = {d.name: inputs.get(d.name, d.location.path if d.location else "") for d in self.sources()}
        bad = dict.fromkeys(place.path for place in self.bad_row_places().values())
        outputs = [("INTO", into.path)] if into else []
        outputs += [("LATE INTO", self.query.late.path)] if self.query.late else []
        check_apart(read, [*outputs, *(("ON BAD ROW INTO", path) for path in bad)])

    def output_schema(self) -> pa.Schema:
        """The columns of its results."""
        from watersmeet.data import arrow_schema

        return arrow_schema(self.bound.results)


def read_text(path: Path) -> str:
    """The text of a job file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file in UTF-8") from None
    except OSError as e:
        raise DataError(f"can't read the job file {path}: {e.strerror}") from None
    if not text.strip():
        raise DataError(f"{path} is empty\n  a job file holds CREATE STREAM statements and one SELECT")
    return text


def named_inputs(pairs: list[str], job: Job) -> dict[str, str]:
    """`NAME=PATH` options as a mapping; each name must be one that the query uses."""
    known = [d.name for d in job.sources()]
    made = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or not path:
            raise DataError(f"--input {pair}: expected NAME=PATH, for example --input orders=data/orders.parquet")
        if name not in known:
            raise DataError(f"--input {pair}: the query has no stream or table '{name}'\n  {nearest_name(name, known)}")
        made[name] = path
    return made
