"""Caches: for keys that were asked for, the combinations of a segment's tuples that have the key. Values are references: tuple ids.

    region    sets: two entries each, one cache line or two | blocks of one line, in extents of 1, 2, 4, ... of them
    entry     meta | key ...                                | references, if they are few enough
    meta      count + 1 (16 bits; 0: unused), class of extent (8 bits; 0: here), used last, new (1 bit each) | first block (32 bits)
    reference the ids of a combination's tuples (int32), leaves in order

A key has one set where it can be: two ways, of which the one that was used longer ago gives way. An empty value is a value: nothing has
this key. A tuple that leaves its window stays in values until they are read or grow; `in_window` (store/visible.py) knows it. A POOL
uses ids again, so its dead slots wait until caches have been swept, as they do for states.

Nothing here is needed for a right answer: an entry may go at any time, and does where there is no room.

Source: Babu et al., "Adaptive Caching for Continuous Queries", 3.2 (operations), 3.3 (references, replacement on collision).
Departs from the paper in: two ways instead of direct-mapped; deletion by reference on reading.
"""

from __future__ import annotations

from watersmeet.engine.native.hashing import plus, scatter
from watersmeet.engine.native.mark import Halves, Table, Words, compiled, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory
from watersmeet.engine.store.visible import in_window

COUNT, CLASS, LAST, NEW, PLACE = 0xFFFF, 16, 1 << 24, 1 << 25, 32  # parts of an entry's meta


@inlined
def count_in(mem: Memory, e: int) -> int:
    """How many references an entry has."""
    return (mem.words[e] & COUNT) - 1


@inlined
def class_of(mem: Memory, e: int) -> int:
    """The class of an entry's extent; 0: its references lie in it."""
    return (mem.words[e] >> CLASS) & 0xFF


@inlined
def width(mem: Memory, s: int) -> int:
    """Half words of a reference."""
    return mem.stores[s, L.LEAF_TO] - mem.stores[s, L.LEAF_FROM]


@inlined
def block(mem: Memory, s: int, number: int) -> int:
    """First word of a block."""
    return mem.stores[s, L.BLOCKS_AT] + number * L.CACHE_BLOCK


@inlined
def value_at(mem: Memory, s: int, e: int) -> int:
    """First half word of an entry's references."""
    if class_of(mem, e) == 0:
        return 2 * (e + 1 + mem.stores[s, L.NCOLS])
    return 2 * block(mem, s, mem.words[e] >> PLACE)


@inlined
def holds(mem: Memory, s: int, c: int) -> int:
    """How many references an extent of this class has room for."""
    if c == 0:
        return 2 * (mem.stores[s, L.STRIDE] - 1 - mem.stores[s, L.NCOLS]) // width(mem, s)
    return (2 * L.CACHE_BLOCK << (c - 1)) // width(mem, s)


@inlined
def set_of(mem: Memory, s: int, keys: Table, row: int, at: int) -> int:
    """First word of the set of a key, which lies in `keys[row]` from `at` on."""
    n = mem.stores[s, L.NCOLS]
    value = keys[row, at] if n > 0 else 0
    for k in range(1, n):
        value = plus(scatter(value), keys[row, at + k])
    number = (((scatter(value) >> 32) & 0xFFFFFFFF) * mem.stores[s, L.CAP]) >> 32
    return mem.stores[s, L.ROWS_AT] + number * 2 * mem.stores[s, L.STRIDE]


@inlined
def find(mem: Memory, s: int, keys: Table, row: int, at: int) -> int:
    """First word of the entry of a key; -1: it has none."""
    first, n, stride = set_of(mem, s, keys, row, at), mem.stores[s, L.NCOLS], mem.stores[s, L.STRIDE]
    for e in range(first, first + 2 * stride, stride):
        if mem.words[e] != 0:
            same = True
            for k in range(n):
                same = same and mem.words[e + 1 + k] == keys[row, at + k]
            if same:
                return e
    return -1


@inlined
def touch(mem: Memory, s: int, e: int) -> None:
    """An entry has been used; the other of its set longer ago."""
    other = mem.stores[s, L.ROWS_AT] + ((e - mem.stores[s, L.ROWS_AT]) ^ mem.stores[s, L.STRIDE])
    mem.words[e] |= LAST
    mem.words[other] &= ~LAST


@inlined
def refers_to_live(mem: Memory, s: int, at: int) -> bool:
    """Whether all tuples of the reference at a half word are in their windows."""
    first = mem.stores[s, L.LEAF_FROM]
    alive = True
    for k in range(width(mem, s)):
        alive = alive and in_window(mem, mem.members[first + k], mem.halves[at + k])
    return alive


