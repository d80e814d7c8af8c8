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

from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import Bytes, Halves, Table, Words, compiled, inlined, prefetch
from watersmeet.engine.program.layout import (
    ALIVE_IN,
    ALONE,
    AT,
    BLOCK,
    BUCKETS,
    CAP,
    COL0,
    COLS_IN,
    DEAD,
    EXPIRES,
    EXPIRIES,
    FAR,
    FEW,
    FLOOR,
    HEADS_AT,
    HOLDS,
    INDEX_FROM,
    INDEX_TO,
    INSERTS,
    KEY0,
    LINK,
    LIST_COUNTS,
    LIST_G,
    LIST_ID,
    LIST_ROWS,
    LIST_STORES,
    MANY,
    MASK,
    NCOLS,
    NEXT,
    NOTE_FROM,
    NOTE_ID,
    NOTE_NOW,
    NOTE_ROW,
    NOTE_STREAM,
    PEAK,
    PIPE,
    QUOTA,
    RANGE,
    REACHED,
    ROWS,
    ROWS_AT,
    ROWS_IN,
    SHIFT,
    SIZE,
    STRIDE,
    TAKEN,
    TIMES_AT,
    TS_IN,
    WALK_HELD,
    WALK_KEPT,
    WALK_NEXT,
    WALK_PLACE,
    WINDOW,
)  # fmt: skip
from watersmeet.engine.store.window import record, stamp


@inlined
def take(
    m: Words, S: Table, control: Words, T: Table, data: Words, notes: Table, lists: Table, walk: Table, until: int
) -> int:
    """Choose the next rows of all streams, in global order, and give them their ids. Returns how many they are.

    It stops where a row would take the place of a tuple that rows before it may still meet: a ROWS window whose ring has hardly
    any room besides is not for groups. While it chooses, it asks for what the rows will be written to, and for the timestamps of what
    leaves next.
    """
    n = T.shape[0]
    for k in range(n):
        lists[LIST_COUNTS, k * n] = 0
        walk[WALK_NEXT, k] = data[T[k, TS_IN] + T[k, AT]] if T[k, AT] < T[k, ROWS_IN] else until
    taken, most = 0, min(control[MANY], control[QUOTA])
    while taken < most:
        s, now = -1, until
        for k in range(n):
            sooner = walk[WALK_NEXT, k] < now
            s = k if sooner else s
            now = walk[WALK_NEXT, k] if sooner else now
        if s < 0:
            break
        count = lists[LIST_COUNTS, s * n]
        id = S[s, NEXT] + count
        if id - S[s, FLOOR] >= S[s, CAP]:
            if S[s, WINDOW] == ROWS and taken < FEW:
                control[MANY] = 0
            break
        prefetch(m, record(S, s, id))
        prefetch(m, stamp(S, s, id))
        prefetch(m, stamp(S, s, S[s, FLOOR] + count))
        at = T[s, AT] + 1
        T[s, AT] = at
        walk[WALK_NEXT, s] = data[T[s, TS_IN] + at] if at < T[s, ROWS_IN] else until
        lists[s * n * LIST_ROWS + LIST_ID, count] = id
        lists[s * n * LIST_ROWS + LIST_G, count] = taken
        lists[LIST_COUNTS, s * n] = count + 1
        notes[taken, NOTE_STREAM] = s
        notes[taken, NOTE_ID] = id
        notes[taken, NOTE_NOW] = now
        notes[taken, NOTE_ROW] = 0
        walk[WALK_HELD, taken] = 0
        walk[WALK_KEPT, taken] = 0
        taken += 1
    control[QUOTA] -= taken
    return taken


@inlined
def enter(m: Words, S: Table, T: Table, data: Words, flags: Bytes, notes: Table, lists: Table, s: int) -> None:
    """The rows of one stream enter their window. Those that do not join are taken off the list."""
    n = T.shape[0]
    count, list = lists[LIST_COUNTS, s * n], s * n * LIST_ROWS
    first, mask, at, stride = S[s, NEXT], S[s, MASK], S[s, ROWS_AT], S[s, STRIDE]
    row = T[s, AT] - count
    for c in range(-1, S[s, NCOLS]):
        to, step, column = S[s, TIMES_AT], 1, T[s, TS_IN]
        if c >= 0:
            to, step, column = at + S[s, COL0] + c, stride, T[s, COLS_IN] + c * T[s, ROWS_IN]
        for p in range(count):
            m[to + ((first + p) & mask) * step] = data[column + row + p]
    if T[s, ALIVE_IN] >= 0:
        kept = 0
        for p in range(count):
            id, g = lists[list + LIST_ID, p], lists[list + LIST_G, p]
            alive = flags[T[s, ALIVE_IN] + row + p] != 0
            if not alive:
                m[stamp(S, s, id)] = DEAD
                notes[g, NOTE_ID] = -1
            lists[list + LIST_ID, kept] = id
            lists[list + LIST_G, kept] = g
            kept += alive
        lists[LIST_COUNTS, s * n] = kept
    S[s, INSERTS] += count


@inlined
def passed(m: Words, S: Table, s: int, floor: int, last: int, now: int) -> int:
    """The lowest id from `floor` on of a RANGE window that is still there at `now`."""
    mask, at, limit = S[s, MASK], S[s, TIMES_AT], now - S[s, SIZE]
    while floor < last and m[at + (floor & mask)] < limit:
        floor += 1
    return floor


