"""Caches in groups: rows of a group tell caches and look them up, all of a stream together.

    R, S: probe each other, tell the cache of all that is new     T: look up: hits give their values, misses probe S and R; create

All rows that keep a cache up go first, so that its entries have what any row of the group may meet; which of it one meets, its note says of
each member. A miss finds in the same way all that any row may meet, for the entry, and then what it meets itself. All hits are
read before an entry is created, which may take the place of another. Two rows that miss one key both probe, and one entry is made.

Lists are as in group_probe.py: what a cache gives is entered as if the probes of its segment had found it, before all that they find.

This is for plans without inner states, keys of one column, and nothing to check after a lookup (program/pipelines.py). If lists overflow,
rows go on one by one (kernel/depth_first.py): they look up by the same notes, and create nothing, since rows behind them have told already.
"""

from __future__ import annotations

from watersmeet.engine.kernel.group_probe import TOO_MUCH, next_block, probe_all, results_of
from watersmeet.engine.native.mark import Words, compiled, inlined, prefetch
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Group, Memory, Steps
from watersmeet.engine.store.cache import (
    COUNT,
    NEW,
    class_of,
    compact,
    count_in,
    enlarge,
    find,
    holds,
    open_entry,
    set_of,
    touch,
    value_at,
    width,
)  # fmt: skip
from watersmeet.engine.store.visible import met


@inlined
def read_keys(mem: Memory, steps: Steps, group: Group, s: int, pc: int, level: int, n: int, first: int) -> None:
    """The keys by which the entries of a list, from `first` on, look up or tell; their sets in the cache are asked for."""
    cache, leaf = steps.ops[pc, L.TARGET], steps.ops[pc, L.OP_KEY0]
    binder = 0
    for j in range(level + 1):
        if group.lists[L.LIST_STORES, s * n + j] == leaf:
            binder = j
    keyed = (s * n + binder) * L.LIST_ROWS + L.LIST_ID
    mask, stride = mem.stores[leaf, L.MASK], mem.stores[leaf, L.STRIDE]
    at = mem.stores[leaf, L.ROWS_AT] + steps.ops[pc, L.OP_KEY0 + 1]
    for p in range(first, group.lists[L.LIST_COUNTS, s * n + level]):
        q = p
        for j in range(level, binder, -1):
            q = group.lists[(s * n + j) * L.LIST_ROWS + L.LIST_PARENT, q]
        group.walk[L.WALK_KEY, p] = mem.words[at + (group.lists[keyed, q] & mask) * stride]
        prefetch(mem.words, set_of(mem, cache, group.walk, L.WALK_KEY, p))


@inlined
def member_of(mem: Memory, cache: int, leaf: int) -> int:
    """Which member of a cache's references a leaf is."""
    member = 0
    while mem.members[mem.stores[cache, L.LEAF_FROM] + member] != leaf:
        member += 1
    return member


@inlined
def seen(mem: Memory, group: Group, leaf: int, tid: int, g: int, taken: int) -> bool:
    """Whether row `g` of the group meets a tuple."""
    note = L.NOTE_FROM + 2 * leaf
    low, high = group.notes[g, note], group.notes[g, note + 1]
    safe = group.notes[next_block(g, taken), note] if mem.stores[leaf, L.WINDOW] == L.RANGE else low
    return met(mem, group.notes, leaf, tid, g, low, high, safe)


