"""Fill: build the state of an inner tree node from the windows, between two tuples, when a plan changes or windows are restored."""

from __future__ import annotations

from watersmeet.engine.kernel.depth_first import run_pipeline
from watersmeet.engine.kernel.leave import begin
from watersmeet.engine.native.mark import Table, Words, compiled
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Group, Memory, Steps
from watersmeet.engine.store.record import stamp


@compiled
def fill(
    mem: Memory, steps: Steps, frame: Frame, group: Group, out: Table, control: Words, driver: int, pipe: int
) -> int:
    """Run a pipeline that fills a state for every tuple now in the driving window. Returns DONE or GROW."""
    while True:
        if control[L.PHASE] == L.PIPELINE:
            why = run_pipeline(mem, steps, frame, group, out, control)
            if why != L.DONE:
                return why
            control[L.PHASE] = L.PICK
        tid = control[L.FILL_NEXT]
        if tid >= mem.stores[driver, L.NEXT]:
            return L.DONE
        control[L.FILL_NEXT] = tid + 1
        if mem.words[stamp(mem, driver, tid)] != L.DEAD:
            begin(frame, control, pipe, driver, tid, 0)
