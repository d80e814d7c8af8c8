"""Follow one tuple through its pipeline: probe, store, emit, depth first, and pause at any point.

    dQ/dR := dR(a), S(a, b), T(b)       probe S by a; for each match probe T by b; for each match emit

A pipeline is a run of ops; `cursor[pc]` is where the probe at `pc` stands in its chain, `bound[leaf]` the id of each leaf's tuple
so far. All of it lies in arrays, so that the kernel can come back to Python when the output is full or a state must grow,
and go on later: a tuple with a million matches never needs a million rows of memory.
"""

from __future__ import annotations

from watersmeet.engine.compiled import Words, inlined
from watersmeet.engine.layout import (
    BUCKETS,
    CAP,
    CHECK_FROM,
    CHECK_TO,
    CODE,
    COLS_AT,
    DEAD,
    DONE,
    EMIT,
    EQ,
    FAR,
    FLOOR,
    FRESH,
    GROW,
    HASH,
    HEADS_AT,
    HIGH_STRICT,
    INDEX,
    KEY0,
    KIND,
    LEAF_FROM,
    LEAF_TO,
    LINK_AT,
    LOW_STRICT,
    LT,
    MASK,
    MATCHES,
    MEMBERS_AT,
    NE,
    NOW,
    OP_KEY0,
    OP_NKEYS,
    ORDERED,
    OUT_FULL,
    OUT_ROWS,
    PC,
    PROBE,
    RING,
    ROWBASE,
    ROWNUM_AT,
    SHIFT,
    START,
    STATE,
    STORE,
    TARGET,
    TUPLES_IN,
    WANTED,
)  # fmt: skip
from watersmeet.engine.ordered import first_from, successor, tree_key
from watersmeet.engine.stores import entry_alive, mix, room, store_entry


@inlined
def value_of(m: Words, S: Words, bound: Words, leaf: int, column: int) -> int:
    return m[S[leaf, COLS_AT] + column * S[leaf, CAP] + (bound[leaf] & S[leaf, MASK])]


@inlined
def holds(m: Words, S: Words, checks: Words, begin: int, end: int, bound: Words) -> bool:
    """Whether all checks between bound tuples hold."""
    for c in range(begin, end):
        a = value_of(m, S, bound, checks[c, 1], checks[c, 2])
        b = value_of(m, S, bound, checks[c, 3], checks[c, 4])
        op = checks[c, 0]
        if op == EQ:
            ok = a == b
        elif op == NE:
            ok = a != b
        elif op == LT:
            ok = a < b
        else:
            ok = a <= b
        if not ok:
            return False
    return True


@inlined
def bind(h: Words, S: Words, members: Words, s: int, id: int, bound: Words) -> None:
    """Bind the leaf, or all leaves of a state's entry."""
    if S[s, KIND] != STATE:
        bound[s] = id
        return
    for k in range(S[s, LEAF_TO] - S[s, LEAF_FROM]):
        bound[members[S[s, LEAF_FROM] + k]] = h[S[s, MEMBERS_AT] + k * S[s, CAP] + id]


@inlined
def begin_probe(m: Words, h: Words, S: Words, I: Words, O: Words, keys: Words, bound: Words, pc: int) -> int:
    """Compute the key of the probe at `pc` and return the first id of its chain (-1: none)."""
    x = O[pc, INDEX]
    if I[x, ORDERED]:
        leaf = O[pc, OP_KEY0 + 2]
        keys[pc, 1] = value_of(m, S, bound, leaf, O[pc, OP_KEY0 + 3]) if leaf >= 0 else FAR
        leaf = O[pc, OP_KEY0]
        low = value_of(m, S, bound, leaf, O[pc, OP_KEY0 + 1]) if leaf >= 0 else DEAD
        return first_from(m, h, S, I, x, low, O[pc, LOW_STRICT] if leaf >= 0 else 0)
    n = O[pc, OP_NKEYS]
    value = 0
    if n > 0:
        value = value_of(m, S, bound, O[pc, OP_KEY0], O[pc, OP_KEY0 + 1])
        keys[pc, 0] = value
        for k in range(1, n):
            key = value_of(m, S, bound, O[pc, OP_KEY0 + 2 * k], O[pc, OP_KEY0 + 2 * k + 1])
            keys[pc, k] = key
            value = mix(value, key)
    return h[I[x, HEADS_AT] + (((value * HASH) >> I[x, SHIFT]) & I[x, BUCKETS])]


