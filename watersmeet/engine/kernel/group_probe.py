"""Together: the pipelines of a group's rows, probe by probe.

    first probe    (r1, s7) (r2, s3) ...   all rows of a stream: their buckets, then the newest records, then the next of each chain
    second probe   (r1, s7, t5) ...        all that were found; and so on until results are complete

A tuple that goes alone waits for memory at every step along its chains. Here a step is taken for many, each asks for the cache line
of its next one, and when it is its turn again the line has come. There are no branches to guess either: what a step finds is always
written down, and the list's end moves on only if it counts.

In a tree the nodes take their turns, children before parents: all streams below a node go on until they have stored into its state,
then those of the next node, and at last all go on from the inputs of the root to results.

    ((R S) T):   R: probe S, store (R S);  S: probe R, store (R S);  then  R: probe T;  S: probe T;  T: probe (R S)

So a state has all entries of the group before any row probes it; which of them a row may meet, its note says of each member as it does
of the tuples of a window. Where a state has no room, the group waits and goes on there: no list refers to a state's entries before the
last of them is stored, so that it can be swept and moved. Where a list has no room, or a state must not have as much of one stream's rows
(a quarter of what it has is free once it has been swept or has grown), rows go on one by one; what has been stored, as REACHED says, is
not stored again. Until the results are written, lists refer to entries of states, which must not be swept in between.
"""

from __future__ import annotations

from typing import Final

from watersmeet.engine.kernel.group import link_all
from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import Halves, Table, Words, inlined, prefetch
from watersmeet.engine.program.layout import (
    BLOCK,
    BUCKETS,
    CAP,
    CODE,
    COL0,
    EMIT,
    HEADS_AT,
    INDEX,
    INSERTS,
    KEY0,
    LEAF_FROM,
    LEAF_TO,
    LINK,
    LIST_COUNTS,
    LIST_G,
    LIST_ID,
    LIST_PARENT,
    LIST_ROWS,
    LIST_STORES,
    MANY,
    MASK,
    MATCHES,
    NCOLS,
    NEXT,
    NOTE_FROM,
    NOTE_NOW,
    NOTE_ROW,
    OP_KEY0,
    OUT_ROWS,
    PIPE,
    PROBE,
    RANGE,
    REACHED,
    ROWBASE,
    ROWS_AT,
    SHIFT,
    SIZE,
    SOURCE_FROM,
    STORE,
    STRIDE,
    TAKEN,
    TARGET,
    TIMES_AT,
    TOTAL,
    TUPLES_IN,
    WALK_AT,
    WALK_HIGH,
    WALK_KEPT,
    WALK_KEY,
    WALK_LOW,
    WALK_PLACE,
    WALK_SAFE,
    WALK_WHO,
    WANTED,
    WINDOW,
)  # fmt: skip

TOO_MUCH: Final = -1  # what go_together returns: rows go on one by one,
LACKS: Final = -2  # or a state must grow


