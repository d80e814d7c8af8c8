"""The kernel: takes rows of all streams in global order, keeps windows and states, and runs pipelines.

It interprets a Program of integer arrays (program/layout.py); a new query or plan is new arrays, never a new compilation. Input: for each
stream rows sorted in its order; the kernel merges them by (timestamp, position in FROM). It returns when the input up to `until` is
used up, when the output buffer is full, or when a store must grow, and goes on from there when it is called again.
"""

from __future__ import annotations

from watersmeet.engine.kernel.depth_first import begin, pursue
from watersmeet.engine.kernel.group import enter_all, note_peak, pass_by, settle, take
from watersmeet.engine.kernel.group_probe import LACKS, TOO_MUCH, go_together, write_all
from watersmeet.engine.kernel.prefetch import look_ahead
from watersmeet.engine.native.mark import Bytes, Halves, Table, Words, compiled, inlined
from watersmeet.engine.program.layout import (
    AHEAD,
    ALIVE_IN,
    ALONE,
    AT,
    COLS_IN,
    DEAD,
    DONE,
    EAGER,
    EXPIRES,
    EXPIRIES,
    FAR,
    FEW,
    FLOOR,
    GROW,
    HOLDS,
    KIND,
    LEAVE_PIPE,
    MANY,
    NEXT,
    NOTE_ID,
    NOTE_NOW,
    NOTE_STREAM,
    OUT_FULL,
    OUT_ROWS,
    PART_IN,
    PART_MASK,
    PART_USED,
    PARTITION,
    PAUSED,
    PEAK,
    PHASE,
    PICK,
    PIPE,
    QUOTA,
    REST,
    RING,
    ROW0,
    ROWS,
    ROWS_IN,
    RUNNING,
    SIZE,
    STREAM,
    TAKEN,
    TOGETHER,
    TOTAL,
    TS_IN,
    VICTIM,
    WANTED,
    WINDOW,
    WRITING,
)  # fmt: skip
from watersmeet.engine.store.window import (
    drop_oldest,
    drop_slot,
    find_partition,
    join_partition,
    leave_partition,
    oldest_of,
    put,
    room,
    stamp,
)  # fmt: skip


@inlined
def skip_expired(m: Words, S: Table, s: int, now: int) -> int:
    """Tuples of a RANGE ring that no index must be told of leave: only the floor moves. Returns how many."""
    id, last, size = S[s, FLOOR], S[s, NEXT], S[s, SIZE]
    first = id
    expires = FAR
    while id < last:
        expires = m[stamp(S, s, id)] + size
        if expires >= now:
            break
        expires = FAR
        id += 1
    S[s, FLOOR] = id
    S[s, EXPIRIES] += id - first
    S[s, EXPIRES] = expires
    return id - first


@inlined
def remove(m: Words, h: Halves, S: Table, I: Table, s: int, id: int) -> None:
    if S[s, KIND] == RING:
        drop_oldest(m, h, S, I, s)
    else:
        drop_slot(m, h, S, I, s, id)


