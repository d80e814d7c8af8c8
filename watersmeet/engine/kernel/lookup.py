"""Lookup: what a pipeline does with caches: ask, collect what it finds after a miss, tell of what is new.

    dT := lookup(b) { S(b, a), R(a) } create, ...       a hit goes on behind create; after a miss all that comes to create is the value
    dS := R(a), update(b), T(b), ...                    S joined with R has something new; an entry of its key must have it too

A value depends on its key alone: probes of the segment use nothing else of what is bound before it. What must hold besides is
checked behind it.
"""

from __future__ import annotations

from watersmeet.engine.kernel.probe import checks_hold, value_of
from watersmeet.engine.native.mark import Table, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Memory, Steps
from watersmeet.engine.store.cache import (
    class_of,
    compact,
    count_in,
    create,
    enlarge,
    erase,
    find,
    holds,
    touch,
    value_at,
    width,
)  # fmt: skip
from watersmeet.engine.store.visible import met

MISSED = -1  # cursor of a CREATE whose lookup found nothing; else the entry, from the first word of the cache on


@inlined
def read_key(mem: Memory, steps: Steps, frame: Frame, pc: int) -> None:
    """The key of an op, from what is bound."""
    for k in range(steps.ops[pc, L.OP_NKEYS]):
        frame.keys[pc, k] = value_of(mem, frame, steps.ops[pc, L.OP_KEY0 + 2 * k], steps.ops[pc, L.OP_KEY0 + 2 * k + 1])


@inlined
def ask(mem: Memory, steps: Steps, frame: Frame, pc: int) -> None:
    """probe(u): find the entry of the key, or prepare for a miss."""
    s, close = steps.ops[pc, L.TARGET], steps.ops[pc, L.PAIR]
    read_key(mem, steps, frame, pc)
    steps.counters[pc, L.TUPLES_IN] += 1
    e = find(mem, s, frame.keys, pc, 0)
    frame.cursor[pc] = 0
    if e < 0:
        frame.cursor[close] = MISSED
        return
    touch(mem, s, e)
    compact(mem, s, e)
    steps.counters[pc, L.MATCHES] += 1
    frame.cursor[close] = e - mem.stores[s, L.ROWS_AT]


@inlined
def next_cached(mem: Memory, steps: Steps, frame: Frame, notes: Table, pc: int, g: int) -> bool:
    """Bind the next combination of the entry that was found.

    For row `g` of a group (else -1) those that it may meet: rows behind it may have told the cache already.
    """
    s = steps.ops[pc, L.TARGET]
    e, first = mem.stores[s, L.ROWS_AT] + frame.cursor[steps.ops[pc, L.PAIR]], mem.stores[s, L.LEAF_FROM]
    count, at, size = count_in(mem, e), value_at(mem, s, e), width(mem, s)
    k = frame.cursor[pc]
    while k < count:
        there = True
        for j in range(size):
            leaf, tid = mem.members[first + j], mem.halves[at + k * size + j]
            frame.bound[leaf] = tid
            if g >= 0:
                low, high = notes[g, L.NOTE_FROM + 2 * leaf], notes[g, L.NOTE_FROM + 2 * leaf + 1]
                safe = high if mem.stores[leaf, L.WINDOW] == L.RANGE else low
                there &= met(mem, notes, leaf, tid, g, low, high, safe)
        k += 1
        if there and checks_hold(mem, steps, frame, pc):
            frame.cursor[pc] = k
            return True
    return False


@inlined
def collect(mem: Memory, steps: Steps, frame: Frame, pc: int) -> bool:
    """A combination of the segment's tuples is found: it is part of the value. Returns whether what is bound before goes with it."""
    s, of, opener = steps.ops[pc, L.TARGET], steps.ops[pc, L.PENDING], steps.ops[pc, L.PAIR]
    first, size, count = mem.stores[s, L.LEAF_FROM], width(mem, s), frame.cursor[opener]
    if (count + 1) * size <= L.CACHE_LONGEST:
        for j in range(size):
            frame.pending[of, count * size + j] = frame.bound[mem.members[first + j]]
    frame.cursor[opener] = count + 1
    steps.counters[pc, L.TUPLES_IN] += 1
    return checks_hold(mem, steps, frame, pc)


@inlined
def keep_found(mem: Memory, steps: Steps, frame: Frame, pc: int) -> None:
    """All of a segment has been searched after a miss: what was found is the value of the key."""
    s, count = steps.ops[pc, L.TARGET], frame.cursor[pc]
    if count * width(mem, s) <= L.CACHE_LONGEST:
        create(mem, s, frame.keys, pc, frame.pending, steps.ops[pc, L.PENDING], count)
    else:
        mem.stores[s, L.UNCACHED] += 1


@inlined
def known(mem: Memory, steps: Steps, frame: Frame, pc: int, s: int, e: int) -> bool:
    """Whether an entry has what is bound already: told before in this pipeline, with the same new tuple, or earlier."""
    first, size, by = mem.stores[s, L.LEAF_FROM], width(mem, s), steps.ops[pc, L.BY]
    at = value_at(mem, s, e)
    for k in range(count_in(mem, e) - 1, -1, -1):
        r = at + k * size
        if steps.ops[pc, L.AGAIN] == 1 and mem.halves[r + by] != frame.bound[mem.members[first + by]]:
            return False
        same = True
        for j in range(size):
            same = same and mem.halves[r + j] == frame.bound[mem.members[first + j]]
        if same:
            return True
    return False


@inlined
def tell(mem: Memory, steps: Steps, frame: Frame, pc: int) -> None:
    """insert(u, r): what is bound joins the value of its key, if that has an entry."""
    s = steps.ops[pc, L.TARGET]
    read_key(mem, steps, frame, pc)
    steps.counters[pc, L.TUPLES_IN] += 1
    e = find(mem, s, frame.keys, pc, 0)
    if e < 0 or (steps.ops[pc, L.AGAIN] > 0 and known(mem, steps, frame, pc, s, e)):
        return
    steps.counters[pc, L.MATCHES] += 1
    if count_in(mem, e) >= holds(mem, s, class_of(mem, e)) and not enlarge(mem, s, e):
        return
    first, size = mem.stores[s, L.LEAF_FROM], width(mem, s)
    at = value_at(mem, s, e) + count_in(mem, e) * size
    for j in range(size):
        mem.halves[at + j] = frame.bound[mem.members[first + j]]
    mem.words[e] += 1


@inlined
def forget(mem: Memory, steps: Steps, frame: Frame, pc: int) -> None:
    """Drop the entry of the key, if there is one."""
    s = steps.ops[pc, L.TARGET]
    read_key(mem, steps, frame, pc)
    steps.counters[pc, L.TUPLES_IN] += 1
    e = find(mem, s, frame.keys, pc, 0)
    if e >= 0:
        erase(mem, s, e)
        steps.counters[pc, L.MATCHES] += 1
