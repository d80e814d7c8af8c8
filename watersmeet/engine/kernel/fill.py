"""Fill: build the state of an inner tree node from the windows, between two tuples, when a plan is switched or windows are restored."""

from __future__ import annotations

from watersmeet.engine.kernel.depth_first import begin, pursue
from watersmeet.engine.native.mark import Halves, Table, Words, compiled
from watersmeet.engine.program.layout import DEAD, DONE, FILL_NEXT, NEXT, PHASE, PICK, RUNNING
from watersmeet.engine.store.window import stamp


@compiled
def fill(
    m: Words, h: Halves, S: Table, I: Table, O: Table, checks: Table, members: Words, sources: Table, counters: Table,
    keys: Table, cursor: Words, bound: Words, out: Table, control: Words, notes: Table, walk: Table, driver: int, pipe: int,
) -> int:  # fmt: skip
    """Run a pipeline that fills a state for every tuple now in the driving window. Returns DONE or GROW."""
    while True:
        if control[PHASE] == RUNNING:
            why = pursue(
                m, h, S, I, O, checks, members, sources, counters, keys, cursor, bound, out, control, notes, walk
            )
            if why != DONE:
                return why
            control[PHASE] = PICK
        id = control[FILL_NEXT]
        if id >= S[driver, NEXT]:
            return DONE
        control[FILL_NEXT] = id + 1
        if m[stamp(S, driver, id)] != DEAD:
            begin(S, control, bound, pipe, driver, id, 0, -1)
