"""Arrive: the next row in global order enters its window, after all that leaves before it, and sets out on its pipeline."""

from __future__ import annotations

from watersmeet.engine.kernel.leave import begin, depart, expire, push_out
from watersmeet.engine.kernel.prefetch import look_ahead
from watersmeet.engine.native.mark import Table, Words, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Given, Memory, Steps
from watersmeet.engine.store.partition import find_partition, join_partition
from watersmeet.engine.store.record import room
from watersmeet.engine.store.window import put


@inlined
def arrive(
    mem: Memory, steps: Steps, frame: Frame, given: Given, walkers: Table, control: Words, s: int, now: int
) -> int:
    """A row enters its window; if it pushes a tuple out, that one leaves first. Returns GO_ON or GROW."""
    at, rows = given.streams[s, L.AT], given.streams[s, L.ROWS_IN]
    key, check, entry = 0, 0, -1
    if mem.stores[s, L.WINDOW] == L.PARTITION:
        if not room(mem, s) or mem.stores[s, L.PART_USED] * 2 > mem.stores[s, L.PART_MASK]:
            control[L.WANTED] = s
            return L.GROW
        key = given.values[given.streams[s, L.PART_IN] + at]
        check = given.values[given.streams[s, L.PART_IN] + rows + at]
        entry = find_partition(mem, s, key, check)
    leaver = push_out(mem, s, entry)
    if leaver >= 0:
        depart(mem, frame, control, s, leaver, now)
        return L.GO_ON
    if not room(mem, s):
        control[L.WANTED] = s
        return L.GROW
    if control[L.PREFETCHES]:
        look_ahead(mem, steps, given, walkers, control, s, at)
    alive = given.streams[s, L.ALIVE_IN] < 0 or given.flags[given.streams[s, L.ALIVE_IN] + at] != 0
    tid = put(mem, given, s, at, now, alive)
    if entry >= 0:
        join_partition(mem, s, entry, key, check, tid)
    given.streams[s, L.AT] = at + 1
    control[L.HOLDS] += 1
    control[L.QUOTA] -= 1
    if control[L.NEWEST]:
        control[L.BEHIND] = (rows - 1 - at) * L.ALL // rows
    if alive and mem.stores[s, L.PIPE] >= 0:
        begin(frame, control, mem.stores[s, L.PIPE], s, tid, now)
    return L.GO_ON


@inlined
def next_tuple(
    mem: Memory, steps: Steps, frame: Frame, given: Given, walkers: Table, control: Words, until: int, clock: int
) -> int:
    """One step in time: a tuple leaves, or the next row arrives. Returns GO_ON, GROW, or DONE when there is neither."""
    control[L.PEAK] = max(control[L.PEAK], control[L.HOLDS])
    s, now = -1, until
    for k in range(given.streams.shape[0]):
        if given.streams[k, L.AT] < given.streams[k, L.ROWS_IN]:
            ts = given.values[given.streams[k, L.TS_IN] + given.streams[k, L.AT]]
            if ts < now:
                s, now = k, ts
    leaver = expire(mem, control, given.streams.shape[0], now if s >= 0 else clock)
    if leaver >= 0:
        depart(mem, frame, control, leaver, mem.stores[leaver, L.FLOOR], mem.stores[leaver, L.EXPIRES] + 1)
        return L.GO_ON
    if s < 0:
        return L.DONE
    return arrive(mem, steps, frame, given, walkers, control, s, now)
