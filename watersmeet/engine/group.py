"""Groups: rows that enter their windows one after the other, and then go through their pipelines together, probe by probe.

    rows           r1 s1 t1 r2 t2 ...      each gets its id, and a note of what every window holds when it comes
    first probe    (r1, s7) (r2, s3) ...   all rows of a stream: their buckets, then the newest records, then the next of each chain
    second probe   (r1, s7, t5) ...        all that were found; and so on until results are complete

A tuple that goes alone waits for memory at every step along its chains. Here a step is taken for many, each asks for the cache line
of its next one, and when it is its turn again the line has come. There are no branches to guess either: what a step finds is always
written down, and the list's end moves on only if it counts. The rows behind a row have entered their windows before it probes,
but ids of a RING count up, so it tells them by its note, and those that had left before it came by their timestamps.

This is for plans without inner states, over windows that are first-in-first-out, with one key to a probe and nothing else to check
(`State.groups`). A group that finds more than its lists hold goes on one by one (pursue.py), by the same notes.
"""

from __future__ import annotations

from watersmeet.engine.ahead import prefetch
from watersmeet.engine.compiled import Words, inlined
from watersmeet.engine.hashing import scatter
from watersmeet.engine.layout import (
    ALIVE_IN,
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
    INDEX,
    INDEX_FROM,
    INDEX_TO,
    INSERTS,
    KEY0,
    LINK,
    LIST_G,
    LIST_ID,
    LIST_PARENT,
    LIST_ROWS,
    MANY,
    MASK,
    MATCHES,
    NCOLS,
    NEXT,
    NOTE_FROM,
    NOTE_ID,
    NOTE_NOW,
    NOTE_ROW,
    NOTE_STREAM,
    OP_KEY0,
    OUT_ROWS,
    PEAK,
    PIPE,
    QUOTA,
    RANGE,
    ROWBASE,
    ROWS,
    ROWS_AT,
    ROWS_IN,
    SHIFT,
    SIZE,
    STRIDE,
    TARGET,
    TIMES_AT,
    TOTAL,
    TS_IN,
    TUPLES_IN,
    WALK_AT,
    WALK_HIGH,
    WALK_KEY,
    WALK_LOW,
    WALK_NEXT,
    WALK_PLACE,
    WALK_SAFE,
    WALK_WHO,
    WINDOW,
)  # fmt: skip
from watersmeet.engine.stores import record, stamp


@inlined
def take(
    m: Words, S: Words, control: Words, T: Words, data: Words, notes: Words, lists: Words, walk: Words, until: int
) -> int:
    """Choose the next rows of all streams, in global order, and give them their ids. Returns how many they are.

    It stops where a row would take the place of a tuple that rows before it may still meet: a ROWS window whose ring has hardly
    any room besides is not for groups. While it chooses, it asks for what the rows will be written to, and for the timestamps of what
    leaves next.
    """
    n, counts = T.shape[0], lists.shape[0] - 1
    for k in range(n):
        lists[counts, k * n] = 0
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
        count = lists[counts, s * n]
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
        lists[counts, s * n] = count + 1
        notes[taken, NOTE_STREAM] = s
        notes[taken, NOTE_ID] = id
        notes[taken, NOTE_NOW] = now
        taken += 1
    control[QUOTA] -= taken
    return taken


@inlined
def enter(m: Words, S: Words, T: Words, data: Words, flags: Words, notes: Words, lists: Words, s: int) -> None:
    """The rows of one stream enter their window. Those that do not join are taken off the list."""
    n, counts = T.shape[0], lists.shape[0] - 1
    count, list = lists[counts, s * n], s * n * LIST_ROWS
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
        lists[counts, s * n] = kept
    S[s, INSERTS] += count


@inlined
def passed(m: Words, S: Words, s: int, floor: int, last: int, now: int) -> int:
    """The lowest id from `floor` on of a RANGE window that is still there at `now`."""
    mask, at, limit = S[s, MASK], S[s, TIMES_AT], now - S[s, SIZE]
    while floor < last and m[at + (floor & mask)] < limit:
        floor += 1
    return floor


@inlined
def expire(m: Words, S: Words, notes: Words, s: int, taken: int) -> None:
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
            notes[g, NOTE_ROW] += last - floor
    if window == RANGE and taken > 0:
        floor = passed(m, S, s, floor, last, notes[taken - 1, NOTE_NOW])
        S[s, EXPIRES] = m[stamp(S, s, floor)] + S[s, SIZE] if floor < last else FAR
    notes[taken, NOTE_FROM + 2 * s] = floor
    S[s, EXPIRIES] += floor - S[s, FLOOR]
    S[s, FLOOR], S[s, NEXT] = floor, last


