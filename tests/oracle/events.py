"""Tables of events as people write them, for tests that read like a specification.

    R = events('''
        ts  id  k
        1   r1  7
        2   r2  NULL
    ''')

`ts` (and any column whose name ends in it) is in seconds; a number with a point is a DOUBLE; NULL, NaN, true and false are
what they say; all else is a word, and '' is the empty one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import watersmeet as wm
from watersmeet.model.query import Query
from watersmeet.oracle import results_and_late

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Rows = list[dict[str, Any]]


def events(text: str) -> Rows:
    """The rows of a written table."""
    header, *lines = [line.split() for line in text.strip().splitlines() if line.strip()]
    return [{name: _value(name, cell) for name, cell in zip(header, line, strict=True)} for line in lines]


def _value(name: str, cell: str) -> Any:
    if cell in _WORDS:
        return _WORDS[cell]
    if name.endswith("ts"):
        return EPOCH + dt.timedelta(microseconds=int(Decimal(cell) * 1_000_000))
    for read in (int, float):
        try:
            return read(cell)
        except ValueError:
            pass
    return cell


_WORDS = {"NULL": None, "NaN": float("nan"), "true": True, "false": False, "''": ""}


def results(text: str | Query, data: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (), **streams: Any) -> Rows:
    """What the oracle says, sorted, so that it compares with `events` of the expected rows in any order."""
    rows: Rows = wm.oracle(text, streams or data).to_pylist()
    return ordered(rows)


def ordered(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def expect(text: str) -> Rows:
    """The rows of a written table of results, sorted."""
    return ordered(events(text))


def late_ids(text: str, batches: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids of the rows that came too late, sorted."""
    return sorted(row["id"] for _, row in results_and_late(text, batches)[1])
