"""The kernel: takes rows of all streams in global order, keeps windows and states, and runs pipelines.

It interprets a Program of integer tables (program/layout.py); a new query or plan is new tables, never a new compilation. Input: for
each stream rows sorted in its order; the kernel merges them by (timestamp, position in FROM). It returns when the input up to `until`
is used up, when the output buffer is full, when a store must grow, or when its quota of arrivals is used up, and goes on from there
when it is called again. The phase, kept in `control`, says where.
"""

from __future__ import annotations

from watersmeet.engine.kernel.arrive import next_tuple
from watersmeet.engine.kernel.depth_first import follow_tuple
from watersmeet.engine.kernel.group import form_group, next_single
from watersmeet.engine.kernel.group_probe import write_group
from watersmeet.engine.kernel.group_run import probe_group
from watersmeet.engine.native.mark import Table, Words, compiled
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Given, Group, Memory, Steps


@compiled
def run(
    mem: Memory, steps: Steps, frame: Frame, group: Group, given: Given, walkers: Table, out: Table, control: Words, until: int, clock: int
) -> int:  # fmt: skip
    """Process all rows with timestamp < until, then what leaves by `clock`. Returns DONE, OUT_FULL, GROW or PAUSED."""
    while True:
        phase = control[L.PHASE]
        if phase == L.PIPELINE:
            why = follow_tuple(mem, steps, frame, group, out, control)
        elif phase == L.GROUP_PROBES:
            why = probe_group(mem, steps, group, out, control)
        elif phase == L.GROUP_WRITES:
            why = write_group(mem, steps, group, out, control)
        elif phase == L.GROUP_SINGLES:
            why = next_single(mem, frame, group, control)
        elif control[L.QUOTA] <= 0:
            why = L.PAUSED
        elif form_group(mem, group, given, control, until):
            why = L.GO_ON
        else:
            why = next_tuple(mem, steps, frame, given, walkers, control, until, clock)
        if why != L.GO_ON:
            return why
