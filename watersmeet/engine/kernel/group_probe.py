"""Group probe: the pipelines of a group's rows, probe by probe.

    first probe    (r1, s7) (r2, s3) ...   all rows of a stream: their buckets, then the newest records, then the next of each chain
    second probe   (r1, s7, t5) ...        all that were found; and so on until results are complete

A tuple that goes alone waits for memory at every step along its chains. Here a step is taken for many, each asks for the cache line
of its next one, and when it is its turn again the line has come. There are no branches to guess either: what a step finds is always
written down, and the list's end moves on only if it counts.

In a tree the nodes take their turns, children before parents: all streams below a node go on until they have stored into its state,
then those of the next node, and at last all go on from the inputs of the root to results.

    ((R S) T):   R: probe S, store (R S);  S: probe R, store (R S);  then  R: probe T;  S: probe T;  T: probe (R S)

So a state has all entries of the group before any row probes it; which of them a row may meet, its note says of each member as it does
of the tuples of a window. Where a state has no room, the group waits and goes on there: no list refers to a state's entries before the
last of them is stored, so that it can be swept and moved. Where a list has no room, or a state must not have as much of one stream's rows
(a quarter of what it has is free once it has been swept or has grown), rows go on one by one; what has been stored, as REACHED says, is
not stored again. Until the results are written, lists refer to entries of states, which must not be swept in between.
"""

from __future__ import annotations

from typing import Final

from watersmeet.engine.kernel.group import link_all
from watersmeet.engine.native.mark import Table, Words, inlined, prefetch
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Group, Memory, Steps
from watersmeet.engine.store.index import bucket
from watersmeet.engine.store.visible import met

TOO_MUCH: Final = -1  # what run_pipelines returns: rows go on one by one,
LACKS: Final = -2  # or a state must grow


