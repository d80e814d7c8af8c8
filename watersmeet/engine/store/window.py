"""Operations on stores: put a tuple in, link it into its indexes, take it out.

Notation: `s` a store, `x` an index, `id` a tuple's local id, `slot = id & MASK`, `r` the first word of its record.
"""

from __future__ import annotations

from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import Halves, Table, Words, inlined
from watersmeet.engine.program.layout import (
    BACK,
    BUCKETS,
    CAP,
    COL0,
    DEAD,
    DEAD_COUNT,
    DEAD_LIST,
    DOUBLY,
    EAGER,
    EXPIRES,
    EXPIRIES,
    FAR,
    FLOOR,
    FREE,
    FREE_LINK,
    HEADS_AT,
    HELD,
    INDEX_FROM,
    INDEX_TO,
    INSERTS,
    KEY0,
    KIND,
    LEAF_FROM,
    LEAF_TO,
    LINK,
    LIVE,
    MASK,
    NCOLS,
    NEXT,
    NKEYS,
    OF_STORE,
    ORDERED,
    PART_AT,
    PART_MASK,
    PART_USED,
    RANGE,
    RING,
    ROWNUM,
    ROWS_AT,
    SHIFT,
    SIZE,
    SOURCE_FROM,
    STRIDE,
    TIMES_AT,
    WINDOW,
)  # fmt: skip
from watersmeet.engine.store.ordered import tree_delete, tree_insert


@inlined
def record(S: Table, s: int, id: int) -> int:
    """First word of a tuple's record."""
    return S[s, ROWS_AT] + (id & S[s, MASK]) * S[s, STRIDE]


@inlined
def stamp(S: Table, s: int, id: int) -> int:
    """Where the timestamp of a window's tuple lies."""
    return S[s, TIMES_AT] + (id & S[s, MASK])


@inlined
def mix(value: int, key: int) -> int:
    """Add one more column to a hash; (1, 2), (2, 1) and (3, 3) are far apart."""
    x = scatter(scatter(value) ^ key)
    return x ^ (x >> 32)


@inlined
def bucket_of(m: Words, I: Table, x: int, r: int) -> int:
    value = m[r + I[x, KEY0]] if I[x, NKEYS] > 0 else 0
    for k in range(1, I[x, NKEYS]):
        value = mix(value, m[r + I[x, KEY0 + k]])
    return (scatter(value) >> I[x, SHIFT]) & I[x, BUCKETS]


@inlined
def link(m: Words, h: Halves, S: Table, I: Table, x: int, id: int) -> None:
    """Put a tuple into one index."""
    s = I[x, OF_STORE]
    if I[x, ORDERED]:
        tree_insert(m, h, S, I, x, id & S[s, MASK])
        return
    r = record(S, s, id)
    head = I[x, HEADS_AT] + bucket_of(m, I, x, r)
    older = h[head]
    h[2 * r + I[x, LINK]] = older
    h[head] = id
    if I[x, DOUBLY]:
        h[2 * r + I[x, BACK]] = -1
        if older >= 0:
            h[2 * record(S, s, older) + I[x, BACK]] = id


@inlined
def unlink(m: Words, h: Halves, S: Table, I: Table, x: int, id: int) -> None:
    """Take a tuple out of one index; a ring's hash chains need it not."""
    s = I[x, OF_STORE]
    if I[x, ORDERED]:
        tree_delete(h, S, I, x, id & S[s, MASK])
    elif I[x, DOUBLY]:
        r = record(S, s, id)
        older, newer = h[2 * r + I[x, LINK]], h[2 * r + I[x, BACK]]
        if older >= 0:
            h[2 * record(S, s, older) + I[x, BACK]] = newer
        if newer >= 0:
            h[2 * record(S, s, newer) + I[x, LINK]] = older
        else:
            h[I[x, HEADS_AT] + bucket_of(m, I, x, r)] = older


@inlined
def room(S: Table, s: int) -> bool:
    """Whether one more tuple fits."""
    if S[s, KIND] == RING:
        return S[s, NEXT] - S[s, FLOOR] < S[s, CAP]
    return S[s, FREE] >= 0 or S[s, NEXT] < S[s, CAP]


@inlined
def put(
    m: Words, h: Halves, S: Table, I: Table, s: int, ts: int, alive: bool, row: int, data: Words, at: int, stride: int
) -> int:
    """A row enters a window, its columns copied from `data[at + c * stride]`. Returns its id.

    A row that is not alive (a predicate rejects it) takes its place in the window, but no index leads to it.
    """
    if S[s, KIND] == RING:
        id = S[s, NEXT]
        S[s, NEXT] = id + 1
        r = record(S, s, id)
    else:
        id = S[s, FREE]
        if id >= 0:
            S[s, FREE] = h[2 * record(S, s, id) + FREE_LINK]
        else:
            id = S[s, NEXT]
            S[s, NEXT] = id + 1
        r = record(S, s, id)
        m[r + ROWNUM] = row
        S[s, LIVE] += 1
    to = r + S[s, COL0]
    for c in range(S[s, NCOLS]):
        m[to + c] = data[at + c * stride]
    S[s, INSERTS] += 1
    if not alive:
        m[stamp(S, s, id)] = DEAD
        return id
    m[stamp(S, s, id)] = ts
    if S[s, WINDOW] == RANGE and id == S[s, FLOOR]:
        S[s, EXPIRES] = ts + S[s, SIZE]
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        link(m, h, S, I, x, id)
    return id


