"""The ordered index: a treap over the slots of a store, for band and comparison joins.

Nodes are slots; left, right and parent links are 32-bit, and a node's priority is a hash of its slot, so nothing else is kept.
Equal keys are ordered by slot. A range is read by `first_from` and then `successor`, so a probe can pause anywhere.
"""

from __future__ import annotations

from watersmeet.engine.native.hashing import scatter
from watersmeet.engine.native.mark import Halves, Table, Words, inlined
from watersmeet.engine.program.layout import BACK, KEY0, LINK, OF_STORE, PARENT, ROOT, ROWS_AT, STRIDE


@inlined
def _priority(slot: int) -> int:
    x = scatter(slot + 1)
    return scatter(x ^ (x >> 29))


@inlined
def tree_key(m: Words, S: Table, I: Table, x: int, slot: int) -> int:
    s = I[x, OF_STORE]
    return m[S[s, ROWS_AT] + slot * S[s, STRIDE] + I[x, KEY0]]


@inlined
def _rotate_up(h: Halves, I: Table, x: int, at: int, step: int, node: int) -> None:
    """Lift `node` above its parent, keeping the order. `at`, `step`: where records begin and how far apart they are (half words)."""
    left, right, up = at + I[x, LINK], at + I[x, BACK], at + I[x, PARENT]
    parent = h[up + node * step]
    grand = h[up + parent * step]
    if h[left + parent * step] == node:
        inner = h[right + node * step]
        h[left + parent * step] = inner
        h[right + node * step] = parent
    else:
        inner = h[left + node * step]
        h[right + parent * step] = inner
        h[left + node * step] = parent
    if inner >= 0:
        h[up + inner * step] = parent
    h[up + parent * step] = node
    h[up + node * step] = grand
    if grand < 0:
        I[x, ROOT] = node
    elif h[left + grand * step] == parent:
        h[left + grand * step] = node
    else:
        h[right + grand * step] = node


@inlined
def tree_insert(m: Words, h: Halves, S: Table, I: Table, x: int, slot: int) -> None:
    at, step = 2 * S[I[x, OF_STORE], ROWS_AT], 2 * S[I[x, OF_STORE], STRIDE]
    left, right, up = at + I[x, LINK], at + I[x, BACK], at + I[x, PARENT]
    h[left + slot * step] = -1
    h[right + slot * step] = -1
    h[up + slot * step] = -1
    node = I[x, ROOT]
    if node < 0:
        I[x, ROOT] = slot
        return
    key = tree_key(m, S, I, x, slot)
    while True:
        k = tree_key(m, S, I, x, node)
        side = left if key < k or (key == k and slot < node) else right
        child = h[side + node * step]
        if child < 0:
            h[side + node * step] = slot
            h[up + slot * step] = node
            break
        node = child
    priority = _priority(slot)
    while h[up + slot * step] >= 0 and _priority(h[up + slot * step]) < priority:
        _rotate_up(h, I, x, at, step, slot)


@inlined
def tree_delete(h: Halves, S: Table, I: Table, x: int, slot: int) -> None:
    at, step = 2 * S[I[x, OF_STORE], ROWS_AT], 2 * S[I[x, OF_STORE], STRIDE]
    left, right, up = at + I[x, LINK], at + I[x, BACK], at + I[x, PARENT]
    while True:
        a, b = h[left + slot * step], h[right + slot * step]
        if a < 0 or b < 0:
            break
        _rotate_up(h, I, x, at, step, a if _priority(a) > _priority(b) else b)
    child = a if a >= 0 else b
    parent = h[up + slot * step]
    if child >= 0:
        h[up + child * step] = parent
    if parent < 0:
        I[x, ROOT] = child
    elif h[left + parent * step] == slot:
        h[left + parent * step] = child
    else:
        h[right + parent * step] = child


@inlined
def first_from(m: Words, h: Halves, S: Table, I: Table, x: int, low: int, strict: int) -> int:
    """The first slot in order whose key is >= low (> low if strict); -1: none."""
    at, step = 2 * S[I[x, OF_STORE], ROWS_AT], 2 * S[I[x, OF_STORE], STRIDE]
    node, found = I[x, ROOT], -1
    while node >= 0:
        k = tree_key(m, S, I, x, node)
        if k > low or (k == low and strict == 0):
            found = node
            node = h[at + I[x, LINK] + node * step]
        else:
            node = h[at + I[x, BACK] + node * step]
    return found


@inlined
def successor(h: Halves, S: Table, I: Table, x: int, slot: int) -> int:
    """The next slot in order; -1: none."""
    at, step = 2 * S[I[x, OF_STORE], ROWS_AT], 2 * S[I[x, OF_STORE], STRIDE]
    left, right, up = at + I[x, LINK], at + I[x, BACK], at + I[x, PARENT]
    node = h[right + slot * step]
    if node >= 0:
        while h[left + node * step] >= 0:
            node = h[left + node * step]
        return node
    node = slot
    parent = h[up + node * step]
    while parent >= 0 and h[right + parent * step] == node:
        node = parent
        parent = h[up + node * step]
    return parent