@inlined
def held(m: Words, S: Words, notes: Words, g: int) -> int:
    """How many tuples all windows held when row `g` had come."""
    count = notes[g, NOTE_ROW]
    for k in range(S.shape[0]):
        if S[k, WINDOW] == RANGE:
            floor = notes[g, NOTE_FROM + 2 * k]
            count -= passed(m, S, k, floor, notes[g, NOTE_FROM + 2 * k + 1], notes[g, NOTE_NOW]) - floor
    return count


@inlined
def enter_all(
    m: Words, S: Words, control: Words, T: Words, data: Words, flags: Words, notes: Words, lists: Words, taken: int
) -> None:
    """The rows taken enter their windows, and it is noted what each of them may meet."""
    for g in range(taken):
        notes[g, NOTE_ROW] = 0
    for s in range(T.shape[0]):
        enter(m, S, T, data, flags, notes, lists, s)
        expire(m, S, notes, s, taken)
    for g in range(taken):
        if notes[g, NOTE_ROW] > control[PEAK] or g == taken - 1:
            control[HOLDS] = held(m, S, notes, g)
            control[PEAK] = max(control[PEAK], control[HOLDS])
        notes[g, NOTE_ROW] = 0


@inlined
def link_all(m: Words, h: Words, S: Words, I: Words, lists: Words, walk: Words, s: int, n: int) -> None:
    """Put the rows of one stream into its indexes."""
    count, list = lists[lists.shape[0] - 1, s * n], s * n * LIST_ROWS + LIST_ID
    mask, at, stride = S[s, MASK], S[s, ROWS_AT], S[s, STRIDE]
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        heads, shift, buckets, word, next = I[x, HEADS_AT], I[x, SHIFT], I[x, BUCKETS], I[x, KEY0], I[x, LINK]
        for p in range(count):
            place = heads + ((scatter(m[at + (lists[list, p] & mask) * stride + word]) >> shift) & buckets)
            prefetch(h, place)
            walk[WALK_PLACE, p] = place
        for p in range(count):
            id, place = lists[list, p], walk[WALK_PLACE, p]
            h[2 * (at + (id & mask) * stride) + next] = h[place]
            h[place] = id


