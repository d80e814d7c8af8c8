"""What the engine counts: totals of a query's life, the counters of the plan in use, and what a controller has not seen yet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from watersmeet.engine.cache_counts import CACHE_COUNTERS, cache_counts, cache_totals
from watersmeet.engine.control import Observed, OpCount, StoreCount
from watersmeet.engine.program import layout as L
from watersmeet.engine.sample import sample
from watersmeet.engine.store.arena import Arena
from watersmeet.model.program import Probe

US = 1e6  # microseconds in a second
_MOVED = [L.INSERTS, L.EXPIRIES, *CACHE_COUNTERS]  # what stores count


@dataclass
class Totals:
    """What has happened since the query began, over all plans it has had.

    cache_hits, cache_misses: lookups that a cache answered, or could not. cache_updates: combinations that joined entries of caches.
    cache_evictions: entries that went although nobody asked for it. evicted: tuples that bounded state let go. shed: rows dropped
    before the join. unprobed: probes that allowances left out. exact_since_us: event time from which on nothing is missing; lowest: always,
    highest: not foreseeable (a row of a ROWS window is missing until others have pushed it out).
    Each is counted where it happens; exact plans without caches do none.
    """

    tuples_in: int = 0
    rejected: int = 0
    results: int = 0
    candidates: int = 0
    probes: int = 0
    matches: int = 0
    inserts: int = 0
    expiries: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    cache_updates: int = 0
    cache_evictions: int = 0
    evicted: int = 0
    shed: int = 0
    unprobed: int = 0
    exact_since_us: int = L.DEAD
    plan_switches: int = 0
    plan_switch_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_state_tuples: int = 0
    peak_state_bytes: int = 0


def counted(arena: Arena) -> dict[str, int]:
    """What the operators and stores of the plan in use have counted."""
    probes = arena.pipelines.ops[:, L.CODE] == L.PROBE
    return {
        "probes": int(arena.counters[probes, L.TUPLES_IN].sum()),
        "matches": int(arena.counters[probes, L.MATCHES].sum()),
        "unprobed": int(arena.counters[probes, L.UNPROBED].sum()),
        "inserts": int(arena.S[:, L.INSERTS].sum()),
        "expiries": int(arena.S[:, L.EXPIRIES].sum()),
        **cache_totals(arena),
    }


def bank(totals: Totals, arena: Arena) -> None:
    """Add what has been counted to the totals, and start the counters at zero."""
    for name, count in counted(arena).items():
        setattr(totals, name, getattr(totals, name) + count)
    arena.counters[:] = 0
    arena.S[:, _MOVED] = 0


def operators(arena: Arena, counters: Any) -> tuple[OpCount, ...]:
    """The steps of all pipelines of the plan in use, with their counts in a table of counters."""
    made = []
    program, pipelines = arena.program, arena.pipelines
    names = [s.name for s in program.stores]
    for pipes, starts in ((program.arrive, pipelines.arrive), (program.leave, pipelines.leave)):
        for leaf, (pipeline, first) in enumerate(zip(pipes, starts, strict=True)):
            for k, op in enumerate(pipeline):
                if isinstance(op, Probe):
                    came, matched, unprobed = (int(c) for c in counters[first + k, : L.CREDIT])
                    made.append(OpCount(names[leaf], names[op.store], came, matched, unprobed))
    return tuple(made)


def stores(arena: Arena, moved: Any) -> tuple[StoreCount, ...]:
    """The windows, then the inner states, with what they hold; `moved`: inserts and expiries of each."""
    return tuple(
        StoreCount(spec.name, arena.live(s), 8 * int(arena.S[s, L.WORDS]), int(moved[s, 0]), int(moved[s, 1]))
        for s, spec in enumerate(arena.program.stores[: arena.caches.start])
    )


def moved(arena: Arena) -> Any:
    """For each store inserts and expiries since its plan has been in use; then what caches count."""
    return arena.S[:, _MOVED]


@dataclass
class Meter:
    """Follows a run from step to step. arrived: rows of each stream that are in; event_time: of the last of them, DEAD: none yet.

    The other fields are as they were at the last step.
    """

    arrived: Any
    event_time: int = L.DEAD
    counters: Any = field(default_factory=lambda: np.zeros(0, np.int64))
    moved: Any = field(default_factory=lambda: np.zeros(0, np.int64))
    arrived_then: Any = 0
    time_then: int = L.DEAD
    results_then: int = 0
    cpu_then: float = 0.0
    offered: Any = 0.0  # rows of each stream that were there for the join, those that were shed included
    offered_then: Any = 0.0
    thinned: Any = 1.0  # in the piece under way: rows offered for each that came in
    under_way: Any = None  # the tables of the piece that the kernel is at (tables.Given)
    began: float = 0.0

    @classmethod
    def of(cls, arena: Arena) -> Meter:
        made = cls(np.zeros(arena.leaves, np.int64), offered=np.zeros(arena.leaves))
        made.mark(arena, Totals())
        return made

    def begin(self, given: Any, thinned: Any) -> None:
        """A piece of input goes to the kernel."""
        self.under_way, self.thinned = given, thinned
        if self.time_then == L.DEAD:
            firsts = [int(given.values[s[L.TS_IN]]) for s in given.streams if s[L.ROWS_IN]]
            self.time_then = min(firsts, default=L.DEAD)

    def advance(self) -> None:
        """Take note of how far the kernel has come in it."""
        given = self.under_way
        if given is None:
            return
        done = given.streams[:, L.AT]
        last = given.streams[:, L.TS_IN] + done - 1
        self.event_time = max([self.event_time, *(int(t) for t in given.values[last[done > 0]])])

    @property
    def rows(self) -> Any:
        """Of each stream all rows that have come to their windows."""
        return self.arrived if self.under_way is None else self.arrived + self.under_way.streams[:, L.AT]

    @property
    def wanted(self) -> Any:
        """Of each stream all rows that would have come to their windows, had none been shed."""
        return self.offered if self.under_way is None else self.offered + self.under_way.streams[:, L.AT] * self.thinned

    @property
    def arrivals(self) -> int:
        return int(self.rows.sum())

    @property
    def event_time_us(self) -> int | None:
        return None if self.event_time == L.DEAD else self.event_time

    def end(self) -> None:
        """The kernel is through with the piece."""
        self.advance()
        self.arrived, self.offered, self.under_way = self.rows, self.wanted, None

    def seen(self, arena: Arena, totals: Totals, rated: Mapping[str, int]) -> Observed:
        """What has happened since the last step. rated: the streams by alias, without static tables."""
        self.advance()
        came = self.rows - self.arrived_then
        rows_in = {alias: int(came[k]) for alias, k in rated.items()}
        offered = self.wanted - self.offered_then
        seconds = (self.event_time - self.time_then) / US if self.time_then != L.DEAD else 0.0
        return Observed(
            plan=arena.program.plan,
            operators=operators(arena, arena.counters - self.counters),
            stores=stores(arena, moved(arena) - self.moved),
            rows_in=rows_in,
            rates={alias: float(offered[k]) / seconds for alias, k in rated.items()} if seconds > 0 else {},
            state_tuples=arena.tuples,
            state_bytes=arena.bytes,
            cpu_seconds=self.cpu(totals) - self.cpu_then,
            event_time_us=self.event_time_us,
            arrivals=self.arrivals,
            results=totals.results - self.results_then,
            caches=cache_counts(arena, arena.counters - self.counters, moved(arena) - self.moved),
            sample=lambda: sample(arena),
        )

    def mark(self, arena: Arena, totals: Totals) -> None:
        """A step is done: what comes from now on is seen by the next."""
        self.counters, self.moved = arena.counters.copy(), moved(arena).copy()
        self.arrived_then, self.offered_then = self.rows.copy(), self.wanted + 0.0
        if self.event_time != L.DEAD:
            self.time_then = self.event_time
        self.results_then, self.cpu_then = totals.results, self.cpu(totals)

    def start(self) -> None:
        """The engine's thread works for this query from now on."""
        self.began = time.thread_time()

    def stop(self, totals: Totals) -> None:
        """The engine waits for its caller."""
        totals.cpu_seconds, self.began = self.cpu(totals), 0.0

    def cpu(self, totals: Totals) -> float:
        """CPU seconds up to now."""
        return totals.cpu_seconds + (time.thread_time() - self.began if self.began else 0.0)