@inlined
def drop_oldest(m: Words, h: Halves, S: Table, I: Table, s: int) -> None:
    """The oldest tuple of a ring leaves."""
    id = S[s, FLOOR]
    if S[s, EAGER] and m[stamp(S, s, id)] != DEAD:
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            unlink(m, h, S, I, x, id)
    S[s, FLOOR] = id + 1
    S[s, EXPIRIES] += 1
    if S[s, WINDOW] == RANGE:
        S[s, EXPIRES] = m[stamp(S, s, id + 1)] + S[s, SIZE] if id + 1 < S[s, NEXT] else FAR


@inlined
def drop_slot(m: Words, h: Halves, S: Table, I: Table, s: int, id: int) -> None:
    """A tuple of a pool leaves; its slot waits in the dead list while states may refer to it."""
    r = record(S, s, id)
    if m[stamp(S, s, id)] != DEAD:
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            unlink(m, h, S, I, x, id)
        m[stamp(S, s, id)] = DEAD
    S[s, EXPIRIES] += 1
    S[s, LIVE] -= 1
    to = DEAD_LIST if S[s, HELD] else FREE
    h[2 * r + FREE_LINK] = S[s, to]
    S[s, to] = id
    S[s, DEAD_COUNT] += S[s, HELD]


@inlined
def store_entry(m: Words, h: Halves, S: Table, I: Table, members: Words, sources: Table, s: int, bound: Words) -> None:
    """A result of an inner node enters its state."""
    id = S[s, NEXT]
    S[s, NEXT] = id + 1
    r = record(S, s, id)
    for k in range(S[s, LEAF_TO] - S[s, LEAF_FROM]):
        h[2 * r + k] = bound[members[S[s, LEAF_FROM] + k]]
    for c in range(S[s, NCOLS]):
        leaf, word = sources[S[s, SOURCE_FROM] + c, 0], sources[S[s, SOURCE_FROM] + c, 1]
        m[r + S[s, COL0] + c] = m[record(S, leaf, bound[leaf]) + word]
    S[s, INSERTS] += 1
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        link(m, h, S, I, x, id)


@inlined
def entry_alive(m: Words, h: Halves, S: Table, members: Words, s: int, r: int) -> bool:
    """Whether all tuples that a state's entry refers to are still in their windows."""
    for k in range(S[s, LEAF_TO] - S[s, LEAF_FROM]):
        leaf, id = members[S[s, LEAF_FROM] + k], h[2 * r + k]
        if S[leaf, KIND] == RING:
            if id < S[leaf, FLOOR]:
                return False
        elif m[stamp(S, leaf, id)] == DEAD:
            return False
    return True


@inlined
def find_partition(m: Words, S: Table, s: int, key: int, check: int) -> int:
    """Place of a partition's entry in the directory, or of the unused entry where it belongs."""
    at = (scatter(mix(key, check)) >> 20) & S[s, PART_MASK]
    while True:
        entry = S[s, PART_AT] + at * 4
        if m[entry + 3] == 0 or (m[entry] == key and m[entry + 1] == check):
            return entry
        at = (at + 1) & S[s, PART_MASK]


@inlined
def oldest_of(m: Words, entry: int) -> int:
    return (m[entry + 2] >> 32) - 1


@inlined
def join_partition(m: Words, h: Halves, S: Table, s: int, entry: int, key: int, check: int, id: int) -> None:
    """A tuple becomes the newest of its partition."""
    h[2 * record(S, s, id) + FREE_LINK] = -1
    if m[entry + 3] == 0:
        m[entry] = key
        m[entry + 1] = check
        m[entry + 3] = 1
        S[s, PART_USED] += 1
    if m[entry + 3] == 1:
        m[entry + 2] = ((id + 1) << 32) | (id + 1)
    else:
        h[2 * record(S, s, (m[entry + 2] & 0xFFFFFFFF) - 1) + FREE_LINK] = id
        m[entry + 2] = (m[entry + 2] >> 32 << 32) | (id + 1)
    m[entry + 3] += 1


@inlined
def leave_partition(m: Words, h: Halves, S: Table, s: int, entry: int) -> None:
    """The oldest tuple of a partition is taken off its list."""
    newer = h[2 * record(S, s, oldest_of(m, entry)) + FREE_LINK]
    m[entry + 2] = ((newer + 1) << 32) | (m[entry + 2] & 0xFFFFFFFF)
    m[entry + 3] -= 1
