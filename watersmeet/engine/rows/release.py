"""Release: rows wait until no earlier row is to be expected, and leave in order; what comes after its time is late.

    W = min over streams (highest timestamp so far - the stream's lateness)

After each batch the rows with ts < W are released. A row is late if its ts is below the W of the batch before. A stream that lies
further behind the furthest than its `idle` no longer holds W back (docs/semantics.md, "Time").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.model.bind import BoundQuery

NEVER = -(1 << 62)


@dataclass(frozen=True)
class Released:
    """Rows by stream name that may be processed now, those that came too late, and how far time has come."""

    rows: dict[str, pa.Table]
    clock: int
    late: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def late_rows(self) -> int:
        return sum(t.num_rows for t in self.late.values())


class Clock:
    """The watermark: which streams are waited for, and how far all of them have come.

    `see` takes how far a stream has come; `advance` says, after a batch, where the watermark stands.
    """

    def __init__(self, bound: BoundQuery) -> None:
        self.streams = {s.stream: s for s in bound.sources if not s.static}
        self.high = dict.fromkeys(self.streams, NEVER)
        self.lowest = -NEVER
        self.watermark = NEVER

    @property
    def highest(self) -> int:
        """The highest timestamp seen."""
        return max(self.high.values())

    def see(self, name: str, low: int, high: int) -> None:
        """Rows of a stream came with timestamps from `low` to `high`."""
        self.high[name] = max(self.high[name], high)
        self.lowest = min(self.lowest, low)

    def advance(self) -> int:
        awaited = [
            s for n, s in self.streams.items()
            if s.idle_us is None or self.highest - max(self.high[n], self.lowest) <= s.idle_us
        ]  # fmt: skip
        self.watermark = max(self.watermark, min(self.high[s.stream] - s.lateness_us for s in awaited))
        return self.watermark


class Release:
    """Rows of batches that come whole: their own timestamps say how far time has come."""

    def __init__(self, bound: BoundQuery) -> None:
        self.clock = Clock(bound)
        self.times = {name: source.timestamp for name, source in self.clock.streams.items()}
        self.waiting: dict[str, list[pa.Table]] = {name: [] for name in self.times}

    def batch(self, tables: Mapping[str, pa.Table]) -> Released:
        """Take a batch in; give what can be processed after it."""
        late: dict[str, pa.Table] = {}
        for name, table in tables.items():
            if table.num_rows == 0:
                continue
            ts = timestamps(table, self.times[name])
            self.clock.see(name, int(ts.min()), int(ts.max()))
            behind = ts < self.clock.watermark
            if behind.any():
                late[name] = table.filter(pa.array(behind))
                table = table.filter(pa.array(~behind))
            self.waiting[name].append(table)
        watermark = self.clock.advance()
        return Released(self._take(watermark), watermark - 1, late)

    def flush(self) -> Released:
        """The end has come: all that waits; time stops at the highest timestamp."""
        return Released(self._take(-NEVER), self.clock.highest)

    def _take(self, below: int) -> dict[str, pa.Table]:
        released: dict[str, pa.Table] = {}
        for name, pieces in self.waiting.items():
            ready, self.waiting[name] = take_below(pieces, self.times[name], below)
            if ready is not None:
                released[name] = ready
        return released

    @property
    def rows_waiting(self) -> int:
        return sum(t.num_rows for pieces in self.waiting.values() for t in pieces)


def take_below(pieces: list[pa.Table], time: str, below: int) -> tuple[pa.Table | None, list[pa.Table]]:
    """Rows with a timestamp below a bound (None: there are none), and the rows that stay."""
    if not pieces:
        return None, pieces
    table = pa.concat_tables(pieces)
    ready = timestamps(table, time) < below
    if ready.all():
        return table, []
    if ready.any():
        return table.filter(pa.array(ready)), [table.filter(pa.array(~ready))]
    return None, [table]
