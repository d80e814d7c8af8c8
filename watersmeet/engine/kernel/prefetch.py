"""Look ahead: ask for the cache lines that the next rows of a stream will need, while this one is being processed.

A probe into windows that are larger than the cache waits for memory at every step: for the bucket, for each record of its chain, for
the second probe's bucket, for each record of that chain. The rows to come are known, so a *walker* goes before each of them, takes
the steps that the row's first two probes will take, and asks for what its next step will look at. The walkers of GROUP rows go together:

    32 rows ahead       buckets of all probes and indexes whose key is the row's own
    16 rows ahead       the record and the timestamp that are written then, and the timestamp that leaves
    16 to 31 ahead      the group sets out: bucket -> newest record
    with each row then  one step of all: record -> next record; if it matches -> bucket of the second probe -> record -> next record

A step is a loop over a list without a branch in it: each walker's next place is written down, and the list's end moves on only if there
is one. (A walker that took its steps by itself, with branches, cost three times as much: docs/decisions.md, 23.)

Nothing here changes what the kernel does; it is on only when the arena is larger than the cache. A walker may stand on a tuple
that has left meanwhile: all it finds there is a place in the arena, and the worst it can do is to ask for a line that nobody needs.
"""

from __future__ import annotations

from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import Halves, Table, Words, inlined, prefetch
from watersmeet.engine.program.layout import (
    BUCKETS,
    CODE,
    COL0,
    COLS_IN,
    FLOOR,
    GROUP,
    HEADS_AT,
    INDEX,
    INDEX_FROM,
    INDEX_TO,
    INNER,
    INNERS,
    KEY0,
    KIND,
    LINK,
    MASK,
    NEXT,
    NKEYS,
    OP_KEY0,
    OP_NKEYS,
    ORDERED,
    OUTER,
    OUTER_ROW,
    OUTERS,
    PIPE,
    PROBE,
    ROWS_AT,
    ROWS_IN,
    SHIFT,
    STATE,
    STORE,
    STRIDE,
    TARGET,
)  # fmt: skip
from watersmeet.engine.store.window import record, stamp


@inlined
def head_of(I: Table, x: int, key: int) -> int:
    return I[x, HEADS_AT] + ((scatter(key) >> I[x, SHIFT]) & I[x, BUCKETS])


@inlined
def column_of(S: Table, T: Table, s: int, word: int) -> int:
    """Where the input has the column that lies at `word` in the records of a stream."""
    return T[s, COLS_IN] + (word - S[s, COL0]) * T[s, ROWS_IN]


@inlined
def set_out(
    h: Halves, S: Table, I: Table, O: Table, W: Table, data: Words, s: int, pc: int, column: int, first: int, last: int
) -> None:
    """The buckets of a group's rows are here: ask for the newest record of each."""
    x, target = O[pc, INDEX], O[pc, TARGET]
    heads, shift, buckets, key, link = I[x, HEADS_AT], I[x, SHIFT], I[x, BUCKETS], 2 * I[x, KEY0], I[x, LINK]
    floor, mask, at, stride = S[target, FLOOR], S[target, MASK], 2 * S[target, ROWS_AT], 2 * S[target, STRIDE]
    outers = 0
    for row in range(first, last):
        id = h[heads + ((scatter(data[column + row]) >> shift) & buckets)]
        live = id >= floor
        r = at + ((id if live else floor) & mask) * stride
        prefetch(h, r + key)
        prefetch(h, r + link)
        W[s, OUTER_ROW + outers] = row
        W[s, OUTER + outers] = r
        outers += live
    W[s, OUTERS], W[s, INNERS] = outers, 0


@inlined
def walk_inner(h: Halves, S: Table, I: Table, O: Table, W: Table, s: int, pc: int) -> None:
    """Buckets and records of the second probe are here: ask for the record that comes next in each chain."""
    x, target = O[pc, INDEX], O[pc, TARGET]
    key, link = 2 * I[x, KEY0], I[x, LINK]
    floor, mask, at, stride = S[target, FLOOR], S[target, MASK], 2 * S[target, ROWS_AT], 2 * S[target, STRIDE]
    kept = 0
    for k in range(W[s, INNERS]):
        id = h[W[s, INNER + k]]
        live = id >= floor
        r = at + ((id if live else floor) & mask) * stride
        prefetch(h, r + key)
        prefetch(h, r + link)
        W[s, INNER + kept] = r + link
        kept += live
    W[s, INNERS] = min(kept, GROUP)  # as many may join them in walk_outer


