"""Look ahead: ask for the cache lines that the next rows of a stream will need, while this one is being processed.

A probe into windows that are larger than the cache waits for memory at every step: for the bucket, for each record of its chain, for
the second probe's bucket, for each record of that chain. The rows to come are known, so a *walker* goes before each of them, takes
the steps that the row's first two probes will take, and asks for what its next step will look at. The walkers of GROUP rows go together:

    32 rows ahead       buckets of all probes and indexes whose key is the row's own
    16 rows ahead       the record and the timestamp that are written then, and the timestamp that leaves
    16 to 31 ahead      the group sets out: bucket -> newest record
    with each row then  one step of all: record -> next record; if it matches -> bucket of the second probe -> record -> next record

A step is a loop over a list without a branch in it: each walker's next place is written down, and the list's end moves on only if there
is one. (A walker that took its steps by itself, with branches, cost three times as much: docs/internals/decisions.md, 23.)

Nothing here changes what the kernel does; it is on only when the arena is larger than the cache. A walker may stand on a tuple
that has left meanwhile: all it finds there is a place in the arena, and the worst it can do is to ask for a line that nobody needs.
"""

from __future__ import annotations

from watersmeet.engine.native.mark import Table, Words, inlined, prefetch
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Given, Memory, Steps
from watersmeet.engine.store.index import bucket, head_of
from watersmeet.engine.store.record import record, stamp


@inlined
def column_of(mem: Memory, given: Given, s: int, word: int) -> int:
    """Where the input has the column that lies at `word` in the records of a stream."""
    return given.streams[s, L.COLS_IN] + (word - mem.stores[s, L.COL0]) * given.streams[s, L.ROWS_IN]


@inlined
def set_out(
    mem: Memory, steps: Steps, given: Given, walkers: Table, s: int, pc: int, column: int, first: int, last: int
) -> None:
    """The buckets of a group's rows are here: ask for the newest record of each."""
    x, target = steps.ops[pc, L.INDEX], steps.ops[pc, L.TARGET]
    heads, shift, buckets = mem.indexes[x, L.HEADS_AT], mem.indexes[x, L.SHIFT], mem.indexes[x, L.BUCKETS]
    factor, key, link = mem.indexes[x, L.FACTOR], 2 * mem.indexes[x, L.KEY0], mem.indexes[x, L.LINK]
    floor, mask = mem.stores[target, L.FLOOR], mem.stores[target, L.MASK]
    at, stride = 2 * mem.stores[target, L.ROWS_AT], 2 * mem.stores[target, L.STRIDE]
    outers = 0
    for row in range(first, last):
        tid = mem.halves[bucket(heads, shift, buckets, factor, given.values[column + row])]
        live = tid >= floor
        r = at + ((tid if live else floor) & mask) * stride
        prefetch(mem.halves, r + key)
        prefetch(mem.halves, r + link)
        walkers[s, L.OUTER_ROW + outers] = row
        walkers[s, L.OUTER + outers] = r
        outers += live
    walkers[s, L.OUTERS], walkers[s, L.INNERS] = outers, 0


@inlined
def walk_inner(mem: Memory, steps: Steps, walkers: Table, s: int, pc: int) -> None:
    """Buckets and records of the second probe are here: ask for the record that comes next in each chain."""
    x, target = steps.ops[pc, L.INDEX], steps.ops[pc, L.TARGET]
    key, link = 2 * mem.indexes[x, L.KEY0], mem.indexes[x, L.LINK]
    floor, mask = mem.stores[target, L.FLOOR], mem.stores[target, L.MASK]
    at, stride = 2 * mem.stores[target, L.ROWS_AT], 2 * mem.stores[target, L.STRIDE]
    kept = 0
    for k in range(walkers[s, L.INNERS]):
        tid = mem.halves[walkers[s, L.INNER + k]]
        live = tid >= floor
        r = at + ((tid if live else floor) & mask) * stride
        prefetch(mem.halves, r + key)
        prefetch(mem.halves, r + link)
        walkers[s, L.INNER + kept] = r + link
        kept += live
    walkers[s, L.INNERS] = min(kept, L.WALKERS)  # as many may join them in walk_outer


