"""The ordered index: a treap over the slots of a store, for band and comparison joins.

Nodes are slots; left, right and parent links are 32-bit, and a node's priority is a secret hash of its slot, so nothing else is kept.
Equal keys are ordered by slot. A range is read by `first_from` and then `successor`, so a probe can pause anywhere.
"""

from __future__ import annotations

from watersmeet.engine.native.hashing import scatter, times
from watersmeet.engine.native.mark import inlined
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Memory


@inlined
def _priority(mem: Memory, x: int, slot: int) -> int:
    """Nobody outside knows the factor: no order of arrival makes the tree deep."""
    made = times(slot + 1, mem.indexes[x, L.FACTOR])
    return scatter(made ^ (made >> 29))


@inlined
def tree_key(mem: Memory, x: int, slot: int) -> int:
    s = mem.indexes[x, L.OF_STORE]
    return mem.words[mem.stores[s, L.ROWS_AT] + slot * mem.stores[s, L.STRIDE] + mem.indexes[x, L.KEY0]]


@inlined
def _rotate_up(mem: Memory, x: int, at: int, step: int, node: int) -> None:
    """Lift `node` above its parent, keeping the order. `at`, `step`: where records begin and how far apart they are (half words)."""
    left, right, up = at + mem.indexes[x, L.LINK], at + mem.indexes[x, L.BACK], at + mem.indexes[x, L.PARENT]
    parent = mem.halves[up + node * step]
    grand = mem.halves[up + parent * step]
    if mem.halves[left + parent * step] == node:
        inner = mem.halves[right + node * step]
        mem.halves[left + parent * step] = inner
        mem.halves[right + node * step] = parent
    else:
        inner = mem.halves[left + node * step]
        mem.halves[right + parent * step] = inner
        mem.halves[left + node * step] = parent
    if inner >= 0:
        mem.halves[up + inner * step] = parent
    mem.halves[up + parent * step] = node
    mem.halves[up + node * step] = grand
    if grand < 0:
        mem.indexes[x, L.ROOT] = node
    elif mem.halves[left + grand * step] == parent:
        mem.halves[left + grand * step] = node
    else:
        mem.halves[right + grand * step] = node


@inlined
def tree_insert(mem: Memory, x: int, slot: int) -> None:
    at, step = (
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.ROWS_AT],
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.STRIDE],
    )
    left, right, up = at + mem.indexes[x, L.LINK], at + mem.indexes[x, L.BACK], at + mem.indexes[x, L.PARENT]
    mem.halves[left + slot * step] = -1
    mem.halves[right + slot * step] = -1
    mem.halves[up + slot * step] = -1
    node = mem.indexes[x, L.ROOT]
    if node < 0:
        mem.indexes[x, L.ROOT] = slot
        return
    key = tree_key(mem, x, slot)
    while True:
        k = tree_key(mem, x, node)
        side = left if key < k or (key == k and slot < node) else right
        child = mem.halves[side + node * step]
        if child < 0:
            mem.halves[side + node * step] = slot
            mem.halves[up + slot * step] = node
            break
        node = child
    priority = _priority(mem, x, slot)
    while mem.halves[up + slot * step] >= 0 and _priority(mem, x, mem.halves[up + slot * step]) < priority:
        _rotate_up(mem, x, at, step, slot)


@inlined
def tree_delete(mem: Memory, x: int, slot: int) -> None:
    at, step = (
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.ROWS_AT],
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.STRIDE],
    )
    left, right, up = at + mem.indexes[x, L.LINK], at + mem.indexes[x, L.BACK], at + mem.indexes[x, L.PARENT]
    while True:
        a, b = mem.halves[left + slot * step], mem.halves[right + slot * step]
        if a < 0 or b < 0:
            break
        _rotate_up(mem, x, at, step, a if _priority(mem, x, a) > _priority(mem, x, b) else b)
    child = a if a >= 0 else b
    parent = mem.halves[up + slot * step]
    if child >= 0:
        mem.halves[up + child * step] = parent
    if parent < 0:
        mem.indexes[x, L.ROOT] = child
    elif mem.halves[left + parent * step] == slot:
        mem.halves[left + parent * step] = child
    else:
        mem.halves[right + parent * step] = child


@inlined
def first_from(mem: Memory, x: int, low: int, strict: int) -> int:
    """The first slot in order whose key is >= low (> low if strict); -1: none."""
    at, step = (
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.ROWS_AT],
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.STRIDE],
    )
    node, found = mem.indexes[x, L.ROOT], -1
    while node >= 0:
        k = tree_key(mem, x, node)
        if k > low or (k == low and strict == 0):
            found = node
            node = mem.halves[at + mem.indexes[x, L.LINK] + node * step]
        else:
            node = mem.halves[at + mem.indexes[x, L.BACK] + node * step]
    return found


@inlined
def successor(mem: Memory, x: int, slot: int) -> int:
    """The next slot in order; -1: none."""
    at, step = (
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.ROWS_AT],
        2 * mem.stores[mem.indexes[x, L.OF_STORE], L.STRIDE],
    )
    left, right, up = at + mem.indexes[x, L.LINK], at + mem.indexes[x, L.BACK], at + mem.indexes[x, L.PARENT]
    node = mem.halves[right + slot * step]
    if node >= 0:
        while mem.halves[left + node * step] >= 0:
            node = mem.halves[left + node * step]
        return node
    node = slot
    parent = mem.halves[up + node * step]
    while parent >= 0 and mem.halves[right + parent * step] == node:
        node = parent
        parent = mem.halves[up + node * step]
    return parent
