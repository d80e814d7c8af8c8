"""Where a tuple lies: its record, its timestamp, and whether there is room for one more.

Notation, in all of the kernel: `s` a store, `x` an index, `tid` a tuple's local id, `slot = tid & MASK`, `r` the first word of its record.
"""

from __future__ import annotations

from watersmeet.engine.native.mark import inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory


@inlined
def record(mem: Memory, s: int, tid: int) -> int:
    """First word of a tuple's record."""
    return mem.stores[s, L.ROWS_AT] + (tid & mem.stores[s, L.MASK]) * mem.stores[s, L.STRIDE]


@inlined
def stamp(mem: Memory, s: int, tid: int) -> int:
    """Where the timestamp of a window's tuple lies."""
    return mem.stores[s, L.TIMES_AT] + (tid & mem.stores[s, L.MASK])


@inlined
def room(mem: Memory, s: int) -> bool:
    """Whether one more tuple fits."""
    if mem.stores[s, L.KIND] == L.RING:
        return mem.stores[s, L.NEXT] - mem.stores[s, L.FLOOR] < mem.stores[s, L.CAP]
    return mem.stores[s, L.FREE] >= 0 or mem.stores[s, L.NEXT] < mem.stores[s, L.CAP]