@inlined
def next_block(g: int, taken: int) -> int:
    """The note of the next BLOCK of rows: what had not left by then had not left before row `g` either."""
    return min(g // L.BLOCK * L.BLOCK + L.BLOCK, taken)


@inlined
def probe_all(
    mem: Memory,
    steps: Steps,
    group: Group,
    s: int,
    pc: int,
    level: int,
    n: int,
    taken: int,
    first: int,
    found: int,
    wide: bool,
) -> int:
    """Probe with all entries of the level before, from `first` on. Returns the number of matches, or TOO_MUCH if the list can't hold them.

    For a state these are the entries with the same key, be their members there or not.
    found: so many are in the list already; wide: find all that any row of the group may meet, be it there for the row that asks or not.
    """
    count = group.lists[L.LIST_COUNTS, s * n + level - 1]
    x, target, leaf = steps.ops[pc, L.INDEX], steps.ops[pc, L.TARGET], steps.ops[pc, L.OP_KEY0]
    heads, shift, buckets = mem.indexes[x, L.HEADS_AT], mem.indexes[x, L.SHIFT], mem.indexes[x, L.BUCKETS]
    factor = mem.indexes[x, L.FACTOR]
    word, link = mem.indexes[x, L.KEY0], mem.indexes[x, L.LINK]
    mask, at, stride = mem.stores[target, L.MASK], mem.stores[target, L.ROWS_AT], mem.stores[target, L.STRIDE]
    ranged, low_note = mem.stores[target, L.WINDOW] == L.RANGE, L.NOTE_FROM + 2 * min(target, n)
    came, made = (s * n + level - 1) * L.LIST_ROWS, (s * n + level) * L.LIST_ROWS
    binder, member = 0, 0  # the level that bound the key's leaf, and which member of an entry it is
    for j in range(level):
        of = group.lists[L.LIST_STORES, s * n + j]
        for k in range(mem.stores[of, L.LEAF_FROM], mem.stores[of, L.LEAF_TO]):
            if mem.members[k] == leaf:
                binder, member = j, k - mem.stores[of, L.LEAF_FROM]
    of = group.lists[L.LIST_STORES, s * n + binder]
    keyed = (s * n + binder) * L.LIST_ROWS + L.LIST_ID
    key_mask, key_at, key_stride = (
        mem.stores[leaf, L.MASK],
        mem.stores[leaf, L.ROWS_AT] + steps.ops[pc, L.OP_KEY0 + 1],
        mem.stores[leaf, L.STRIDE],
    )
    if of >= n:  # the ids of members are put down where matches will be
        entries, entry = 2 * mem.stores[of, L.ROWS_AT] + member, 2 * mem.stores[of, L.STRIDE]
        for q in range(group.lists[L.LIST_COUNTS, s * n + binder]):
            group.lists[made + L.LIST_ID, q] = mem.halves[entries + group.lists[keyed, q] * entry]
        keyed = made + L.LIST_ID
    for p in range(first, count):
        q = p
        for j in range(level - 1, binder, -1):
            q = group.lists[(s * n + j) * L.LIST_ROWS + L.LIST_PARENT, q]
        key = mem.words[key_at + (group.lists[keyed, q] & key_mask) * key_stride]
        place = bucket(heads, shift, buckets, factor, key)
        prefetch(mem.halves, place)
        group.walk[L.WALK_KEY, p] = key
        group.walk[L.WALK_PLACE, p] = place
    active = 0
    for p in range(first, count):
        g = group.lists[came + L.LIST_G, p]
        low = mem.stores[target, L.FLOOR] if wide else group.notes[g, low_note]
        tid = mem.halves[group.walk[L.WALK_PLACE, p]]
        live = tid >= low
        r = at + ((tid if live else low) & mask) * stride
        prefetch(mem.halves, 2 * r)
        prefetch(mem.halves, 2 * r + link)
        group.walk[L.WALK_LOW, p] = low
        group.walk[L.WALK_HIGH, p] = L.FAR if wide else group.notes[g, low_note + 1]
        group.walk[L.WALK_SAFE, p] = group.notes[next_block(g, taken), low_note] if ranged and not wide else low
        group.walk[L.WALK_WHO, active] = p
        group.walk[L.WALK_AT, active] = tid
        active += live
    while active > 0:
        if found + active >= group.lists.shape[1]:
            return TOO_MUCH
        kept = 0
        for k in range(active):
            p, tid = group.walk[L.WALK_WHO, k], group.walk[L.WALK_AT, k]
            r = at + (tid & mask) * stride
            low = group.walk[L.WALK_LOW, p]
            g, high, safe = group.lists[came + L.LIST_G, p], group.walk[L.WALK_HIGH, p], group.walk[L.WALK_SAFE, p]
            group.lists[made + L.LIST_PARENT, found] = p
            group.lists[made + L.LIST_ID, found] = tid
            group.lists[made + L.LIST_G, found] = g
            there = (mem.words[r + word] == group.walk[L.WALK_KEY, p]) & met(
                mem, group.notes, target, tid, g, low, high, safe
            )
            found += there
            tid = mem.halves[2 * r + link]
            live = tid >= low
            r = at + ((tid if live else low) & mask) * stride
            prefetch(mem.halves, 2 * r)
            prefetch(mem.halves, 2 * r + link)
            group.walk[L.WALK_WHO, kept] = p
            group.walk[L.WALK_AT, kept] = tid
            kept += live
        active = kept
    return found


@inlined
def set_apart(steps: Steps, group: Group, s: int, pc: int, level: int, n: int) -> int:
    """Put the entries of the level before that this probe leaves out first. Returns how many; write_group counts them."""
    at = s * n + level - 1
    listed, credit, apart = at * L.LIST_ROWS, steps.counters[pc, L.CREDIT], 0
    for p in range(group.lists[L.LIST_COUNTS, at]):
        credit += steps.ops[pc, L.ALLOWED]
        if credit >= L.ALL:
            credit -= L.ALL
            continue
        for k in range(listed + L.LIST_PARENT, listed + L.LIST_PARENT + L.LIST_ROWS):
            moved = group.lists[k, apart]
            group.lists[k, apart] = group.lists[k, p]
            group.lists[k, p] = moved
        apart += 1
    group.lists[L.LIST_HITS, at] = apart
    return apart


@inlined
def keep_met(mem: Memory, group: Group, s: int, level: int, found: int, n: int, taken: int) -> int:
    """Of the entries found in a state, keep those all of whose members were in their windows when the row came. Returns how many."""
    listed = (s * n + level) * L.LIST_ROWS
    state = group.lists[L.LIST_STORES, s * n + level]
    first = mem.stores[state, L.LEAF_FROM]
    entry = 2 * mem.stores[state, L.STRIDE]
    for k in range(first, mem.stores[state, L.LEAF_TO]):
        leaf, at = mem.members[k], 2 * mem.stores[state, L.ROWS_AT] + k - first
        ranged, low_note = mem.stores[leaf, L.WINDOW] == L.RANGE, L.NOTE_FROM + 2 * leaf
        kept = 0
        for p in range(found):
            tid, g = group.lists[listed + L.LIST_ID, p], group.lists[listed + L.LIST_G, p]
            low, high = group.notes[g, low_note], group.notes[g, low_note + 1]
            safe = group.notes[next_block(g, taken), low_note] if ranged else low
            there = met(mem, group.notes, leaf, mem.halves[at + tid * entry], g, low, high, safe)
            group.lists[listed + L.LIST_PARENT, kept] = group.lists[listed + L.LIST_PARENT, p]
            group.lists[listed + L.LIST_ID, kept] = tid
            group.lists[listed + L.LIST_G, kept] = g
            kept += there
        found = kept
    return found


@inlined
def store_all(mem: Memory, group: Group, s: int, level: int, state: int, n: int) -> None:
    """Store all entries of a list into a state."""
    count, listed = group.lists[L.LIST_COUNTS, s * n + level], (s * n + level) * L.LIST_ROWS
    stride, first = mem.stores[state, L.STRIDE], mem.stores[state, L.LEAF_FROM]
    begin = mem.stores[state, L.ROWS_AT] + mem.stores[state, L.NEXT] * stride
    for p in range(count):
        group.walk[L.WALK_KEPT, group.lists[listed + L.LIST_G, p]] += 1
        group.walk[L.WALK_AT, p] = mem.stores[state, L.NEXT] + p
        group.walk[L.WALK_WHO, p] = p
    for j in range(level, -1, -1):
        listed, of = (s * n + j) * L.LIST_ROWS, group.lists[L.LIST_STORES, s * n + j]
        size = mem.stores[of, L.LEAF_TO] - mem.stores[of, L.LEAF_FROM]
        for k in range(size):
            entries, entry = 2 * mem.stores[of, L.ROWS_AT] + k, 2 * mem.stores[of, L.STRIDE]
            to = 0
            while mem.members[first + to] != mem.members[mem.stores[of, L.LEAF_FROM] + k]:
                to += 1
            for p in range(count):
                q = group.walk[L.WALK_WHO, p]
                tid = group.lists[listed + L.LIST_ID, q]
                if of >= n:
                    tid = mem.halves[entries + tid * entry]
                mem.halves[2 * (begin + p * stride) + to] = tid
        for p in range(count):
            group.walk[L.WALK_WHO, p] = group.lists[listed + L.LIST_PARENT, group.walk[L.WALK_WHO, p]]
    for c in range(mem.stores[state, L.NCOLS]):
        source = mem.stores[state, L.SOURCE_FROM] + c
        leaf, word = mem.sources[source, 0], mem.sources[source, 1]
        at, mask, record = mem.stores[leaf, L.ROWS_AT] + word, mem.stores[leaf, L.MASK], mem.stores[leaf, L.STRIDE]
        member, column = 0, mem.stores[state, L.COL0] + c
        while mem.members[first + member] != leaf:
            member += 1
        for p in range(count):
            r = begin + p * stride
            mem.words[r + column] = mem.words[at + (mem.halves[2 * r + member] & mask) * record]
    mem.stores[state, L.NEXT] += count
    mem.stores[state, L.INSERTS] += count
    link_all(mem, group, group.walk, L.WALK_AT, count, state)


@inlined
def has_room(mem: Memory, steps: Steps, group: Group, n: int) -> bool:
    """Whether twice as many rows would find room in lists and states, as far as one can tell."""
    for s in range(n):
        pc, level = mem.stores[s, L.PIPE], 0
        while pc >= 0 and steps.ops[pc, L.CODE] != L.EMIT:
            level += steps.ops[pc, L.CODE] == L.PROBE
            if 4 * group.lists[L.LIST_COUNTS, s * n + level] >= group.lists.shape[1]:
                return False
            if (
                steps.ops[pc, L.CODE] == L.STORE
                and 8 * group.lists[L.LIST_COUNTS, s * n + level] > mem.stores[steps.ops[pc, L.TARGET], L.CAP]
            ):
                return False
            pc += 1
    return True


@inlined
def results_of(mem: Memory, steps: Steps, group: Group, control: Words, n: int, limit: int) -> int:
    """All pipelines are through: where each row's results go, how many rows the next group may have. Returns their number, or TOO_MUCH."""
    taken = control[L.GROUP_ROWS]
    total = 0
    for g in range(taken):
        count = group.notes[g, L.NOTE_ROW]
        group.notes[g, L.NOTE_ROW] = total
        total += count
    if total > limit:
        control[L.GROUP_SIZE] //= 4
        return TOO_MUCH
    if 4 * total < limit and has_room(mem, steps, group, n):
        control[L.GROUP_SIZE] = min(2 * control[L.GROUP_SIZE], group.notes.shape[0] - 1)
    return total


@inlined
def run_pipelines(mem: Memory, steps: Steps, group: Group, control: Words, n: int, limit: int) -> int:
    """Run the pipelines of the rows taken, from where they are. Returns the number of results, TOO_MUCH or LACKS.

    How full its lists were decides how many rows the next group may have.
    """
    taken, stores = control[L.GROUP_ROWS], mem.stores.shape[0]
    for node in range(n, stores + 1):  # the root has no state
        for s in range(n):
            pc = mem.stores[s, L.REACHED]
            if pc < 0:
                continue
            end = pc
            while steps.ops[end, L.CODE] == L.PROBE:
                end += 1
            if (steps.ops[end, L.TARGET] if steps.ops[end, L.CODE] == L.STORE else stores) != node:
                continue
            level = 0
            for k in range(mem.stores[s, L.PIPE], pc):
                level += steps.ops[k, L.CODE] == L.PROBE
            for k in range(pc, end):
                level += 1
                group.lists[L.LIST_STORES, s * n + level] = steps.ops[k, L.TARGET]
                found = 0
                first = set_apart(steps, group, s, k, level, n) if steps.ops[k, L.ALLOWED] < L.ALL else 0
                if group.lists[L.LIST_COUNTS, s * n + level - 1] > first:
                    found = probe_all(mem, steps, group, s, k, level, n, taken, first, 0, False)
                    if found < 0:
                        control[L.GROUP_SIZE] //= 4
                        return TOO_MUCH
                    if steps.ops[k, L.TARGET] >= n:
                        found = keep_met(mem, group, s, level, found, n, taken)
                group.lists[L.LIST_COUNTS, s * n + level] = found
            mem.stores[s, L.REACHED] = end
            count = group.lists[L.LIST_COUNTS, s * n + level]
            if node < stores:
                if mem.stores[node, L.NEXT] + count > mem.stores[node, L.CAP]:
                    if 4 * count > mem.stores[node, L.CAP]:
                        control[L.GROUP_SIZE] //= 4
                        return TOO_MUCH
                    control[L.WANTED] = node
                    return LACKS
                store_all(mem, group, s, level, node, n)
                mem.stores[s, L.REACHED] = end + 1
            else:
                for p in range(count):
                    group.notes[group.lists[(s * n + level) * L.LIST_ROWS + L.LIST_G, p], L.NOTE_ROW] += 1
    return results_of(mem, steps, group, control, n, limit)


@inlined
def write_group(mem: Memory, steps: Steps, group: Group, out: Table, control: Words) -> int:
    """Count what was probed and found, and write the results down, in the order of the rows that made them. Returns GO_ON."""
    n, before = out.shape[0] - L.OUT_BEHIND, control[L.OUT_ROWS]
    for s in range(n):
        pc, level = mem.stores[s, L.PIPE], 0
        if pc < 0:
            continue
        while steps.ops[pc, L.CODE] != L.EMIT:
            if steps.ops[pc, L.CODE] == L.PROBE:
                at = s * n + level
                steps.counters[pc, L.TUPLES_IN] += group.lists[L.LIST_COUNTS, at] - group.lists[L.LIST_HITS, at]
                if steps.ops[pc, L.ALLOWED] < L.ALL:
                    credit = steps.counters[pc, L.CREDIT] + group.lists[L.LIST_COUNTS, at] * steps.ops[pc, L.ALLOWED]
                    steps.counters[pc, L.CREDIT] = credit % L.ALL
                    steps.counters[pc, L.UNPROBED] += group.lists[L.LIST_HITS, at]
                level += 1
                steps.counters[pc, L.MATCHES] += group.lists[L.LIST_COUNTS, at + 1] - group.lists[L.LIST_CACHED, at + 1]
            elif steps.ops[pc, L.CODE] == L.LOOKUP:
                steps.counters[pc, L.TUPLES_IN] += group.lists[L.LIST_COUNTS, s * n + level]
                steps.counters[pc, L.MATCHES] += group.lists[L.LIST_HITS, s * n + level]
            pc += 1
        count, listed = group.lists[L.LIST_COUNTS, s * n + level], (s * n + level) * L.LIST_ROWS
        for p in range(count):
            g = group.lists[listed + L.LIST_G, p]
            row = before + group.notes[g, L.NOTE_ROW]
            group.notes[g, L.NOTE_ROW] += 1
            out[n, row] = group.notes[g, L.NOTE_NOW]
            out[n + 1, row] = steps.ops[pc, L.TARGET]
            group.walk[L.WALK_PLACE, p] = row
            group.walk[L.WALK_WHO, p] = p
        for j in range(level, -1, -1):
            listed, of = (s * n + j) * L.LIST_ROWS, group.lists[L.LIST_STORES, s * n + j]
            if of < n:
                base = mem.stores[of, L.ROWBASE]
                for p in range(count):
                    q = group.walk[L.WALK_WHO, p]
                    out[of, group.walk[L.WALK_PLACE, p]] = group.lists[listed + L.LIST_ID, q] + base
                    group.walk[L.WALK_WHO, p] = group.lists[listed + L.LIST_PARENT, q]
                continue
            for p in range(count):
                q = group.walk[L.WALK_WHO, p]
                group.walk[L.WALK_AT, p] = 2 * (
                    mem.stores[of, L.ROWS_AT] + group.lists[listed + L.LIST_ID, q] * mem.stores[of, L.STRIDE]
                )
                group.walk[L.WALK_WHO, p] = group.lists[listed + L.LIST_PARENT, q]
            for k in range(mem.stores[of, L.LEAF_TO] - mem.stores[of, L.LEAF_FROM]):
                leaf = mem.members[mem.stores[of, L.LEAF_FROM] + k]
                base = mem.stores[leaf, L.ROWBASE]
                for p in range(count):
                    out[leaf, group.walk[L.WALK_PLACE, p]] = mem.halves[group.walk[L.WALK_AT, p] + k] + base
    control[L.OUT_ROWS] = before + control[L.GROUP_RESULTS]
    control[L.PHASE] = L.PICK
    return L.GO_ON
