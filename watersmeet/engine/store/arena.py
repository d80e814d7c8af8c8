"""Arena: windows, indexes, inner states and caches in one arena, laid out for a Program.

Every growth lays the whole arena out again, so it is always compact: one block of memory, which can be saved, mapped or sent. Only the
store that asked for room changes: a probe may be under way in the others, and their chains must stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from watersmeet.engine.program import layout as L
from watersmeet.engine.program.pipelines import Pipelines
from watersmeet.engine.program.tables import Memory, Steps
from watersmeet.engine.store.cache import clear_cache, refill, sweep_cache
from watersmeet.engine.store.cache_shape import shape_cache
from watersmeet.engine.store.partition import held_rows, rehash
from watersmeet.engine.store.rebuild import relink, sweep
from watersmeet.engine.store.secret import factors, fresh
from watersmeet.errors import DataError
from watersmeet.model.program import Program, StoreSpec
from watersmeet.model.window import Window

SMALLEST = 64  # slots of a new store
LINE = 8  # words of a cache line
REBASE = 1 << 30  # ids of a ring are taken down when they pass this, so that links fit 32 bits
MOST = 1 << 30  # slots that a store may have; the ids of a ring come to twice that


Allocate = Callable[[int], Any]  # so many zeroed words for an arena


def _zeros(words: int) -> Any:
    """An arena that begins with a cache line, so that records of a whole part of a line do not lie across two."""
    room = np.zeros(words + LINE, np.int64)
    skip = -room.ctypes.data // 8 % LINE
    return room[skip : skip + words]


class Arena:
    """The arrays of a running program. `m`, `h`: the arena; `S`, `I`: tables of stores and indexes (program/layout.py)."""

    def __init__(self, program: Program, old: Arena | None = None, allocate: Allocate | None = None) -> None:
        """A state for a program: empty, or with the windows of `old` and those of its inner states that serve again.

        `missing` says which inner states are not filled yet.
        """
        self.program = program
        self.most: int = old.most if old is not None else MOST
        self.allocate: Allocate = allocate or (old.allocate if old is not None else _zeros)
        stores, leaves = program.stores, len(program.columns)
        self.leaves = leaves
        self.caches = range(sum(spec.kind != "cache" for spec in stores), len(stores))
        self.inner = range(leaves, self.caches.start)
        self.S = np.zeros((len(stores), L.STORE_WIDTH), np.int64)
        self.I = np.zeros((sum(len(s.indexes) for s in stores), L.INDEX_WIDTH), np.int64)
        self.members = np.array([leaf for s in stores for leaf in s.leaves], np.int64)
        flat = [source for s in stores[leaves:] for source in s.sources]
        self.sources = np.array(flat, np.int64).reshape(-1, 2)
        self.S[:, L.SECRET : L.SECRET + 2] = fresh() if old is None else old.secret
        self.I[:, L.FACTOR :] = factors(self.secret)
        at_index = at_member = at_source = 0
        held = {leaf for s in stores[leaves:] for leaf in s.leaves}
        for s, spec in enumerate(stores):
            row = self.S[s]
            window = program.bound.sources[s].window if s < leaves else None
            row[L.KIND] = _KINDS[spec.kind]
            row[L.WINDOW], row[L.SIZE] = _window(window)
            row[L.NCOLS] = len(program.columns[s]) if s < leaves else len(spec.sources)
            row[L.COL0] = (len(spec.leaves) + 1) // 2 if s >= leaves else 2 if row[L.KIND] == L.POOL else 0
            row[L.LEAF_FROM], row[L.LEAF_TO] = at_member, at_member + len(spec.leaves)
            row[L.INDEX_FROM], row[L.INDEX_TO] = at_index, at_index + len(spec.indexes)
            row[L.SOURCE_FROM] = at_source
            row[L.FREE] = row[L.DEAD_LIST] = -1
            row[L.EXPIRES] = L.FAR
            row[L.HELD] = s in held
            half = 2 * int(row[L.COL0] + row[L.NCOLS])
            for x, index in enumerate(spec.indexes, at_index):
                entry = self.I[x]
                entry[L.ORDERED] = index.ordered
                entry[L.NKEYS] = len(index.columns)
                entry[L.KEY0 : L.KEY0 + len(index.columns)] = [int(row[L.COL0]) + c for c in index.columns]
                entry[L.OF_STORE] = s
                entry[L.ROOT] = -1
                entry[L.DOUBLY] = row[L.KIND] == L.POOL and not index.ordered
                entry[L.LINK], entry[L.BACK], entry[L.PARENT] = half, half + 1, half + 2
                half += 3 if index.ordered else 2 if entry[L.DOUBLY] else 1
                row[L.EAGER] |= index.ordered or row[L.KIND] == L.POOL
            row[L.STRIDE] = (half + 1) // 2
            if spec.kind == "cache":
                shape_cache(row, spec)
            at_index += len(spec.indexes)
            at_member += len(spec.leaves)
            at_source += len(spec.sources) if s >= leaves else 0
        if len(self.sources):
            self.sources[:, 1] += self.S[self.sources[:, 0], L.COL0]
        self.set_pipelines()
        self.lie_in(np.zeros(0, np.int64))
        origin = self._origins(old)
        self.missing = [s for s in self.inner if origin[s] < 0]
        caps, parts = [], []
        for s in range(len(stores)):
            was = old.S[origin[s]] if old is not None and origin[s] >= 0 else None
            caps.append(int(self.S[s, L.CAP]) if s in self.caches else int(was[L.CAP]) if was is not None else SMALLEST)
            parts.append((int(was[L.PART_MASK]) + 1 if was is not None else 64) if self._partitioned(s) else 0)
            same = old is not None and self._is_as_in(old, origin, s)
            if was is not None and (same or s not in self.caches):
                self.S[s, _CARRIED] = was[_CARRIED]
            if old is not None and same:
                here, there = self.S[s], old.S[origin[s]]
                self.I[here[L.INDEX_FROM] : here[L.INDEX_TO], L.ROOT] = old.I[
                    there[L.INDEX_FROM] : there[L.INDEX_TO], L.ROOT
                ]
        self._layout(caps, parts, old, origin)

    def lie_in(self, m: Any) -> None:
        """Have all stores in these words; they are as they were, or are about to be laid out."""
        self.m, self.h = m, m.view(np.int32)

    def _origins(self, old: Arena | None) -> list[int]:
        """For each store the store of `old` that has the same content; -1: none."""
        if old is None:
            return [-1] * len(self.S)
        origin = list(range(self.leaves))
        for spec in self.program.stores[self.leaves :]:
            same = [
                k for k, was in enumerate(old.program.stores)
                if k >= self.leaves and _content(was) == _content(spec)
            ]  # fmt: skip
            origin.append(same[0] if same else -1)
        return origin

    def _is_as_in(self, old: Arena, origin: list[int], s: int) -> bool:
        """Whether a store is in `old`, with the same indexes."""
        return origin[s] >= 0 and old.program.stores[origin[s]] == self.program.stores[s]

    def set_pipelines(self) -> None:
        """Write the program's pipelines into the tables the kernel reads."""
        self.pipelines = Pipelines.of(self.program, self.S)
        self.counters = np.zeros((len(self.pipelines.ops), L.COUNTER_WIDTH), np.int64)
        self.S[: self.leaves, L.PIPE] = self.pipelines.arrive
        self.S[: self.leaves, L.LEAVE_PIPE] = self.pipelines.leave

    @property
    def memory(self) -> Memory:
        """All stores, as the kernel sees them."""
        return Memory(self.m, self.h, self.S, self.I, self.members, self.sources)

    @property
    def steps(self) -> Steps:
        """All pipelines, as the kernel sees them."""
        return Steps(self.pipelines.ops, self.pipelines.checks, self.counters)

    @property
    def secret(self) -> tuple[int, int]:
        """The key of hashes of values."""
        low, high = self.S[0, L.SECRET : L.SECRET + 2]
        return int(low), int(high)

    def held_rows(self, s: int, keys: Any, checks: Any) -> Any:
        """For each of these partitions of a window the number of a row in it; -1: there is no such partition."""
        made = np.empty(len(keys), np.int64)
        held_rows(self.memory, s, keys, checks, made)
        return made

    def _partitioned(self, s: int) -> bool:
        return bool(self.S[s, L.WINDOW] == L.PARTITION)

    def live(self, s: int) -> int:
        """Tuples now in a window; entries of a state that are stored (swept ones are gone, dead ones may be among them); 0 for a cache."""
        row = self.S[s]
        if row[L.KIND] == L.RING:
            return int(row[L.NEXT] - row[L.FLOOR])
        if row[L.KIND] == L.CACHE:
            return 0
        return int(row[L.LIVE] if row[L.KIND] == L.POOL else row[L.NEXT])

    def grow(self, s: int) -> None:
        """Make room in a store: by taking out what is dead where that frees enough of it, else by more slots.

        Twice as many for a window; half as many again for a state, which so never has more than twice what is alive in it.
        """
        row = self.S[s]
        if row[L.KIND] == L.STATE:
            sweep(self.memory, s)
            crowded = row[L.NEXT] > row[L.CAP] * 3 // 4
        elif row[L.KIND] == L.POOL:
            self.free_dead(s)
            crowded = row[L.LIVE] > row[L.CAP] * 3 // 4
        else:
            crowded = row[L.NEXT] - row[L.FLOOR] == row[L.CAP]
        caps = [int(c) for c in self.S[:, L.CAP]]
        parts = [int(p) + 1 if self._partitioned(k) else 0 for k, p in enumerate(self.S[:, L.PART_MASK])]
        if crowded:
            caps[s] += caps[s] // 2 if row[L.KIND] == L.STATE else caps[s]
            if caps[s] > self.most:
                raise self._too_many(s)
        if self._partitioned(s) and row[L.PART_USED] * 2 > row[L.PART_MASK]:
            parts[s] *= 2
        if caps[s] != row[L.CAP] or parts[s] != (row[L.PART_MASK] + 1 if self._partitioned(s) else 0):
            self._layout(caps, parts, self, list(range(len(caps))))

    def admit(self, s: int, rows: int) -> None:
        """Refuse rows whose ids would not fit 32 bits."""
        if self.S[s, L.KIND] == L.RING and self.S[s, L.NEXT] + rows > 2 * self.most - 1:
            raise self._too_many(s)

    def _too_many(self, s: int) -> DataError:
        what, without = ("window", "") if s < self.leaves else ("inner state", ", take a plan without that state")
        return DataError(
            f"the {what} {self.program.stores[s].name} would hold more than {self.most:,} rows\n"
            f"  make windows shorter{without}, or split the join into cells on Spark"
        )

    def sweep_states(self) -> None:
        """Take the dead entries out of every state, so that counts are of live ones."""
        for s in self.inner:
            sweep(self.memory, s)

    def free_dead(self, s: int) -> None:
        """Give a pool's dead slots back, once no state and no cache refers to them."""
        for k in range(self.leaves, len(self.S)):
            if s in self.program.stores[k].leaves:
                (sweep if k in self.inner else sweep_cache)(self.memory, k)
        row = self.S[s]
        while row[L.DEAD_LIST] >= 0:
            slot = int(row[L.DEAD_LIST])
            link = 2 * (row[L.ROWS_AT] + slot * row[L.STRIDE]) + L.FREE_LINK
            row[L.DEAD_LIST] = self.h[link]
            self.h[link] = row[L.FREE]
            row[L.FREE] = slot
        row[L.DEAD_COUNT] = 0

    def taken(self, k: int) -> Any:
        """Which slots of a pool hold a tuple, be it one that joins or one that only counts."""
        row = self.S[k]
        taken = np.ones(int(row[L.NEXT]), bool)
        for chain in (L.FREE, L.DEAD_LIST):
            slot = int(row[chain])
            while slot >= 0:
                taken[slot] = False
                slot = int(self.h[2 * (row[L.ROWS_AT] + slot * row[L.STRIDE]) + L.FREE_LINK])
        return taken

    def rebase(self) -> None:
        """Take down the ids of rings that have come far; between tuples only."""
        for s in range(self.leaves):
            row = self.S[s]
            if row[L.KIND] == L.RING and row[L.NEXT] > REBASE:
                by = int(row[L.FLOOR]) // int(row[L.CAP]) * int(row[L.CAP])
                self._shift_members(s, by)
                row[L.FLOOR] -= by
                row[L.NEXT] -= by
                row[L.ROWBASE] += by
                relink(self.memory, s)

    def clear_caches(self) -> None:
        """Forget all entries, when windows change otherwise than by arrivals and expiries."""
        for k in self.caches:
            clear_cache(self.memory, k)

    def _shift_members(self, leaf: int, by: int) -> None:
        for k in self.caches:
            if leaf in self.program.stores[k].leaves:
                clear_cache(self.memory, k)
        for k in self.inner:
            row = self.S[k]
            sweep(self.memory, k)
            for j, member in enumerate(self.members[row[L.LEAF_FROM] : row[L.LEAF_TO]]):
                if member == leaf:
                    self.records(k).view(np.int32)[: row[L.NEXT], j] -= np.int32(by)

    @property
    def tuples(self) -> int:
        """Tuples in all windows and entries stored in all states."""
        return sum(self.live(s) for s in range(len(self.S)))

    @property
    def bytes(self) -> int:
        return int(self.m.nbytes)

    def records(self, s: int) -> Any:
        """The records of a store, a row for each slot."""
        row = self.S[s]
        at = int(row[L.ROWS_AT])
        return self.m[at : at + int(row[L.CAP] * row[L.STRIDE])].reshape(int(row[L.CAP]), int(row[L.STRIDE]))

    def _layout(self, caps: list[int], parts: list[int], old: Arena | None, origin: list[int]) -> None:
        """Lay the arena out for these capacities and move over what `old` (which may be this state itself) has."""
        was_m = old.m if old is not None else self.m
        was_S = old.S.copy() if old is not None else self.S
        at = 0
        for s, cap in enumerate(caps):
            row = self.S[s]
            begin = at
            row[L.CAP], row[L.MASK], row[L.ROWS_AT] = cap, -1 if row[L.KIND] == L.STATE else cap - 1, at
            at += cap * int(row[L.STRIDE])
            if row[L.KIND] == L.CACHE:
                at += cap * int(row[L.STRIDE])  # two entries in a set
                row[L.BLOCKS_AT] = at
                at += L.CACHE_BLOCK * int(row[L.BLOCKS])
            if s < self.leaves:
                row[L.TIMES_AT] = at
                at += cap
            if row[L.KIND] == L.POOL:
                row[L.PART_AT], row[L.PART_MASK] = at, parts[s] - 1
                at += 4 * parts[s]
            for index in self.I[row[L.INDEX_FROM] : row[L.INDEX_TO]]:
                if not index[L.ORDERED]:
                    bits = (cap - 1).bit_length() if index[L.NKEYS] else 0
                    index[L.HEADS_AT] = 2 * at
                    index[L.BUCKETS], index[L.SHIFT] = (1 << bits) - 1, min(64 - bits, 63)
                    at += max(1 << bits >> 1, 1)
            at += -at % LINE
            row[L.WORDS] = at - begin
        self.lie_in(self.allocate(at))
        for s in range(len(caps)):
            row = self.S[s]
            was = was_S[origin[s]] if origin[s] >= 0 else None
            same = old is not None and self._is_as_in(old, origin, s)
            if was is not None and same and was[L.WORDS] == row[L.WORDS] and was[L.CAP] == row[L.CAP]:
                self.m[row[L.ROWS_AT] : row[L.ROWS_AT] + row[L.WORDS]] = was_m[
                    was[L.ROWS_AT] : was[L.ROWS_AT] + was[L.WORDS]
                ]
                continue
            if was is not None and s in self.caches:
                refill(self.memory, s, was_m.reshape(1, -1), was_m.view(np.int32), was)
            elif was is not None:
                self._move(s, was, was_m)
            relink(self.memory, s)

    def _move(self, s: int, was: Any, was_m: Any) -> None:
        """Copy a store: all but links and bucket heads, which are made again."""
        row = self.S[s]
        at = int(was[L.ROWS_AT])
        before = was_m[at : at + int(was[L.CAP] * was[L.STRIDE])].reshape(int(was[L.CAP]), int(was[L.STRIDE]))
        words, last = int(row[L.COL0] + row[L.NCOLS]), int(row[L.NEXT])
        ring = row[L.KIND] == L.RING
        step = max(1, int(min(row[L.CAP], was[L.CAP])) if ring else last)  # so many lie side by side, before and now
        first = int(row[L.FLOOR]) if ring else 0
        for low in range(first // step * step, last, step):
            id, count = max(low, first), min(low + step, last) - max(low, first)
            to, at = id & int(row[L.MASK]), id & int(was[L.MASK])
            self.records(s)[to : to + count, :words] = before[at : at + count, :words]
            if s < self.leaves:
                to, at = to + int(row[L.TIMES_AT]), at + int(was[L.TIMES_AT])
                self.m[to : to + count] = was_m[at : at + count]
        if row[L.KIND] == L.POOL:
            entries = was_m[was[L.PART_AT] : was[L.PART_AT] + 4 * (was[L.PART_MASK] + 1)].reshape(-1, 4)
            rehash(self.m, row, entries)


_CARRIED = [
    L.FLOOR, L.NEXT, L.FREE, L.ROWBASE, L.EXPIRES, L.PART_USED, L.LIVE, L.DEAD_LIST, L.INSERTS, L.EXPIRIES, L.DEAD_COUNT,
    *range(L.BLOCKS_OUT, L.STORE_WIDTH),
]  # fmt: skip


_KINDS = {"ring": L.RING, "pool": L.POOL, "state": L.STATE, "cache": L.CACHE}


def _content(spec: StoreSpec) -> tuple[object, ...]:
    """What an inner state or a cache holds: those of two plans that are equal in this serve again."""
    return spec.kind, spec.leaves, spec.sources, spec.witnesses


def _window(window: Window | None) -> tuple[int, int]:
    if window is None or window.kind == "UNBOUNDED":
        return L.UNBOUNDED, 0
    if window.kind == "RANGE":
        return L.RANGE, window.size
    return (L.PARTITION if window.partition else L.ROWS), window.size
