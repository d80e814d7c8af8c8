"""Inner states: results of an inner node of the tree, as the ids of their members and the columns that parents probe."""

from __future__ import annotations

from watersmeet.engine.native.mark import inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Frame, Memory
from watersmeet.engine.store.index import link
from watersmeet.engine.store.record import record
from watersmeet.engine.store.visible import in_window


@inlined
def store_entry(mem: Memory, frame: Frame, s: int) -> None:
    """A result of an inner node enters its state."""
    tid = mem.stores[s, L.NEXT]
    mem.stores[s, L.NEXT] = tid + 1
    r = record(mem, s, tid)
    for k in range(mem.stores[s, L.LEAF_TO] - mem.stores[s, L.LEAF_FROM]):
        mem.halves[2 * r + k] = frame.bound[mem.members[mem.stores[s, L.LEAF_FROM] + k]]
    for c in range(mem.stores[s, L.NCOLS]):
        leaf, word = mem.sources[mem.stores[s, L.SOURCE_FROM] + c, 0], mem.sources[mem.stores[s, L.SOURCE_FROM] + c, 1]
        mem.words[r + mem.stores[s, L.COL0] + c] = mem.words[record(mem, leaf, frame.bound[leaf]) + word]
    mem.stores[s, L.INSERTS] += 1
    for x in range(mem.stores[s, L.INDEX_FROM], mem.stores[s, L.INDEX_TO]):
        link(mem, x, tid)


@inlined
def entry_in_windows(mem: Memory, s: int, r: int) -> bool:
    """Whether all tuples that a state's entry refers to are still in their windows."""
    for k in range(mem.stores[s, L.LEAF_TO] - mem.stores[s, L.LEAF_FROM]):
        if not in_window(mem, mem.members[mem.stores[s, L.LEAF_FROM] + k], mem.halves[2 * r + k]):
            return False
    return True