@inlined
def walk_outer(mem: Memory, steps: Steps, given: Given, walkers: Table, s: int, pc: int, column: int) -> None:
    """Records of the first probe are here: ask for the second probe's bucket where one matches, and for the next of each chain.

    What is stored in between goes into the bucket of the same key in its state, mostly.
    """
    stores = steps.ops[pc + 1, L.CODE] == L.STORE
    x, target, after = steps.ops[pc, L.INDEX], steps.ops[pc, L.TARGET], pc + 1 + stores
    key, link = mem.indexes[x, L.KEY0], mem.indexes[x, L.LINK]
    floor, mask = mem.stores[target, L.FLOOR], mem.stores[target, L.MASK]
    at, stride = 2 * mem.stores[target, L.ROWS_AT], 2 * mem.stores[target, L.STRIDE]
    leaf, word, y = steps.ops[after, L.OP_KEY0], steps.ops[after, L.OP_KEY0 + 1], 0
    own = leaf == s
    goes_on = (
        steps.ops[after, L.CODE] == L.PROBE
        and steps.ops[after, L.OP_NKEYS] == 1
        and (own or (leaf == target and mem.stores[target, L.KIND] != L.STATE))
    )
    if goes_on:
        y = steps.ops[after, L.INDEX]
    z, state = y, steps.ops[pc + 1, L.TARGET]
    if stores and mem.stores[state, L.INDEX_FROM] < mem.stores[state, L.INDEX_TO]:
        z = mem.stores[state, L.INDEX_FROM]
    second = column_of(mem, given, s, word)
    heads, shift, buckets = mem.indexes[y, L.HEADS_AT], mem.indexes[y, L.SHIFT], mem.indexes[y, L.BUCKETS]
    state_heads, state_shift = mem.indexes[z, L.HEADS_AT], mem.indexes[z, L.SHIFT]
    state_buckets, factor = mem.indexes[z, L.BUCKETS], mem.indexes[z, L.FACTOR]  # all indexes have one factor
    kept, inners = 0, walkers[s, L.INNERS]
    for k in range(walkers[s, L.OUTERS]):
        row, r = walkers[s, L.OUTER_ROW + k], walkers[s, L.OUTER + k]
        if goes_on:
            value = given.values[second + row] if own else mem.words[(r >> 1) + word]
            same = mem.words[(r >> 1) + key] == given.values[column + row]
            place = bucket(heads, shift, buckets, factor, value) if same else heads
            prefetch(mem.halves, place)
            if stores:
                there = bucket(state_heads, state_shift, state_buckets, factor, value)
                prefetch(mem.halves, there if same else state_heads)
            walkers[s, L.INNER + inners] = place
            inners += same
        tid = mem.halves[r + link]
        live = tid >= floor
        r = at + ((tid if live else floor) & mask) * stride
        prefetch(mem.halves, r + 2 * key)
        prefetch(mem.halves, r + link)
        walkers[s, L.OUTER_ROW + kept] = row
        walkers[s, L.OUTER + kept] = r
        kept += live
    walkers[s, L.OUTERS], walkers[s, L.INNERS] = kept, inners


@inlined
def look_ahead(mem: Memory, steps: Steps, given: Given, walkers: Table, control: Words, s: int, at: int) -> None:
    """Row `at` of stream `s` is next: walk on before those behind it."""
    pc, rows = mem.stores[s, L.PIPE], given.streams[s, L.ROWS_IN]
    leads = pc >= 0 and steps.ops[pc, L.CODE] == L.PROBE and steps.ops[pc, L.OP_NKEYS] == 1
    column = column_of(mem, given, s, steps.ops[pc, L.OP_KEY0 + 1]) if leads else 0
    prefetch(mem.words, record(mem, s, mem.stores[s, L.NEXT] + L.WALKERS))
    prefetch(mem.words, stamp(mem, s, mem.stores[s, L.NEXT] + L.WALKERS))
    prefetch(mem.words, stamp(mem, s, mem.stores[s, L.FLOOR] + L.WALKERS))
    row = at + 2 * L.WALKERS
    if row < rows:
        for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
            if mem.indexes[x, L.NKEYS] == 1 and mem.indexes[x, L.ORDERED] == 0:
                key = given.values[column_of(mem, given, s, mem.indexes[x, L.KEY0]) + row]
                prefetch(mem.halves, head_of(mem, x, key))
        if leads:
            prefetch(mem.halves, head_of(mem, steps.ops[pc, L.INDEX], given.values[column + row]))
    if leads:
        if at % L.WALKERS == 0:
            control[L.SET_OUT] += 1
            set_out(mem, steps, given, walkers, s, pc, column, at + L.WALKERS, min(at + 2 * L.WALKERS, rows))
            return
        if walkers[s, L.INNERS] > 0:
            walk_inner(mem, steps, walkers, s, pc + 1 + (steps.ops[pc + 1, L.CODE] == L.STORE))
        if walkers[s, L.OUTERS] > 0:
            walk_outer(mem, steps, given, walkers, s, pc, column)
