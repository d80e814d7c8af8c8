"""Location: where rows come from or go to. BadRows: what becomes of a row that can't be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from watersmeet.errors import QueryError
from watersmeet.model.types import quoted, string_text

BAD_ROW_ACTIONS: Final = ("FAIL", "SKIP", "INTO")
# What is written of a bad row. `text` is the row as it stood in the file or message, where it is text.
BAD_ROW_COLUMNS: Final = ("stream", "file", "row", "line", "column", "reason", "text")


@dataclass(frozen=True)
class Location:
    """Where rows come from or go to: `'path' FORMAT parquet OPTIONS ('k' = 'v')`."""

    path: str
    format: str
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", self.format.lower())

    def __str__(self) -> str:
        text = f"{string_text(self.path)} FORMAT {quoted(self.format)}"
        if self.options:
            text += f" OPTIONS ({', '.join(f'{string_text(k)} = {string_text(v)}' for k, v in self.options)})"
        return text


@dataclass(frozen=True)
class BadRows:
    """`ON BAD ROW ...`: FAIL stops the run at the first, SKIP goes on without it and counts it, INTO also writes it to a place of its own.

    >>> print(BadRows("INTO", Location("bad", "json")))
    ON BAD ROW INTO 'bad' FORMAT json
    """

    action: str = "FAIL"
    into: Location | None = None

    def __post_init__(self) -> None:
        if self.action not in BAD_ROW_ACTIONS or (self.action == "INTO") != (self.into is not None):
            raise QueryError(f"ON BAD ROW {self.action}", hint="FAIL, SKIP, or INTO 'path'")

    @property
    def kept(self) -> bool:
        """Whether the run goes on after a bad row."""
        return self.action != "FAIL"

    def __str__(self) -> str:
        return f"ON BAD ROW {self.action}" + (f" {self.into}" if self.into else "")


SUFFIXES: Final = {
    ".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4")


def suffix_format(path: str | PurePath) -> str | None:
    """The format that a name's ending says, a compression apart.

    >>> suffix_format("a.csv.gz"), suffix_format("a.PARQUET"), suffix_format("a")
    ('csv', 'parquet', None)
    """
    suffixes = [s.lower() for s in PurePath(path).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None
