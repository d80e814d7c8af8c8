"""Rebuild: fill indexes from the tuples of their store, and sweep dead entries out of states. It happens between tuples."""

from __future__ import annotations

from watersmeet.engine.native.mark import compiled, inlined, prefetch
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory
from watersmeet.engine.store.index import head_for, link
from watersmeet.engine.store.record import record, stamp
from watersmeet.engine.store.state import entry_in_windows

NEAR = 16  # tuples ahead whose buckets are asked for


@inlined
def _relink_one(mem: Memory, s: int, x: int) -> None:
    """Fill one index from the live tuples of its store, oldest first."""
    if mem.indexes[x, L.ORDERED]:
        mem.indexes[x, L.ROOT] = -1
    else:
        for b in range(mem.indexes[x, L.BUCKETS] + 1):
            mem.halves[mem.indexes[x, L.HEADS_AT] + b] = -1
    first = mem.stores[s, L.FLOOR] if mem.stores[s, L.KIND] == L.RING else 0
    for tid in range(first, mem.stores[s, L.NEXT]):
        if tid + NEAR < mem.stores[s, L.NEXT] and not mem.indexes[x, L.ORDERED]:
            prefetch(mem.halves, head_for(mem, x, record(mem, s, tid + NEAR)))
        if mem.stores[s, L.KIND] == L.STATE or mem.words[stamp(mem, s, tid)] != L.DEAD:
            link(mem, x, tid)


@compiled
def relink(mem: Memory, s: int) -> None:
    """Fill all indexes of a store."""
    for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
        _relink_one(mem, s, x)


@compiled
def sweep(mem: Memory, s: int) -> None:
    """Take out the entries of a state that have lost a member, and close the gaps."""
    kept = 0
    for tid in range(mem.stores[s, L.NEXT]):
        r = record(mem, s, tid)
        if entry_in_windows(mem, s, r):
            if kept != tid:
                to = record(mem, s, kept)
                for w in range(mem.stores[s, L.STRIDE]):
                    mem.words[to + w] = mem.words[r + w]
            kept += 1
    gone = mem.stores[s, L.NEXT] - kept
    mem.stores[s, L.EXPIRIES] += gone
    mem.stores[s, L.NEXT] = kept
    mem.stores[s, L.LIVE] = kept
    if gone:
        for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
            _relink_one(mem, s, x)
