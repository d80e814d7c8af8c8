"""Build indexes anew, sweep dead entries out of states, rehash partition directories: what happens between tuples."""

from __future__ import annotations

from watersmeet.engine.compiled import Words, compiled, inlined
from watersmeet.engine.layout import (
    BUCKETS,
    CAP,
    COLS_AT,
    DEAD,
    EXPIRIES,
    FLOOR,
    HASH,
    HEADS_AT,
    INDEX_FROM,
    INDEX_TO,
    KIND,
    LEAF_FROM,
    LEAF_TO,
    LIVE,
    MASK,
    MEMBERS_AT,
    NCOLS,
    NEXT,
    ORDERED,
    PART_AT,
    PART_MASK,
    RING,
    ROOT,
    STATE,
    TS_AT,
)  # fmt: skip
from watersmeet.engine.stores import entry_alive, link, mix


@inlined
def relink_one(m: Words, h: Words, S: Words, I: Words, s: int, x: int) -> None:
    """Fill one index from the live tuples of its store, oldest first."""
    if I[x, ORDERED]:
        I[x, ROOT] = -1
    else:
        for b in range(I[x, BUCKETS] + 1):
            h[I[x, HEADS_AT] + b] = -1
    first = S[s, FLOOR] if S[s, KIND] == RING else 0
    for id in range(first, S[s, NEXT]):
        if S[s, KIND] == STATE or m[S[s, TS_AT] + (id & S[s, MASK])] != DEAD:
            link(m, h, S, I, x, id)


@compiled
def relink(m: Words, h: Words, S: Words, I: Words, s: int) -> None:
    for x in range(S[s, INDEX_FROM], S[s, INDEX_TO]):
        relink_one(m, h, S, I, s, x)


@compiled
def sweep(m: Words, h: Words, S: Words, I: Words, members: Words, s: int) -> None:
    """Take out the entries of a state that have lost a member, and close the gaps."""
    cap, kept = S[s, CAP], 0
    width = S[s, LEAF_TO] - S[s, LEAF_FROM]
    for id in range(S[s, NEXT]):
        if entry_alive(m, h, S, members, s, id):
            if kept != id:
                for k in range(width):
                    h[S[s, MEMBERS_AT] + k * cap + kept] = h[S[s, MEMBERS_AT] + k * cap + id]
                for c in range(S[s, NCOLS]):
                    m[S[s, COLS_AT] + c * cap + kept] = m[S[s, COLS_AT] + c * cap + id]
            kept += 1
    S[s, EXPIRIES] += S[s, NEXT] - kept
    gone = kept != S[s, NEXT]
    S[s, NEXT] = kept
    S[s, LIVE] = kept
    if gone:
        relink(m, h, S, I, s)


@compiled
def rehash(m: Words, row: Words, entries: Words) -> None:
    """Put the entries of an old partition directory into a new, empty one."""
    for i in range(entries.shape[0]):
        if entries[i, 3] == 0:
            continue
        at = (mix(entries[i, 0], entries[i, 1]) * HASH >> 20) & row[PART_MASK]
        while m[row[PART_AT] + at * 4 + 3] != 0:
            at = (at + 1) & row[PART_MASK]
        for c in range(4):
            m[row[PART_AT] + at * 4 + c] = entries[i, c]
