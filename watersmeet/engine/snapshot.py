"""Snapshot: all that a running engine is, between two feeds, so that another engine, perhaps in another process, goes on from there.

    engine.snapshot() ──▶ Snapshot ──▶ Engine.resume(bound, snapshot)

It carries the plan in use, the stores with their counters, the rows that results need, the totals, what a controller has not seen yet,
and the controller's memory. `words` and `pieces` are large and are shared with the engine, not copied: whoever goes on with a snapshot
must let the engine that it was taken from go. `rest` is the snapshot without these two; it is small, and can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from watersmeet.engine.metrics import Meter, Totals
from watersmeet.engine.rows.unmatched import Unmatched
from watersmeet.model.plan import Plan

LAYOUT: Final = 3  # rises with any change of what a snapshot, or an arena, means


@dataclass(frozen=True)
class Snapshot:
    """plan: the one in use. words: the arena; stores, indexes, counters: its tables. control: the kernel's words between two rows.
    spans, pieces: for each stream the numbers of the rows kept, and the rows. events: how many have been logged. memory: the controller's.
    unmatched: the rows of the preserved stream (LEFT JOIN).
    """

    plan: Plan
    stores: Any
    indexes: Any
    counters: Any
    control: Any
    totals: Totals
    meter: Meter
    events: int
    memory: bytes
    spans: tuple[tuple[int, int], ...]
    words: Any = None
    pieces: tuple[list[pa.Table], ...] = ()
    unmatched: Unmatched | None = None

    @property
    def rest(self) -> Snapshot:
        """What is small."""
        return replace(self, words=None, pieces=())

    def with_rows(self, words: Any, pieces: tuple[list[pa.Table], ...]) -> Snapshot:
        """The same, lying in these words and with these rows."""
        return replace(self, words=words, pieces=pieces)
