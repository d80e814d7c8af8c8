"""Probe: what one tuple looks for in a store, and what it finds there.

Depth first goes match by match through these functions. A group (group_probe.py) takes the same steps for many at once, with the same
buckets (store/index.py) and the same test of what is there (store/visible.py).
"""

from __future__ import annotations

from watersmeet.engine.native.mark import Table, Words, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Memory, Steps
from watersmeet.engine.store.index import head_of, mix
from watersmeet.engine.store.ordered import first_from, successor, tree_key
from watersmeet.engine.store.record import record
from watersmeet.engine.store.state import entry_in_windows
from watersmeet.engine.store.visible import in_window, met


@inlined
def value_of(mem: Memory, frame: Frame, leaf: int, word: int) -> int:
    """A column of the tuple that is bound for a leaf."""
    return mem.words[record(mem, leaf, frame.bound[leaf]) + word]


@inlined
def checks_hold(mem: Memory, steps: Steps, frame: Frame, pc: int) -> bool:
    """Whether all checks of a probe hold between bound tuples."""
    for c in range(steps.ops[pc, L.CHECK_FROM], steps.ops[pc, L.CHECK_TO]):
        a = value_of(mem, frame, steps.checks[c, 1], steps.checks[c, 2])
        b = value_of(mem, frame, steps.checks[c, 3], steps.checks[c, 4])
        op = steps.checks[c, 0]
        if op == L.EQ:
            ok = a == b
        elif op == L.NE:
            ok = a != b
        elif op == L.LT:
            ok = a < b
        else:
            ok = a <= b
        if not ok:
            return False
    return True


@inlined
def bind(mem: Memory, frame: Frame, s: int, tid: int, r: int) -> None:
    """Bind the leaf, or all leaves of a state's entry."""
    if mem.stores[s, L.KIND] != L.STATE:
        frame.bound[s] = tid
        return
    for k in range(mem.stores[s, L.LEAF_TO] - mem.stores[s, L.LEAF_FROM]):
        frame.bound[mem.members[mem.stores[s, L.LEAF_FROM] + k]] = mem.halves[2 * r + k]


@inlined
def bind_met(mem: Memory, frame: Frame, notes: Table, s: int, r: int, g: int) -> bool:
    """Bind the leaves of a state's entry, all of them RINGs, and say whether all its members are in their windows.

    The windows are those of now, or, for row `g` of a group (else -1), those that it found.
    """
    first, last = mem.stores[s, L.LEAF_FROM], mem.stores[s, L.LEAF_TO]
    alive = True
    for k in range(first, last):
        leaf, tid = mem.members[k], mem.halves[2 * r + k - first]
        if g < 0:
            alive &= in_window(mem, leaf, tid)
        else:
            low, high = notes[g, L.NOTE_FROM + 2 * leaf], notes[g, L.NOTE_FROM + 2 * leaf + 1]
            alive &= met(mem, notes, leaf, tid, g, low, high, high if mem.stores[leaf, L.WINDOW] == L.RANGE else low)
        frame.bound[leaf] = tid
    return alive


@inlined
def begin_probe(mem: Memory, steps: Steps, frame: Frame, pc: int) -> int:
    """Compute the key of the probe at `pc` and return the first id of its chain (-1: none)."""
    x = steps.ops[pc, L.INDEX]
    if mem.indexes[x, L.ORDERED]:
        leaf = steps.ops[pc, L.OP_KEY0 + 2]
        frame.keys[pc, 1] = value_of(mem, frame, leaf, steps.ops[pc, L.OP_KEY0 + 3]) if leaf >= 0 else L.FAR
        leaf = steps.ops[pc, L.OP_KEY0]
        low = value_of(mem, frame, leaf, steps.ops[pc, L.OP_KEY0 + 1]) if leaf >= 0 else L.DEAD
        return first_from(mem, x, low, steps.ops[pc, L.LOW_STRICT] if leaf >= 0 else 0)
    n = steps.ops[pc, L.OP_NKEYS]
    value = 0
    if n > 0:
        value = value_of(mem, frame, steps.ops[pc, L.OP_KEY0], steps.ops[pc, L.OP_KEY0 + 1])
        frame.keys[pc, 0] = value
        for k in range(1, n):
            key = value_of(mem, frame, steps.ops[pc, L.OP_KEY0 + 2 * k], steps.ops[pc, L.OP_KEY0 + 2 * k + 1])
            frame.keys[pc, k] = key
            value = mix(mem, x, k, value, key)
    return mem.halves[head_of(mem, x, value)]


@inlined
def left_out(steps: Steps, control: Words, pc: int) -> bool:
    """Whether the allowance of the probe at `pc` leaves this tuple out; if so, it is counted."""
    allowed = steps.ops[pc, L.ALLOWED]
    if control[L.NEWEST]:
        skipped = control[L.BEHIND] >= allowed
    else:
        credit = steps.counters[pc, L.CREDIT] + allowed
        skipped = credit < L.ALL
        steps.counters[pc, L.CREDIT] = credit if skipped else credit - L.ALL
    steps.counters[pc, L.UNPROBED] += skipped
    return skipped


@inlined
def next_match(mem: Memory, steps: Steps, frame: Frame, pc: int, tid: int) -> bool:
    """Walk the chain from `tid` to the next match, bind it, and leave the cursor behind it."""
    s, x = steps.ops[pc, L.TARGET], steps.ops[pc, L.INDEX]
    floor, n, ordered = mem.stores[s, L.FLOOR], steps.ops[pc, L.OP_NKEYS], mem.indexes[x, L.ORDERED]
    if ordered:
        floor = 0
    while tid >= floor:
        r = record(mem, s, tid)
        same = True
        if ordered:
            slot = tid & mem.stores[s, L.MASK]
            k = tree_key(mem, x, slot)
            if k > frame.keys[pc, 1] or (k == frame.keys[pc, 1] and steps.ops[pc, L.HIGH_STRICT] == 1):
                return False
            after = successor(mem, x, slot)
            if mem.stores[s, L.KIND] == L.RING:
                tid = mem.stores[s, L.FLOOR] + ((slot - mem.stores[s, L.FLOOR]) & mem.stores[s, L.MASK])
        else:
            after = mem.halves[2 * r + mem.indexes[x, L.LINK]]
            for j in range(n):
                same = same and mem.words[r + mem.indexes[x, L.KEY0 + j]] == frame.keys[pc, j]
        if same and (mem.stores[s, L.KIND] != L.STATE or entry_in_windows(mem, s, r)):
            bind(mem, frame, s, tid, r)
            if checks_hold(mem, steps, frame, pc):
                frame.cursor[pc] = after
                return True
        tid = after
    return False
