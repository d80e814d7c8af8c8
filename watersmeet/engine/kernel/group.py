"""Groups: rows that enter their windows one after the other, and then go through their pipelines together, probe by probe.

    rows           r1 s1 t1 r2 t2 ...      each gets its id, and a note of what every window holds when it comes

Here rows are chosen, enter their windows and indexes, and leave word of what each of them may meet; group_probe.py runs their pipelines.
The rows behind a row have entered their windows before it probes, but ids of a RING count up, so it tells them by its note, and those
that had left before it came by their timestamps.

While a group is under way, the floors of windows stay where they were before it: a state that is swept then keeps what an early row may
still meet, although it is gone for the last one. `pass_by` moves them for a row that goes on by itself, `settle` for the last one.

This is for windows that are first-in-first-out, with one key to a probe and nothing else to check (`Arena.groups`). A group that finds
more than its lists hold goes on one by one (kernel/depth_first.py), by the same notes.
"""

from __future__ import annotations

from watersmeet.engine.kernel.leave import begin, expires_next, floor_at
from watersmeet.engine.native.mark import Table, Words, compiled, inlined, prefetch
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Given, Group, Memory
from watersmeet.engine.store.index import bucket
from watersmeet.engine.store.record import record, stamp


@inlined
def take(mem: Memory, group: Group, given: Given, control: Words, until: int) -> int:
    """Choose the next rows of all streams, in global order, and give them their ids. Returns how many they are.

    It stops where a row would take the place of a tuple that rows before it may still meet: a ROWS window whose ring has hardly
    any room besides is not for groups. While it chooses, it asks for what the rows will be written to, and for the timestamps of what
    leaves next.
    """
    n = given.streams.shape[0]
    for k in range(n):
        group.lists[L.LIST_COUNTS, k * n] = 0
        group.walk[L.WALK_NEXT, k] = (
            given.values[given.streams[k, L.TS_IN] + given.streams[k, L.AT]]
            if given.streams[k, L.AT] < given.streams[k, L.ROWS_IN]
            else until
        )
    taken, most = 0, min(control[L.GROUP_SIZE], control[L.QUOTA])
    while taken < most:
        s, now = -1, until
        for k in range(n):
            sooner = group.walk[L.WALK_NEXT, k] < now
            s = k if sooner else s
            now = group.walk[L.WALK_NEXT, k] if sooner else now
        if s < 0:
            break
        count = group.lists[L.LIST_COUNTS, s * n]
        tid = mem.stores[s, L.NEXT] + count
        if tid - mem.stores[s, L.FLOOR] >= mem.stores[s, L.CAP]:
            if mem.stores[s, L.WINDOW] == L.ROWS and taken < L.GROUP_LEAST:
                control[L.GROUP_SIZE] = 0
            break
        prefetch(mem.words, record(mem, s, tid))
        prefetch(mem.words, stamp(mem, s, tid))
        prefetch(mem.words, stamp(mem, s, mem.stores[s, L.FLOOR] + count))
        at = given.streams[s, L.AT] + 1
        given.streams[s, L.AT] = at
        group.walk[L.WALK_NEXT, s] = (
            given.values[given.streams[s, L.TS_IN] + at] if at < given.streams[s, L.ROWS_IN] else until
        )
        group.lists[s * n * L.LIST_ROWS + L.LIST_ID, count] = tid
        group.lists[s * n * L.LIST_ROWS + L.LIST_G, count] = taken
        group.lists[L.LIST_COUNTS, s * n] = count + 1
        group.notes[taken, L.NOTE_STREAM] = s
        group.notes[taken, L.NOTE_ID] = tid
        group.notes[taken, L.NOTE_NOW] = now
        group.notes[taken, L.NOTE_ROW] = 0
        group.walk[L.WALK_HELD, taken] = 0
        group.walk[L.WALK_KEPT, taken] = 0
        taken += 1
    control[L.QUOTA] -= taken
    return taken


