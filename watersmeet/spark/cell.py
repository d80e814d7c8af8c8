"""Cell: a share of the join with its state. It takes the parcels of one batch, and gives results; it knows no Spark.

    rows come -> late ones apart -> wait -> released below the watermark -> engine -> results
              -> chunks in the state store, and a manifest with a new token

The store keeps the truth; a cell in memory is a copy that is only used if its version and token are those of the store. A batch
that is run again, by a retry, by speculation or by a second action, finds another token and builds the cell from the store.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.data.late_rows import row_texts
from watersmeet.engine.control import Change
from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.release import NEVER, Clock, Release
from watersmeet.engine.snapshot import LAYOUT, Snapshot
from watersmeet.errors import DataError
from watersmeet.model.plan import Plan
from watersmeet.model.query import RESULT_TS
from watersmeet.spark.blob import (
    AGAIN,
    ALIVE,
    END,
    ERROR,
    FAILED,
    MARK,
    SHED,
    SHOWN,
    TALLY,
    UNSENT,
    Parcel,
    decode_table,
)
from watersmeet.spark.chunks import Chunks, Manifest, Store, check_fingerprint
from watersmeet.spark.marks import load_marks, numbered, store_marks
from watersmeet.spark.packing import route_hash_check
from watersmeet.spark.shared_memory import Park
from watersmeet.spark.spec import EFFECTIVE, LATE_COLUMNS, METRICS, CellSpec
from watersmeet.spark.waiting import check_waiting


@dataclass(frozen=True)
class Kept:
    """A cell between two batches. identity: the stored state that it is equal to. tails: of ROWS windows the timestamps of their rows."""

    identity: tuple[Any, ...]
    snapshot: Snapshot
    waiting: dict[int, list[pa.Table]]
    tails: dict[int, Any]


class Cell:
    """Cell `number` of a query. park: its place in shared memory, if there is one. kept: what it is between two batches, if it does not
    lie there."""

    def __init__(self, spec: CellSpec, number: int) -> None:
        self.spec, self.number = spec, number
        self.fingerprint = {**spec.fingerprint, "hash": route_hash_check()}
        self.sources = spec.bound.sources
        self.times = {k: s.timestamp for k, s in enumerate(self.sources) if not s.static}
        self.park: Park | None = None
        self.kept: Kept | None = None
        self.tails: dict[int, Any] = {}
        self.home = {s.alias: _at_home(spec, s.alias, number) for s in self.sources if not s.static}

    def batch(self, store: Store, parcels: Iterable[Parcel]) -> Iterator[pa.RecordBatch]:
        """Take one batch in and yield results, then late rows, then one row of metrics, in the columns of `spec.output`."""
        began = time.perf_counter()
        chunks, rebuilt = self._open(store)
        ended, came = self._take_in(parcels)
        fresh, late = self._sort_out_late(came)
        counts = self._counts(late)
        ready = self._release(fresh, ended)
        results = 0
        for made in self.engine.feed(ready, self.clock.watermark - 1, ended=ended):
            results += made.num_rows
            yield self._out(made)
        for name, rows in late if self.spec.late else ():
            yield self._late_rows(name, rows)
        for name, _, _, bad in self.tallies if self.spec.bad else ():
            if bad is not None:
                yield self._bad_rows(name, decode_table(bad))
        self._store(chunks, fresh)
        told = self._metrics(
            rows_in=sum(t.num_rows for t in ready.values()), results=results, rebuilt=int(rebuilt), **counts,
            batch_us=int((time.perf_counter() - began) * 1e6),
        )  # fmt: skip
        self._keep()
        yield told

    # What comes in

    def _take_in(self, parcels: Iterable[Parcel]) -> tuple[bool, dict[int, pa.Table]]:
        """Read all parcels: marks go to the clock, rows are given back by position in FROM."""
        ended = False
        self.tallies: list[tuple[str, int, int, Any]] = []
        self.unsent: list[tuple[int, pa.Table]] = []
        came: dict[int, list[pa.Table]] = {k: [] for k in self.times}
        for _, k, kind, low, high, rows in parcels:
            if kind == END:
                ended = True
            elif kind == SHED:
                self.engine.note_shed(self.sources[k].alias, int(low), int(high))
            elif kind == MARK:
                self.clock.see(self.sources[k].stream, int(low), int(high))
            elif kind == TALLY:
                self.tallies.append((self.sources[k].stream, int(low), int(high), rows))
            elif kind in (UNSENT, FAILED):
                self.unsent.append((k, decode_table(rows)))
            else:
                came[k].append(decode_table(rows))
        made = {}
        for k, tables in came.items():
            if not tables:
                continue
            if self.spec.order == "arrival":
                tables = [self._effective(k, t) for t in tables]
            tables.sort(
                key=lambda t: t.column(self.times[k])[0].value
            )  # mostly in order then, whatever the order of arrival
            made[k] = pa.concat_tables(tables).combine_chunks()
        return ended, made

    def _effective(self, k: int, table: pa.Table) -> pa.Table:
        """With order="arrival" a row that is behind counts as having come just after the highest time of the batches before: after, and
        not at it, because rows of one time are in the order of their columns, and a cell that is rebuilt must find them as they came."""
        ts = np.maximum(timestamps(table, self.spec.times[self.sources[k].alias]), self.clock.watermark)
        return table.append_column(EFFECTIVE, pa.array(ts).cast(pa.timestamp("us", tz="UTC")))

    def _sort_out_late(self, came: dict[int, pa.Table]) -> tuple[dict[int, pa.Table], list[tuple[str, pa.Table]]]:
        """Rows that came in time, and those late rows that this cell reports: each is reported by one cell only."""
        fresh, late = {}, []
        for k, table in came.items():
            kept, behind = self.release.on_time(k, table)
            source = self.sources[k]
            report = np.full(behind.num_rows, self.home[source.alias])
            for name, wanted in ((AGAIN, False), (SHOWN if SHOWN in table.column_names else ALIVE, True)):
                if name in table.column_names:
                    report &= behind.column(name).to_numpy() == wanted
            if report.any():
                late.append((source.stream, behind.filter(pa.array(report))))
            if kept.num_rows:
                kept = kept.drop_columns([AGAIN]) if AGAIN in kept.column_names else kept
                fresh[k] = numbered(self.manifest, kept) if source.alias == self.spec.bound.preserved else kept
        late_below = self.clock.watermark if self.spec.order == "event" else NEVER
        for k, table in self.unsent:
            behind = timestamps(table, self.spec.times[self.sources[k].alias]) < late_below
            if ERROR in table.column_names:
                if not behind.all():
                    raise DataError(table.column(ERROR)[int(behind.argmin())].as_py())
                table = table.drop_columns([ERROR])
            if behind.any():
                late.append((self.sources[k].stream, table.filter(pa.array(behind))))
        return fresh, late

    def _counts(self, late: list[tuple[str, pa.Table]]) -> dict[str, int]:
        """Rows read, bad and late, in all and by stream."""
        made = {"read": sum(rows for _, rows, _, _ in self.tallies), "bad": sum(bad for _, _, bad, _ in self.tallies)}
        made["late"] = sum(t.num_rows for _, t in late)
        for name, _, bad, _ in self.tallies:
            made[f"bad.{name}"] = made.get(f"bad.{name}", 0) + bad
        for name, table in late:
            made[f"late.{name}"] = made.get(f"late.{name}", 0) + table.num_rows
        return {name: count for name, count in made.items() if count or "." not in name}

    def _release(self, fresh: dict[int, pa.Table], ended: bool) -> dict[str, pa.Table]:
        """Rows by alias that may be processed now."""
        for k, table in fresh.items():
            self.release.wait(k, table)
        if self.spec.order == "arrival":
            self.clock.pass_all()
        elif ended:
            self.clock.end()
        else:
            self.clock.advance()
        ready = self.release.ready()
        check_waiting(self.clock, self.release.tables(), self.spec.waiting_bytes)
        for k, table in ready.items():
            self._note_tail(k, table)
        return {self.sources[k].alias: table for k, table in ready.items()}

    # What is kept in memory

    def _open(self, store: Store) -> tuple[Chunks, bool]:
        """The cell as the batch before left it: kept here, lying in shared memory, or rebuilt from the store (then True)."""
        text = store.manifest()
        self.manifest = Manifest(dict(self.fingerprint)) if text is None else Manifest.read(text)
        check_fingerprint(self.manifest.fingerprint, self.fingerprint, self.spec.refresh_tables)
        chunks = Chunks(store, self.manifest, [self.times.get(k) for k in range(len(self.sources))])
        self.clock = Clock(self.spec.bound)
        self.clock.high |= self.manifest.high
        self.clock.lowest, self.clock.watermark = self.manifest.lowest, self.manifest.watermark
        self.release = Release(self.clock, self.times)
        kept, self.kept = self.kept, None  # until the batch is through, memory and store differ
        if kept is None or kept.identity != self._identity():
            kept = self._parked()
        if kept is None:
            self._rebuild(chunks)
            return chunks, True
        controller, allocate = self.spec.controller(self.spec.bound), self.park.allocate if self.park else None
        self.engine = Engine.resume(self.spec.bound, kept.snapshot, controller, allocate)
        self.release.waiting, self.tails = kept.waiting, kept.tails
        if self.engine.plan.bare != (plan := self._plan()).bare:
            self.engine.apply(Change("the query was started with another plan", plan=plan))
        return chunks, False

    def _identity(self) -> tuple[Any, ...]:
        """Which stored rows, and which tables, a copy in memory must be of to go on from here."""
        return LAYOUT, self.manifest.version, self.manifest.token, sorted(self.fingerprint.items())

    def _plan(self) -> Plan:
        """The plan to go on with: the one in use when the state was stored, unless the query was started with another one since."""
        stored = self.manifest.plan if self.manifest.given_plan == str(self.spec.plan.bare) else ""
        return Plan.parse(stored) if stored else self.spec.plan

    def _keep(self) -> None:
        """The batch is through: leave the cell in shared memory if there is room, else in this worker."""
        snapshot, park, waiting = self.engine.snapshot(), self.park, self.release.waiting
        del self.engine
        if park is not None:
            snapshot = snapshot.with_rows(park.hold(snapshot.words), snapshot.pieces)
            tables: dict[tuple[str, int], list[pa.Table]] = {("waiting", k): t for k, t in waiting.items()}
            tables |= {("payload", k): t for k, t in enumerate(snapshot.pieces)}
            if park.put(self._identity(), tables, engine=snapshot.rest, tails=self.tails):
                return
        self.kept = Kept(self._identity(), snapshot, waiting, self.tails)

    def _parked(self) -> Kept | None:
        """What lies in shared memory, if it is what the store has."""
        found = self.park.take(self._identity()) if self.park is not None else None
        if found is None:
            return None
        tables, pieces = found["tables"], range(len(self.sources))
        snapshot = found["engine"].with_rows(found["words"], tuple(tables["payload", k] for k in pieces))
        return Kept(found["identity"], snapshot, {k: tables["waiting", k] for k in self.times}, found["tails"])

    # What is kept in the store

    def _rebuild(self, chunks: Chunks) -> None:
        """The cell as the store has it."""
        allocate = self.park.allocate if self.park else None
        self.engine = Engine(self.spec.bound, self._plan(), self.spec.controller(self.spec.bound), allocate)
        self.tails = {}
        tables = {}
        for k, source in enumerate(self.sources):
            if source.static:
                tables[source.alias] = decode_table(self.spec.tables[source.alias])
                continue
            stored = chunks.load(k)
            if stored is not None:
                self.release.wait(k, stored)
            released = self.release.take(k)
            if released is not None:
                live = timestamps(released, source.timestamp) >= self._cut(k)
                tables[source.alias] = released.filter(pa.array(live))
                self._note_tail(k, tables[source.alias])
        if (unmatched := self.engine.gather.unmatched) is not None:
            load_marks(chunks.store, self.manifest, unmatched)
        self.engine.restore(tables)

    def _note_tail(self, k: int, released: pa.Table) -> None:
        """Of a ROWS window: the timestamps of the rows in it."""
        window = self.sources[k].window
        assert window is not None
        if window.kind == "ROWS" and not window.partition:
            ts = np.sort(timestamps(released, self.sources[k].timestamp))
            self.tails[k] = np.concatenate([self.tails.get(k, ts[:0]), ts])[-window.size :]

    def _cut(self, k: int) -> int:
        """Released rows with a timestamp below this are dead."""
        window = self.sources[k].window
        assert window is not None
        if window.kind == "RANGE":
            return self.clock.watermark - 1 - window.size
        tail = self.tails.get(k)
        return int(tail[0]) if tail is not None and len(tail) == window.size else NEVER

    def _store(self, chunks: Chunks, fresh: dict[int, pa.Table]) -> None:
        """Write what came and is still needed, remove what is not needed any more; then the manifest, with a new token."""
        for k, source in enumerate(self.sources):
            if source.static:
                continue
            cut = self._cut(k)
            if k in fresh:
                live = timestamps(fresh[k], source.timestamp) >= cut
                table = fresh[k] if live.all() else fresh[k].filter(pa.array(live))
                if table.num_rows:
                    chunks.add(k, table)
            chunks.trim(k, cut)
            window = source.window
            if window is not None and window.partition:
                self._trim_partitions(chunks, k)
            chunks.merge(k)
        manifest = self.manifest
        if (unmatched := self.engine.gather.unmatched) is not None:
            store_marks(chunks.store, manifest, unmatched, self.release.waiting[0])
        manifest.fingerprint = dict(self.fingerprint)
        manifest.version += 1
        manifest.token = secrets.token_hex(8)
        manifest.high, manifest.lowest = dict(self.clock.high), self.clock.lowest
        manifest.watermark = self.clock.watermark
        manifest.plan, manifest.given_plan = str(self.engine.plan.bare), str(self.spec.plan.bare)
        chunks.store.set_manifest(manifest.text())

    def _trim_partitions(self, chunks: Chunks, k: int) -> None:
        """Of a PARTITION BY window: once more than half of what is stored is dead, write it again."""
        stored = sum(c.rows for c in chunks.of(k))
        needed = self.engine.held[k] + sum(t.num_rows for t in self.release.waiting[k])
        if stored > 2 * needed + 1024:
            chunks.replace(k, chunks.of(k), lambda table: self._newest(k, table))

    def _newest(self, k: int, table: pa.Table) -> Any:
        """Which rows of a table are waiting, or among the newest of their partition."""
        keep = np.ones(table.num_rows, bool)
        released = np.flatnonzero(timestamps(table, self.times[k]) < self.clock.watermark)
        keep[released] = self.engine.intakes[k].newest(table.take(pa.array(released)))
        return keep

    # What goes out

    def _out(self, made: pa.RecordBatch) -> pa.RecordBatch:
        n = made.num_rows
        columns = list(made.columns)
        if self.spec.aside:
            columns += [pa.repeat(pa.scalar("result"), n), pa.nulls(n, pa.string()), pa.nulls(n, pa.string())]
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(n, pa.string())], schema=self.spec.output)

    def _late_rows(self, name: str, rows: pa.Table) -> pa.RecordBatch:
        source = next(s for s in self.sources if s.stream == name and not s.static)
        shown = [c for c in rows.column_names if c not in (ALIVE, SHOWN, AGAIN, EFFECTIVE)]
        times = rows.column(
            source.timestamp if source.timestamp in rows.column_names else self.spec.times[source.alias]
        )
        return self._aside_rows("late", name, row_texts(rows.select(shown)), {RESULT_TS: times.combine_chunks()})

    def _bad_rows(self, name: str, rows: pa.Table) -> pa.RecordBatch:
        return self._aside_rows("bad", name, row_texts(rows), {})

    def _aside_rows(self, kind: str, name: str, texts: pa.Array, given: dict[str, pa.Array]) -> pa.RecordBatch:
        n = len(texts)
        columns = (pa.repeat(pa.scalar(kind), n), pa.repeat(pa.scalar(name), n), texts)
        return self._sparse(n, given | dict(zip(LATE_COLUMNS, columns, strict=True)))

    def _metrics(self, **made: int) -> pa.RecordBatch:
        """Numbers of this batch; `totals` of the engine since it was last rebuilt; `events`: what was changed in this batch, and why."""
        totals = self.engine.metrics()
        waiting = list(self.release.tables())
        made |= {
            "waiting_rows": sum(t.num_rows for t in waiting),
            "waiting_bytes": sum(t.nbytes for t in waiting),
            "window_rows": sum(self.engine.held[k] for k in self.times),
            "memory_bytes": totals["state_bytes"] + totals["payload_bytes"],
            "stored_rows": sum(c.rows for c in self.manifest.chunks),
            "stored_bytes": sum(c.bytes for c in self.manifest.chunks),
            "chunks": len(self.manifest.chunks),
            "watermark_us": self.clock.watermark,
        }
        events = [asdict(event) for event in self.engine.events.take()]
        told = {"cell": self.number, **made, "totals": totals, "events": events}
        return self._sparse(1, {METRICS: pa.array([json.dumps(told)])})

    def _sparse(self, n: int, given: dict[str, pa.Array]) -> pa.RecordBatch:
        """Rows in which only some columns have values."""
        columns = [given.get(f.name) for f in self.spec.output]
        filled = [pa.nulls(n, f.type) if c is None else c for c, f in zip(columns, self.spec.output, strict=True)]
        return pa.RecordBatch.from_arrays(filled, schema=self.spec.output)


def _at_home(spec: CellSpec, alias: str, number: int) -> bool:
    """Whether this cell is the first of those that rows of a stream go to, so that each is reported once."""
    lane = spec.route.lanes[alias]
    return number in lane.bases
