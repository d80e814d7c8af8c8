"""Audit: the consistency invariant of caches, by brute force. For tests; slow.

    Definition 3.1   for all (u, v) in a cache of X:    v = the combinations of X now in their windows that have the key u
    Definition 6.1   if it need only hold what has partners in Y:    (X with partners in Y) is part of v, and v is part of X

Source: Babu et al., "Adaptive Caching for Continuous Queries", 3.2 and 6.
Departs from the paper in: Y are the witnesses of the cache alone, not all other streams, and without the one that looks it up: a new tuple
of it may be the first that a combination meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from watersmeet.engine.program import layout as L
from watersmeet.engine.program.compile import exact
from watersmeet.engine.store.arena import Arena
from watersmeet.engine.store.cache import CLASS, COUNT, PLACE
from watersmeet.model.expr import type_of
from watersmeet.model.graph import JoinGraph
from watersmeet.model.program import Lookup

Ids = tuple[int, ...]


def entries(arena: Arena, s: int) -> list[tuple[Ids, list[Ids]]]:
    """The keys of a cache, each with the references to combinations that are all in their windows."""
    row, spec = arena.S[s], arena.program.stores[s]
    found, taken = [], np.zeros(int(row[L.BLOCKS]), bool)
    stride, n, size = int(row[L.STRIDE]), int(row[L.NCOLS]), len(spec.leaves)
    here = {leaf: set(_live(arena, leaf)) for leaf in spec.leaves}
    for e in range(int(row[L.ROWS_AT]), int(row[L.BLOCKS_AT]), stride):
        meta = int(arena.m[e])
        if not meta:
            continue
        count, kind, place = (meta & COUNT) - 1, (meta >> CLASS) & 0xFF, meta >> PLACE
        at = 2 * (e + 1 + n)
        if kind:
            extent = taken[place : place + (1 << (kind - 1))]
            assert len(extent) == 1 << (kind - 1) and not extent.any(), "two values lie in one place"
            extent[:] = True
            at = 2 * (int(row[L.BLOCKS_AT]) + place * L.CACHE_BLOCK)
        references = arena.h[at : at + count * size].reshape(count, size).tolist()
        alive = [tuple(r) for r in references if all(i in here[k] for k, i in zip(spec.leaves, r, strict=True))]
        found.append((tuple(int(v) for v in arena.m[e + 1 : e + 1 + n]), alive))
    assert len(found) == row[L.ENTRIES] and taken.sum() == row[L.BLOCKS_USED], (
        "entries or blocks are not what is counted"
    )
    return found


def audit(arena: Arena) -> int:
    """Check all entries of all caches; AssertionError says which is wrong. Returns how many there were."""
    checked = 0
    for s in arena.caches:
        spec = arena.program.stores[s]
        assert arena.S[s, L.WORDS] * 8 <= spec.bytes, f"{spec.name} has more than {spec.bytes} bytes"
        kept = entries(arena, s)
        if not kept:
            continue
        whole = _by_key(arena, s, spec.leaves)
        asks = {k for pipes in (arena.program.arrive, arena.program.leave) for k, p in enumerate(pipes)
                for op in p if isinstance(op, Lookup) and op.store == s}  # fmt: skip
        needed = whole
        if spec.witnesses:
            needed = _by_key(arena, s, tuple(sorted({*spec.leaves, *spec.witnesses} - asks)))
        for key, references in kept:
            held = set(references)
            assert len(held) == len(references), f"{spec.name} has a combination of {key} twice: {sorted(references)}"
            lost, wrong = needed.get(key, set()) - held, held - whole.get(key, set())
            assert not lost and not wrong, f"{spec.name}, key {key}: lost {sorted(lost)}, wrong {sorted(wrong)}"
        checked += len(kept)
    return checked


def _live(arena: Arena, leaf: int) -> list[int]:
    """The ids of a window's tuples that can join."""
    row = arena.S[leaf]
    ids = range(int(row[L.FLOOR]) if row[L.KIND] == L.RING else 0, int(row[L.NEXT]))
    return [i for i in ids if arena.m[row[L.TIMES_AT] + (i & int(row[L.MASK]))] != L.DEAD]


def _by_key(arena: Arena, s: int, leaves: Ids) -> dict[Ids, set[Ids]]:
    """All combinations of these windows, cut down to the leaves of the cache, by its key."""
    spec, made = arena.program.stores[s], dict[Ids, set[Ids]]()
    for ids in _join(arena, leaves):
        bound = dict(zip(leaves, ids, strict=True))
        key = tuple(_value(arena, leaf, bound[leaf], column) for leaf, column in spec.sources)
        made.setdefault(key, set()).add(tuple(bound[leaf] for leaf in spec.leaves))
    return made


def _join(arena: Arena, leaves: Ids) -> Iterator[Ids]:
    """The combinations that satisfy all that the kernel decides among these streams: nested loops."""
    tests = list(_tests(arena, leaves))

    def further(chosen: dict[int, int]) -> Iterator[Ids]:
        if len(chosen) == len(leaves):
            yield tuple(chosen[leaf] for leaf in leaves)
            return
        leaf = leaves[len(chosen)]
        for i in _live(arena, leaf):
            now = {**chosen, leaf: i}
            if all(
                _holds(op, _value(arena, a, now[a], c), _value(arena, b, now[b], d))
                for op, (a, c), (b, d) in tests
                if leaf in (a, b) and a in now and b in now
            ):
                yield from further(now)

    yield from further({})


def _tests(arena: Arena, leaves: Ids) -> Iterator[tuple[str, Ids, Ids]]:
    bound, columns = arena.program.bound, arena.program.columns
    graph = JoinGraph.of(bound)
    number = {a: k for k, a in enumerate(bound.aliases)}

    def source(side: Any) -> Ids:
        return number[side.stream], columns[number[side.stream]].index(side.expr)

    for group in graph.classes:
        members = [source(m) for m in group.members if number[m.stream] in leaves]
        yield from (("=", members[0], other) for other in members[1:])
    for c in graph.comparisons:
        if exact(type_of(c.left.expr)) and {number[c.left.stream], number[c.right.stream]} <= set(leaves):
            yield c.op, source(c.left), source(c.right)


def _holds(op: str, a: int, b: int) -> bool:
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _value(arena: Arena, leaf: int, i: int, column: int) -> int:
    row = arena.S[leaf]
    return int(arena.m[row[L.ROWS_AT] + (i & int(row[L.MASK])) * row[L.STRIDE] + row[L.COL0] + column])