@inlined
def probe_all(
    m: Words, h: Halves, S: Table, I: Table, O: Table, members: Words, notes: Table, lists: Table, walk: Table,
    s: int, pc: int, level: int, n: int, taken: int,
) -> int:  # fmt: skip
    """Probe with all entries of the level before. Returns the number of matches, or TOO_MUCH if the list can't hold them.

    For a state these are the entries with the same key, be their members there or not.
    """
    count = lists[LIST_COUNTS, s * n + level - 1]
    x, target, leaf = O[pc, INDEX], O[pc, TARGET], O[pc, OP_KEY0]
    heads, shift, buckets, word, link = I[x, HEADS_AT], I[x, SHIFT], I[x, BUCKETS], I[x, KEY0], I[x, LINK]
    mask, at, stride = S[target, MASK], S[target, ROWS_AT], S[target, STRIDE]
    times, ranged, size = S[target, TIMES_AT], S[target, WINDOW] == RANGE, S[target, SIZE]
    low_note = NOTE_FROM + 2 * min(target, n)
    came, made = (s * n + level - 1) * LIST_ROWS, (s * n + level) * LIST_ROWS
    bound, member = 0, 0  # the level that bound the key's leaf, and which member of an entry it is
    for j in range(level):
        of = lists[LIST_STORES, s * n + j]
        for k in range(S[of, LEAF_FROM], S[of, LEAF_TO]):
            if members[k] == leaf:
                bound, member = j, k - S[of, LEAF_FROM]
    of = lists[LIST_STORES, s * n + bound]
    keyed = (s * n + bound) * LIST_ROWS + LIST_ID
    key_mask, key_at, key_stride = S[leaf, MASK], S[leaf, ROWS_AT] + O[pc, OP_KEY0 + 1], S[leaf, STRIDE]
    if of >= n:  # the ids of members are put down where matches will be
        entries, entry = 2 * S[of, ROWS_AT] + member, 2 * S[of, STRIDE]
        for q in range(lists[LIST_COUNTS, s * n + bound]):
            lists[made + LIST_ID, q] = h[entries + lists[keyed, q] * entry]
        keyed = made + LIST_ID
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
            return TOO_MUCH
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
def keep_met(
    m: Words, h: Halves, S: Table, members: Words, notes: Table, lists: Table, s: int, level: int, found: int, n: int, taken: int
) -> int:  # fmt: skip
    """Of the entries found in a state, keep those all of whose members were in their windows when the row came. Returns how many."""
    list = (s * n + level) * LIST_ROWS
    state = lists[LIST_STORES, s * n + level]
    first = S[state, LEAF_FROM]
    entry = 2 * S[state, STRIDE]
    for k in range(first, S[state, LEAF_TO]):
        leaf, at = members[k], 2 * S[state, ROWS_AT] + k - first
        mask, times, ranged, size = S[leaf, MASK], S[leaf, TIMES_AT], S[leaf, WINDOW] == RANGE, S[leaf, SIZE]
        low_note = NOTE_FROM + 2 * leaf
        kept = 0
        for p in range(found):
            id, g = lists[list + LIST_ID, p], lists[list + LIST_G, p]
            member = h[at + id * entry]
            there = (member >= notes[g, low_note]) & (member < notes[g, low_note + 1])
            if ranged and there and member < notes[min(g // BLOCK * BLOCK + BLOCK, taken), low_note]:
                there = m[times + (member & mask)] >= notes[g, NOTE_NOW] - size
            lists[list + LIST_PARENT, kept] = lists[list + LIST_PARENT, p]
            lists[list + LIST_ID, kept] = id
            lists[list + LIST_G, kept] = g
            kept += there
        found = kept
    return found


@inlined
def store_all(
    m: Words, h: Halves, S: Table, I: Table, members: Words, sources: Table, notes: Table, lists: Table, walk: Table,
    s: int, level: int, state: int, n: int,
) -> None:  # fmt: skip
    """Store all entries of a list into a state."""
    count, list = lists[LIST_COUNTS, s * n + level], (s * n + level) * LIST_ROWS
    begin, stride, first = S[state, ROWS_AT] + S[state, NEXT] * S[state, STRIDE], S[state, STRIDE], S[state, LEAF_FROM]
    for p in range(count):
        walk[WALK_KEPT, lists[list + LIST_G, p]] += 1
        walk[WALK_AT, p] = S[state, NEXT] + p
        walk[WALK_WHO, p] = p
    for j in range(level, -1, -1):
        list, of = (s * n + j) * LIST_ROWS, lists[LIST_STORES, s * n + j]
        size = S[of, LEAF_TO] - S[of, LEAF_FROM]
        for k in range(size):
            entries, entry = 2 * S[of, ROWS_AT] + k, 2 * S[of, STRIDE]
            to = 0
            while members[first + to] != members[S[of, LEAF_FROM] + k]:
                to += 1
            for p in range(count):
                q = walk[WALK_WHO, p]
                id = lists[list + LIST_ID, q]
                if of >= n:
                    id = h[entries + id * entry]
                h[2 * (begin + p * stride) + to] = id
        for p in range(count):
            walk[WALK_WHO, p] = lists[list + LIST_PARENT, walk[WALK_WHO, p]]
    for c in range(S[state, NCOLS]):
        leaf, word = sources[S[state, SOURCE_FROM] + c, 0], sources[S[state, SOURCE_FROM] + c, 1]
        at, mask, record = S[leaf, ROWS_AT] + word, S[leaf, MASK], S[leaf, STRIDE]
        member, column = 0, S[state, COL0] + c
        while members[first + member] != leaf:
            member += 1
        for p in range(count):
            r = begin + p * stride
            m[r + column] = m[at + (h[2 * r + member] & mask) * record]
    S[state, NEXT] += count
    S[state, INSERTS] += count
    link_all(m, h, S, I, walk, WALK_AT, count, walk, state)


@inlined
def has_room(S: Table, O: Table, lists: Table, n: int) -> bool:
    """Whether twice as many rows would find room in lists and states, as far as one can tell."""
    for s in range(n):
        pc, level = S[s, PIPE], 0
        while pc >= 0 and O[pc, CODE] != EMIT:
            level += O[pc, CODE] == PROBE
            if 4 * lists[LIST_COUNTS, s * n + level] >= lists.shape[1]:
                return False
            if O[pc, CODE] == STORE and 8 * lists[LIST_COUNTS, s * n + level] > S[O[pc, TARGET], CAP]:
                return False
            pc += 1
    return True


@inlined
def go_together(
    m: Words, h: Halves, S: Table, I: Table, O: Table, members: Words, sources: Table, control: Words, notes: Table, lists: Table,
    walk: Table, n: int, limit: int,
) -> int:  # fmt: skip
    """Run the pipelines of the rows taken, from where they are. Returns the number of results, TOO_MUCH or LACKS.

    How full its lists were decides how many rows the next group may have.
    """
    taken, stores = control[TAKEN], S.shape[0]
    for node in range(n, stores + 1):  # the root has no state
        for s in range(n):
            pc = S[s, REACHED]
            if pc < 0:
                continue
            end = pc
            while O[end, CODE] == PROBE:
                end += 1
            if (O[end, TARGET] if O[end, CODE] == STORE else stores) != node:
                continue
            level = 0
            for k in range(S[s, PIPE], pc):
                level += O[k, CODE] == PROBE
            for k in range(pc, end):
                level += 1
                lists[LIST_STORES, s * n + level] = O[k, TARGET]
                found = 0
                if lists[LIST_COUNTS, s * n + level - 1] > 0:
                    found = probe_all(m, h, S, I, O, members, notes, lists, walk, s, k, level, n, taken)
                    if found < 0:
                        control[MANY] //= 4
                        return TOO_MUCH
                    if O[k, TARGET] >= n:
                        found = keep_met(m, h, S, members, notes, lists, s, level, found, n, taken)
                lists[LIST_COUNTS, s * n + level] = found
            S[s, REACHED] = end
            count = lists[LIST_COUNTS, s * n + level]
            if node < stores:
                if S[node, NEXT] + count > S[node, CAP]:
                    if 4 * count > S[node, CAP]:
                        control[MANY] //= 4
                        return TOO_MUCH
                    control[WANTED] = node
                    return LACKS
                store_all(m, h, S, I, members, sources, notes, lists, walk, s, level, node, n)
                S[s, REACHED] = end + 1
            else:
                for p in range(count):
                    notes[lists[(s * n + level) * LIST_ROWS + LIST_G, p], NOTE_ROW] += 1
    total = 0
    for g in range(taken):
        count = notes[g, NOTE_ROW]
        notes[g, NOTE_ROW] = total
        total += count
    if total > limit:
        control[MANY] //= 4
        return TOO_MUCH
    if 4 * total < limit and has_room(S, O, lists, n):
        control[MANY] = min(2 * control[MANY], notes.shape[0] - 1)
    return total


@inlined
def write_all(
    h: Halves, S: Table, O: Table, members: Words, counters: Table, out: Table, control: Words, notes: Table, lists: Table, walk: Table,
    n: int,
) -> None:  # fmt: skip
    """Count what was probed and found, and write the results down, in the order of the rows that made them."""
    before = control[OUT_ROWS]
    for s in range(n):
        pc, level = S[s, PIPE], 0
        if pc < 0:
            continue
        while O[pc, CODE] != EMIT:
            if O[pc, CODE] == PROBE:
                counters[pc, TUPLES_IN] += lists[LIST_COUNTS, s * n + level]
                level += 1
                counters[pc, MATCHES] += lists[LIST_COUNTS, s * n + level]
            pc += 1
        count, list = lists[LIST_COUNTS, s * n + level], (s * n + level) * LIST_ROWS
        for p in range(count):
            g = lists[list + LIST_G, p]
            row = before + notes[g, NOTE_ROW]
            notes[g, NOTE_ROW] += 1
            out[n, row] = notes[g, NOTE_NOW]
            walk[WALK_PLACE, p] = row
            walk[WALK_WHO, p] = p
        for j in range(level, -1, -1):
            list, of = (s * n + j) * LIST_ROWS, lists[LIST_STORES, s * n + j]
            if of < n:
                base = S[of, ROWBASE]
                for p in range(count):
                    q = walk[WALK_WHO, p]
                    out[of, walk[WALK_PLACE, p]] = lists[list + LIST_ID, q] + base
                    walk[WALK_WHO, p] = lists[list + LIST_PARENT, q]
                continue
            for p in range(count):
                q = walk[WALK_WHO, p]
                walk[WALK_AT, p] = 2 * (S[of, ROWS_AT] + lists[list + LIST_ID, q] * S[of, STRIDE])
                walk[WALK_WHO, p] = lists[list + LIST_PARENT, q]
            for k in range(S[of, LEAF_TO] - S[of, LEAF_FROM]):
                leaf = members[S[of, LEAF_FROM] + k]
                base = S[leaf, ROWBASE]
                for p in range(count):
                    out[leaf, walk[WALK_PLACE, p]] = h[walk[WALK_AT, p] + k] + base
    control[OUT_ROWS] = before + control[TOTAL]
