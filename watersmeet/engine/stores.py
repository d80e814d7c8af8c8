"""Operations on stores: put a tuple in, link it into its indexes, take it out.

Notation: `s` a store, `x` an index, `id` a tuple's local id, `slot = id & MASK`.
"""

from __future__ import annotations

from watersmeet.engine.compiled import Words, inlined
from watersmeet.engine.layout import (
    BACK_AT,
    BUCKETS,
    CAP,
    COLS_AT,
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
    FREE_AT,
    HASH,
    HEADS_AT,
    HELD,
    INDEX_FROM,
    INDEX_TO,
    INSERTS,
    KEY0,
    KIND,
    LEAF_FROM,
    LEAF_TO,
    LINK_AT,
    LIVE,
    MASK,
    MEMBERS_AT,
    NCOLS,
    NEXT,
    NKEYS,
    OF_STORE,
    ORDERED,
    PART_AT,
    PART_MASK,
    PART_USED,
    POOL,
    RANGE,
    RING,
    ROWNUM_AT,
    SHIFT,
    SIZE,
    SOURCE_FROM,
    STATE,
    TS_AT,
    WINDOW,
)  # fmt: skip
from watersmeet.engine.ordered import tree_delete, tree_insert


@inlined
def mix(value: int, key: int) -> int:
    """Add one more column to a hash."""
    x = (value ^ key) * HASH
    return x ^ (x >> 32)


@inlined
def bucket_of(m: Words, S: Words, I: Words, x: int, slot: int) -> int:
    s = I[x, OF_STORE]
    at, cap = S[s, COLS_AT] + slot, S[s, CAP]
    value = m[at + I[x, KEY0] * cap] if I[x, NKEYS] > 0 else 0
    for k in range(1, I[x, NKEYS]):
        value = mix(value, m[at + I[x, KEY0 + k] * cap])
    return ((value * HASH) >> I[x, SHIFT]) & I[x, BUCKETS]


@inlined
def link(m: Words, h: Words, S: Words, I: Words, x: int, id: int) -> None:
    """Put a tuple into one index."""
    slot = id & S[I[x, OF_STORE], MASK]
    if I[x, ORDERED]:
        tree_insert(m, h, S, I, x, slot)
        return
    head = I[x, HEADS_AT] + bucket_of(m, S, I, x, slot)
    older = h[head]
    h[I[x, LINK_AT] + slot] = older
    h[head] = id
    if I[x, DOUBLY]:
        h[I[x, BACK_AT] + slot] = -1
        if older >= 0:
            h[I[x, BACK_AT] + older] = slot


@inlined
def unlink(m: Words, h: Words, S: Words, I: Words, x: int, id: int) -> None:
    """Take a tuple out of one index; a ring's hash chains need it not."""
    slot = id & S[I[x, OF_STORE], MASK]
    if I[x, ORDERED]:
        tree_delete(h, I, x, slot)
    elif I[x, DOUBLY]:
        older, newer = h[I[x, LINK_AT] + slot], h[I[x, BACK_AT] + slot]
        if older >= 0:
            h[I[x, BACK_AT] + older] = newer
        if newer >= 0:
            h[I[x, LINK_AT] + newer] = older
        else:
            h[I[x, HEADS_AT] + bucket_of(m, S, I, x, slot)] = older


@inlined
def room(S: Words, s: int) -> bool:
    """Whether one more tuple fits."""
    if S[s, KIND] == RING:
        return S[s, NEXT] - S[s, FLOOR] < S[s, CAP]
    return S[s, FREE] >= 0 or S[s, NEXT] < S[s, CAP]


@inlined
def put(
    m: Words, h: Words, S: Words, I: Words, s: int, ts: int, alive: bool, row: int, incols: Words, at: int, stride: int
) -> int:
    """A row enters a window: its columns are copied from `incols[at + c * stride]`; a row that is not alive (a predicate rejects it)
    takes its place in the window but no index leads to it. Returns its id."""
    if S[s, KIND] == RING:
        id = S[s, NEXT]
        S[s, NEXT] = id + 1
    else:
        id = S[s, FREE]
        if id >= 0:
            S[s, FREE] = h[S[s, FREE_AT] + id]
        else:
            id = S[s, NEXT]
            S[s, NEXT] = id + 1
        m[S[s, ROWNUM_AT] + id] = row
        S[s, LIVE] += 1
    slot = id & S[s, MASK]
    cap = S[s, CAP]
    to = S[s, COLS_AT] + slot
    for c in range(S[s, NCOLS]):
        m[to + c * cap] = incols[at + c * stride]
    S[s, INSERTS] += 1
    if not alive:
        m[S[s, TS_AT] + slot] = DEAD
        return id
    m[S[s, TS_AT] + slot] = ts
    if S[s, WINDOW] == RANGE and id == S[s, FLOOR]:
        S[s, EXPIRES] = ts + S[s, SIZE]
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        link(m, h, S, I, x, id)
    return id