@inlined
def enter(mem: Memory, group: Group, given: Given, s: int) -> None:
    """The rows of one stream enter their window. Those that do not join are taken off the list."""
    n = given.streams.shape[0]
    count, listed = group.lists[L.LIST_COUNTS, s * n], s * n * L.LIST_ROWS
    first, mask = mem.stores[s, L.NEXT], mem.stores[s, L.MASK]
    at, stride = mem.stores[s, L.ROWS_AT] + mem.stores[s, L.COL0], mem.stores[s, L.STRIDE]
    row = given.streams[s, L.AT] - count
    for c in range(-1, mem.stores[s, L.NCOLS]):
        to, step, column = mem.stores[s, L.TIMES_AT], 1, given.streams[s, L.TS_IN]
        if c >= 0:
            to, step, column = at + c, stride, given.streams[s, L.COLS_IN] + c * given.streams[s, L.ROWS_IN]
        for p in range(count):
            mem.words[to + ((first + p) & mask) * step] = given.values[column + row + p]
    if given.streams[s, L.ALIVE_IN] >= 0:
        kept = 0
        for p in range(count):
            tid, g = group.lists[listed + L.LIST_ID, p], group.lists[listed + L.LIST_G, p]
            alive = given.flags[given.streams[s, L.ALIVE_IN] + row + p] != 0
            if not alive:
                mem.words[stamp(mem, s, tid)] = L.DEAD
                group.notes[g, L.NOTE_ID] = -1
            group.lists[listed + L.LIST_ID, kept] = tid
            group.lists[listed + L.LIST_G, kept] = g
            kept += alive
        group.lists[L.LIST_COUNTS, s * n] = kept
    mem.stores[s, L.INSERTS] += count


@inlined
def note_window(mem: Memory, group: Group, s: int, taken: int) -> None:
    """Note for each row of the group what the window of `s` holds when it comes.

    What has left a RANGE window is looked up for each BLOCK rows only; for what the next BLOCK does not meet any more, timestamps tell.
    """
    floor, last, window = mem.stores[s, L.FLOOR], mem.stores[s, L.NEXT], mem.stores[s, L.WINDOW]
    size = mem.stores[s, L.SIZE] if window == L.ROWS else L.FAR
    for first in range(0, taken, L.BLOCK):
        if window == L.RANGE:
            floor = floor_at(mem, s, floor, last, group.notes[first, L.NOTE_NOW])
        for g in range(first, min(first + L.BLOCK, taken)):
            last += group.notes[g, L.NOTE_STREAM] == s
            floor = max(floor, last - size)
            group.notes[g, L.NOTE_FROM + 2 * s] = floor
            group.notes[g, L.NOTE_FROM + 2 * s + 1] = last
            group.walk[L.WALK_HELD, g] += last - floor
    if window == L.RANGE and taken > 0:
        floor = floor_at(mem, s, floor, last, group.notes[taken - 1, L.NOTE_NOW])
        mem.stores[s, L.EXPIRES] = expires_next(mem, s, floor, last)
    group.notes[taken, L.NOTE_FROM + 2 * s] = floor
    mem.stores[s, L.EXPIRIES] += floor - mem.stores[s, L.FLOOR]
    mem.stores[s, L.NEXT] = last


@inlined
def link_all(mem: Memory, group: Group, ids: Table, row: int, count: int, s: int) -> None:
    """Put tuples or entries, whose ids are `ids[row, :count]`, into the indexes of their store."""
    mask, at, stride = mem.stores[s, L.MASK], mem.stores[s, L.ROWS_AT], mem.stores[s, L.STRIDE]
    for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
        heads, shift, buckets = mem.indexes[x, L.HEADS_AT], mem.indexes[x, L.SHIFT], mem.indexes[x, L.BUCKETS]
        word, link, factor = mem.indexes[x, L.KEY0], mem.indexes[x, L.LINK], mem.indexes[x, L.FACTOR]
        for p in range(count):
            place = bucket(heads, shift, buckets, factor, mem.words[at + (ids[row, p] & mask) * stride + word])
            prefetch(mem.halves, place)
            group.walk[L.WALK_PLACE, p] = place
        for p in range(count):
            tid, place = ids[row, p], group.walk[L.WALK_PLACE, p]
            mem.halves[2 * (at + (tid & mask) * stride) + link] = mem.halves[place]
            mem.halves[place] = tid


@inlined
def enter_all(mem: Memory, group: Group, given: Given, control: Words) -> None:
    """The rows taken enter their windows and indexes, and it is noted what each of them may meet."""
    n, taken = given.streams.shape[0], control[L.GROUP_ROWS]
    for s in range(n):
        enter(mem, group, given, s)
        note_window(mem, group, s, taken)
    for s in range(n):
        link_all(mem, group, group.lists, s * n * L.LIST_ROWS + L.LIST_ID, group.lists[L.LIST_COUNTS, s * n], s)
        group.lists[L.LIST_STORES, s * n] = s
        mem.stores[s, L.REACHED] = mem.stores[s, L.PIPE]


