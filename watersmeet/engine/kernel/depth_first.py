"""Follow one tuple through its pipeline: probe, store, emit, depth first, and pause at any point.

    dQ/dR := dR(a), S(a, b), T(b)       probe S by a; for each match probe T by b; for each match emit

A pipeline is a run of ops; `cursor[pc]` is where the probe at `pc` stands in its chain, `bound[leaf]` the id of each leaf's tuple
so far. All of it lies in arrays, so that the kernel can come back to Python when the output is full or a state must grow,
and go on later: a tuple with a million matches never needs a million rows of memory.
"""

from __future__ import annotations

from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import Halves, Table, Words, inlined
from watersmeet.engine.program.layout import (
    ALONE,
    BUCKETS,
    CHECK_FROM,
    CHECK_TO,
    CODE,
    DEAD,
    DONE,
    EMIT,
    EQ,
    FAR,
    FLOOR,
    FRESH,
    GROW,
    HEADS_AT,
    HIGH_STRICT,
    HOLDS,
    INDEX,
    KEY0,
    KIND,
    LEAF_FROM,
    LEAF_TO,
    LINK,
    LOW_STRICT,
    LT,
    MASK,
    MATCHES,
    NE,
    NOTE_FROM,
    NOW,
    OP_KEY0,
    OP_NKEYS,
    ORDERED,
    OUT_FULL,
    OUT_ROWS,
    PC,
    PHASE,
    PROBE,
    RANGE,
    REACHED,
    RING,
    ROWBASE,
    ROWNUM,
    ROWS_AT,
    RUNNING,
    SHIFT,
    SIMPLE,
    SIZE,
    START,
    STATE,
    STORE,
    STREAM,
    STRIDE,
    TARGET,
    TUPLES_IN,
    VICTIM,
    WALK_KEPT,
    WANTED,
    WINDOW,
)  # fmt: skip
from watersmeet.engine.store.ordered import first_from, successor, tree_key
from watersmeet.engine.store.window import entry_alive, mix, record, room, stamp, store_entry


@inlined
def begin(S: Table, control: Words, bound: Words, pipe: int, s: int, id: int, now: int, victim: int) -> None:
    """Set out on the pipeline of a tuple."""
    bound[s] = id
    control[PC] = pipe
    control[START] = pipe
    control[FRESH] = 1
    control[STREAM] = s
    control[NOW] = now
    control[VICTIM] = victim
    control[PHASE] = RUNNING


@inlined
def value_of(m: Words, S: Table, bound: Words, leaf: int, word: int) -> int:
    return m[record(S, leaf, bound[leaf]) + word]


@inlined
def holds(m: Words, S: Table, checks: Table, begin: int, end: int, bound: Words) -> bool:
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
def bind(h: Halves, S: Table, members: Words, s: int, id: int, r: int, bound: Words) -> None:
    """Bind the leaf, or all leaves of a state's entry."""
    if S[s, KIND] != STATE:
        bound[s] = id
        return
    for k in range(S[s, LEAF_TO] - S[s, LEAF_FROM]):
        bound[members[S[s, LEAF_FROM] + k]] = h[2 * r + k]


@inlined
def bind_alive(
    m: Words, h: Halves, S: Table, members: Words, notes: Table, s: int, r: int, bound: Words, g: int, now: int
) -> bool:
    """Bind the leaves of a state's entry, all of them RINGs, and say whether all its members are in their windows.

    The windows are those of now, or, for row `g` of a group (else -1), those that it found.
    """
    first, last = S[s, LEAF_FROM], S[s, LEAF_TO]
    alive = True
    for k in range(first, last):
        leaf, id = members[k], h[2 * r + k - first]
        if g < 0:
            alive &= id >= S[leaf, FLOOR]
        else:
            alive &= (id >= notes[g, NOTE_FROM + 2 * leaf]) & (id < notes[g, NOTE_FROM + 2 * leaf + 1])
            alive &= S[leaf, WINDOW] != RANGE or m[stamp(S, leaf, id)] >= now - S[leaf, SIZE]
        bound[leaf] = id
    return alive


@inlined
def begin_probe(m: Words, h: Halves, S: Table, I: Table, O: Table, keys: Table, bound: Words, pc: int) -> int:
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
    return h[I[x, HEADS_AT] + ((scatter(value) >> I[x, SHIFT]) & I[x, BUCKETS])]


