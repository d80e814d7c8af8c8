"""Leave: who leaves a window, and what happens then. Nothing else takes a tuple out.

    expire     RANGE: time has passed it by
    push_out   ROWS, PARTITION BY: a newer tuple takes its place

A tuple whose leaving makes results (DSTREAM, CHANGES) runs its pipeline first, and is taken out at the end of it.
"""

from __future__ import annotations

from watersmeet.engine.native.mark import Words, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Memory
from watersmeet.engine.store.partition import count_of, leave_partition, oldest_of
from watersmeet.engine.store.record import stamp
from watersmeet.engine.store.window import drop_oldest, drop_slot


@inlined
def floor_at(mem: Memory, s: int, floor: int, last: int, moment: int) -> int:
    """The lowest id from `floor` on of a RANGE window that is still there at a moment."""
    mask, at, limit = mem.stores[s, L.MASK], mem.stores[s, L.TIMES_AT], moment - mem.stores[s, L.SIZE]
    while floor < last and mem.words[at + (floor & mask)] < limit:
        floor += 1
    return floor


@inlined
def expires_next(mem: Memory, s: int, floor: int, last: int) -> int:
    """When the first tuple of a RANGE window leaves, if it is `floor`."""
    return mem.words[stamp(mem, s, floor)] + mem.stores[s, L.SIZE] if floor < last else L.FAR


@inlined
def expire(mem: Memory, control: Words, leaves: int, moment: int) -> int:
    """The window whose oldest tuple leaves next before a moment and must be taken out by itself; -1: none.

    Where no index and no pipeline needs to know who leaves, only the floor moves.
    """
    leaver, earliest = -1, moment
    for k in range(leaves):
        if mem.stores[k, L.EXPIRES] < earliest:
            if mem.stores[k, L.EAGER] == 0 and mem.stores[k, L.LEAVE_PIPE] < 0:
                first, last = mem.stores[k, L.FLOOR], mem.stores[k, L.NEXT]
                floor = floor_at(mem, k, first, last, moment)
                mem.stores[k, L.FLOOR] = floor
                mem.stores[k, L.EXPIRIES] += floor - first
                mem.stores[k, L.EXPIRES] = expires_next(mem, k, floor, last)
                control[L.HOLDS] -= floor - first
            else:
                leaver, earliest = k, mem.stores[k, L.EXPIRES]
    return leaver


@inlined
def push_out(mem: Memory, s: int, entry: int) -> int:
    """The tuple that the next one of a ROWS window pushes out; -1: there is room. `entry`: its partition."""
    if mem.stores[s, L.WINDOW] == L.ROWS:
        if mem.stores[s, L.NEXT] - mem.stores[s, L.FLOOR] >= mem.stores[s, L.SIZE]:
            return mem.stores[s, L.FLOOR]
    elif mem.stores[s, L.WINDOW] == L.PARTITION:
        if count_of(mem, entry) >= mem.stores[s, L.SIZE]:
            oldest = oldest_of(mem, entry)
            leave_partition(mem, s, entry)
            return oldest
    return -1


@inlined
def begin(frame: Frame, control: Words, pipe: int, s: int, tid: int, now: int) -> None:
    """Set out on a pipeline of a tuple."""
    frame.bound[s] = tid
    control[L.PC] = pipe
    control[L.START] = pipe
    control[L.FRESH] = 1
    control[L.STREAM] = s
    control[L.NOW] = now
    control[L.LEAVING] = -1
    control[L.PHASE] = L.PIPELINE


@inlined
def take_out(mem: Memory, control: Words, s: int, tid: int) -> None:
    """A tuple is not in its window any more."""
    if mem.stores[s, L.KIND] == L.RING:
        drop_oldest(mem, s)
    else:
        drop_slot(mem, s, tid)
    control[L.HOLDS] -= 1


@inlined
def depart(mem: Memory, frame: Frame, control: Words, s: int, tid: int, now: int) -> None:
    """A tuple leaves: it runs its pipeline, if it has one and has joined, or is taken out at once."""
    if mem.stores[s, L.LEAVE_PIPE] >= 0 and mem.words[stamp(mem, s, tid)] != L.DEAD:
        begin(frame, control, mem.stores[s, L.LEAVE_PIPE], s, tid, now)
        control[L.LEAVING] = tid
    else:
        take_out(mem, control, s, tid)
