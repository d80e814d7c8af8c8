"""Visible: has this tuple left its window? These are the only tests.

`in_window` is about this moment. Rows of a group probe after all of them have entered, so they can't ask for this moment: `met`
goes by what was noted when the row came (kernel/group.py).
"""

from __future__ import annotations

from watersmeet.engine.native.mark import Table, inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory
from watersmeet.engine.store.record import stamp


@inlined
def in_window(mem: Memory, leaf: int, tid: int) -> bool:
    """Whether a tuple is in its window now."""
    if mem.stores[leaf, L.KIND] == L.RING:
        return tid >= mem.stores[leaf, L.FLOOR]
    return mem.words[stamp(mem, leaf, tid)] != L.DEAD


@inlined
def met(mem: Memory, notes: Table, s: int, tid: int, g: int, low: int, high: int, safe: int) -> bool:
    """Whether row `g` of a group finds a tuple in its window: it had come (below `high`) and had not left.

    Ids below `low` had left, those from `safe` on had not; in between timestamps tell.
    """
    there = (tid >= low) & (tid < high)
    if tid < safe:
        there &= mem.words[stamp(mem, s, tid)] >= notes[g, L.NOTE_NOW] - mem.stores[s, L.SIZE]
    return there
