"""A read-only look into a running engine, for tests and for people: what lies where, and which ways of the kernel were taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from watersmeet.engine.cache_audit import entries as cached_entries
from watersmeet.engine.control import OpCount
from watersmeet.engine.metrics import operators
from watersmeet.engine.program import layout as L
from watersmeet.engine.store.arena import Arena
from watersmeet.model.plan import Plan
from watersmeet.model.program import IndexSpec

Entry = tuple[int, ...]


@dataclass(frozen=True)
class StoreView:
    """One store. kind: "ring", "pool" or "state". live: tuples of a window, entries stored in a state. cap: slots. bytes: all it takes;
    record_bytes: a slot's share without buckets. indexes: "hash", "ordered" or "scan" each.

    dead: slots whose tuple has left, but which states may still refer to. partitions, partition_slots: of a PARTITION BY window.
    entries: of a state, if asked for: the row numbers of the members of each live entry; of a window, of each tuple.
    """

    name: str
    kind: str
    live: int
    cap: int
    bytes: int
    record_bytes: int
    indexes: tuple[str, ...]
    inserts: int
    expiries: int
    dead: int
    partitions: int
    partition_slots: int
    payload_rows: int
    entries: tuple[Entry, ...] | None


@dataclass(frozen=True)
class View:
    """The engine between two tuples, or where the kernel stopped. pipelines: by stream the stores that its tuples probe, in order.

    may_group: whether the plan lets rows go through their pipelines in groups. group_size: rows of the next group; 0: none; negative:
    so many rows go one by one first. groups: how many have been formed. under_way: where the kernel is with a group: "probes", "writes",
    "singles" (its rows go on one by one), "" (no group). look_aheads: how often walkers have set out before their rows.
    cached: if asked for, what each cache has: by key the row numbers of the members of each combination that is live.
    pending: candidates that wait in the output buffer. built: inner states that the last change of plan had to build.
    """

    plan: Plan
    stores: tuple[StoreView, ...]
    operators: tuple[OpCount, ...]
    cached: Mapping[str, Mapping[Entry, tuple[Entry, ...]]]
    may_group: bool
    group_size: int
    groups: int
    under_way: str
    look_aheads: int
    pending: int
    built: tuple[str, ...]
    state_tuples: int
    state_bytes: int
    totals: Mapping[str, Any]

    def store(self, name: str) -> StoreView:
        return next(s for s in self.stores if s.name == name)

    @property
    def pipelines(self) -> dict[str, tuple[str, ...]]:
        made: dict[str, tuple[str, ...]] = {}
        for op in self.operators:
            made[op.pipeline] = (*made.get(op.pipeline, ()), op.step)
        return made


def view(arena: Arena, control: Any, payload_rows: list[int], totals: Mapping[str, Any], entries: bool) -> View:
    """What an engine's parts say. payload_rows: of each window."""
    rows = payload_rows + [0] * len(arena.inner)
    made = tuple(_store(arena, s, n, entries) for s, n in enumerate(rows))
    return View(
        plan=arena.program.plan,
        stores=made,
        operators=operators(arena, arena.counters),
        cached={arena.program.stores[s].name: _cached(arena, s) for s in arena.caches} if entries else {},
        may_group=arena.pipelines.groups,
        group_size=int(control[L.GROUP_SIZE]),
        groups=int(control[L.GROUPS]),
        under_way=_UNDER_WAY[int(control[L.PHASE])] if control[L.GROUP_ROWS] else "",
        look_aheads=int(control[L.SET_OUT]),
        pending=int(control[L.OUT_ROWS]),
        built=tuple(arena.program.stores[s].name for s in arena.missing),
        state_tuples=arena.tuples,
        state_bytes=arena.bytes,
        totals=totals,
    )


_UNDER_WAY = {
    L.PICK: "", L.PIPELINE: "singles", L.GROUP_PROBES: "probes", L.GROUP_WRITES: "writes", L.GROUP_SINGLES: "singles",
}  # fmt: skip


def _store(arena: Arena, s: int, payload_rows: int, entries: bool) -> StoreView:
    spec, row = arena.program.stores[s], arena.S[s]
    partitioned = row[L.WINDOW] == L.PARTITION
    return StoreView(
        name=spec.name,
        kind=spec.kind,
        live=arena.live(s),
        cap=int(row[L.CAP]),
        bytes=8 * int(row[L.WORDS]),
        record_bytes=8 * int(row[L.STRIDE]),
        indexes=tuple(map(_kind, spec.indexes)),
        inserts=int(row[L.INSERTS]),
        expiries=int(row[L.EXPIRIES]),
        dead=int(row[L.DEAD_COUNT]),
        partitions=int(row[L.PART_USED]),
        partition_slots=int(row[L.PART_MASK]) + 1 if partitioned else 0,
        payload_rows=payload_rows,
        entries=_entries(arena, s) if entries else None,
    )


def _kind(index: IndexSpec) -> str:
    return "ordered" if index.ordered else "hash" if index.columns else "scan"


def _entries(arena: Arena, s: int) -> tuple[Entry, ...]:
    """The row numbers of the members of all live entries of a store."""
    row = arena.S[s]
    if s < arena.leaves:
        first = int(row[L.FLOOR]) if row[L.KIND] == L.RING else 0
        ids = np.arange(first, int(row[L.NEXT]))
        return tuple((int(n),) for n in _numbers(arena, s, ids[_there(arena, s, ids)]))
    leaves = arena.members[row[L.LEAF_FROM] : row[L.LEAF_TO]]
    members = arena.records(s).view(np.int32)[: row[L.NEXT], : len(leaves)].astype(np.int64)
    alive = np.ones(len(members), bool)
    for j, leaf in enumerate(leaves):
        alive &= _there(arena, leaf, members[:, j])
    numbers = [_numbers(arena, leaf, members[alive, j]) for j, leaf in enumerate(leaves)]
    return tuple(tuple(map(int, entry)) for entry in zip(*numbers, strict=True))


def _cached(arena: Arena, s: int) -> dict[Entry, tuple[Entry, ...]]:
    """The entries of a cache, by their keys."""
    leaves, made = arena.program.stores[s].leaves, dict[Entry, tuple[Entry, ...]]()
    for key, references in cached_entries(arena, s):
        ids = np.array(references, np.int64).reshape(-1, len(leaves))
        numbers = [_numbers(arena, leaf, ids[:, j]) for j, leaf in enumerate(leaves)]
        made[key] = tuple(tuple(map(int, entry)) for entry in zip(*numbers, strict=True))
    return made


def _there(arena: Arena, leaf: int, ids: Any) -> Any:
    """Which tuples of a window are in it and can join."""
    row = arena.S[leaf]
    stamps = arena.m[row[L.TIMES_AT] + (ids & row[L.MASK])]
    return (ids >= row[L.FLOOR]) & (stamps != L.DEAD) if row[L.KIND] == L.RING else stamps != L.DEAD


def _numbers(arena: Arena, leaf: int, ids: Any) -> Any:
    row = arena.S[leaf]
    return ids + row[L.ROWBASE] if row[L.KIND] == L.RING else arena.records(leaf)[ids, L.ROWNUM]