@inlined
def compact(mem: Memory, s: int, e: int) -> int:
    """Take the references out that have lost a tuple. Returns how many are left."""
    count, at, size = count_in(mem, e), value_at(mem, s, e), width(mem, s)
    kept = 0
    for k in range(count):
        if refers_to_live(mem, s, at + k * size):
            if kept < k:
                for j in range(size):
                    mem.halves[at + kept * size + j] = mem.halves[at + k * size + j]
            kept += 1
    mem.words[e] -= count - kept
    return kept


@inlined
def give_back(mem: Memory, s: int, number: int, c: int) -> None:
    """An extent is free."""
    mem.words[block(mem, s, number)] = mem.stores[s, L.FREE_BLOCKS + c]
    mem.stores[s, L.FREE_BLOCKS + c] = number + 1


@inlined
def erase(mem: Memory, s: int, e: int) -> None:
    """An entry is gone."""
    c = class_of(mem, e)
    if c > 0:
        give_back(mem, s, mem.words[e] >> PLACE, c)
        mem.stores[s, L.BLOCKS_USED] -= 1 << (c - 1)
    mem.words[e] = 0
    mem.stores[s, L.ENTRIES] -= 1


@inlined
def take_free(mem: Memory, s: int, c: int) -> int:
    """The first block of an extent: a free one, a new one, or a part of a larger one. -1: there is none."""
    new, size = mem.stores[s, L.BLOCKS_OUT], 1 << (c - 1)
    if mem.stores[s, L.FREE_BLOCKS + c] == 0 and new + size <= mem.stores[s, L.BLOCKS]:
        mem.stores[s, L.BLOCKS_OUT] = new + size
        return new
    for d in range(c, L.CACHE_CLASSES + 1):
        number = mem.stores[s, L.FREE_BLOCKS + d] - 1
        if number >= 0:
            mem.stores[s, L.FREE_BLOCKS + d] = mem.words[block(mem, s, number)]
            for k in range(d - 1, c - 1, -1):
                give_back(mem, s, number + (1 << (k - 1)), k)
            return number
    return -1


@inlined
def free_all_blocks(mem: Memory, s: int) -> None:
    """Entries with extents go, and the blocks are whole again."""
    stride = mem.stores[s, L.STRIDE]
    for e in range(mem.stores[s, L.ROWS_AT], mem.stores[s, L.BLOCKS_AT], stride):
        if mem.words[e] != 0 and class_of(mem, e) > 0:
            erase(mem, s, e)
            mem.stores[s, L.CROWDED] += 1
    for c in range(L.CACHE_CLASSES + 1):
        mem.stores[s, L.FREE_BLOCKS + c] = 0
    mem.stores[s, L.BLOCKS_OUT] = 0


@inlined
def extent(mem: Memory, s: int, c: int, spared: int) -> int:
    """The first block of an extent; entries other than `spared` may go for it. -1: there is none, and `spared` may have gone.

    If half of the blocks are free and yet none will do, they have been cut too small, and all are made free.
    """
    number = take_free(mem, s, c)
    for _ in range(8):
        if number >= 0 or 1 << (c - 1) > mem.stores[s, L.BLOCKS]:
            break
        stride = mem.stores[s, L.STRIDE]
        e = mem.stores[s, L.ROWS_AT] + mem.stores[s, L.HAND] * 2 * stride
        for at in range(e, e + 2 * stride, stride):
            if at != spared and mem.words[at] != 0 and class_of(mem, at) > 0:
                erase(mem, s, at)
                mem.stores[s, L.CROWDED] += 1
        mem.stores[s, L.HAND] += 1
        if mem.stores[s, L.HAND] >= mem.stores[s, L.CAP]:
            mem.stores[s, L.HAND] = 0
        number = take_free(mem, s, c)
    if number >= 0:
        mem.stores[s, L.BLOCKS_USED] += 1 << (c - 1)
    elif 2 * mem.stores[s, L.BLOCKS_USED] < mem.stores[s, L.BLOCKS] and 1 << c <= mem.stores[s, L.BLOCKS]:
        free_all_blocks(mem, s)
    return number