@inlined
def held(mem: Memory, group: Group, g: int, n: int) -> int:
    """How many tuples all windows held when row `g` had come."""
    count = group.walk[L.WALK_HELD, g]
    for k in range(n):
        if mem.stores[k, L.WINDOW] == L.RANGE:
            floor = group.notes[g, L.NOTE_FROM + 2 * k]
            count -= (
                floor_at(mem, k, floor, group.notes[g, L.NOTE_FROM + 2 * k + 1], group.notes[g, L.NOTE_NOW]) - floor
            )
    return count


@compiled
def note_peak(mem: Memory, group: Group, control: Words, n: int) -> None:
    """The most that all stores held after any row of the group, as far as it has come."""
    taken, peak, entries = control[L.GROUP_ROWS], control[L.PEAK], 0
    for k in range(n, mem.stores.shape[0]):
        entries += mem.stores[k, L.NEXT]
    if mem.stores.shape[0] > n:
        for g in range(taken):
            entries -= group.walk[L.WALK_KEPT, g]
    for g in range(taken):
        entries += group.walk[L.WALK_KEPT, g]
        if group.walk[L.WALK_HELD, g] + entries > peak:
            peak = max(peak, held(mem, group, g, n) + entries)
    control[L.PEAK] = peak


@compiled
def pass_by(mem: Memory, notes: Table, g: int, n: int) -> None:
    """All rows before row `g` of the group are through: what had left before it is gone."""
    for k in range(n):
        mem.stores[k, L.FLOOR] = notes[g, L.NOTE_FROM + 2 * k]
        if mem.stores[k, L.WINDOW] == L.RANGE:
            mem.stores[k, L.FLOOR] = floor_at(
                mem, k, mem.stores[k, L.FLOOR], notes[g, L.NOTE_FROM + 2 * k + 1], notes[g, L.NOTE_NOW]
            )


@compiled
def settle(mem: Memory, group: Group, control: Words, n: int) -> None:
    """The group is through: what had left before its last row is gone."""
    note_peak(mem, group, control, n)
    control[L.HOLDS] = 0
    for k in range(mem.stores.shape[0]):
        if k < n:
            mem.stores[k, L.FLOOR] = group.notes[control[L.GROUP_ROWS], L.NOTE_FROM + 2 * k]
        control[L.HOLDS] += mem.stores[k, L.NEXT] - mem.stores[k, L.FLOOR]
    control[L.GROUP_ROWS] = 0
    control[L.GROUP_SINGLY] = 0


@inlined
def rest_if_small(control: Words) -> None:
    """Rows go one by one for a while when groups have become too small to pay."""
    if control[L.GROUP_SIZE] < L.GROUP_LEAST:
        control[L.GROUP_SIZE] = -L.GROUP_REST


@inlined
def form_group(mem: Memory, group: Group, given: Given, control: Words, until: int) -> bool:
    """The next rows become a group and enter their windows, if the plan is for groups and the last ones have gone well."""
    if control[L.GROUP_SIZE] < L.GROUP_LEAST:
        if control[L.GROUP_SIZE] < 0:
            control[L.GROUP_SIZE] += 1
            if control[L.GROUP_SIZE] == 0:
                control[L.GROUP_SIZE] = min(L.GROUP_LEAST, group.notes.shape[0] - 1)
        return False
    control[L.GROUP_ROWS] = take(mem, group, given, control, until)
    if control[L.GROUP_ROWS] > 0:
        enter_all(mem, group, given, control)
        control[L.PHASE] = L.GROUP_PROBES
        control[L.GROUPS] += 1
        return True
    rest_if_small(control)
    return False


@inlined
def next_single(mem: Memory, frame: Frame, group: Group, control: Words) -> int:
    """The next row of a group that found too much sets out by itself; after the last one the group is through. Returns GO_ON."""
    g = control[L.GROUP_SINGLY]
    if g == control[L.GROUP_ROWS]:
        settle(mem, group, control, frame.bound.shape[0])
        control[L.PHASE] = L.PICK
        return L.GO_ON
    control[L.GROUP_SINGLY] = g + 1
    s = group.notes[g, L.NOTE_STREAM]
    if group.notes[g, L.NOTE_ID] >= 0 and mem.stores[s, L.PIPE] >= 0:
        begin(frame, control, mem.stores[s, L.PIPE], s, group.notes[g, L.NOTE_ID], group.notes[g, L.NOTE_NOW])
    return L.GO_ON