@inlined
def alive(m: Words, S: Words, leaf: int, id: int) -> bool:
    """Whether a tuple that a state's entry refers to is still in its window."""
    if S[leaf, KIND] == RING:
        return id >= S[leaf, FLOOR]
    return m[S[leaf, TS_AT] + id] != DEAD


@inlined
def drop_oldest(m: Words, h: Words, S: Words, I: Words, s: int) -> None:
    """The oldest tuple of a ring leaves."""
    id = S[s, FLOOR]
    if S[s, EAGER] and m[S[s, TS_AT] + (id & S[s, MASK])] != DEAD:
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            unlink(m, h, S, I, x, id)
    S[s, FLOOR] = id + 1
    S[s, EXPIRIES] += 1
    if S[s, WINDOW] == RANGE:
        S[s, EXPIRES] = m[S[s, TS_AT] + ((id + 1) & S[s, MASK])] + S[s, SIZE] if id + 1 < S[s, NEXT] else FAR


@inlined
def drop_slot(m: Words, h: Words, S: Words, I: Words, s: int, id: int) -> None:
    """A tuple of a pool leaves; its slot waits in the dead list while states may refer to it."""
    if m[S[s, TS_AT] + id] != DEAD:
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            unlink(m, h, S, I, x, id)
        m[S[s, TS_AT] + id] = DEAD
    S[s, EXPIRIES] += 1
    S[s, LIVE] -= 1
    to = DEAD_LIST if S[s, HELD] else FREE
    h[S[s, FREE_AT] + id] = S[s, to]
    S[s, to] = id
    S[s, DEAD_COUNT] += S[s, HELD]


@inlined
def store_entry(m: Words, h: Words, S: Words, I: Words, members: Words, sources: Words, s: int, bound: Words) -> None:
    """A result of an inner node enters its state."""
    id = S[s, NEXT]
    S[s, NEXT] = id + 1
    cap = S[s, CAP]
    for k in range(S[s, LEAF_TO] - S[s, LEAF_FROM]):
        h[S[s, MEMBERS_AT] + k * cap + id] = bound[members[S[s, LEAF_FROM] + k]]
    for c in range(S[s, NCOLS]):
        leaf, column = sources[S[s, SOURCE_FROM] + c, 0], sources[S[s, SOURCE_FROM] + c, 1]
        m[S[s, COLS_AT] + c * cap + id] = m[S[leaf, COLS_AT] + column * S[leaf, CAP] + (bound[leaf] & S[leaf, MASK])]
    S[s, INSERTS] += 1
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        link(m, h, S, I, x, id)


@inlined
def entry_alive(m: Words, h: Words, S: Words, members: Words, s: int, id: int) -> bool:
    for k in range(S[s, LEAF_TO] - S[s, LEAF_FROM]):
        if not alive(m, S, members[S[s, LEAF_FROM] + k], h[S[s, MEMBERS_AT] + k * S[s, CAP] + id]):
            return False
    return True


@inlined
def find_partition(m: Words, S: Words, s: int, key: int, check: int) -> int:
    """Place of a partition's entry in the directory, or of the unused entry where it belongs."""
    at = (mix(key, check) * HASH >> 20) & S[s, PART_MASK]
    while True:
        entry = S[s, PART_AT] + at * 4
        if m[entry + 3] == 0 or (m[entry] == key and m[entry + 1] == check):
            return entry
        at = (at + 1) & S[s, PART_MASK]


@inlined
def oldest_of(m: Words, entry: int) -> int:
    return (m[entry + 2] >> 32) - 1


@inlined
def join_partition(m: Words, h: Words, S: Words, s: int, entry: int, key: int, check: int, id: int) -> None:
    """A tuple becomes the newest of its partition."""
    h[S[s, FREE_AT] + id] = -1
    if m[entry + 3] == 0:
        m[entry] = key
        m[entry + 1] = check
        m[entry + 3] = 1
        S[s, PART_USED] += 1
    if m[entry + 3] == 1:
        m[entry + 2] = ((id + 1) << 32) | (id + 1)
    else:
        h[S[s, FREE_AT] + (m[entry + 2] & 0xFFFFFFFF) - 1] = id
        m[entry + 2] = (m[entry + 2] >> 32 << 32) | (id + 1)
    m[entry + 3] += 1


@inlined
def leave_partition(m: Words, h: Words, S: Words, s: int, entry: int) -> None:
    """The oldest tuple of a partition is taken off its list."""
    newer = h[S[s, FREE_AT] + oldest_of(m, entry)]
    m[entry + 2] = ((newer + 1) << 32) | (m[entry + 2] & 0xFFFFFFFF)
    m[entry + 3] -= 1


__all__ = [
    "POOL", "STATE", "alive", "drop_oldest", "drop_slot", "entry_alive", "find_partition", "join_partition", "leave_partition",
    "link", "mix", "oldest_of", "put", "room", "store_entry",
]  # fmt: skip
