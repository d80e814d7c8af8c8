"""The ordered index: a treap over the slots of a store, for band and comparison joins.

Nodes are slots; left, right and parent links are 32-bit, and a node's priority is a hash of its slot, so nothing else is kept.
Equal keys are ordered by slot. A range is read by `first_from` and then `successor`, so a probe can pause anywhere.
"""

from __future__ import annotations

from watersmeet.engine.compiled import Words, inlined
from watersmeet.engine.layout import BACK_AT, CAP, COLS_AT, HASH, KEY0, LINK_AT, MASK, OF_STORE, PARENT_AT, ROOT


@inlined
def _priority(slot: int) -> int:
    x = (slot + 1) * HASH
    return (x ^ (x >> 29)) * HASH


@inlined
def tree_key(m: Words, S: Words, I: Words, x: int, slot: int) -> int:
    s = I[x, OF_STORE]
    return m[S[s, COLS_AT] + I[x, KEY0] * S[s, CAP] + slot]


@inlined
def _rotate_up(h: Words, I: Words, x: int, node: int) -> None:
    """Lift `node` above its parent, keeping the order."""
    left, right, up = I[x, LINK_AT], I[x, BACK_AT], I[x, PARENT_AT]
    parent = h[up + node]
    grand = h[up + parent]
    if h[left + parent] == node:
        inner = h[right + node]
        h[left + parent] = inner
        h[right + node] = parent
    else:
        inner = h[left + node]
        h[right + parent] = inner
        h[left + node] = parent
    if inner >= 0:
        h[up + inner] = parent
    h[up + parent] = node
    h[up + node] = grand
    if grand < 0:
        I[x, ROOT] = node
    elif h[left + grand] == parent:
        h[left + grand] = node
    else:
        h[right + grand] = node


@inlined
def tree_insert(m: Words, h: Words, S: Words, I: Words, x: int, slot: int) -> None:
    left, right, up = I[x, LINK_AT], I[x, BACK_AT], I[x, PARENT_AT]
    h[left + slot] = -1
    h[right + slot] = -1
    h[up + slot] = -1
    node = I[x, ROOT]
    if node < 0:
        I[x, ROOT] = slot
        return
    key = tree_key(m, S, I, x, slot)
    while True:
        k = tree_key(m, S, I, x, node)
        side = left if key < k or (key == k and slot < node) else right
        child = h[side + node]
        if child < 0:
            h[side + node] = slot
            h[up + slot] = node
            break
        node = child
    priority = _priority(slot)
    while h[up + slot] >= 0 and _priority(h[up + slot]) < priority:
        _rotate_up(h, I, x, slot)


@inlined
def tree_delete(h: Words, I: Words, x: int, slot: int) -> None:
    left, right, up = I[x, LINK_AT], I[x, BACK_AT], I[x, PARENT_AT]
    while True:
        a, b = h[left + slot], h[right + slot]
        if a < 0 or b < 0:
            break
        _rotate_up(h, I, x, a if _priority(a) > _priority(b) else b)
    child = a if a >= 0 else b
    parent = h[up + slot]
    if child >= 0:
        h[up + child] = parent
    if parent < 0:
        I[x, ROOT] = child
    elif h[left + parent] == slot:
        h[left + parent] = child
    else:
        h[right + parent] = child


@inlined
def first_from(m: Words, h: Words, S: Words, I: Words, x: int, low: int, strict: int) -> int:
    """The first slot in order whose key is >= low (> low if strict); -1: none."""
    left, right = I[x, LINK_AT], I[x, BACK_AT]
    node, found = I[x, ROOT], -1
    while node >= 0:
        k = tree_key(m, S, I, x, node)
        if k > low or (k == low and strict == 0):
            found = node
            node = h[left + node]
        else:
            node = h[right + node]
    return found


@inlined
def successor(h: Words, I: Words, x: int, slot: int) -> int:
    """The next slot in order; -1: none."""
    left, right, up = I[x, LINK_AT], I[x, BACK_AT], I[x, PARENT_AT]
    node = h[right + slot]
    if node >= 0:
        while h[left + node] >= 0:
            node = h[left + node]
        return node
    node = slot
    parent = h[up + node]
    while parent >= 0 and h[right + parent] == node:
        node = parent
        parent = h[up + node]
    return parent


__all__ = ["MASK", "first_from", "successor", "tree_delete", "tree_insert", "tree_key"]