@inlined
def tell_all(mem: Memory, steps: Steps, group: Group, s: int, pc: int, level: int, n: int) -> None:
    """All entries of a list are new in a cache's segment: they join the values of their keys, where these have entries."""
    cache, count = steps.ops[pc, L.TARGET], group.lists[L.LIST_COUNTS, s * n + level]
    size = width(mem, cache)
    read_keys(mem, steps, group, s, pc, level, n, 0)
    for p in range(count):
        e = find(mem, cache, group.walk, L.WALK_KEY, p)
        if e < 0:
            continue
        steps.counters[pc, L.MATCHES] += 1
        if count_in(mem, e) >= holds(mem, cache, class_of(mem, e)) and not enlarge(mem, cache, e):
            continue
        at, q = value_at(mem, cache, e) + count_in(mem, e) * size, p
        for j in range(level, -1, -1):
            listed, leaf = (s * n + j) * L.LIST_ROWS, group.lists[L.LIST_STORES, s * n + j]
            mem.halves[at + member_of(mem, cache, leaf)] = group.lists[listed + L.LIST_ID, q]
            q = group.lists[listed + L.LIST_PARENT, q]
        mem.words[e] += 1
    steps.counters[pc, L.TUPLES_IN] += count


@inlined
def split(mem: Memory, steps: Steps, group: Group, s: int, pc: int, level: int, n: int) -> int:
    """Look all entries of a list up, and put those that hit first, with their places in the cache. Returns how many hit."""
    cache, listed = steps.ops[pc, L.TARGET], (s * n + level) * L.LIST_ROWS
    count = group.lists[L.LIST_COUNTS, s * n + level]
    read_keys(mem, steps, group, s, pc, level, n, 0)
    hits = 0
    for p in range(count):
        e = find(mem, cache, group.walk, L.WALK_KEY, p)
        group.walk[L.WALK_PLACE, p] = e
        hits += e >= 0
    h, m = 0, hits  # where the next hit and the next miss go
    for p in range(count):
        to = h if group.walk[L.WALK_PLACE, p] >= 0 else m
        group.walk[L.WALK_WHO, p] = to
        h += to < hits
        m += to >= hits
    for k in range(L.LIST_ROWS):
        for p in range(count):
            group.walk[L.WALK_AT, group.walk[L.WALK_WHO, p]] = group.lists[listed + L.LIST_PARENT + k, p]
        for p in range(count):
            group.lists[listed + L.LIST_PARENT + k, p] = group.walk[L.WALK_AT, p]
    for p in range(count):
        group.walk[L.WALK_AT, group.walk[L.WALK_WHO, p]] = group.walk[L.WALK_PLACE, p]
    return hits


@inlined
def read_hits(
    mem: Memory, group: Group, s: int, cache: int, level: int, last: int, hits: int, n: int, taken: int
) -> int:
    """Enter the values of those that hit into the lists of the segment's levels. Returns how many there are, or TOO_MUCH."""
    came, first, size, made = (s * n + level) * L.LIST_ROWS, mem.stores[cache, L.LEAF_FROM], width(mem, cache), 0
    for p in range(hits):
        e, g = group.walk[L.WALK_AT, p], group.lists[came + L.LIST_G, p]
        touch(mem, cache, e)
        count, at = compact(mem, cache, e), value_at(mem, cache, e)
        if made + count >= group.lists.shape[1]:
            return TOO_MUCH
        for k in range(count):
            there = True
            for j in range(size):
                there = there and seen(mem, group, mem.members[first + j], mem.halves[at + k * size + j], g, taken)
            if there:
                for j in range(level + 1, last + 1):
                    listed, leaf = (s * n + j) * L.LIST_ROWS, group.lists[L.LIST_STORES, s * n + j]
                    group.lists[listed + L.LIST_PARENT, made] = p if j == level + 1 else made
                    group.lists[listed + L.LIST_ID, made] = mem.halves[at + k * size + member_of(mem, cache, leaf)]
                    group.lists[listed + L.LIST_G, made] = g
                made += 1
    return made


