"""Release: rows wait until no earlier row is to be expected, and leave in order; what comes after its time is late.

    W = min over streams (highest timestamp so far - the stream's lateness)

After each batch the rows with ts < W are released. A row is late if its ts is below the W of the batch before. A stream that lies
further behind the furthest than its `idle` no longer holds W back (docs/semantics.md, "Time").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from watersmeet.engine.intake import timestamps
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


class Release:
    def __init__(self, bound: BoundQuery) -> None:
        self.streams = {s.stream: s for s in bound.sources if not s.static}
        self.high = dict.fromkeys(self.streams, NEVER)
        self.lowest = -NEVER
        self.watermark = NEVER
        self.waiting: dict[str, list[pa.Table]] = {name: [] for name in self.streams}

    @property
    def clock(self) -> int:
        """The highest timestamp seen."""
        return max(self.high.values())

    def batch(self, tables: Mapping[str, pa.Table]) -> Released:
        """Take a batch in; give what can be processed after it."""
        late: dict[str, pa.Table] = {}
        for name, table in tables.items():
            if table.num_rows == 0:
                continue
            ts = timestamps(table, self.streams[name].timestamp)
            self.high[name] = max(self.high[name], int(ts.max()))
            self.lowest = min(self.lowest, int(ts.min()))
            behind = ts < self.watermark
            if behind.any():
                late[name] = table.filter(pa.array(behind))
                table = table.filter(pa.array(~behind))
            self.waiting[name].append(table)
        awaited = [
            s for n, s in self.streams.items()
            if s.idle_us is None or self.clock - max(self.high[n], self.lowest) <= s.idle_us
        ]  # fmt: skip
        self.watermark = max(self.watermark, min(self.high[s.stream] - s.lateness_us for s in awaited))
        return Released(self._take(self.watermark), self.watermark - 1, late)

    def flush(self) -> Released:
        """The end has come: all that waits; time stops at the highest timestamp."""
        return Released(self._take(-NEVER), self.clock)

    def _take(self, below: int) -> dict[str, pa.Table]:
        released: dict[str, pa.Table] = {}
        for name, pieces in self.waiting.items():
            if not pieces:
                continue
            table = pa.concat_tables(pieces)
            ready = timestamps(table, self.streams[name].timestamp) < below
            if ready.all():
                released[name], self.waiting[name] = table, []
            elif ready.any():
                released[name], self.waiting[name] = table.filter(pa.array(ready)), [table.filter(pa.array(~ready))]
            else:
                self.waiting[name] = [table]
        return released

    @property
    def rows_waiting(self) -> int:
        return sum(t.num_rows for pieces in self.waiting.values() for t in pieces)