@compiled
def run(
    m: Words, h: Halves, S: Table, I: Table, O: Table, checks: Table, members: Words, sources: Table, counters: Table,
    keys: Table, cursor: Words, bound: Words, out: Table, control: Words, W: Table, notes: Table, lists: Table, walk: Table,
    T: Table, data: Words, flags: Bytes, until: int, clock: int,
) -> int:  # fmt: skip
    """Process all rows with timestamp < until, then what leaves by `clock`. Returns DONE, OUT_FULL, GROW or PAUSED."""
    n = T.shape[0]
    while True:
        if control[PHASE] == TOGETHER:
            total = go_together(m, h, S, I, O, members, sources, control, notes, lists, walk, n, out.shape[1])
            if total == LACKS:
                note_peak(m, S, control, notes, walk, n)
                return GROW
            if control[MANY] < FEW:
                control[MANY] = -REST
            control[PHASE] = PICK
            if total != TOO_MUCH:
                settle(m, S, control, notes, walk, n)
                control[TOTAL] = total
                control[PHASE] = WRITING
                if total > out.shape[1] - control[OUT_ROWS]:
                    return OUT_FULL
        if control[PHASE] == WRITING:
            write_all(h, S, O, members, counters, out, control, notes, lists, walk, n)
            control[PHASE] = PICK
        if control[PHASE] == RUNNING:
            why = pursue(
                m, h, S, I, O, checks, members, sources, counters, keys, cursor, bound, out, control, notes, walk
            )
            if why != DONE:
                if control[TAKEN] > 0:
                    note_peak(m, S, control, notes, walk, n)
                    pass_by(m, S, notes, control[ALONE] - 1, n)
                return why
            if control[VICTIM] >= 0:
                remove(m, h, S, I, control[STREAM], control[VICTIM])
                control[HOLDS] -= 1
            control[PHASE] = PICK
        if control[ALONE] < control[TAKEN]:  # rows of a group that found too much: one by one
            g = control[ALONE]
            control[ALONE] = g + 1
            s = notes[g, NOTE_STREAM]
            if notes[g, NOTE_ID] >= 0 and S[s, PIPE] >= 0:
                begin(S, control, bound, S[s, PIPE], s, notes[g, NOTE_ID], notes[g, NOTE_NOW], -1)
            continue
        if control[TAKEN] > 0:
            settle(m, S, control, notes, walk, n)
        control[PEAK] = max(control[PEAK], control[HOLDS])
        if control[QUOTA] <= 0:
            return PAUSED
        # a group, if the plan is for groups and the last ones have gone well
        if control[MANY] >= FEW:
            control[TAKEN] = take(m, S, control, T, data, notes, lists, walk, until)
            if control[TAKEN] > 0:
                enter_all(m, h, S, I, control, T, data, flags, notes, lists, walk)
                control[PHASE] = TOGETHER
                continue
            if control[MANY] < FEW:
                control[MANY] = -REST
        elif control[MANY] < 0:
            control[MANY] += 1
            if control[MANY] == 0:
                control[MANY] = min(FEW, notes.shape[0] - 1)
        # the next arrival
        s, now = -1, until
        for k in range(n):
            if T[k, AT] < T[k, ROWS_IN]:
                ts = data[T[k, TS_IN] + T[k, AT]]
                if ts < now:
                    s, now = k, ts
        # what leaves before it
        moment = now if s >= 0 else clock
        leaver, earliest = -1, moment
        for k in range(n):
            if S[k, EXPIRES] < earliest:
                if S[k, EAGER] == 0 and S[k, LEAVE_PIPE] < 0:
                    control[HOLDS] -= skip_expired(m, S, k, moment)
                else:
                    leaver, earliest = k, S[k, EXPIRES]
        if leaver >= 0:
            if S[leaver, LEAVE_PIPE] >= 0:
                begin(
                    S, control, bound, S[leaver, LEAVE_PIPE], leaver, S[leaver, FLOOR], earliest + 1, S[leaver, FLOOR]
                )
            else:
                drop_oldest(m, h, S, I, leaver)
                control[HOLDS] -= 1
            continue
        if s < 0:
            return DONE
        # what it pushes out
        entry = 0
        key, check = 0, 0
        victim = -1
        if S[s, WINDOW] == ROWS:
            if S[s, NEXT] - S[s, FLOOR] >= S[s, SIZE]:
                victim = S[s, FLOOR]
        elif S[s, WINDOW] == PARTITION:
            if not room(S, s) or S[s, PART_USED] * 2 > S[s, PART_MASK]:
                control[WANTED] = s
                return GROW
            key = data[T[s, PART_IN] + T[s, AT]]
            check = data[T[s, PART_IN] + T[s, ROWS_IN] + T[s, AT]]
            entry = find_partition(m, S, s, key, check)
            if m[entry + 3] > S[s, SIZE]:
                victim = oldest_of(m, entry)
        if victim >= 0:
            if S[s, WINDOW] == PARTITION:
                leave_partition(m, h, S, s, entry)
            if S[s, LEAVE_PIPE] >= 0 and m[stamp(S, s, victim)] != DEAD:
                begin(S, control, bound, S[s, LEAVE_PIPE], s, victim, now, victim)
            else:
                remove(m, h, S, I, s, victim)
                control[HOLDS] -= 1
            continue
        if not room(S, s):
            control[WANTED] = s
            return GROW
        # it enters its window and runs its pipeline
        at = T[s, AT]
        if control[AHEAD]:
            look_ahead(m, h, S, I, O, W, T, data, s, at)
        alive = T[s, ALIVE_IN] < 0 or flags[T[s, ALIVE_IN] + at] != 0
        id = put(m, h, S, I, s, now, alive, T[s, ROW0] + at, data, T[s, COLS_IN] + at, T[s, ROWS_IN])
        if S[s, WINDOW] == PARTITION:
            join_partition(m, h, S, s, entry, key, check, id)
        T[s, AT] = at + 1
        control[HOLDS] += 1
        control[QUOTA] -= 1
        if alive and S[s, PIPE] >= 0:
            begin(S, control, bound, S[s, PIPE], s, id, now, -1)
