"""Indexes: hash chains from newest to oldest, and ordered trees (ordered.py). A tuple is linked into all of its store's, and unlinked.

Buckets are chosen by multiplication with factors that nobody outside knows (secret.py), so that no choice of keys makes chains long:

    one column    the high bits of key * factor: keys that differ meet in one of n buckets with a probability of at most 2 / n
    more columns  first + low half * factor + high half * factor for each of the others, and then the same: 2^-33 more

Source: Dietzfelbinger et al., "A reliable randomized algorithm for the closest-pair problem" (1997), section 2 (multiply and shift);
Lemire, Kaser, "Strongly universal string hashing is fast" (2014), section 3 (multilinear).
"""

from __future__ import annotations

from watersmeet.engine.native.hashing import plus, times
from watersmeet.engine.native.mark import inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory
from watersmeet.engine.store.ordered import tree_delete, tree_insert
from watersmeet.engine.store.record import record


@inlined
def mix(mem: Memory, x: int, k: int, value: int, key: int) -> int:
    """Add column k, which is not the first, to the hash of a key."""
    low, high = mem.indexes[x, L.FACTOR + 2 * k - 1], mem.indexes[x, L.FACTOR + 2 * k]
    return plus(value, plus(times(key & 0xFFFFFFFF, low), times((key >> 32) & 0xFFFFFFFF, high)))


@inlined
def bucket(heads: int, shift: int, buckets: int, factor: int, key: int) -> int:
    """The half word that heads the chain of a key."""
    return heads + ((times(key, factor) >> shift) & buckets)


@inlined
def head_of(mem: Memory, x: int, key: int) -> int:
    """The same, in index `x`."""
    heads, shift, buckets = mem.indexes[x, L.HEADS_AT], mem.indexes[x, L.SHIFT], mem.indexes[x, L.BUCKETS]
    return bucket(heads, shift, buckets, mem.indexes[x, L.FACTOR], key)


@inlined
def head_for(mem: Memory, x: int, r: int) -> int:
    """The half word that heads the chain that a record belongs to."""
    value = mem.words[r + mem.indexes[x, L.KEY0]] if mem.indexes[x, L.NKEYS] > 0 else 0
    for k in range(1, mem.indexes[x, L.NKEYS]):
        value = mix(mem, x, k, value, mem.words[r + mem.indexes[x, L.KEY0 + k]])
    return head_of(mem, x, value)


@inlined
def link(mem: Memory, x: int, tid: int) -> None:
    """Put a tuple into one index."""
    s = mem.indexes[x, L.OF_STORE]
    if mem.indexes[x, L.ORDERED]:
        tree_insert(mem, x, tid & mem.stores[s, L.MASK])
        return
    r = record(mem, s, tid)
    head = head_for(mem, x, r)
    older = mem.halves[head]
    mem.halves[2 * r + mem.indexes[x, L.LINK]] = older
    mem.halves[head] = tid
    if mem.indexes[x, L.DOUBLY]:
        mem.halves[2 * r + mem.indexes[x, L.BACK]] = -1
        if older >= 0:
            mem.halves[2 * record(mem, s, older) + mem.indexes[x, L.BACK]] = tid


@inlined
def unlink(mem: Memory, x: int, tid: int) -> None:
    """Take a tuple out of one index; a ring's hash chains need it not."""
    s = mem.indexes[x, L.OF_STORE]
    if mem.indexes[x, L.ORDERED]:
        tree_delete(mem, x, tid & mem.stores[s, L.MASK])
    elif mem.indexes[x, L.DOUBLY]:
        r = record(mem, s, tid)
        older, newer = mem.halves[2 * r + mem.indexes[x, L.LINK]], mem.halves[2 * r + mem.indexes[x, L.BACK]]
        if older >= 0:
            mem.halves[2 * record(mem, s, older) + mem.indexes[x, L.BACK]] = newer
        if newer >= 0:
            mem.halves[2 * record(mem, s, newer) + mem.indexes[x, L.LINK]] = older
        else:
            mem.halves[head_for(mem, x, r)] = older