@inlined
def next_match(
    m: Words,
    h: Words,
    S: Words,
    I: Words,
    O: Words,
    checks: Words,
    members: Words,
    keys: Words,
    cursor: Words,
    bound: Words,
    pc: int,
    id: int,
) -> bool:
    """Walk the chain from `id` to the next match, bind it, and leave the cursor behind it."""
    s, x = O[pc, TARGET], O[pc, INDEX]
    floor, mask, link = S[s, FLOOR], S[s, MASK], I[x, LINK_AT]
    n = O[pc, OP_NKEYS]
    ordered = I[x, ORDERED]
    column = S[s, COLS_AT] + I[x, KEY0] * S[s, CAP]
    plain = S[s, KIND] != STATE
    begin, end = O[pc, CHECK_FROM], O[pc, CHECK_TO]
    key = keys[pc, 0]
    if ordered:
        floor = 0
    while id >= floor:
        slot = id & mask
        if ordered:
            k = tree_key(m, S, I, x, slot)
            if k > keys[pc, 1] or (k == keys[pc, 1] and O[pc, HIGH_STRICT] == 1):
                return False
            after = successor(h, I, x, slot)
            if S[s, KIND] == RING:
                id = S[s, FLOOR] + ((slot - S[s, FLOOR]) & mask)
            same = True
        else:
            after = h[link + slot]
            same = n == 0 or m[column + slot] == key
            for j in range(1, n):
                same = same and m[S[s, COLS_AT] + I[x, KEY0 + j] * S[s, CAP] + slot] == keys[pc, j]
        if same and (plain or entry_alive(m, h, S, members, s, id)):
            bind(h, S, members, s, id, bound)
            if begin == end or holds(m, S, checks, begin, end, bound):
                cursor[pc] = after
                return True
        id = after
    return False


@inlined
def emit(m: Words, S: Words, bound: Words, now: int, out: Words, row: int) -> None:
    leaves = out.shape[0] - 1
    for leaf in range(leaves):
        if S[leaf, KIND] == RING:
            out[leaf, row] = bound[leaf] + S[leaf, ROWBASE]
        else:
            out[leaf, row] = m[S[leaf, ROWNUM_AT] + bound[leaf]]
    out[leaves, row] = now


@inlined
def pursue(
    m: Words, h: Words, S: Words, I: Words, O: Words, checks: Words, members: Words, sources: Words, counters: Words, keys: Words, cursor: Words,
    bound: Words, out: Words, control: Words,
) -> int:  # fmt: skip
    """Run the pipeline under way to its end (DONE), or until the output is full or a state must grow."""
    pc, start, fresh, row = control[PC], control[START], control[FRESH], control[OUT_ROWS]
    limit = out.shape[1]
    why = DONE
    while pc >= start:
        code = O[pc, CODE]
        if code == PROBE:
            if fresh:
                counters[pc, TUPLES_IN] += 1
                id = begin_probe(m, h, S, I, O, keys, bound, pc)
            else:
                id = cursor[pc]
            if next_match(m, h, S, I, O, checks, members, keys, cursor, bound, pc, id):
                counters[pc, MATCHES] += 1
                pc += 1
                fresh = 1
                continue
        elif code == EMIT:
            if row == limit:
                why = OUT_FULL
                break
            counters[pc, TUPLES_IN] += 1
            emit(m, S, bound, control[NOW], out, row)
            row += 1
        elif code == STORE:
            s = O[pc, TARGET]
            if not room(S, s):
                control[WANTED] = s
                why = GROW
                break
            counters[pc, TUPLES_IN] += 1
            store_entry(m, h, S, I, members, sources, s, bound)
            pc += 1
            fresh = 1
            continue
        pc -= 1
        while pc >= start and O[pc, CODE] != PROBE:
            pc -= 1
        fresh = 0
    control[PC] = pc
    control[FRESH] = fresh
    control[OUT_ROWS] = row
    return why