@inlined
def walk_outer(
    m: Words, h: Halves, S: Table, I: Table, O: Table, W: Table, T: Table, data: Words, s: int, pc: int, column: int
) -> None:
    """Records of the first probe are here: ask for the second probe's bucket where one matches, and for the next of each chain.

    What is stored in between goes into the bucket of the same key in its state, mostly.
    """
    stores = O[pc + 1, CODE] == STORE
    x, target, after = O[pc, INDEX], O[pc, TARGET], pc + 1 + stores
    key, link = I[x, KEY0], I[x, LINK]
    floor, mask, at, stride = S[target, FLOOR], S[target, MASK], 2 * S[target, ROWS_AT], 2 * S[target, STRIDE]
    leaf, word, y = O[after, OP_KEY0], O[after, OP_KEY0 + 1], 0
    own = leaf == s
    goes_on = (
        O[after, CODE] == PROBE and O[after, OP_NKEYS] == 1 and (own or (leaf == target and S[target, KIND] != STATE))
    )
    if goes_on:
        y = O[after, INDEX]
    z, state = y, O[pc + 1, TARGET]
    if stores and S[state, INDEX_FROM] < S[state, INDEX_TO]:
        z = S[state, INDEX_FROM]
    heads, shift, buckets, second = I[y, HEADS_AT], I[y, SHIFT], I[y, BUCKETS], column_of(S, T, s, word)
    state_heads, state_shift, state_buckets = I[z, HEADS_AT], I[z, SHIFT], I[z, BUCKETS]
    kept, inners = 0, W[s, INNERS]
    for k in range(W[s, OUTERS]):
        row, r = W[s, OUTER_ROW + k], W[s, OUTER + k]
        if goes_on:
            value = data[second + row] if own else m[(r >> 1) + word]
            same = m[(r >> 1) + key] == data[column + row]
            place = heads + (((scatter(value) >> shift) & buckets) if same else 0)
            prefetch(h, place)
            if stores:
                prefetch(h, state_heads + (((scatter(value) >> state_shift) & state_buckets) if same else 0))
            W[s, INNER + inners] = place
            inners += same
        id = h[r + link]
        live = id >= floor
        r = at + ((id if live else floor) & mask) * stride
        prefetch(h, r + 2 * key)
        prefetch(h, r + link)
        W[s, OUTER_ROW + kept] = row
        W[s, OUTER + kept] = r
        kept += live
    W[s, OUTERS], W[s, INNERS] = kept, inners


@inlined
def look_ahead(
    m: Words, h: Halves, S: Table, I: Table, O: Table, W: Table, T: Table, data: Words, s: int, at: int
) -> None:
    """Row `at` of stream `s` is next: walk on before those behind it."""
    pc, rows = S[s, PIPE], T[s, ROWS_IN]
    leads = pc >= 0 and O[pc, CODE] == PROBE and O[pc, OP_NKEYS] == 1
    column = column_of(S, T, s, O[pc, OP_KEY0 + 1]) if leads else 0
    prefetch(m, record(S, s, S[s, NEXT] + GROUP))
    prefetch(m, stamp(S, s, S[s, NEXT] + GROUP))
    prefetch(m, stamp(S, s, S[s, FLOOR] + GROUP))
    row = at + 2 * GROUP
    if row < rows:
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            if I[x, NKEYS] == 1 and I[x, ORDERED] == 0:
                prefetch(h, head_of(I, x, data[column_of(S, T, s, I[x, KEY0]) + row]))
        if leads:
            prefetch(h, head_of(I, O[pc, INDEX], data[column + row]))
    if leads:
        if at % GROUP == 0:
            set_out(h, S, I, O, W, data, s, pc, column, at + GROUP, min(at + 2 * GROUP, rows))
            return
        if W[s, INNERS] > 0:
            walk_inner(h, S, I, O, W, s, pc + 1 + (O[pc + 1, CODE] == STORE))
        if W[s, OUTERS] > 0:
            walk_outer(m, h, S, I, O, W, T, data, s, pc, column)
