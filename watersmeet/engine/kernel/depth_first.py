"""Follow one tuple through its pipeline: probe, store, emit, depth first, and pause at any point.

    dQ/dR := dR(a), S(a, b), T(b)       probe S by a; for each match probe T by b; for each match emit

A pipeline is a run of ops; `cursor[pc]` is where the probe at `pc` stands in its chain, `bound[leaf]` the id of each leaf's tuple
so far. All of it lies in arrays, so the kernel can come back to Python when the output is full or a state must grow, and go on
later: a tuple with a million matches never needs a million rows of memory.
"""

from __future__ import annotations

from watersmeet.engine.kernel.group import note_peak, pass_by
from watersmeet.engine.kernel.leave import take_out
from watersmeet.engine.kernel.lookup import MISSED, ask, collect, forget, keep_found, next_cached, tell
from watersmeet.engine.kernel.probe import begin_probe, bind_met, left_out, next_match
from watersmeet.engine.native.mark import Table, Words, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Group, Memory, Steps
from watersmeet.engine.store.record import record, room
from watersmeet.engine.store.state import store_entry
from watersmeet.engine.store.visible import met


@inlined
def emit(mem: Memory, frame: Frame, now: int, what: int, out: Table, row: int) -> None:
    """A result is complete: the row numbers of its tuples, its time, and what it is."""
    leaves = out.shape[0] - L.OUT_BEHIND
    for leaf in range(leaves):
        if mem.stores[leaf, L.KIND] == L.RING:
            out[leaf, row] = frame.bound[leaf] + mem.stores[leaf, L.ROWBASE]
        else:
            out[leaf, row] = mem.words[record(mem, leaf, frame.bound[leaf]) + L.ROWNUM]
    out[leaves, row] = now
    out[leaves + 1, row] = what


