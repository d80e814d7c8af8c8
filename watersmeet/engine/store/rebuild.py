"""Build indexes anew, sweep dead entries out of states, rehash partition directories: what happens between tuples."""

from __future__ import annotations

from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import Halves, Table, Words, compiled, inlined, prefetch
from watersmeet.engine.program.layout import (
    BUCKETS,
    DEAD,
    EXPIRIES,
    FLOOR,
    HEADS_AT,
    INDEX_FROM,
    INDEX_TO,
    KIND,
    LIVE,
    NEXT,
    ORDERED,
    PART_AT,
    PART_MASK,
    RING,
    ROOT,
    STATE,
    STRIDE,
)  # fmt: skip
from watersmeet.engine.store.window import bucket_of, entry_alive, link, mix, record, stamp

NEAR = 16  # tuples ahead whose buckets are asked for


@inlined
def _relink_one(m: Words, h: Halves, S: Table, I: Table, s: int, x: int) -> None:
    """Fill one index from the live tuples of its store, oldest first."""
    if I[x, ORDERED]:
        I[x, ROOT] = -1
    else:
        for b in range(I[x, BUCKETS] + 1):
            h[I[x, HEADS_AT] + b] = -1
    first = S[s, FLOOR] if S[s, KIND] == RING else 0
    for id in range(first, S[s, NEXT]):
        if id + NEAR < S[s, NEXT] and not I[x, ORDERED]:
            prefetch(h, I[x, HEADS_AT] + bucket_of(m, I, x, record(S, s, id + NEAR)))
        if S[s, KIND] == STATE or m[stamp(S, s, id)] != DEAD:
            link(m, h, S, I, x, id)


@compiled
def relink(m: Words, h: Halves, S: Table, I: Table, s: int) -> None:
    """Fill all indexes of a store."""
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        _relink_one(m, h, S, I, s, x)


@compiled
def sweep(m: Words, h: Halves, S: Table, I: Table, members: Words, s: int) -> None:
    """Take out the entries of a state that have lost a member, and close the gaps."""
    kept = 0
    for id in range(S[s, NEXT]):
        r = record(S, s, id)
        if entry_alive(m, h, S, members, s, r):
            if kept != id:
                to = record(S, s, kept)
                for w in range(S[s, STRIDE]):
                    m[to + w] = m[r + w]
            kept += 1
    gone = S[s, NEXT] - kept
    S[s, EXPIRIES] += gone
    S[s, NEXT] = kept
    S[s, LIVE] = kept
    if gone:
        for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
            _relink_one(m, h, S, I, s, x)


@compiled
def rehash(m: Words, row: Words, entries: Table) -> None:
    """Put the entries of an old partition directory into a new, empty one."""
    for i in range(entries.shape[0]):
        if entries[i, 3] == 0:
            continue
        at = (scatter(mix(entries[i, 0], entries[i, 1])) >> 20) & row[PART_MASK]
        while m[row[PART_AT] + at * 4 + 3] != 0:
            at = (at + 1) & row[PART_MASK]
        for c in range(4):
            m[row[PART_AT] + at * 4 + c] = entries[i, c]
