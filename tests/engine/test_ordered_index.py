"""The ordered index against a sorted list: any inserts and deletes, any range, with duplicates; and its own shape."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.running import stream
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.compile import compile_plan
from watersmeet.engine.rows.batches import Batches
from watersmeet.engine.store.arena import Arena
from watersmeet.engine.store.ordered import _priority, first_from, successor, tree_delete, tree_insert
from watersmeet.lang import parse
from watersmeet.model.plan import Plan

SLOTS = 32
KEYS = st.one_of(st.integers(-3, 3), st.sampled_from([L.DEAD, L.DEAD + 1, L.FAR, L.FAR - 1]))


class Tree:
    """The ordered index on S.y of `R.x < S.y`, driven slot by slot, beside a sorted list of (key, slot)."""

    def __init__(self, slots: int = SLOTS) -> None:
        tables = {"R": stream([1], x=[1]), "S": stream(np.arange(slots), y=np.zeros(slots, np.int64))}
        query = parse("SELECT R.x FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.x < S.y")
        state = Arena(compile_plan(Batches(query, tables).bound, Plan.parse("(R S)")))
        while state.S[1, L.CAP] < slots:
            state.S[1, L.NEXT] = state.S[1, L.CAP]
            state.grow(1)
        self.mem, self.h, self.S, self.I = state.memory, state.h, state.S, state.I
        (self.x,) = [x for x in range(len(self.I)) if self.I[x, L.OF_STORE] == 1]
        assert self.I[self.x, L.ORDERED]
        self.I[self.x, L.ROOT] = -1
        self.records = state.records(1)
        self.model: list[tuple[int, int]] = []

    def insert(self, slot: int, key: int) -> None:
        self.records[slot, self.I[self.x, L.KEY0]] = key
        tree_insert(self.mem, self.x, slot)
        bisect.insort(self.model, (key, slot))

    def delete(self, slot: int) -> None:
        tree_delete(self.mem, self.x, slot)
        self.model = [entry for entry in self.model if entry[1] != slot]

    def held(self) -> set[int]:
        return {slot for _, slot in self.model}

    def range_from(self, low: int, strict: bool) -> list[int]:
        found, slot = [], int(first_from(self.mem, self.x, low, int(strict)))
        while slot >= 0:
            found.append(slot)
            slot = int(successor(self.mem, self.x, slot))
        return found

    def audit(self) -> None:
        """Links agree both ways, parents come before children, keys are in order."""
        half = self.records.view(np.int32)
        left, right, up = (int(self.I[self.x, c]) for c in (L.LINK, L.BACK, L.PARENT))
        seen, stack = 0, [int(self.I[self.x, L.ROOT])]
        assert stack[0] < 0 or half[stack[0], up] == -1
        while stack:
            slot = stack.pop()
            if slot < 0:
                continue
            seen += 1
            for child in (int(half[slot, left]), int(half[slot, right])):
                if child >= 0:
                    assert half[child, up] == slot
                    assert _priority(self.mem, self.x, child) <= _priority(self.mem, self.x, slot)
                stack.append(child)
        assert seen == len(self.model)
        assert self.range_from(L.DEAD, False) == [slot for _, slot in self.model]


@given(st.lists(st.tuples(st.integers(0, SLOTS - 1), KEYS), max_size=120))
def test_ordered_is_a_sorted_list_under_any_inserts_and_deletes(steps: list[tuple[int, int]]) -> None:
    """A step puts a key into a free slot, or takes a held one out."""
    tree = Tree()
    for slot, key in steps:
        if slot in tree.held():
            tree.delete(slot)
        else:
            tree.insert(slot, key)
        tree.audit()


@given(st.lists(KEYS, max_size=SLOTS), st.lists(st.tuples(KEYS, st.booleans()), max_size=10))
def test_ordered_finds_every_range(keys: list[int], bounds: list[tuple[int, bool]]) -> None:
    tree = Tree()
    for slot, key in enumerate(keys):
        tree.insert(slot, key)
    for low, strict in bounds:
        expected = [slot for key, slot in tree.model if key > low or (key == low and not strict)]
        assert tree.range_from(low, strict) == expected


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "random"])
def test_ordered_stays_shallow(order: str) -> None:
    """However keys come: the depth of a random tree, not that of a list. First in, first out, through twice the slots."""
    n = 4096
    tree = Tree(n)
    rng = np.random.default_rng(0)
    keys: Any = {
        "rising": np.arange(2 * n), "falling": -np.arange(2 * n), "equal": np.zeros(2 * n, np.int64),
        "random": rng.integers(0, 1 << 40, 2 * n),
    }[order]  # fmt: skip
    for i, key in enumerate(keys.tolist()):
        if i >= n:
            tree_delete(tree.mem, tree.x, i % n)
        tree.records[i % n, tree.I[tree.x, L.KEY0]] = key
        tree_insert(tree.mem, tree.x, i % n)
    half, up = tree.records.view(np.int32), int(tree.I[tree.x, L.PARENT])
    depths = np.zeros(n, np.int64)
    at = half[:, up].astype(np.int64)
    while (at >= 0).any():
        depths += at >= 0
        at = np.where(at >= 0, half[at, up], -1)
    assert depths.max() < 4 * np.log2(n)
    assert depths.mean() < 2 * np.log2(n)