@inlined
def create_all(
    mem: Memory, steps: Steps, group: Group, s: int, pc: int, level: int, last: int, hits: int, given: int, n: int
) -> None:
    """What those that missed have found is the value of their keys: each key gets an entry, if there is room."""
    cache, count = steps.ops[pc, L.TARGET], group.lists[L.LIST_COUNTS, s * n + level]
    found, size = group.lists[L.LIST_COUNTS, s * n + last], width(mem, cache)
    read_keys(mem, steps, group, s, pc, level, n, hits)
    for p in range(hits, count):
        group.walk[L.WALK_LOW, p] = 0  # how many it has found
    for q in range(given, found):
        p = q
        for j in range(last, level, -1):
            p = group.lists[(s * n + j) * L.LIST_ROWS + L.LIST_PARENT, p]
        group.walk[L.WALK_WHO, q] = p
        group.walk[L.WALK_LOW, p] += 1
    for p in range(hits, count):
        group.walk[L.WALK_AT, p] = -1  # its entry
        if find(mem, cache, group.walk, L.WALK_KEY, p) < 0:
            group.walk[L.WALK_AT, p] = open_entry(mem, cache, group.walk, L.WALK_KEY, p, group.walk[L.WALK_LOW, p])
    for p in range(
        count - 1, hits - 1, -1
    ):  # an entry made later may have taken another's place, even for the same key
        e = group.walk[L.WALK_AT, p]
        if e >= 0:
            if mem.words[e] & (COUNT | NEW) == 1 and mem.words[e + 1] == group.walk[L.WALK_KEY, p]:
                mem.words[e] |= NEW
            else:
                group.walk[L.WALK_AT, p] = -1
    for q in range(given, found):
        p = group.walk[L.WALK_WHO, q]
        e = group.walk[L.WALK_AT, p]
        group.walk[L.WALK_PLACE, q] = -1
        if e >= 0:
            group.walk[L.WALK_PLACE, q] = value_at(mem, cache, e) + count_in(mem, e) * size
            mem.words[e] += 1
        group.walk[L.WALK_WHO, q] = q
    for p in range(hits, count):
        if group.walk[L.WALK_AT, p] >= 0:
            mem.words[group.walk[L.WALK_AT, p]] &= ~NEW
    for j in range(last, level, -1):
        listed, member = (s * n + j) * L.LIST_ROWS, member_of(mem, cache, group.lists[L.LIST_STORES, s * n + j])
        for q in range(given, found):
            p = group.walk[L.WALK_WHO, q]
            if group.walk[L.WALK_PLACE, q] >= 0:
                mem.halves[group.walk[L.WALK_PLACE, q] + member] = group.lists[listed + L.LIST_ID, p]
            group.walk[L.WALK_WHO, q] = group.lists[listed + L.LIST_PARENT, p]


@inlined
def keep_seen(mem: Memory, group: Group, s: int, level: int, last: int, given: int, n: int, taken: int) -> int:
    """Of what those that missed have found, keep what they meet themselves. Returns how many entries the list has then."""
    made, found = (s * n + last) * L.LIST_ROWS, group.lists[L.LIST_COUNTS, s * n + last]
    kept = given
    for q in range(given, found):
        g, p, there = group.lists[made + L.LIST_G, q], q, True
        for j in range(last, level, -1):
            listed, leaf = (s * n + j) * L.LIST_ROWS, group.lists[L.LIST_STORES, s * n + j]
            there = there and seen(mem, group, leaf, group.lists[listed + L.LIST_ID, p], g, taken)
            p = group.lists[listed + L.LIST_PARENT, p]
        for k in range(L.LIST_ROWS):
            group.lists[made + L.LIST_PARENT + k, kept] = group.lists[made + L.LIST_PARENT + k, q]
        kept += there
    return kept


