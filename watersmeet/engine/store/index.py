"""Indexes: hash chains from newest to oldest, and ordered trees (ordered.py). A tuple is linked into all of its store's, and unlinked."""

from __future__ import annotations

from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory
from watersmeet.engine.store.ordered import tree_delete, tree_insert
from watersmeet.engine.store.record import record


@inlined
def mix(value: int, key: int) -> int:
    """Add one more column to a hash; (1, 2), (2, 1) and (3, 3) are far apart."""
    x = scatter(scatter(value) ^ key)
    return x ^ (x >> 32)


@inlined
def bucket(heads: int, shift: int, buckets: int, key: int) -> int:
    """The half word that heads the chain of a key."""
    return heads + ((scatter(key) >> shift) & buckets)


@inlined
def head_of(mem: Memory, x: int, key: int) -> int:
    """The same, in index `x`."""
    return bucket(mem.indexes[x, L.HEADS_AT], mem.indexes[x, L.SHIFT], mem.indexes[x, L.BUCKETS], key)


@inlined
def head_for(mem: Memory, x: int, r: int) -> int:
    """The half word that heads the chain that a record belongs to."""
    value = mem.words[r + mem.indexes[x, L.KEY0]] if mem.indexes[x, L.NKEYS] > 0 else 0
    for k in range(1, mem.indexes[x, L.NKEYS]):
        value = mix(value, mem.words[r + mem.indexes[x, L.KEY0 + k]])
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
