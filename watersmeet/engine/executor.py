"""Engine: runs a Program over rows. Feeds the kernel, gives it room, filters and gathers its candidates, switches plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.engine.kernel.fill import fill
from watersmeet.engine.kernel.run import run
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.compile import compile_plan
from watersmeet.engine.program.tables import Frame, Given, Group
from watersmeet.engine.rows.gather import Gather
from watersmeet.engine.rows.intake import Intake, Rows
from watersmeet.engine.rows.payload import Payload
from watersmeet.engine.store.arena import Allocate, Arena
from watersmeet.errors import PlanError
from watersmeet.model.bind import BoundQuery
from watersmeet.model.graph import JoinGraph
from watersmeet.model.plan import Plan
from watersmeet.model.program import Probe, Program

CHUNK = 1 << 17  # rows of all streams that are prepared at a time
OUT = 1 << 16  # candidates that the kernel hands over at a time
CACHE = 1 << 20  # bytes of state from which on the kernel looks ahead
LARGEST_GROUP = 512  # rows that go through their pipelines together
LISTS = 1 << 16  # entries that the lists of what they find have room for, besides the rows themselves
SLACK = 1 << 16  # rows of payload that a PARTITION BY window may keep beyond twice what it holds
ENDLESS = 1 << 62  # arrivals

Pause = Callable[["Engine"], None]


@dataclass
class Totals:
    """What has happened since the engine was made, over all plans it has had."""

    tuples_in: int = 0
    rejected: int = 0
    results: int = 0
    candidates: int = 0
    probes: int = 0
    matches: int = 0
    inserts: int = 0
    expiries: int = 0
    plan_switches: int = 0
    plan_switch_seconds: float = 0.0
    peak_state_tuples: int = 0
    peak_state_bytes: int = 0


@dataclass(frozen=True)
class OpCount:
    """One step of one pipeline of the plan in use: how many tuples came to it, how many matches it gave."""

    pipeline: str
    step: str
    tuples_in: int
    matches: int


@dataclass(frozen=True)
class StoreCount:
    """One window or inner state: what it holds now, and what has come and gone since the plan has been in use."""

    name: str
    tuples: int
    bytes: int
    inserts: int
    expiries: int


class Engine:
    """One query, running. `feed` takes rows that are next in global order and yields results as Arrow batches.

    pause, every: call `pause(engine)` after each `every` arrivals, between two tuples; it may switch the plan.
    allocate: gives the memory of arenas (Spark's cells have them in shared memory).
    """

    def __init__(
        self,
        bound: BoundQuery,
        plan: Plan,
        pause: Pause | None = None,
        every: int = 1 << 20,
        allocate: Allocate | None = None,
    ) -> None:
        self.bound, self.pause, self.every = bound, pause, every
        self.program = compile_plan(bound, plan)
        self.totals = Totals()
        self.gather = Gather(bound, self.program.late)
        self.intakes = [self._intake(i) for i in range(len(bound.sources))]
        self.payloads = [Payload(self.gather.schema(s.alias)) for s in bound.sources]
        self.arena = Arena(self.program, allocate=allocate)
        self._scratch()

    def _intake(self, number: int) -> Intake:
        bound, source, columns = self.bound, self.bound.sources[number], self.program.columns[number]
        implied = tuple(expr for alias, expr in JoinGraph.of(bound).implied if alias == source.alias)
        joins = (side for p in (*bound.equalities, *bound.comparisons) for side in (p.left, p.right))
        sides = dict.fromkeys(s.expr for s in joins if s.stream == source.alias and s.expr not in columns)
        return Intake(
            source, bound.selections[source.alias], columns, self.gather.needs(source.alias), implied, tuple(sides)
        )

    def _scratch(self) -> None:
        ops, leaves = len(self.arena.pipelines.ops), len(self.bound.sources)
        self.frame = Frame(np.zeros((ops, L.MAX_KEYS), np.int64), np.zeros(ops, np.int64), np.zeros(leaves, np.int64))
        self.walkers = np.zeros((leaves, L.WALKER_WIDTH), np.int64)
        self.control = np.zeros(L.CONTROL_WIDTH, np.int64)
        self.control[L.LEAVING] = -1
        self.control[L.QUOTA] = self.every if self.pause else ENDLESS
        if not hasattr(self, "out"):
            self.out = np.zeros((leaves + 1, OUT), np.int64)
            notes = np.zeros((LARGEST_GROUP + 1, L.NOTE_FROM + 2 * leaves + 2), np.int64)
            notes[:, -1] = L.FAR
            entries = LARGEST_GROUP + max(LISTS // leaves**2, leaves**2)
            lists = np.zeros((leaves**2 * L.LIST_ROWS + 2, entries), np.int64)
            self.group = Group(notes, lists, np.zeros((L.WALK_ROWS, entries), np.int64))
        self.control[L.GROUP_SIZE] = LARGEST_GROUP if self.arena.pipelines.groups else 0

    @property
    def plan(self) -> Plan:
        return self.program.plan

    def load_tables(self, tables: Mapping[str, pa.Table]) -> None:
        """Static tables by alias; before the first row of any stream."""
        self._put(tables)

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Put rows back into their windows without running their pipelines, and build inner states from them: instead of
        `load_tables`. Static tables whole; of each stream, in its order, at least the rows that are in its window."""
        leaves = self.arena.leaves
        pipes = self.arena.S[:leaves][:, [L.PIPE, L.LEAVE_PIPE]].copy()
        self.arena.S[:leaves, [L.PIPE, L.LEAVE_PIPE]] = -1
        self._put(tables, pipes)

    def _put(self, tables: Mapping[str, pa.Table], pipes: Any = None) -> None:
        """Rows enter their windows, with no result and no pause (a switch would fill states that are filled here); then
        pipelines are as they were, and inner states are built."""
        pause, self.pause = self.pause, None
        before = self.totals.tuples_in, self.totals.rejected
        self.control[L.QUOTA] = ENDLESS
        for _ in self.feed(tables):
            raise AssertionError("rows that are put into their windows give no results")
        self.totals.tuples_in, self.totals.rejected = before
        self.pause = pause
        self.control[L.QUOTA] = self.every if pause else ENDLESS
        if pipes is not None:
            self.arena.S[: len(pipes), [L.PIPE, L.LEAVE_PIPE]] = pipes
        self._fill(range(self.arena.leaves, len(self.arena.S)))

    def feed(
        self, tables: Mapping[str, pa.Table], clock: int = L.DEAD, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows by alias, each table in its stream's order (`Intake.in_order`), none before what was fed already.

        clock: time has come this far, so what leaves by then leaves, although no row says so (DSTREAM).
        progress: is called with (rows done, rows in all).
        """
        done, total = 0, sum(t.num_rows for t in tables.values())
        times = [timestamps(t, i.source.timestamp) if not i.source.static and (t := tables.get(i.source.alias)) is not None
                 else None for i in self.intakes]  # fmt: skip
        for cuts in _chunks(
            times, [len(tables[i.source.alias]) if i.source.alias in tables else 0 for i in self.intakes]
        ):
            rows = []
            for intake, (low, high) in zip(self.intakes, cuts, strict=True):
                table = tables.get(intake.source.alias)
                rows.append(intake.rows(table.slice(low, high - low)) if table is not None else None)
            self.totals.tuples_in += sum(high - low for low, high in cuts)
            self.totals.rejected += sum(high - low for low, high in cuts) - sum(r.joining for r in rows if r)
            yield from self._run(rows, L.DEAD)
            done += sum(high - low for low, high in cuts)
            if progress:
                progress(done, total)
        if self.bound.query.emit == "DSTREAM" and clock != L.DEAD:
            yield from self._run([None] * len(self.intakes), clock)

    def _run(self, rows: list[Rows | None], clock: int) -> Iterator[pa.RecordBatch]:
        given = self._input(rows)
        for payload, some in zip(self.payloads, rows, strict=True):
            if some is not None:
                payload.append(some.payload)
        while True:
            arena = self.arena
            self.walkers[:, [L.OUTERS, L.INNERS]] = 0  # rows are others, or the arena is laid out anew
            self.control[L.PREFETCHES] = arena.bytes > CACHE
            if not self.control[L.GROUP_ROWS]:  # else some of what the windows hold has left, for the group under way
                self.control[L.HOLDS] = arena.tuples
            why = run(
                arena.memory, arena.steps, self.frame, self.group, given, self.walkers, self.out, self.control, L.FAR, clock
            )  # fmt: skip
            self._note_peak()
            if self.control[L.OUT_ROWS] and why in (L.OUT_FULL, L.DONE):
                yield from self._results()
            if why == L.GROW:
                arena.grow(int(self.control[L.WANTED]))
            elif why == L.PAUSED:
                self.control[L.QUOTA] = self.every
                if self.pause:
                    self.pause(self)
            elif why == L.DONE:
                break
        self._note_peak()
        self._tidy()

    def _results(self) -> Iterator[pa.RecordBatch]:
        count = int(self.control[L.OUT_ROWS])
        self.control[L.OUT_ROWS] = 0
        self.totals.candidates += count
        made = self.gather.results(self.payloads, self.out[:, :count])
        self.totals.results += made.num_rows
        if made.num_rows:
            yield made

    def _input(self, rows: list[Rows | None]) -> Given:
        """All rows as one flat array, with a table that says where each stream's columns lie in it."""
        streams = np.zeros((len(rows), L.INPUT_WIDTH), np.int64)
        parts: list[Any] = []
        flags: list[Any] = []
        at = flags_at = 0
        for k, given in enumerate(rows):
            if given is None:
                continue
            n = given.count
            self.arena.admit(k, n)
            streams[k, L.ROWS_IN], streams[k, L.ROW0] = n, self.payloads[k].next
            streams[k, L.TS_IN], streams[k, L.COLS_IN] = at, at + n
            parts += [given.ts, *given.columns]
            at += n * (1 + len(given.columns))
            streams[k, L.PART_IN], streams[k, L.ALIVE_IN] = -1, -1
            if given.partition:
                streams[k, L.PART_IN] = at
                parts += given.partition
                at += 2 * n
            if given.alive is not None:
                streams[k, L.ALIVE_IN] = flags_at
                flags.append(given.alive)
                flags_at += n
        values = np.concatenate(parts) if parts else np.zeros(1, np.int64)
        return Given(streams, values, np.concatenate(flags) if flags else np.zeros(1, np.uint8))

    def _tidy(self) -> None:
        """Between feeds: take ids down, and let payload go that no window refers to."""
        self.arena.rebase()
        for k, payload in enumerate(self.payloads):
            row = self.arena.S[k]
            if row[L.KIND] == L.RING:
                payload.forget(int(row[L.ROWBASE] + row[L.FLOOR]))
            elif payload.rows > 2 * row[L.LIVE] + SLACK:
                records = self.arena.records(k)
                used = np.flatnonzero(self._taken(k))
                used = used[np.argsort(records[used, L.ROWNUM])]
                records[used, L.ROWNUM] = payload.keep(records[used, L.ROWNUM])

    def _taken(self, k: int) -> Any:
        """Which slots of a pool hold a tuple, be it one that joins or one that only counts."""
        row, arena = self.arena.S[k], self.arena
        taken = np.ones(int(row[L.NEXT]), bool)
        for chain in (L.FREE, L.DEAD_LIST):
            slot = int(row[chain])
            while slot >= 0:
                taken[slot] = False
                slot = int(arena.h[2 * (row[L.ROWS_AT] + slot * row[L.STRIDE]) + L.FREE_LINK])
        return taken

    def switch(self, plan: Plan | Program) -> None:
        """Change the plan, between two tuples: pipelines at once, windows as they are, inner states kept or built anew."""
        if self.control[L.PHASE] != L.PICK:
            raise PlanError(
                "a plan can't be switched in the middle of a tuple\n  switch in `pause`, or when feed has ended"
            )
        began = time.perf_counter()
        program = plan if isinstance(plan, Program) else compile_plan(self.bound, plan)
        self._bank()
        quota, rows = self.control[L.QUOTA], self.control[L.OUT_ROWS]
        if program.stores == self.program.stores:
            self.program = self.arena.program = program
            self.arena.set_pipelines()
            self._scratch()
        else:
            for s in range(self.arena.leaves):
                if self.arena.S[s, L.DEAD_COUNT]:
                    self.arena.free_dead(s)
            self.program, self.arena = program, Arena(program, self.arena)
            self._scratch()
            self._fill(self.arena.missing)
        self.control[L.QUOTA], self.control[L.OUT_ROWS] = quota, rows
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

    def metrics(self) -> dict[str, Any]:
        """What has happened so far, as numbers by name."""
        made = {name: getattr(self.totals, name) for name in self.totals.__dataclass_fields__}
        for name, count in self._counted().items():
            made[name] += count
        made["state_tuples"] = self.arena.tuples
        made["state_bytes"] = self.arena.bytes
        made["payload_bytes"] = sum(p.bytes for p in self.payloads)
        return made

    def operators(self) -> list[OpCount]:
        """The steps of all pipelines of the plan in use, with their counts."""
        made = []
        names = [s.name for s in self.program.stores]
        for pipes, starts in (
            (self.program.arrive, self.arena.pipelines.arrive),
            (self.program.leave, self.arena.pipelines.leave),
        ):
            for leaf, (pipeline, first) in enumerate(zip(pipes, starts, strict=True)):
                for k, op in enumerate(pipeline):
                    if isinstance(op, Probe):
                        came, matched = (int(c) for c in self.arena.counters[first + k])
                        made.append(OpCount(names[leaf], names[op.store], came, matched))
        return made

    def stores(self) -> list[StoreCount]:
        """The windows, then the inner states, with what they hold."""
        made = []
        for s, spec in enumerate(self.program.stores):
            row = self.arena.S[s]
            inserts, expiries = int(row[L.INSERTS]), int(row[L.EXPIRIES])
            made.append(StoreCount(spec.name, self.arena.live(s), int(row[L.WORDS]) * 8, inserts, expiries))
        return made

    def _counted(self) -> dict[str, int]:
        """What the operators and stores of the plan in use have counted."""
        probes = self.arena.pipelines.ops[:, L.CODE] == L.PROBE
        return {
            "probes": int(self.arena.counters[probes, L.TUPLES_IN].sum()),
            "matches": int(self.arena.counters[probes, L.MATCHES].sum()),
            "inserts": int(self.arena.S[:, L.INSERTS].sum()),
            "expiries": int(self.arena.S[:, L.EXPIRIES].sum()),
        }

    def _bank(self) -> None:
        """Add what has been counted to the totals, and start the counters anew."""
        for name, count in self._counted().items():
            setattr(self.totals, name, getattr(self.totals, name) + count)
        self.arena.counters[:] = 0
        self.arena.S[:, [L.INSERTS, L.EXPIRIES]] = 0

    def _note_peak(self) -> None:
        peak = int(self.control[L.PEAK])
        if not self.control[L.GROUP_ROWS]:
            peak = max(peak, self.arena.tuples)
        self.totals.peak_state_tuples = max(self.totals.peak_state_tuples, peak)
        self.totals.peak_state_bytes = max(self.totals.peak_state_bytes, self.arena.bytes)


def _chunks(times: list[Any], counts: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Cut all streams at the same moments, so that a piece has about CHUNK rows; static tables (no times) come whole, first."""
    sample = min(1 << 10, CHUNK)
    found = [t[::sample] for t in times if t is not None and len(t)]
    marks = (
        np.unique(np.sort(np.concatenate(found))[:: max(CHUNK // sample, 1)][1:]) if found else np.zeros(0, np.int64)
    )
    done = [0] * len(times)
    for mark in [*marks.tolist(), None]:
        cuts = []
        for k, (t, count) in enumerate(zip(times, counts, strict=True)):
            high = count if t is None or mark is None else int(np.searchsorted(t, mark, side="left"))
            cuts.append((done[k], high))
            done[k] = high
        if any(high > low for low, high in cuts):
            yield cuts