@inlined
def look_up_all(mem: Memory, steps: Steps, group: Group, s: int, pc: int, level: int, n: int, taken: int) -> bool:
    """A cached segment for all entries of a list, from its lookup to its end. False: there is too much."""
    cache, close = steps.ops[pc, L.TARGET], steps.ops[pc, L.PAIR]
    last = level + close - pc - 1
    for k in range(pc + 1, close):
        group.lists[L.LIST_STORES, s * n + level + k - pc] = steps.ops[k, L.TARGET]
    hits = split(mem, steps, group, s, pc, level, n)
    given = read_hits(mem, group, s, cache, level, last, hits, n, taken)
    if given < 0:
        return False
    group.lists[L.LIST_HITS, s * n + level] = hits
    first = hits
    for k in range(pc + 1, close):
        at = level + k - pc
        found = given
        if group.lists[L.LIST_COUNTS, s * n + at - 1] > first:
            found = probe_all(mem, steps, group, s, k, at, n, taken, first, given, True)
            if found < 0:
                return False
        group.lists[L.LIST_COUNTS, s * n + at] = found
        group.lists[L.LIST_CACHED, s * n + at] = given
        if at < last:
            group.lists[L.LIST_HITS, s * n + at] = given
        first = given
    create_all(mem, steps, group, s, pc, level, last, hits, given, n)
    group.lists[L.LIST_COUNTS, s * n + last] = keep_seen(mem, group, s, level, last, given, n, taken)
    return True


@inlined
def is_told(mem: Memory, steps: Steps, cache: int, n: int) -> bool:
    """Whether all rows of the group that keep a cache up have told it."""
    for s in range(n):
        pc = mem.stores[s, L.REACHED]
        while pc >= 0 and steps.ops[pc, L.CODE] != L.EMIT:
            if steps.ops[pc, L.CODE] == L.UPDATE and steps.ops[pc, L.TARGET] == cache:
                return False
            pc += 1
    return True


@compiled
def run_cached(mem: Memory, steps: Steps, group: Group, control: Words, n: int, limit: int) -> int:
    """Run the pipelines of the rows taken, in a plan with caches. Returns the number of results, or TOO_MUCH.

    A stream waits at a lookup until all that keep the cache up have told it. They wait for none that waits for them: what is cached on
    their way to tell is a smaller segment.
    """
    taken = control[L.GROUP_ROWS]
    for at in range(n * n):
        group.lists[L.LIST_HITS, at] = 0
        group.lists[L.LIST_CACHED, at] = 0
    waiting = True
    while waiting:
        waiting = False
        for s in range(n):
            pc, level = mem.stores[s, L.REACHED], 0
            if pc < 0 or steps.ops[pc, L.CODE] == L.EMIT:
                continue
            for k in range(mem.stores[s, L.PIPE], pc):
                level += steps.ops[k, L.CODE] == L.PROBE
            while steps.ops[pc, L.CODE] != L.EMIT:
                fits = True
                if steps.ops[pc, L.CODE] == L.PROBE:
                    level += 1
                    group.lists[L.LIST_STORES, s * n + level] = steps.ops[pc, L.TARGET]
                    found = 0
                    if group.lists[L.LIST_COUNTS, s * n + level - 1] > 0:
                        found = probe_all(mem, steps, group, s, pc, level, n, taken, 0, 0, False)
                    group.lists[L.LIST_COUNTS, s * n + level] = max(found, 0)
                    fits = found >= 0
                elif steps.ops[pc, L.CODE] == L.UPDATE:
                    tell_all(mem, steps, group, s, pc, level, n)
                elif is_told(mem, steps, steps.ops[pc, L.TARGET], n):
                    fits = look_up_all(mem, steps, group, s, pc, level, n, taken)
                    level += steps.ops[pc, L.PAIR] - pc - 1
                    pc = steps.ops[pc, L.PAIR]
                else:
                    waiting = True
                    break
                if not fits:
                    control[L.GROUP_SIZE] //= 4
                    return TOO_MUCH
                pc += 1
                mem.stores[s, L.REACHED] = pc
            if steps.ops[pc, L.CODE] == L.EMIT:
                for p in range(group.lists[L.LIST_COUNTS, s * n + level]):
                    group.notes[group.lists[(s * n + level) * L.LIST_ROWS + L.LIST_G, p], L.NOTE_ROW] += 1
    return results_of(mem, steps, group, control, n, limit)
