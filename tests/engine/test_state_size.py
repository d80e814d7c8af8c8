"""What state takes: at most 48 bytes a stored tuple and 24 an index entry, besides payload, also just after it has grown."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest

from bench.engine.workload import common
from tests.engine.running import Run
from watersmeet.engine import layout as L
from watersmeet.engine import state as state_module
from watersmeet.engine.state import State

US_PER_TUPLE = 6_000 / 7  # of all three streams


def stored(state: State, s: int) -> int:
    """Live tuples of a window or entries of a state; dead entries that are not swept yet do not count."""
    row = state.S[s]
    if row[L.KIND] != L.STATE:
        return state.live(s)
    leaves = state.members[row[L.LEAF_FROM] : row[L.LEAF_TO]]
    ids = state.records(s).view(np.int32)[: row[L.NEXT], : len(leaves)]
    return int((ids >= state.S[leaves, L.FLOOR]).all(axis=1).sum())


def allowed(state: State) -> int:
    tuples = [stored(state, s) for s in range(len(state.S))]
    indexes = state.S[:, L.INDEX_TO] - state.S[:, L.INDEX_FROM]
    return int(sum(n * (48 + 24 * k) for n, k in zip(tuples, indexes, strict=True)))


@pytest.mark.parametrize("plan", ["(R S T) orders {T: S R}", "((R S) T)"])
@pytest.mark.parametrize("tuples", [1_000, 1_500, 2_000, 3_000, 7_000, 20_000, 70_000, 200_000])
def test_state_takes_at_most_48_bytes_a_tuple_and_24_an_index_entry(
    plan: str, tuples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    window_us = int(tuples * US_PER_TUPLE)
    work = common(max(tuples // 2, 5_000), domain=max(window_us // 5_000, 2))
    text = work.text.replace(f"RANGE {work.window_us} ", f"RANGE {window_us} ")
    ratios: list[float] = []
    grow = State.grow

    def look(state: State) -> None:
        if sum(state.live(s) for s in range(state.leaves)) > 0.8 * tuples:
            ratios.append(state.bytes / allowed(state))

    def growing(state: State, s: int) -> None:
        grow(state, s)
        look(state)

    monkeypatch.setattr(State, "grow", growing)
    run = Run.of(text, work.tables(), plan, lambda engine: look(engine.state), every=997)
    results = sum(table.num_rows for table in run.steps())
    assert results > 1_000
    assert len(ratios) > 10
    assert max(ratios) <= 1


def test_state_grows_by_doubling_only_as_often_as_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    work, calls = common(20_000), []
    grow = State.grow

    def growing(state: State, s: int) -> None:
        calls.append(s)
        grow(state, s)

    monkeypatch.setattr(State, "grow", growing)
    run = Run.of(work.text, work.tables(), "(R S T) orders {T: S R}")
    list(run.steps())
    doublings: Any = np.log2(run.engine.state.S[:, L.CAP]) - log2(state_module.SMALLEST)
    assert [calls.count(s) for s in range(3)] == doublings.tolist()


def test_state_full_of_dead_entries_is_swept_instead_of_grown() -> None:
    """A window of 256 rows, a state of as many entries: 20,000 rows later it still has the room for a few times that."""
    n = 20_000
    work = common(n)
    text = work.text.replace(f"RANGE {work.window_us} MICROSECONDS", "ROWS 256")
    tables = {name: t.set_column(0, t.column_names[0], [np.arange(len(t)) % 128]) for name, t in work.tables().items()}
    run = Run.of(text, tables, "((R S) T)")
    list(run.steps())
    inner = run.engine.stores()[3]
    assert inner.inserts > 20_000 and inner.expiries > 10_000
    assert run.engine.state.S[3, L.CAP] <= 4 * 512
