"""Windows: a tuple is put in, and taken out.

A RING drops its oldest by moving its floor, a POOL frees the slot of any. Tuples that must be found by nobody any more are unlinked.
"""

from __future__ import annotations

from watersmeet.engine.native.mark import inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Given, Memory
from watersmeet.engine.store.index import link, unlink
from watersmeet.engine.store.record import record, stamp


@inlined
def put(mem: Memory, given: Given, s: int, at: int, ts: int, alive: bool) -> int:
    """Row `at` of a stream enters its window. Returns its id.

    A row that is not alive (a predicate rejects it) takes its place in the window, but no index leads to it.
    """
    if mem.stores[s, L.KIND] == L.RING:
        tid = mem.stores[s, L.NEXT]
        mem.stores[s, L.NEXT] = tid + 1
        r = record(mem, s, tid)
    else:
        tid = mem.stores[s, L.FREE]
        if tid >= 0:
            mem.stores[s, L.FREE] = mem.halves[2 * record(mem, s, tid) + L.FREE_LINK]
        else:
            tid = mem.stores[s, L.NEXT]
            mem.stores[s, L.NEXT] = tid + 1
        r = record(mem, s, tid)
        mem.words[r + L.ROWNUM] = given.streams[s, L.ROW0] + at
        mem.stores[s, L.LIVE] += 1
    to, column, rows = r + mem.stores[s, L.COL0], given.streams[s, L.COLS_IN] + at, given.streams[s, L.ROWS_IN]
    for c in range(mem.stores[s, L.NCOLS]):
        mem.words[to + c] = given.values[column + c * rows]
    mem.stores[s, L.INSERTS] += 1
    if not alive:
        mem.words[stamp(mem, s, tid)] = L.DEAD
        return tid
    mem.words[stamp(mem, s, tid)] = ts
    if mem.stores[s, L.WINDOW] == L.RANGE and tid == mem.stores[s, L.FLOOR]:
        mem.stores[s, L.EXPIRES] = ts + mem.stores[s, L.SIZE]
    for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
        link(mem, x, tid)
    return tid


@inlined
def drop_oldest(mem: Memory, s: int) -> None:
    """The oldest tuple of a ring leaves."""
    tid = mem.stores[s, L.FLOOR]
    if mem.stores[s, L.EAGER] and mem.words[stamp(mem, s, tid)] != L.DEAD:
        for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
            unlink(mem, x, tid)
    mem.stores[s, L.FLOOR] = tid + 1
    mem.stores[s, L.EXPIRIES] += 1
    if mem.stores[s, L.WINDOW] == L.RANGE:
        mem.stores[s, L.EXPIRES] = (
            mem.words[stamp(mem, s, tid + 1)] + mem.stores[s, L.SIZE] if tid + 1 < mem.stores[s, L.NEXT] else L.FAR
        )


@inlined
def drop_slot(mem: Memory, s: int, tid: int) -> None:
    """A tuple of a pool leaves; its slot waits in the dead list while states may refer to it."""
    r = record(mem, s, tid)
    if mem.words[stamp(mem, s, tid)] != L.DEAD:
        for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
            unlink(mem, x, tid)
        mem.words[stamp(mem, s, tid)] = L.DEAD
    mem.stores[s, L.EXPIRIES] += 1
    mem.stores[s, L.LIVE] -= 1
    to = L.DEAD_LIST if mem.stores[s, L.HELD] else L.FREE
    mem.halves[2 * r + L.FREE_LINK] = mem.stores[s, to]
    mem.stores[s, to] = tid
    mem.stores[s, L.DEAD_COUNT] += mem.stores[s, L.HELD]
