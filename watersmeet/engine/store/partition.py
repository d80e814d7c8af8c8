"""The directory of a PARTITION BY window: finds the oldest and the newest tuple of a partition, and how many it has.

Key and check are 128 bits that tell partitions apart (rows/partitions.py); the key's are as good as random, so they say where to look.

entry: key, check, oldest id + 1 (high half) and newest id + 1 (low half), tuples + 1; 0 in the last word: the entry is unused
"""

from __future__ import annotations

from watersmeet.engine.native.mark import Table, Words, compiled, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory
from watersmeet.engine.store.record import record


@inlined
def find_partition(mem: Memory, s: int, key: int, check: int) -> int:
    """Place of a partition's entry in the directory, or of the unused entry where it belongs."""
    at = (key >> 20) & mem.stores[s, L.PART_MASK]
    while True:
        entry = mem.stores[s, L.PART_AT] + at * 4
        if mem.words[entry + 3] == 0 or (mem.words[entry] == key and mem.words[entry + 1] == check):
            return entry
        at = (at + 1) & mem.stores[s, L.PART_MASK]


@inlined
def count_of(mem: Memory, entry: int) -> int:
    """How many tuples a partition has; -1: it has no entry yet."""
    return mem.words[entry + 3] - 1


@inlined
def oldest_of(mem: Memory, entry: int) -> int:
    """The id of a partition's oldest tuple."""
    return (mem.words[entry + 2] >> 32) - 1


@inlined
def join_partition(mem: Memory, s: int, entry: int, key: int, check: int, tid: int) -> None:
    """A tuple becomes the newest of its partition."""
    mem.halves[2 * record(mem, s, tid) + L.FREE_LINK] = -1
    if mem.words[entry + 3] == 0:
        mem.words[entry] = key
        mem.words[entry + 1] = check
        mem.words[entry + 3] = 1
        mem.stores[s, L.PART_USED] += 1
    if mem.words[entry + 3] == 1:
        mem.words[entry + 2] = ((tid + 1) << 32) | (tid + 1)
    else:
        mem.halves[2 * record(mem, s, (mem.words[entry + 2] & 0xFFFFFFFF) - 1) + L.FREE_LINK] = tid
        mem.words[entry + 2] = (mem.words[entry + 2] >> 32 << 32) | (tid + 1)
    mem.words[entry + 3] += 1


@inlined
def leave_partition(mem: Memory, s: int, entry: int) -> None:
    """The oldest tuple of a partition is taken off its list."""
    newer = mem.halves[2 * record(mem, s, oldest_of(mem, entry)) + L.FREE_LINK]
    mem.words[entry + 2] = ((newer + 1) << 32) | (mem.words[entry + 2] & 0xFFFFFFFF)
    mem.words[entry + 3] -= 1


@compiled
def rehash(words: Words, row: Words, entries: Table) -> None:
    """Put the entries of an old partition directory into a new, empty one."""
    for i in range(entries.shape[0]):
        if entries[i, 3] == 0:
            continue
        at = (entries[i, 0] >> 20) & row[L.PART_MASK]
        while words[row[L.PART_AT] + at * 4 + 3] != 0:
            at = (at + 1) & row[L.PART_MASK]
        for c in range(4):
            words[row[L.PART_AT] + at * 4 + c] = entries[i, c]


@compiled
def held_rows(mem: Memory, s: int, keys: Words, checks: Words, rows: Words) -> None:
    """For each of these partitions the row number of its oldest tuple; -1: there is no such partition."""
    for i in range(keys.shape[0]):
        entry = find_partition(mem, s, keys[i], checks[i])
        rows[i] = mem.words[record(mem, s, oldest_of(mem, entry)) + L.ROWNUM] if count_of(mem, entry) > 0 else -1
