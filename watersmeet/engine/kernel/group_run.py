"""A group that is under way: its pipelines are run, by probes alone or with caches, and it is seen what comes next."""

from __future__ import annotations

from watersmeet.engine.kernel.group import note_peak, rest_if_small, settle
from watersmeet.engine.kernel.group_cache import run_cached
from watersmeet.engine.kernel.group_probe import LACKS, TOO_MUCH, run_pipelines
from watersmeet.engine.native.mark import Table, Words, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Group, Memory, Steps


@inlined
def has_caches(mem: Memory, n: int) -> bool:
    """Whether the plan has caches; in groups it has no states then (program/pipelines.py)."""
    return mem.stores.shape[0] > n and mem.stores[n, L.KIND] == L.CACHE


@inlined
def probe_group(mem: Memory, steps: Steps, group: Group, out: Table, control: Words) -> int:
    """Go on with the group that is under way. Returns GO_ON, GROW if a state has no room, OUT_FULL if the output has none."""
    n = out.shape[0] - L.OUT_BEHIND
    if has_caches(mem, n):
        total = run_cached(mem, steps, group, control, n, out.shape[1])
    else:
        total = run_pipelines(mem, steps, group, control, n, out.shape[1])
    if total == LACKS:
        note_peak(mem, group, control, n)
        return L.GROW
    rest_if_small(control)
    if total == TOO_MUCH:
        control[L.PHASE] = L.GROUP_SINGLES
        return L.GO_ON
    settle(mem, group, control, n)
    control[L.GROUP_RESULTS] = total
    control[L.PHASE] = L.GROUP_WRITES
    return L.OUT_FULL if total > out.shape[1] - control[L.OUT_ROWS] else L.GO_ON