@inlined
def probe_all(
    m: Words, h: Words, S: Words, I: Words, O: Words, notes: Words, lists: Words, walk: Words,
    s: int, level: int, count: int, taken: int,
) -> int:  # fmt: skip
    """Probe with all `count` entries of the level before. Returns the number of matches, or -1 if the list can't hold them."""
    n = (notes.shape[1] - NOTE_FROM) // 2
    pc = S[s, PIPE] + level - 1
    x, target, leaf = O[pc, INDEX], O[pc, TARGET], O[pc, OP_KEY0]
    heads, shift, buckets, word, link = I[x, HEADS_AT], I[x, SHIFT], I[x, BUCKETS], I[x, KEY0], I[x, LINK]
    mask, at, stride = S[target, MASK], S[target, ROWS_AT], S[target, STRIDE]
    times, ranged, size = S[target, TIMES_AT], S[target, WINDOW] == RANGE, S[target, SIZE]
    low_note = NOTE_FROM + 2 * target
    came, made = (s * n + level - 1) * LIST_ROWS, (s * n + level) * LIST_ROWS
    bound = 0  # the level that bound the key's leaf
    for j in range(1, level):
        if O[S[s, PIPE] + j - 1, TARGET] == leaf:
            bound = j
    keyed = (s * n + bound) * LIST_ROWS + LIST_ID
    key_mask, key_at, key_stride = S[leaf, MASK], S[leaf, ROWS_AT] + O[pc, OP_KEY0 + 1], S[leaf, STRIDE]
    for p in range(count):
        q = p
        for j in range(level - 1, bound, -1):
            q = lists[(s * n + j) * LIST_ROWS + LIST_PARENT, q]
        key = m[key_at + (lists[keyed, q] & key_mask) * key_stride]
        place = heads + ((scatter(key) >> shift) & buckets)
        prefetch(h, place)
        walk[WALK_KEY, p] = key
        walk[WALK_PLACE, p] = place
    active = 0
    for p in range(count):
        g = lists[came + LIST_G, p]
        low = notes[g, low_note]
        id = h[walk[WALK_PLACE, p]]
        live = id >= low
        r = at + ((id if live else low) & mask) * stride
        prefetch(h, 2 * r)
        prefetch(h, 2 * r + link)
        walk[WALK_LOW, p] = low
        walk[WALK_HIGH, p] = notes[g, low_note + 1]
        walk[WALK_SAFE, p] = notes[min(g // BLOCK * BLOCK + BLOCK, taken), low_note] if ranged else low
        walk[WALK_WHO, active] = p
        walk[WALK_AT, active] = id
        active += live
    found = 0
    while active > 0:
        if found + active >= lists.shape[1]:
            return -1
        kept = 0
        for k in range(active):
            p, id = walk[WALK_WHO, k], walk[WALK_AT, k]
            r = at + (id & mask) * stride
            low = walk[WALK_LOW, p]
            lists[made + LIST_PARENT, found] = p
            lists[made + LIST_ID, found] = id
            lists[made + LIST_G, found] = lists[came + LIST_G, p]
            there = (m[r + word] == walk[WALK_KEY, p]) & (id < walk[WALK_HIGH, p])
            if id < walk[WALK_SAFE, p]:
                there &= m[times + (id & mask)] >= notes[lists[came + LIST_G, p], NOTE_NOW] - size
            found += there
            id = h[2 * r + link]
            live = id >= low
            r = at + ((id if live else low) & mask) * stride
            prefetch(h, 2 * r)
            prefetch(h, 2 * r + link)
            walk[WALK_WHO, kept] = p
            walk[WALK_AT, kept] = id
            kept += live
        active = kept
    return found


@inlined
def go_together(
    m: Words, h: Words, S: Words, I: Words, O: Words, control: Words, notes: Words, lists: Words, walk: Words, taken: int, limit: int
) -> int:  # fmt: skip
    """Run the pipelines of the rows taken. Returns the number of results, or -1: they, or those on the way, are too many.

    How full its lists were decides how many rows the next group may have.
    """
    n, counts, room = (notes.shape[1] - NOTE_FROM) // 2, lists.shape[0] - 1, lists.shape[1]
    for s in range(n):
        link_all(m, h, S, I, lists, walk, s, n)
    fullest = 0
    for s in range(n):
        for level in range(1, n):
            found = 0
            before = lists[counts, s * n + level - 1]
            if before > 0 and S[s, PIPE] >= 0:
                found = probe_all(m, h, S, I, O, notes, lists, walk, s, level, before, taken)
                if found < 0:
                    control[MANY] //= 4
                    return -1
            lists[counts, s * n + level] = found
            fullest = max(fullest, found)
        list = (s * n + n - 1) * LIST_ROWS + LIST_G
        for p in range(lists[counts, s * n + n - 1]):
            notes[lists[list, p], NOTE_ROW] += 1
    total = 0
    for g in range(taken):
        count = notes[g, NOTE_ROW]
        notes[g, NOTE_ROW] = total
        total += count
    if total > limit:
        control[MANY] //= 4
        return -1
    if 4 * fullest < room and 4 * total < limit:
        control[MANY] = min(2 * control[MANY], notes.shape[0] - 1)
    return total


@inlined
def write_all(
    S: Words, O: Words, counters: Words, out: Words, control: Words, notes: Words, lists: Words, walk: Words
) -> None:  # fmt: skip
    """Write the results down, in the order of the rows that made them."""
    n = (notes.shape[1] - NOTE_FROM) // 2
    counts = lists.shape[0] - 1
    first = control[OUT_ROWS]
    for s in range(n):
        pipe = S[s, PIPE]
        if pipe < 0:
            continue
        for level in range(1, n):
            counters[pipe + level - 1, TUPLES_IN] += lists[counts, s * n + level - 1]
            counters[pipe + level - 1, MATCHES] += lists[counts, s * n + level]
        count, last = lists[counts, s * n + n - 1], (s * n + n - 1) * LIST_ROWS
        for p in range(count):
            g = lists[last + LIST_G, p]
            row = first + notes[g, NOTE_ROW]
            notes[g, NOTE_ROW] += 1
            out[n, row] = notes[g, NOTE_NOW]
            walk[WALK_PLACE, p] = row
            walk[WALK_WHO, p] = p
        for level in range(n - 1, -1, -1):
            leaf, list = O[pipe + level - 1, TARGET] if level > 0 else s, (s * n + level) * LIST_ROWS
            base = S[leaf, ROWBASE]
            for p in range(count):
                q = walk[WALK_WHO, p]
                out[leaf, walk[WALK_PLACE, p]] = lists[list + LIST_ID, q] + base
                walk[WALK_WHO, p] = lists[list + LIST_PARENT, q]
    control[OUT_ROWS] = first + control[TOTAL]
