"""Batches: whatever the user passed, as tables of canonical types, released in the order in which they may be processed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from watersmeet.data import Rejects, arrow_schema, as_table, check_timestamps, read_declared, schema_of, timestamps
from watersmeet.engine.rows.release import NEVER, Clock, Release, Released
from watersmeet.errors import DataError, nearest_name
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.query import Query


class Batches:
    """Inputs of a run. A mapping is whole tables, which are complete: nothing in them is late. An iterable of mappings is batches.

    bound: the query, bound to the columns found. tables: the static tables by name.
    """

    def __init__(self, query: Query, inputs: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        self.query, self.whole = query, isinstance(inputs, Mapping)
        self.used = dict.fromkeys(s.stream for s in query.sources)
        self.schemas = {d.name: d.schema for d in query.declarations}
        self.rejects: dict[str, Rejects] = {}
        self.rest: Iterator[Mapping[str, Any]] = iter([inputs] if isinstance(inputs, Mapping) else inputs)
        first = self.read(next(self.rest, {}))
        for name in self.used:
            declared = query.declaration(name)
            if name not in first and declared and declared.location and (self.whole or declared.static):
                first[name] = read_declared(declared, self._rejects(name))
        self.seen = [first]
        # Without declarations a stream's columns are known only from its rows: read on until all are known.
        while not self.whole and any(name not in self.schemas for name in self.used):
            batch = next(self.rest, None)
            if batch is None:
                break
            self.seen.append(self.read(batch))
        self.bound: BoundQuery = bind(query, self.schemas)
        self.times = {s.stream: s.timestamp for s in self.bound.sources if not s.static}
        self.tables = {
            n: first.get(n, arrow_schema(self.schemas[n]).empty_table()) for n in self.used if n not in self.times
        }
        if self.whole:
            absent = [n for n in self.times if n not in first]
            if absent:
                raise DataError(
                    f"no rows given for stream '{absent[0]}'\n  pass it by name, or declare it with FROM 'path'"
                )

    def _rejects(self, name: str) -> Rejects:
        """What takes the bad rows of a stream or table that is read from files."""
        declared = self.query.declaration(name)
        return self.rejects.setdefault(name, Rejects(declared.bad_rows) if declared else Rejects())

    @property
    def bad_rows(self) -> int:
        return sum(r.count for r in self.rejects.values())

    def read(self, batch: Mapping[str, Any]) -> dict[str, pa.Table]:
        """A batch as tables of canonical types, by stream name."""
        made = {}
        for name, value in batch.items():
            if name in self.used:
                made[name] = as_table(value, name, self.schemas.get(name), rejects=self._rejects(name))
                self.schemas.setdefault(name, schema_of(made[name].schema, name))
            elif not self.query.declaration(name):
                raise DataError(f"the query has no stream '{name}'\n  {nearest_name(name, self.used)}")
        return made

    def sample(self) -> dict[str, pa.Table]:
        """By alias, the rows that came first, for choosing a plan."""
        return {s.alias: self.seen[0][s.stream] for s in self.bound.sources if s.stream in self.seen[0]}

    def released(self) -> Iterator[Released]:
        """What may be processed, batch by batch; at the end all that waited."""
        batches = chain(self.seen, map(self.read, self.rest))
        if self.whole:
            yield self._complete(next(batches))
            return
        clock = Clock(self.bound)
        release = Release(clock, self.times)
        for number, batch in enumerate(batches, 1):
            late = self._take_in(release, self._streams(batch, number))
            clock.advance()
            yield self._ready(release, late)
        clock.end()
        yield replace(self._ready(release, {}), ended=True)

    def _take_in(self, release: Release[str], tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """Rows wait, and move the clock; returns those that are late."""
        late = {}
        for name, table in tables.items():
            if table.num_rows:
                ts = timestamps(table, self.times[name])
                release.clock.see(name, int(ts.min()), int(ts.max()))
                kept, behind = release.on_time(name, table)
                release.wait(name, kept)
                if behind.num_rows:
                    late[name] = behind
        return late

    def _ready(self, release: Release[str], late: dict[str, pa.Table]) -> Released:
        return Released(self._by_alias(release.ready()), release.clock.watermark - 1, late)

    def _complete(self, tables: dict[str, pa.Table]) -> Released:
        rows = self._streams(tables, 1)
        ends = [int(timestamps(t, self.times[n]).max()) for n, t in rows.items() if t.num_rows]
        return Released(self._by_alias(rows), max(ends, default=NEVER), ended=True)

    def _by_alias(self, rows: dict[str, pa.Table]) -> dict[str, pa.Table]:
        return {s.alias: rows[s.stream] for s in self.bound.sources if s.stream in rows}

    def _streams(self, batch: dict[str, pa.Table], number: int) -> dict[str, pa.Table]:
        made = {}
        for name, table in batch.items():
            if name in self.times:
                check_timestamps(table, name, self.times[name])
                made[name] = table
            elif number > 1 and table.num_rows:
                raise DataError(f"table '{name}': rows in batch {number}\n  a static table comes with the first batch")
        return made
