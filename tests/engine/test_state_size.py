"""What state takes: at most 48 bytes a stored tuple and 24 an index entry, besides payload, also just after it has grown."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest

import watersmeet as wm
from bench.engine.workload import common
from tests.engine.running import Run, Scripted, stream
from watersmeet.engine.inspect import View
from watersmeet.engine.store import arena as arena_module
from watersmeet.engine.store.arena import Arena
from watersmeet.testing import same_rows

US_PER_TUPLE = 6_000 / 7  # of all three streams


def alive(view: View, name: str) -> int:
    """Live tuples of a window or entries of a state; dead entries that are not swept yet do not count."""
    store = view.store(name)
    return store.live if store.kind != "state" else len(store.entries or ())


def allowed(view: View) -> int:
    return sum(alive(view, s.name) * (48 + 24 * len(s.indexes)) for s in view.stores)


@pytest.mark.parametrize("plan", ["(R S T) orders {T: S R}", "((R S) T)"])
@pytest.mark.parametrize("tuples", [1_000, 1_500, 2_000, 3_000, 7_000, 20_000, 70_000, 200_000])
def test_state_takes_at_most_48_bytes_a_tuple_and_24_an_index_entry(
    plan: str, tuples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    window_us = int(tuples * US_PER_TUPLE)
    work = common(max(tuples // 2, 5_000), domain=max(window_us // 5_000, 2))
    text = work.text.replace(f"RANGE {work.window_us} ", f"RANGE {window_us} ")
    ratios: list[float] = []
    grow = Arena.grow

    def look(seen: object = None) -> None:
        if sum(run.engine.held) > 0.8 * tuples:
            view = run.engine.inspect(entries=True)
            ratios.append(view.state_bytes / allowed(view))

    def growing(state: Arena, s: int) -> None:
        grow(state, s)
        look()

    run = Run.of(text, work.tables(), plan, Scripted(look, every=997))
    monkeypatch.setattr(Arena, "grow", growing)
    results = sum(table.num_rows for table in run.steps())
    assert results > 1_000
    assert len(ratios) > 10
    assert max(ratios) <= 1


def test_state_grows_by_doubling_only_as_often_as_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    work, calls = common(20_000), []
    grow = Arena.grow

    def growing(state: Arena, s: int) -> None:
        calls.append(s)
        grow(state, s)

    monkeypatch.setattr(Arena, "grow", growing)
    run = Run.of(work.text, work.tables(), "(R S T) orders {T: S R}")
    list(run.steps())
    doublings: Any = np.log2([s.cap for s in run.engine.inspect().stores]) - log2(arena_module.SMALLEST)
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
    assert run.engine.inspect().stores[3].cap <= 4 * 512


@pytest.mark.parametrize("window", ["ROWS 256", "ROWS 1000", "RANGE 3 SECONDS"])
def test_state_of_an_inner_node_never_takes_more_than_twice_what_is_alive_in_it(
    window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = common(20_000)
    text = work.text.replace(f"RANGE {work.window_us} MICROSECONDS", window)
    tables = {name: t.set_column(0, t.column_names[0], [np.arange(len(t)) % 128]) for name, t in work.tables().items()}
    most, grow = [arena_module.SMALLEST // 2], Arena.grow

    def growing(state: Arena, s: int) -> None:
        before = run.engine.inspect().stores[s]
        grow(state, s)
        if before.kind == "state":
            view = run.engine.inspect(entries=True)
            most.append(alive(view, before.name))
            cap = view.stores[s].cap
            assert cap in (before.cap, before.cap + before.cap // 2)
            assert cap == before.cap or cap <= 2 * most[-1]

    run = Run.of(text, tables, "((R S) T)")
    monkeypatch.setattr(Arena, "grow", growing)
    list(run.steps())
    stores = run.engine.inspect().stores
    assert stores[3].expiries > 5 * max(most)
    windows = sum(s.bytes for s in stores[:3])  # they never shrink, so this is their peak
    entry = stores[3].record_bytes + 8  # a record and at most two buckets
    assert run.engine.metrics()["peak_state_bytes"] <= windows + 2 * max(most) * entry


ONE_KEY = "SELECT R.a FROM R [UNBOUNDED], S [UNBOUNDED], T [UNBOUNDED] WHERE R.a = S.a AND S.a = T.a"


@pytest.mark.parametrize(
    ("rows", "plan", "named"), [(200, "(R S T)", "window R"), (20, "((R S) T)", r"inner state \(R S\)")]
)
def test_state_that_would_outgrow_its_ids_is_refused(
    rows: int, plan: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena_module, "MOST", 128)
    tables = {name: stream(range(rows), a=[1] * rows) for name in "RST"}
    tables["T"] = tables["T"].slice(0, 0)
    run = Run.of(ONE_KEY, tables, plan)
    with pytest.raises(wm.DataError, match=f"the {named} would hold more than 128 rows\n  make windows shorter"):
        run.rows()


def test_state_that_would_outgrow_its_ids_is_refused_after_a_switch_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "MOST", 128)
    tables = {name: stream(range(20), a=[1] * 20) for name in "RST"}
    run = Run.of(ONE_KEY, tables, "(R S T)", Scripted(lambda seen: "((R S) T)", every=59))
    with pytest.raises(wm.DataError, match=r"the inner state \(R S\) would hold more than 128 rows"):
        run.rows()


def test_state_takes_ids_down_before_they_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids may come to twice 128: 2,000 rows pass through windows of 10 in pieces of 50, but not in one piece."""
    n = 2_000
    tables = {name: stream(range(n), a=[i % 5 for i in range(n)]) for name in "RST"}
    text = ONE_KEY.replace("UNBOUNDED", "ROWS 10")
    monkeypatch.setattr(arena_module, "REBASE", 128)
    monkeypatch.setattr(arena_module, "MOST", 128)
    run = Run.of(text, [{name: t.slice(i, 50) for name, t in tables.items()} for i in range(0, n, 50)], "((R S) T)")
    assert same_rows(run.rows(), wm.oracle(text, tables)) is None
    whole = Run.of(text, tables, "((R S) T)")
    with pytest.raises(wm.DataError, match="window R"):
        whole.rows()
