"""Rejects: where readers take the rows that they can't read. By the stream's policy the first one stops the run, or all are kept aside.

A bad row is one whose text or values don't fit the declaration. A file that is damaged, lacks a column or has one of another type is
no bad row: it stops the run whatever the policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from watersmeet.data.place import Place
from watersmeet.model.location import BAD_ROW_COLUMNS, BadRows

BAD_ROW_SCHEMA: Final = pa.schema(
    [(name, pa.int64() if name in ("row", "line") else pa.string()) for name in BAD_ROW_COLUMNS]
)


@dataclass(frozen=True)
class Reject:
    """One bad row: where it stands, what is wrong with it, what to do, and the row as text."""

    place: Place
    reason: str
    row: int | None = None
    line: int | None = None
    column: str | None = None
    text: str | None = None
    hint: str = ""


@dataclass
class Rejects:
    """The bad rows of one stream or table.

    >>> skipped = Rejects(BadRows("SKIP"))
    >>> skipped.take([Reject(Place("orders", "o.csv"), "'x' is not a BIGINT", 3, 4, "id", "x,1")])
    >>> skipped.count
    1
    """

    policy: BadRows = field(default_factory=BadRows)
    found: list[Reject] = field(default_factory=list)
    count: int = 0

    @property
    def kept(self) -> bool:
        """Whether reading goes on after a bad row."""
        return self.policy.kept

    def take(self, rejects: Iterable[Reject]) -> None:
        """Take bad rows, in the order of the file; raises the first if none are allowed."""
        for bad in rejects:
            if not self.policy.kept:
                raise bad.place.error(bad.reason, row=bad.row, line=bad.line, column=bad.column, hint=bad.hint)
            self.count += 1
            if self.policy.into is not None:
                self.found.append(bad)

    def table(self) -> pa.Table:
        """The rows that are to be written, in the columns of BAD_ROW_SCHEMA, and forget them."""
        rows, self.found = self.found, []
        columns = (
            [r.place.name for r in rows], [r.place.file for r in rows], [r.row for r in rows], [r.line for r in rows],
            [r.column for r in rows], [r.reason for r in rows], [r.text for r in rows],
        )  # fmt: skip
        arrays = [pa.array(values, f.type) for values, f in zip(columns, BAD_ROW_SCHEMA, strict=True)]
        return pa.Table.from_arrays(arrays, schema=BAD_ROW_SCHEMA)