@inlined
def expire(m: Words, S: Table, notes: Table, walk: Table, s: int, taken: int) -> None:
    """Note for each row of the group what the window of `s` holds when it comes.

    What has left a RANGE window is looked up for each BLOCK rows only; for what the next BLOCK does not meet any more, timestamps tell.
    """
    floor, last, window = S[s, FLOOR], S[s, NEXT], S[s, WINDOW]
    size = S[s, SIZE] if window == ROWS else FAR
    for first in range(0, taken, BLOCK):
        if window == RANGE:
            floor = passed(m, S, s, floor, last, notes[first, NOTE_NOW])
        for g in range(first, min(first + BLOCK, taken)):
            last += notes[g, NOTE_STREAM] == s
            floor = max(floor, last - size)
            notes[g, NOTE_FROM + 2 * s] = floor
            notes[g, NOTE_FROM + 2 * s + 1] = last
            walk[WALK_HELD, g] += last - floor
    if window == RANGE and taken > 0:
        floor = passed(m, S, s, floor, last, notes[taken - 1, NOTE_NOW])
        S[s, EXPIRES] = m[stamp(S, s, floor)] + S[s, SIZE] if floor < last else FAR
    notes[taken, NOTE_FROM + 2 * s] = floor
    S[s, EXPIRIES] += floor - S[s, FLOOR]
    S[s, NEXT] = last


@inlined
def link_all(m: Words, h: Halves, S: Table, I: Table, ids: Table, row: int, count: int, walk: Table, s: int) -> None:
    """Put tuples or entries, whose ids are `ids[row, :count]`, into the indexes of their store."""
    mask, at, stride = S[s, MASK], S[s, ROWS_AT], S[s, STRIDE]
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        heads, shift, buckets, word, next = I[x, HEADS_AT], I[x, SHIFT], I[x, BUCKETS], I[x, KEY0], I[x, LINK]
        for p in range(count):
            place = heads + ((scatter(m[at + (ids[row, p] & mask) * stride + word]) >> shift) & buckets)
            prefetch(h, place)
            walk[WALK_PLACE, p] = place
        for p in range(count):
            id, place = ids[row, p], walk[WALK_PLACE, p]
            h[2 * (at + (id & mask) * stride) + next] = h[place]
            h[place] = id


@inlined
def enter_all(
    m: Words, h: Halves, S: Table, I: Table, control: Words, T: Table, data: Words, flags: Bytes, notes: Table, lists: Table, walk: Table
) -> None:  # fmt: skip
    """The rows taken enter their windows and indexes, and it is noted what each of them may meet."""
    n, taken = T.shape[0], control[TAKEN]
    for s in range(n):
        enter(m, S, T, data, flags, notes, lists, s)
        expire(m, S, notes, walk, s, taken)
    for s in range(n):
        link_all(m, h, S, I, lists, s * n * LIST_ROWS + LIST_ID, lists[LIST_COUNTS, s * n], walk, s)
        lists[LIST_STORES, s * n] = s
        S[s, REACHED] = S[s, PIPE]


@inlined
def held(m: Words, S: Table, notes: Table, walk: Table, g: int, n: int) -> int:
    """How many tuples all windows held when row `g` had come."""
    count = walk[WALK_HELD, g]
    for k in range(n):
        if S[k, WINDOW] == RANGE:
            floor = notes[g, NOTE_FROM + 2 * k]
            count -= passed(m, S, k, floor, notes[g, NOTE_FROM + 2 * k + 1], notes[g, NOTE_NOW]) - floor
    return count


@compiled
def note_peak(m: Words, S: Table, control: Words, notes: Table, walk: Table, n: int) -> None:
    """The most that all stores held after any row of the group, as far as it has come."""
    taken, peak, entries = control[TAKEN], control[PEAK], 0
    for k in range(n, S.shape[0]):
        entries += S[k, NEXT]
    if S.shape[0] > n:
        for g in range(taken):
            entries -= walk[WALK_KEPT, g]
    for g in range(taken):
        entries += walk[WALK_KEPT, g]
        if walk[WALK_HELD, g] + entries > peak:
            peak = max(peak, held(m, S, notes, walk, g, n) + entries)
    control[PEAK] = peak


@compiled
def pass_by(m: Words, S: Table, notes: Table, g: int, n: int) -> None:
    """All rows before row `g` of the group are through: what had left before it is gone."""
    for k in range(n):
        S[k, FLOOR] = notes[g, NOTE_FROM + 2 * k]
        if S[k, WINDOW] == RANGE:
            S[k, FLOOR] = passed(m, S, k, S[k, FLOOR], notes[g, NOTE_FROM + 2 * k + 1], notes[g, NOTE_NOW])


@compiled
def settle(m: Words, S: Table, control: Words, notes: Table, walk: Table, n: int) -> None:
    """The group is through: what had left before its last row is gone."""
    note_peak(m, S, control, notes, walk, n)
    control[HOLDS] = 0
    for k in range(S.shape[0]):
        if k < n:
            S[k, FLOOR] = notes[control[TAKEN], NOTE_FROM + 2 * k]
        control[HOLDS] += S[k, NEXT] - S[k, FLOOR]
    control[TAKEN] = 0
    control[ALONE] = 0
