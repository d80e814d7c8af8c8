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
from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.release import NEVER, Clock, take_below
from watersmeet.model.query import RESULT_TS
from watersmeet.spark.blob import AGAIN, ALIVE, END, MARK, Parcel, decode_table
from watersmeet.spark.chunks import Chunks, Manifest, Store, check_fingerprint
from watersmeet.spark.packing import route_hash_check
from watersmeet.spark.shared_memory import Park
from watersmeet.spark.spec import EFFECTIVE, LATE_COLUMNS, METRICS, CellSpec
from watersmeet.spark.waiting import check_waiting


class Cell:
    """Cell `number` of a query. `identity` says which stored state the one in memory is equal to; None: to none."""

    def __init__(self, spec: CellSpec, number: int) -> None:
        self.spec, self.number = spec, number
        self.fingerprint = {**spec.fingerprint, "hash": route_hash_check()}
        self.sources = spec.bound.sources
        self.identity: tuple[Any, ...] | None = None
        self.park: Park | None = None
        self.waiting: dict[int, list[pa.Table]] = {}
        self.tails: dict[int, Any] = {}
        self.home = {s.alias: _at_home(spec, s.alias, number) for s in self.sources if not s.static}

    def batch(self, store: Store, parcels: Iterable[Parcel]) -> Iterator[pa.RecordBatch]:
        """Take one batch in and yield results, then late rows, then one row of metrics, in the columns of `spec.output`."""
        began = time.perf_counter()
        text = store.manifest()
        manifest = Manifest(dict(self.fingerprint)) if text is None else Manifest.read(text)
        check_fingerprint(manifest.fingerprint, self.fingerprint, self.spec.refresh_tables)
        self.manifest = manifest
        chunks = Chunks(store, manifest, [None if s.static else s.timestamp for s in self.sources])
        rebuilt = self.identity != self._identity() and not self._attach()
        if rebuilt:
            self._rebuild(chunks)
        self.identity = None  # until the batch is through, memory and store differ
        ended, came = self._take_in(parcels)
        late = self._sort_out_late(came)
        fresh = {k: pa.concat_tables(tables) for k, tables in came.items() if tables}
        for k, table in fresh.items():
            self.waiting[k].append(table)
        released = self._release(ended)
        check_waiting(self.clock, [t for tables in self.waiting.values() for t in tables], self.spec.waiting_bytes)
        rows_in = sum(t.num_rows for t in released.values())
        results = 0
        for made in self.engine.feed(released, self.clock.watermark - 1):
            results += made.num_rows
            yield self._out(made)
        for name, rows in late if self.spec.late else ():
            yield self._late_rows(name, rows)
        self._store(chunks, fresh)
        manifest.fingerprint = dict(self.fingerprint)
        manifest.version += 1
        manifest.token = secrets.token_hex(8)
        manifest.high, manifest.lowest = dict(self.clock.high), self.clock.lowest
        manifest.watermark = self.clock.watermark
        store.set_manifest(manifest.text())
        told = self._metrics(
            rows_in=rows_in, results=results, late=sum(t.num_rows for _, t in late), rebuilt=int(rebuilt),
            batch_us=int((time.perf_counter() - began) * 1e6),
        )  # fmt: skip
        self._park()
        yield told

    # What comes in

    def _take_in(self, parcels: Iterable[Parcel]) -> tuple[bool, dict[int, list[pa.Table]]]:
        """Read all parcels: marks go to the clock, rows are given back by position in FROM."""
        floor = self.clock.watermark
        ended = False
        came: dict[int, list[pa.Table]] = {k: [] for k, s in enumerate(self.sources) if not s.static}
        for _, k, kind, low, high, rows in parcels:
            if kind == END:
                ended = True
            elif kind == MARK:
                self.clock.see(self.sources[k].stream, int(low), int(high))
            else:
                came[k].append(decode_table(rows))
        for k, tables in came.items():
            if self.spec.order == "arrival":
                came[k] = [self._effective(k, t, floor) for t in tables]
            time = self.sources[k].timestamp
            came[k].sort(key=lambda t: t.column(time)[0].value)  # mostly in order then, whatever the order of arrival
            came[k] = [pa.concat_tables(came[k]).combine_chunks()] if came[k] else []
        return ended, came

    def _effective(self, k: int, table: pa.Table, floor: int) -> pa.Table:
        """With order="arrival" a row that is behind counts as having come just after the highest time of the batches before: after, and
        not at it, because rows of one time are in the order of their columns, and a cell that is built anew must find them as they came."""
        ts = np.maximum(timestamps(table, self.spec.times[self.sources[k].alias]), floor)
        return table.append_column(EFFECTIVE, pa.array(ts).cast(pa.timestamp("us", tz="UTC")))

    def _sort_out_late(self, came: dict[int, list[pa.Table]]) -> list[tuple[str, pa.Table]]:
        """Take out the rows below the watermark of the batch before. Each is reported by one cell only."""
        late = []
        late_below = self.manifest.watermark if self.spec.order == "event" else NEVER
        for k, tables in came.items():
            source = self.sources[k]
            kept = []
            for table in tables:
                behind = timestamps(table, source.timestamp) < late_below
                if behind.any():
                    report = behind.copy() if self.home[source.alias] else np.zeros(len(behind), bool)
                    for name, wanted in ((AGAIN, False), (ALIVE, True)):
                        if name in table.column_names:
                            report &= table.column(name).to_numpy() == wanted
                    if report.any():
                        late.append((source.stream, table.filter(pa.array(report))))
                    table = table.filter(pa.array(~behind))
                if AGAIN in table.column_names:
                    table = table.drop_columns([AGAIN])
                if table.num_rows:
                    kept.append(table)
            came[k] = kept
        return late

    def _release(self, ended: bool) -> dict[str, pa.Table]:
        """Rows by alias that may be processed now, in order."""
        if self.spec.order == "arrival":
            self.clock.watermark = max(self.clock.watermark, self.clock.highest) + 1
        elif ended:
            if self.clock.highest > NEVER:
                self.clock.watermark = max(self.clock.watermark, self.clock.highest + 1)
        else:
            self.clock.advance()
        released = {}
        for k, source in enumerate(self.sources):
            if source.static:
                continue
            ready, self.waiting[k] = take_below(self.waiting[k], source.timestamp, self.clock.watermark)
            if ready is not None:
                released[source.alias] = self.engine.intakes[k].in_order(ready)
                self._note_tail(k, released[source.alias])
        return released

    # What is kept in memory

    def _identity(self) -> tuple[Any, ...]:
        """Which stored state, plan and tables a copy in memory must be of to go on from here."""
        pins = sorted(self.fingerprint.items())
        return self.manifest.version, self.manifest.token, str(self.spec.plan), pins

    def _park(self) -> None:
        """The batch is through: leave the cell in shared memory if there is room, else in this worker."""
        self.identity = self._identity()
        if self.park is None:
            return
        state, payloads = self.engine.arena, self.engine.payloads
        state.lie_in(self.park.hold(state.m))
        tables: dict[tuple[str, int], list[pa.Table]] = {("waiting", k): t for k, t in self.waiting.items()}
        tables |= {("payload", k): p.pieces for k, p in enumerate(payloads)}
        parked = self.park.put(
            self.identity, tables, S=state.S, I=state.I, spans=[(p.first, p.next) for p in payloads], tails=self.tails,
            clock=(self.clock.high, self.clock.lowest, self.clock.watermark),
        )  # fmt: skip
        if parked:
            self.identity = None
            del self.engine
            self.waiting = {}

    def _attach(self) -> bool:
        """Go on with what lies in shared memory, if it is what the store has."""
        parked = self.park.take(self._identity()) if self.park is not None else None
        if parked is None or self.park is None:
            return False
        self.engine = Engine(self.spec.bound, self.spec.plan)
        state = self.engine.arena
        state.S[:], state.I[:] = parked["S"], parked["I"]
        state.lie_in(parked["m"])
        state.allocate = self.park.allocate
        for k, (payload, span) in enumerate(zip(self.engine.payloads, parked["spans"], strict=True)):
            payload.pieces = parked["tables"]["payload", k]
            payload.first, payload.next = span
        self.waiting = {k: t for (kind, k), t in parked["tables"].items() if kind == "waiting"}
        self.tails = parked["tails"]
        self.clock = Clock(self.spec.bound)
        self.clock.high, self.clock.lowest, self.clock.watermark = parked["clock"]
        return True

    # What is kept in the store

    def _rebuild(self, chunks: Chunks) -> None:
        """The cell as the store has it."""
        self.engine = Engine(self.spec.bound, self.spec.plan, allocate=self.park.allocate if self.park else None)
        self.clock = Clock(self.spec.bound)
        self.clock.high |= self.manifest.high
        self.clock.lowest, self.clock.watermark = self.manifest.lowest, self.manifest.watermark
        self.waiting, self.tails = {}, {}
        tables = {}
        for k, source in enumerate(self.sources):
            if source.static:
                tables[source.alias] = decode_table(self.spec.tables[source.alias])
                continue
            stored = chunks.load(k)
            released, self.waiting[k] = take_below(
                [] if stored is None else [stored], source.timestamp, self.clock.watermark
            )
            if released is not None:
                live = timestamps(released, source.timestamp) >= self._cut(k)
                ready = self.engine.intakes[k].in_order(released.filter(pa.array(live)))
                self._note_tail(k, ready)
                tables[source.alias] = ready
        self.engine.restore(tables)

    def _note_tail(self, k: int, released: pa.Table) -> None:
        """Of a ROWS window: the timestamps of the rows in it."""
        window = self.sources[k].window
        assert window is not None
        if window.kind == "ROWS" and not window.partition:
            ts = timestamps(released, self.sources[k].timestamp)
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
        """Write what came and is still needed; remove what is not needed any more."""
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

    def _trim_partitions(self, chunks: Chunks, k: int) -> None:
        """Of a PARTITION BY window: once more than half of what is stored is dead, write it anew."""
        stored = sum(c.rows for c in chunks.of(k))
        needed = self.engine.arena.live(k) + sum(t.num_rows for t in self.waiting[k])
        if stored > 2 * needed + 1024:
            chunks.replace(k, chunks.of(k), lambda table: self._newest(k, table))

    def _newest(self, k: int, table: pa.Table) -> Any:
        """Which rows of a table are waiting, or among the newest of their partition."""
        intake, window = self.engine.intakes[k], self.sources[k].window
        assert window is not None
        numbered = table.append_column("_wm_row", pa.array(np.arange(table.num_rows)))
        released, _ = take_below([numbered], self.sources[k].timestamp, self.clock.watermark)
        keep = np.ones(table.num_rows, bool)
        if released is None:
            return keep
        ordered = intake.in_order(released)
        hashes = intake._partition(ordered)
        assert hashes is not None
        n = ordered.num_rows
        by = np.lexsort((np.arange(n), hashes[1], hashes[0]))
        a, b = hashes[0][by], hashes[1][by]
        last = np.append((a[1:] != a[:-1]) | (b[1:] != b[:-1]), True)
        end = np.flatnonzero(last)[np.cumsum(last) - last]
        dead = by[end - np.arange(n) >= window.size]
        keep[ordered.column("_wm_row").to_numpy()[dead]] = False
        return keep

    # What goes out

    def _out(self, made: pa.RecordBatch) -> pa.RecordBatch:
        n = made.num_rows
        columns = list(made.columns)
        if self.spec.late:
            columns += [pa.repeat(pa.scalar("result"), n), pa.nulls(n, pa.string()), pa.nulls(n, pa.string())]
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(n, pa.string())], schema=self.spec.output)

    def _late_rows(self, name: str, rows: pa.Table) -> pa.RecordBatch:
        source = next(s for s in self.sources if s.stream == name and not s.static)
        shown = [c for c in rows.column_names if c not in (ALIVE, AGAIN, EFFECTIVE)]
        texts = [json.dumps(row, default=str, ensure_ascii=False) for row in rows.select(shown).to_pylist()]
        given = {
            RESULT_TS: rows.column(source.timestamp).combine_chunks(),
            LATE_COLUMNS[0]: pa.repeat(pa.scalar("late"), rows.num_rows),
            LATE_COLUMNS[1]: pa.repeat(pa.scalar(name), rows.num_rows),
            LATE_COLUMNS[2]: pa.array(texts, pa.string()),
        }
        return self._sparse(rows.num_rows, given)

    def _metrics(self, **made: int) -> pa.RecordBatch:
        state = self.engine.arena
        leaves = [k for k, s in enumerate(self.sources) if not s.static]
        made |= {
            "waiting_rows": sum(t.num_rows for tables in self.waiting.values() for t in tables),
            "waiting_bytes": sum(t.nbytes for tables in self.waiting.values() for t in tables),
            "window_rows": sum(state.live(k) for k in leaves),
            "memory_bytes": state.bytes + sum(p.bytes for p in self.engine.payloads),
            "stored_rows": sum(c.rows for c in self.manifest.chunks),
            "stored_bytes": sum(c.bytes for c in self.manifest.chunks),
            "chunks": len(self.manifest.chunks),
            "watermark_us": self.clock.watermark,
        }
        return self._sparse(1, {METRICS: pa.array([json.dumps({"cell": self.number, **made})])})

    def _sparse(self, n: int, given: dict[str, pa.Array]) -> pa.RecordBatch:
        """Rows in which only some columns have values."""
        columns = [given.get(f.name) for f in self.spec.output]
        filled = [pa.nulls(n, f.type) if c is None else c for c, f in zip(columns, self.spec.output, strict=True)]
        return pa.RecordBatch.from_arrays(filled, schema=self.spec.output)


def _at_home(spec: CellSpec, alias: str, number: int) -> bool:
    """Whether this cell is the first of those that rows of a stream go to, so that each is reported once."""
    lane = spec.route.lanes[alias]
    return number in lane.bases
