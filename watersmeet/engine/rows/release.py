"""Release: rows wait until no earlier row is to be expected, and leave in order; what comes after its time is late.

    W = min over streams (highest timestamp so far - the stream's lateness)

After each batch the rows with ts < W are released. A row is late if its ts is below the W of the batch before. A stream that lies
further behind the furthest than its `idle` no longer holds W back (docs/semantics.md, "Time").
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.model.bind import BoundQuery, BoundSource

NEVER = -(1 << 62)
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Released:
    """Rows by alias that may be processed now, those that came too late by stream name, how far time has come, and
    whether it was the last."""

    rows: dict[str, pa.Table]
    clock: int
    late: dict[str, pa.Table] = field(default_factory=dict)
    ended: bool = False

    @property
    def late_rows(self) -> int:
        return sum(t.num_rows for t in self.late.values())


class Clock:
    """The watermark: which streams are waited for, and how far all of them have come.

    `see` takes how far a stream has come; one of `advance`, `end` and `pass_all` says, after a batch, where the watermark stands.
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

    @property
    def awaited(self) -> list[BoundSource]:
        """The streams that hold the watermark back: all but those that are idle."""
        return [
            s for n, s in self.streams.items()
            if s.idle_us is None or self.highest - max(self.high[n], self.lowest) <= s.idle_us
        ]  # fmt: skip

    def see(self, name: str, low: int, high: int) -> None:
        """Rows of a stream came with timestamps from `low` to `high`."""
        self.high[name] = max(self.high[name], high)
        self.lowest = min(self.lowest, low)

    def advance(self) -> None:
        """A batch is in."""
        self.watermark = max(self.watermark, min(self.high[s.stream] - s.lateness_us for s in self.awaited))

    def end(self) -> None:
        """No more rows will come: time stops at the highest timestamp."""
        if self.highest > NEVER:
            self.watermark = max(self.watermark, self.highest + 1)

    def pass_all(self) -> None:
        """A batch is in, and nothing of it waits: what comes with the next one comes after it (order="arrival")."""
        self.watermark = max(self.watermark, self.highest) + 1


class Release(Generic[K]):
    """Rows that wait for a clock. times: the timestamp column of each kind of rows: in process by stream name, in a cell by position in
    FROM, since a cell gets other columns for each alias."""

    def __init__(self, clock: Clock, times: Mapping[K, str]) -> None:
        self.clock, self.times = clock, times
        self.waiting: dict[K, list[pa.Table]] = {key: [] for key in times}

    def on_time(self, key: K, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Rows of a batch that came in time, and those that are late: below the watermark of the batch before."""
        late = timestamps(table, self.times[key]) < self.clock.watermark
        if not late.any():
            return table, table.slice(0, 0)
        return table.filter(pa.array(~late)), table.filter(pa.array(late))

    def wait(self, key: K, table: pa.Table) -> None:
        """Rows that came in time wait for the watermark."""
        if table.num_rows:
            self.waiting[key].append(table)

    def ready(self) -> dict[K, pa.Table]:
        """The rows that wait no more."""
        made = {}
        for key in self.waiting:
            ready = self.take(key)
            if ready is not None:
                made[key] = ready
        return made

    def take(self, key: K) -> pa.Table | None:
        """The rows of one kind that wait no more; None: there are none."""
        pieces = self.waiting[key]
        if not pieces:
            return None
        table = pa.concat_tables(pieces)
        ready = timestamps(table, self.times[key]) < self.clock.watermark
        if ready.all():
            self.waiting[key] = []
            return table
        if ready.any():
            self.waiting[key] = [table.filter(pa.array(~ready))]
            return table.filter(pa.array(ready))
        self.waiting[key] = [table]
        return None

    def tables(self) -> Iterator[pa.Table]:
        """All that waits."""
        for pieces in self.waiting.values():
            yield from pieces