@inlined
def run_pipeline(mem: Memory, steps: Steps, frame: Frame, group: Group, out: Table, control: Words) -> int:
    """Run the pipeline under way to its end (DONE), or until the output is full or a state must grow."""
    pc, start, fresh, row = control[L.PC], control[L.START], control[L.FRESH], control[L.OUT_ROWS]
    limit, leaves = out.shape[1], out.shape[0] - L.OUT_BEHIND
    g = control[L.GROUP_SINGLY] - 1  # the row of a group, if it is one
    why = L.DONE
    while pc >= start:
        code = steps.ops[pc, L.CODE]
        if code == L.PROBE:
            if fresh:
                if steps.ops[pc, L.ALLOWED] < L.ALL and left_out(steps, control, pc):
                    tid = -1
                else:
                    steps.counters[pc, L.TUPLES_IN] += 1
                    tid = begin_probe(mem, steps, frame, pc)
            else:
                tid = frame.cursor[pc]
            simple = steps.ops[pc, L.SIMPLE]
            if simple > 0:
                # The common cases, without the branches of next_match; a last probe emits on the spot.
                s, x = steps.ops[pc, L.TARGET], steps.ops[pc, L.INDEX]
                mask, at, stride = mem.stores[s, L.MASK], mem.stores[s, L.ROWS_AT], mem.stores[s, L.STRIDE]
                floor, high, safe = mem.stores[s, L.FLOOR], L.FAR, L.DEAD
                if g >= 0:
                    floor = group.notes[g, L.NOTE_FROM + 2 * min(s, leaves)]
                    high = group.notes[g, L.NOTE_FROM + 2 * min(s, leaves) + 1]
                    safe = high if mem.stores[s, L.WINDOW] == L.RANGE else L.DEAD
                word, link, key = mem.indexes[x, L.KEY0], mem.indexes[x, L.LINK], frame.keys[pc, 0]
                last = simple == 2 or simple == 4
                found = False
                while tid >= floor:
                    r = at + (tid & mask) * stride
                    after = mem.halves[2 * r + link]
                    if mem.words[r + word] == key:
                        if simple < 3:
                            alive = met(mem, group.notes, s, tid, g, floor, high, safe)
                            frame.bound[s] = tid
                        else:
                            alive = bind_met(mem, frame, group.notes, s, r, g)
                        if alive:
                            if not last:
                                found = True
                                break
                            if row == limit:
                                why = L.OUT_FULL
                                break
                            emit(mem, frame, control[L.NOW], steps.ops[pc + 1, L.TARGET], out, row)
                            row += 1
                            steps.counters[pc, L.MATCHES] += 1
                    tid = after
                if why != L.DONE:
                    frame.cursor[pc] = tid
                    fresh = 0
                    break
                if found:
                    frame.cursor[pc] = after
                    steps.counters[pc, L.MATCHES] += 1
                    pc += 1
                    fresh = 1
                    continue
            elif next_match(mem, steps, frame, pc, tid):
                steps.counters[pc, L.MATCHES] += 1
                pc += 1
                fresh = 1
                continue
        elif code == L.EMIT:
            if row == limit:
                why = L.OUT_FULL
                break
            emit(mem, frame, control[L.NOW], steps.ops[pc, L.TARGET], out, row)
            row += 1
        elif code == L.STORE:
            s = steps.ops[pc, L.TARGET]
            stored = g >= 0 and pc < mem.stores[control[L.STREAM], L.REACHED]  # by its group, before it found too much
            if not stored:
                if not room(mem, s):
                    control[L.WANTED] = s
                    why = L.GROW
                    break
                store_entry(mem, frame, s)
                control[L.HOLDS] += 1
                if g >= 0:
                    group.walk[L.WALK_KEPT, g] += 1
            pc += 1
            fresh = 1
            continue
        elif code == L.LOOKUP:
            if fresh:
                ask(mem, steps, frame, pc)
            missed = frame.cursor[steps.ops[pc, L.PAIR]] == MISSED
            if missed and not fresh:
                if g < 0:  # else rows behind it have told already what it does not meet
                    keep_found(mem, steps, frame, pc)
            elif missed or next_cached(mem, steps, frame, group.notes, pc, g):
                pc = (pc if missed else steps.ops[pc, L.PAIR]) + 1
                fresh = 1
                continue
        elif code == L.CREATE:
            if collect(mem, steps, frame, pc):
                steps.counters[pc, L.MATCHES] += 1
                pc += 1
                fresh = 1
                continue
        elif code == L.UPDATE:
            if g < 0 or pc >= mem.stores[control[L.STREAM], L.REACHED]:  # else its group has told
                tell(mem, steps, frame, pc)
            pc += 1
            fresh = 1
            continue
        elif code == L.DROP:
            if fresh:
                frame.cursor[pc] = steps.counters[steps.ops[pc, L.PAIR], L.MATCHES]
                pc += 1
                continue
            if frame.cursor[pc] == steps.counters[steps.ops[pc, L.PAIR], L.MATCHES]:
                forget(mem, steps, frame, pc)
        pc -= 1
        while pc >= start:
            code = steps.ops[pc, L.CODE]
            if code == L.PROBE or code >= L.LOOKUP:
                break
            pc = steps.ops[pc, L.PAIR] if code == L.CREATE and frame.cursor[pc] != MISSED else pc - 1
        fresh = 0
    control[L.PC] = pc
    control[L.FRESH] = fresh
    control[L.OUT_ROWS] = row
    return why


@inlined
def follow_tuple(mem: Memory, steps: Steps, frame: Frame, group: Group, out: Table, control: Words) -> int:
    """Go on with the tuple that is under way; one that leaves is taken out at the end. Returns GO_ON, OUT_FULL or GROW."""
    why = run_pipeline(mem, steps, frame, group, out, control)
    if why != L.DONE:
        if control[L.GROUP_ROWS] > 0:
            note_peak(mem, group, control, out.shape[0] - L.OUT_BEHIND)
            pass_by(mem, group.notes, control[L.GROUP_SINGLY] - 1, out.shape[0] - L.OUT_BEHIND)
        return why
    if control[L.LEAVING] >= 0:
        take_out(mem, control, control[L.STREAM], control[L.LEAVING])
    control[L.PHASE] = L.GROUP_SINGLES if control[L.GROUP_ROWS] > 0 else L.PICK
    return L.GO_ON