@compiled
def open_entry(mem: Memory, s: int, keys: Table, row: int, at: int, count: int) -> int:
    """An entry, as yet of nothing, for a key that has none, with room for so many references. -1: it is not kept."""
    c, number = 0, 0
    while c <= L.CACHE_CLASSES and holds(mem, s, c) < count:
        c += 1
    if c > 0:
        number = extent(mem, s, c, -1) if c <= L.CACHE_CLASSES else -1
    if number < 0:
        mem.stores[s, L.UNCACHED] += 1
        return -1
    e, n, stride = set_of(mem, s, keys, row, at), mem.stores[s, L.NCOLS], mem.stores[s, L.STRIDE]
    if mem.words[e] != 0 and (mem.words[e + stride] == 0 or (mem.words[e] & LAST) != 0):
        e += stride
    if mem.words[e] != 0:
        erase(mem, s, e)
        mem.stores[s, L.REPLACED] += 1
    mem.words[e] = 1 | (c << CLASS) | (number << PLACE)
    for k in range(n):
        mem.words[e + 1 + k] = keys[row, at + k]
    mem.stores[s, L.ENTRIES] += 1
    mem.stores[s, L.CREATED] += 1
    touch(mem, s, e)
    return e


@inlined
def create(mem: Memory, s: int, keys: Table, row: int, pending: Table, of: int, count: int) -> None:
    """create(u, v): the value of a key that has no entry becomes known: the first `count` references of `pending[of]`."""
    e = open_entry(mem, s, keys, row, 0, count)
    if e >= 0:
        at = value_at(mem, s, e)
        for k in range(count * width(mem, s)):
            mem.halves[at + k] = pending[of, k]
        mem.words[e] += count


@compiled
def enlarge(mem: Memory, s: int, e: int) -> bool:
    """Room for one more reference in an entry that is full. False: there is none, and the entry is gone."""
    c = class_of(mem, e)
    if compact(mem, s, e) < holds(mem, s, c) and 4 * count_in(mem, e) <= 3 * holds(mem, s, c):
        return True
    c += 1
    while c <= L.CACHE_CLASSES and holds(mem, s, c) <= count_in(mem, e):
        c += 1
    number = extent(mem, s, c, e) if c <= L.CACHE_CLASSES else -1
    if number < 0:
        if mem.words[e] != 0:
            erase(mem, s, e)
            mem.stores[s, L.CROWDED] += 1
        return False
    count, was, to = count_in(mem, e), value_at(mem, s, e), 2 * block(mem, s, number)
    for k in range(count * width(mem, s)):
        mem.halves[to + k] = mem.halves[was + k]
    if class_of(mem, e) > 0:
        give_back(mem, s, mem.words[e] >> PLACE, class_of(mem, e))
        mem.stores[s, L.BLOCKS_USED] -= 1 << (class_of(mem, e) - 1)
    mem.words[e] = (mem.words[e] & (COUNT | LAST)) | (c << CLASS) | (number << PLACE)
    return True


@compiled
def refill(mem: Memory, s: int, words: Table, halves: Halves, was: Words) -> None:
    """Take over the entries of a cache of another size, as far as they fit.

    words, halves: the arena that it lies in, the former as one row; was: its row of the table of stores.
    """
    n, size, stride = mem.stores[s, L.NCOLS], width(mem, s), mem.stores[s, L.STRIDE]
    for from_e in range(was[L.ROWS_AT], was[L.BLOCKS_AT], stride):
        meta = words[0, from_e]
        if meta == 0:
            continue
        count, at = (meta & COUNT) - 1, 2 * (from_e + 1 + n)
        if (meta >> CLASS) & 0xFF > 0:
            at = 2 * (was[L.BLOCKS_AT] + (meta >> PLACE) * L.CACHE_BLOCK)
        e = open_entry(mem, s, words, 0, from_e + 1, count)
        if e >= 0:
            to = value_at(mem, s, e)
            for k in range(count * size):
                mem.halves[to + k] = halves[at + k]
            mem.words[e] += count
    for counter in (L.CREATED, L.REPLACED, L.CROWDED, L.UNCACHED):
        mem.stores[s, counter] = 0


@compiled
def sweep_cache(mem: Memory, s: int) -> None:
    """Take all references out that have lost a tuple."""
    e = mem.stores[s, L.ROWS_AT]
    for _ in range(2 * mem.stores[s, L.CAP]):
        if mem.words[e] != 0:
            compact(mem, s, e)
        e += mem.stores[s, L.STRIDE]


@compiled
def clear_cache(mem: Memory, s: int) -> None:
    """Forget everything."""
    free_all_blocks(mem, s)
    for w in range(mem.stores[s, L.ROWS_AT], mem.stores[s, L.BLOCKS_AT]):
        mem.words[w] = 0
    mem.stores[s, L.ENTRIES] = 0
