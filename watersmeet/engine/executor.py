"""Engine: runs a Program over rows. Feeds the kernel, gives it room, gathers its candidates, and lets a controller change it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.engine.control import ENDLESS, Change, Controller, EventLog, Static
from watersmeet.engine.kernel.fill import fill
from watersmeet.engine.kernel.run import run
from watersmeet.engine.metrics import Meter, Totals, bank
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.compile import compile_plan
from watersmeet.engine.program.tables import Frame, Group
from watersmeet.engine.rows.gather import Gather
from watersmeet.engine.rows.intake import Rows, intake_of
from watersmeet.engine.rows.payload import Payload
from watersmeet.engine.rows.pieces import cuts, laid_out
from watersmeet.engine.rows.shed import Shed
from watersmeet.engine.snapshot import Snapshot
from watersmeet.engine.store.arena import Allocate, Arena
from watersmeet.engine.unprobed import Unprobed
from watersmeet.engine.watched import Watched
from watersmeet.errors import PlanError, StateError
from watersmeet.model.bind import BoundQuery
from watersmeet.model.needs import needed_schema
from watersmeet.model.plan import Plan
from watersmeet.model.program import Program

# Sizes that change no answer; tests make them small.
CHUNK = 1 << 17  # rows of all streams that are prepared at a time
OUT = 1 << 16  # candidates that the kernel hands over at a time
CACHE = 1 << 20  # bytes of state from which on the kernel looks ahead
LARGEST_GROUP = 512  # rows that go through their pipelines together
LISTS = 1 << 16  # entries that the lists of what they find have room for, besides the rows themselves
SLACK = 1 << 16  # rows of payload that a PARTITION BY window may keep beyond twice what it holds

Progress = Callable[[int, int], None]


class Engine(Watched):
    """One query, running. `feed` takes the rows that are next and yields results as Arrow batches.

    controller: is stepped after each so many arrivals as it says, between two tuples, and at the end of each feed; what it decides is
        applied at once.
    allocate: gives the memory of arenas (Spark's cells have them in shared memory).
    groups: False lets rows go one by one also where the plan would let them go in groups: to compare the two.
    seed: chooses which rows are shed.
    """

    def __init__(
        self,
        bound: BoundQuery,
        plan: Plan,
        controller: Controller | None = None,
        allocate: Allocate | None = None,
        groups: bool = True,
        seed: int = 0,
    ) -> None:
        self.bound, self.groups, self.seed = bound, groups, seed
        self.controller: Controller = controller or Static()
        self.program = compile_plan(bound, plan)
        self.totals, self.events = Totals(), EventLog()
        self.gather = Gather(bound, self.program.late)
        self.output = self.gather.output
        self.intakes = [intake_of(bound, i, self.program.columns[i], self.gather) for i in range(len(bound.sources))]
        self._set_shed()
        self.payloads = [Payload(self.gather.schema(s.alias)) for s in bound.sources]
        self.streams = {s.alias: i for i, s in enumerate(bound.sources) if not s.static}
        self.arena = Arena(self.program, allocate=allocate)
        self.meter = Meter.of(self.arena)
        self.feeding = False
        leaves = len(bound.sources)
        self.out = np.zeros((leaves + L.OUT_BEHIND, OUT), np.int64)
        notes = np.zeros((LARGEST_GROUP + 1, L.NOTE_FROM + 2 * leaves + 2), np.int64)
        notes[:, -1] = L.FAR
        entries = LARGEST_GROUP + max(LISTS // leaves**2, leaves**2)
        self.lists: Any = np.zeros((L.LIST_BEFORE + leaves**2 * L.LIST_ROWS, entries), np.int64)
        self.group = Group(notes, self.lists, np.zeros((L.WALK_ROWS, entries), np.int64))
        self.control = np.zeros(L.CONTROL_WIDTH, np.int64)
        self.control[L.QUOTA] = self.controller.every
        self._scratch()

    @classmethod
    def resume(
        cls, bound: BoundQuery, snapshot: Snapshot, controller: Controller | None = None, allocate: Allocate | None = None
    ) -> Engine:  # fmt: skip
        """An engine that goes on where another was when the snapshot was taken, with the plan that was in use then.

        allocate: for the arenas that come after the one in the snapshot.
        """
        engine = cls(bound, snapshot.plan, controller)
        arena = engine.arena
        if arena.S.shape != snapshot.stores.shape or arena.counters.shape != snapshot.counters.shape:
            raise StateError("the snapshot is of another query\n  resume it with the query that it was taken from")
        arena.S[:], arena.I[:], arena.counters[:] = snapshot.stores, snapshot.indexes, snapshot.counters
        arena.lie_in(snapshot.words)
        arena.allocate = allocate or arena.allocate
        for payload, span, pieces in zip(engine.payloads, snapshot.spans, snapshot.pieces, strict=True):
            payload.pieces, (payload.first, payload.next) = list(pieces), span
        engine.control[:] = snapshot.control
        engine.totals, engine.meter = replace(snapshot.totals), replace(snapshot.meter)
        engine.events.next = snapshot.events
        engine.unprobed.look(arena.counters)
        engine.gather.unmatched = engine.intakes[0].unmatched = snapshot.unmatched
        engine.controller.recall(snapshot.memory)
        return engine

    def snapshot(self) -> Snapshot:
        """All that this engine is, between two feeds. Its memory is shared: go on with one of the two only."""
        if self.feeding or self.control[L.PHASE] != L.PICK or self.control[L.OUT_ROWS]:
            raise PlanError("a snapshot can't be taken in the middle of a feed\n  take it when feed has ended")
        arena = self.arena
        return Snapshot(
            plan=self.plan,
            stores=arena.S.copy(),
            indexes=arena.I.copy(),
            counters=arena.counters.copy(),
            control=self.control.copy(),
            totals=replace(self.totals),
            meter=replace(self.meter),
            events=self.events.next,
            memory=self.controller.memory(),
            spans=tuple((p.first, p.next) for p in self.payloads),
            words=arena.m,
            pieces=tuple(list(p.pieces) for p in self.payloads),
            unmatched=self.gather.unmatched,
        )

    def _set_shed(self) -> None:
        """Which rows are given up from now on."""
        for k, (source, intake) in enumerate(zip(self.bound.sources, self.intakes, strict=True)):
            share = self.plan.drop.get(source.alias, 1.0)
            given_up = share < 1 and not source.static
            intake.shed = Shed(share, self.seed, k, needed_schema(self.bound, source.alias)) if given_up else None

    def _scratch(self) -> None:
        """What the kernel needs besides the arena, for the pipelines of the plan in use."""
        ops, leaves = len(self.arena.pipelines.ops), len(self.bound.sources)
        self.frame = Frame(
            np.zeros((ops, L.MAX_KEYS), np.int64), np.zeros(ops, np.int64), np.zeros(leaves, np.int64),
            np.zeros((self.arena.pipelines.lookups, L.CACHE_LONGEST), np.int64),
        )  # fmt: skip
        self.lists[[L.LIST_HITS, L.LIST_CACHED]] = 0
        self.walkers = np.zeros((leaves, L.WALKER_WIDTH), np.int64)
        carried = self.control[_CARRIED]
        self.control[:] = 0
        self.control[_CARRIED] = carried
        self.control[L.LEAVING] = -1
        newest = self.plan.limited and self.plan.newest
        self.control[L.NEWEST] = newest
        self.control[L.GROUP_SIZE] = LARGEST_GROUP if self.groups and self.arena.pipelines.groups and not newest else 0
        self.unprobed = Unprobed.of(self.bound, self.arena)

    @property
    def plan(self) -> Plan:
        return self.program.plan

    def load_tables(self, tables: Mapping[str, pa.Table]) -> None:
        """Static tables by alias; before the first row of any stream."""
        self._put(tables)

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Put rows back into their windows without running their pipelines, and build inner states from them: instead of
        `load_tables`. Static tables whole; of each stream at least the rows that are in its window."""
        leaves = self.arena.leaves
        pipes = self.arena.S[:leaves][:, [L.PIPE, L.LEAVE_PIPE]].copy()
        self.arena.S[:leaves, [L.PIPE, L.LEAVE_PIPE]] = -1
        self._put(tables)
        self.arena.S[:leaves, [L.PIPE, L.LEAVE_PIPE]] = pipes

    def _put(self, tables: Mapping[str, pa.Table]) -> None:
        """Rows enter their windows, with no result and no step of the controller (a change of plan would fill states that are
        filled here); then inner states are built. Nothing of this counts as having come in."""
        totals, meter, quota = replace(self.totals), replace(self.meter), self.control[L.QUOTA]
        self.control[L.QUOTA] = ENDLESS
        for _ in self._pieces(tables, L.DEAD, None):
            raise AssertionError("rows that are put into their windows give no results")
        self.arena.clear_caches()
        self._fill(self.arena.inner)
        self.control[L.QUOTA], self.meter = quota, meter
        self.totals.tuples_in, self.totals.rejected = totals.tuples_in, totals.rejected
        self.meter.mark(self.arena, self.totals)

    def feed(
        self, tables: Mapping[str, pa.Table], clock: int = L.DEAD, progress: Progress | None = None, ended: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Rows by alias, in any order, none before what was fed already.

        clock: time has come this far, so what leaves by then leaves, although no row says so (DSTREAM, CHANGES).
        progress: is called with (rows done, rows in all).
        ended: no more rows will come, so what has not been in a result never will be (LEFT JOIN).
        """
        work = self._fed(tables, clock, progress, ended)
        self.feeding = True
        while True:
            self.meter.start()
            made = next(work, None)
            self.meter.stop(self.totals)
            if made is None:
                break
            yield made
        self.feeding = False

    def _fed(
        self, tables: Mapping[str, pa.Table], clock: int, progress: Progress | None, ended: bool
    ) -> Iterator[pa.RecordBatch]:
        yield from self._pieces(tables, clock, progress)
        if self.gather.unmatched is not None and clock != L.DEAD:
            alone = self.gather.alone(*self.gather.unmatched.leave(clock, ended))
            self.totals.results += alone.num_rows
            if alone.num_rows:
                yield alone
        self._step()

    def _pieces(
        self, tables: Mapping[str, pa.Table], clock: int, progress: Progress | None
    ) -> Iterator[pa.RecordBatch]:
        """Order rows, cut all streams at the same moments, and run piece by piece."""
        given = [i.in_order(t) if (t := tables.get(i.source.alias)) is not None else None for i in self.intakes]
        counts = [0 if t is None else t.num_rows for t in given]
        times = [
            None if t is None or i.source.static else timestamps(t, i.source.timestamp)
            for i, t in zip(self.intakes, given, strict=True)
        ]
        done, total = 0, sum(counts)
        for piece in cuts(times, counts, CHUNK):
            secret, rows = self.arena.secret, []
            for k, (intake, table, (low, high)) in enumerate(zip(self.intakes, given, piece, strict=True)):
                held = partial(self._held, k)
                rows.append(None if table is None else intake.rows(table.slice(low, high - low), secret, held))
            came = sum(high - low for low, high in piece)
            self.totals.tuples_in += came
            self.totals.rejected += came - sum(r.joining + r.shed for r in rows if r)
            for source, some in zip(self.bound.sources, rows, strict=True):
                if some is not None and some.shed:
                    self.note_shed(source.alias, some.shed, some.shed_until)
            yield from self._run(rows, L.DEAD)
            done += came
            if progress:
                progress(done, total)
        if any(self.program.leave) and clock != L.DEAD:
            yield from self._run([None] * len(self.intakes), clock)

    def note_shed(self, alias: str, rows: int, until: int) -> None:
        """So many rows of a stream were given up, here or before they came here; the last of them had this timestamp. Until it would
        have left its window, results may be missing."""
        window = self.bound.source(alias).window
        assert window is not None
        self.totals.shed += rows
        exact = until + window.size + 1 if window.kind == "RANGE" else L.FAR
        self.totals.exact_since_us = max(self.totals.exact_since_us, exact)

    def _held(self, k: int, keys: Any, checks: Any) -> tuple[Any, pa.Table]:
        """Which of these partitions a window has, and a row of each."""
        rows = self.arena.held_rows(k, keys, checks)
        exists = rows >= 0
        return exists, self.payloads[k].take(rows[exists])

    def _run(self, rows: list[Rows | None], clock: int) -> Iterator[pa.RecordBatch]:
        """Run the kernel over a piece, and give it what it comes back for."""
        for k, some in enumerate(rows):
            if some is not None:
                self.arena.admit(k, some.count)
        given = laid_out(rows, [p.next for p in self.payloads])
        for payload, some in zip(self.payloads, rows, strict=True):
            if some is not None:
                payload.append(some.payload)
        self.meter.begin(given, np.array([some.thinned if some else 1.0 for some in rows]))
        while True:
            arena = self.arena
            self.walkers[:, [L.OUTERS, L.INNERS]] = 0  # rows are others, or the arena is laid out again
            self.control[L.PREFETCHES] = arena.bytes > CACHE
            if not self.control[L.GROUP_ROWS]:  # else some of what the windows hold has left, for the group under way
                self.control[L.HOLDS] = arena.tuples
            why = run(
                arena.memory, arena.steps, self.frame, self.group, given, self.walkers, self.out, self.control, L.FAR, clock
            )  # fmt: skip
            self._note_peak()
            if self.control[L.OUT_ROWS] and why in (L.OUT_FULL, L.DONE):
                yield from self._results()
            if self.unprobed.steps:
                self.meter.advance()
                since = self.unprobed.missing_until(arena.counters, max(self.meter.event_time, clock))
                self.totals.exact_since_us = max(self.totals.exact_since_us, since)
            if why == L.GROW:
                arena.grow(int(self.control[L.WANTED]))
            elif why == L.PAUSED:
                self._step()
            elif why == L.DONE:
                break
        self.meter.end()
        self._note_peak()
        self._tidy()

    def _step(self) -> None:
        """Let the controller see what has happened, and do what it decides."""
        change = self.controller.step(self.meter.seen(self.arena, self.totals, self.streams))
        if change is not None:
            self.apply(change)
        self.meter.mark(self.arena, self.totals)
        self.control[L.QUOTA] = self.controller.every

    def _results(self) -> Iterator[pa.RecordBatch]:
        count = int(self.control[L.OUT_ROWS])
        self.control[L.OUT_ROWS] = 0
        self.totals.candidates += count
        made = self.gathered(self.out[:, :count])
        self.totals.results += count if made is None else made.num_rows
        if made is not None and made.num_rows:
            yield made

    def gathered(self, candidates: Any) -> pa.RecordBatch | None:
        """The results among candidates (row numbers of each stream, then result_ts). None: all are, and none is given out (an engine
        that only counts)."""
        return self.gather.results(self.payloads, candidates)

    def _tidy(self) -> None:
        """Between pieces: take ids down, and let payload go that no window refers to."""
        self.arena.rebase()
        for k, payload in enumerate(self.payloads):
            row = self.arena.S[k]
            if row[L.KIND] == L.RING:
                payload.forget(int(row[L.ROWBASE] + row[L.FLOOR]))
            elif payload.rows > 2 * row[L.LIVE] + SLACK:
                records = self.arena.records(k)
                used = np.flatnonzero(self.arena.taken(k))
                used = used[np.argsort(records[used, L.ROWNUM])]
                records[used, L.ROWNUM] = payload.keep(records[used, L.ROWNUM])

    def apply(self, change: Change) -> None:
        """Change what runs, between two tuples, and log it: the only way to do so. What can't be done is refused before all else."""
        if self.control[L.PHASE] != L.PICK:
            raise PlanError(
                "the engine can't be changed in the middle of a tuple\n  change it in a controller's step, or when feed has ended"
            )
        for name in change.parts:
            if name not in _CAN:
                raise PlanError(f"the engine can't change '{name}' yet: {change}\n  leave it out of the change")
        was, wanted = self.plan, change.wanted(self.plan)
        if wanted is not was:
            self._switch(compile_plan(self.bound, wanted))
            self._set_shed()
            self.events.note(change, was, wanted, self.meter.arrivals, self.meter.event_time_us)

    def _switch(self, program: Program) -> None:
        """Pipelines at once, windows as they are, inner states kept or built."""
        began = time.perf_counter()
        bank(self.totals, self.arena)
        if program.stores == self.program.stores:
            self.program = self.arena.program = program
            self.arena.missing = []
            self.arena.set_pipelines()
            self._scratch()
        else:
            for s in range(self.arena.leaves):
                if self.arena.S[s, L.DEAD_COUNT]:
                    self.arena.free_dead(s)
            self.program, self.arena = program, Arena(program, self.arena)
            self._scratch()
            self._fill(self.arena.missing)
        self.meter.mark(self.arena, self.totals)
        self.totals.plan_switches += 1
        self.totals.plan_switch_seconds += time.perf_counter() - began

    def _fill(self, stores: Any) -> None:
        """Build inner states from the windows, children before parents."""
        arena = self.arena
        for s in stores:
            driver, _ = self.program.fill[s - arena.leaves]
            pipe = arena.pipelines.fill[s - arena.leaves]
            self.control[L.PHASE] = L.PICK
            row = arena.S[driver]
            self.control[L.FILL_NEXT] = row[L.FLOOR] if row[L.KIND] == L.RING else 0
            while True:
                why = fill(
                    arena.memory, arena.steps, self.frame, self.group, self.out, self.control, driver, pipe
                )  # fmt: skip
                if why == L.DONE:
                    break
                arena.grow(int(self.control[L.WANTED]))
        self._note_peak()

    def _note_peak(self) -> None:
        peak = int(self.control[L.PEAK])
        if not self.control[L.GROUP_ROWS]:
            peak = max(peak, self.arena.tuples)
        self.totals.peak_state_tuples = max(self.totals.peak_state_tuples, peak)
        self.totals.peak_state_bytes = max(self.totals.peak_state_bytes, self.arena.bytes)


_CAN = ("allowances", "caches", "keep", "plan")  # what `apply` can change
_CARRIED = [L.QUOTA, L.OUT_ROWS, L.GROUPS, L.SET_OUT]  # control words that outlive a plan