@inlined
def next_match(
    m: Words, h: Halves, S: Table, I: Table, O: Table, checks: Table, members: Words, keys: Table, cursor: Words, bound: Words,
    pc: int, id: int,
) -> bool:  # fmt: skip
    """Walk the chain from `id` to the next match, bind it, and leave the cursor behind it."""
    s, x = O[pc, TARGET], O[pc, INDEX]
    floor, n, ordered = S[s, FLOOR], O[pc, OP_NKEYS], I[x, ORDERED]
    begin, end = O[pc, CHECK_FROM], O[pc, CHECK_TO]
    if ordered:
        floor = 0
    while id >= floor:
        r = record(S, s, id)
        if ordered:
            slot = id & S[s, MASK]
            k = tree_key(m, S, I, x, slot)
            if k > keys[pc, 1] or (k == keys[pc, 1] and O[pc, HIGH_STRICT] == 1):
                return False
            after = successor(h, S, I, x, slot)
            if S[s, KIND] == RING:
                id = S[s, FLOOR] + ((slot - S[s, FLOOR]) & S[s, MASK])
            same = True
        else:
            after = h[2 * r + I[x, LINK]]
            same = True
            for j in range(n):
                same = same and m[r + I[x, KEY0 + j]] == keys[pc, j]
        if same and (S[s, KIND] != STATE or entry_alive(m, h, S, members, s, r)):
            bind(h, S, members, s, id, r, bound)
            if begin == end or holds(m, S, checks, begin, end, bound):
                cursor[pc] = after
                return True
        id = after
    return False


@inlined
def emit(m: Words, S: Table, bound: Words, now: int, out: Table, row: int) -> None:
    leaves = out.shape[0] - 1
    for leaf in range(leaves):
        if S[leaf, KIND] == RING:
            out[leaf, row] = bound[leaf] + S[leaf, ROWBASE]
        else:
            out[leaf, row] = m[record(S, leaf, bound[leaf]) + ROWNUM]
    out[leaves, row] = now


@inlined
def pursue(
    m: Words, h: Halves, S: Table, I: Table, O: Table, checks: Table, members: Words, sources: Table, counters: Table, keys: Table,
    cursor: Words, bound: Words, out: Table, control: Words, notes: Table, walk: Table,
) -> int:  # fmt: skip
    """Run the pipeline under way to its end (DONE), or until the output is full or a state must grow."""
    pc, start, fresh, row = control[PC], control[START], control[FRESH], control[OUT_ROWS]
    limit, leaves = out.shape[1], out.shape[0] - 1
    g = control[ALONE] - 1  # the row of a group, if it is one
    why = DONE
    while pc >= start:
        code = O[pc, CODE]
        if code == PROBE:
            if fresh:
                counters[pc, TUPLES_IN] += 1
                id = begin_probe(m, h, S, I, O, keys, bound, pc)
            else:
                id = cursor[pc]
            simple = O[pc, SIMPLE]
            if simple > 0:
                # The common cases, without the branches of next_match; a last probe emits on the spot.
                s, x = O[pc, TARGET], O[pc, INDEX]
                floor, mask, at, stride = S[s, FLOOR], S[s, MASK], S[s, ROWS_AT], S[s, STRIDE]
                high, since = FAR, DEAD
                if g >= 0:
                    floor = notes[g, NOTE_FROM + 2 * min(s, leaves)]
                    high = notes[g, NOTE_FROM + 2 * min(s, leaves) + 1]
                    since = control[NOW] - S[s, SIZE] if S[s, WINDOW] == RANGE else DEAD
                word, link, key = I[x, KEY0], I[x, LINK], keys[pc, 0]
                last = simple == 2 or simple == 4
                found = False
                while id >= floor:
                    r = at + (id & mask) * stride
                    after = h[2 * r + link]
                    if m[r + word] == key:
                        if simple < 3:
                            alive = id < high and (since == DEAD or m[stamp(S, s, id)] >= since)
                            bound[s] = id
                        else:
                            alive = bind_alive(m, h, S, members, notes, s, r, bound, g, control[NOW])
                        if alive:
                            if not last:
                                found = True
                                break
                            if row == limit:
                                why = OUT_FULL
                                break
                            emit(m, S, bound, control[NOW], out, row)
                            row += 1
                            counters[pc, MATCHES] += 1
                    id = after
                if why != DONE:
                    cursor[pc] = id
                    fresh = 0
                    break
                if found:
                    cursor[pc] = after
                    counters[pc, MATCHES] += 1
                    pc += 1
                    fresh = 1
                    continue
            elif next_match(m, h, S, I, O, checks, members, keys, cursor, bound, pc, id):
                counters[pc, MATCHES] += 1
                pc += 1
                fresh = 1
                continue
        elif code == EMIT:
            if row == limit:
                why = OUT_FULL
                break
            emit(m, S, bound, control[NOW], out, row)
            row += 1
        elif code == STORE:
            s = O[pc, TARGET]
            if g < 0 or pc >= S[control[STREAM], REACHED]:  # else its group has stored it before it found too much
                if not room(S, s):
                    control[WANTED] = s
                    why = GROW
                    break
                store_entry(m, h, S, I, members, sources, s, bound)
                control[HOLDS] += 1
                if g >= 0:
                    walk[WALK_KEPT, g] += 1
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
