"""What a plan switch keeps, builds and drops: windows always stay, states serve again or are built from the windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import RandomChanges, Run, Scripted, check, run_switching, stream
from watersmeet.engine import executor
from watersmeet.engine.control import Change, Controller, Observed
from watersmeet.engine.executor import Engine
from watersmeet.engine.store import arena as arena_module
from watersmeet.engine.store.arena import Arena
from watersmeet.model.plan import Plan
from watersmeet.model.query import Query
from watersmeet.model.window import Window
from watersmeet.testing import Case, random_plan, random_query, random_streams, same_rows

ONE_KEY = """SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d
    FROM A [RANGE 30 MICROSECONDS], B [ROWS 9], C [PARTITION BY k ROWS 2], D [UNBOUNDED]
    WHERE A.k = B.k AND B.k = C.k AND C.k = D.k"""


def four_streams(n: int = 60, keys: int = 12, seed: int = 1) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    return {
        name: stream(np.sort(rng.integers(0, 2 * n, n)), id=np.arange(n), k=rng.integers(0, keys, n))
        for name in ("A", "B", "C", "D")
    }


def contents(engine: Engine) -> dict[str, Counter[tuple[int, ...]]]:
    """Of every inner state: the row numbers of the members of its live entries."""
    return {s.name: Counter(s.entries or ()) for s in engine.inspect(entries=True).stores if s.kind == "state"}


def test_switch_of_pipelines_alone_keeps_windows_indexes_and_states_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables, laid_out = four_streams(), []

    class Counted(Arena):
        def __init__(self, *args: Any, **options: Any) -> None:
            laid_out.append(args)
            super().__init__(*args, **options)

    monkeypatch.setattr(executor, "Arena", Counted)
    plans = ["(A B C D)", "(A B C D) orders {A: D C B; D: B A C}", "(A B C D) orders {B: D A C; C: D B A}"]
    controller = Scripted(lambda seen: plans[controller.steps % 3], every=3)
    run = Run.of(ONE_KEY, tables, "(A B C D)", controller)
    difference = same_rows(run.rows(), wm.oracle(ONE_KEY, tables))
    assert difference is None, difference
    assert run.engine.metrics()["plan_switches"] == controller.steps == 80 + 1
    assert len(laid_out) == 1


def test_switch_keeps_the_states_that_both_plans_have_and_builds_only_the_others() -> None:
    tables, built = four_streams(), []
    plans = ["((A B) (C D))", "((A B) C D)", "(((A B) C) D)", "(A B (C D))"]

    def step(seen: Observed) -> str:
        built.append(run.engine.inspect().built)  # by the change before
        return plans[(len(built) - 1) % 4]

    run = Run.of(ONE_KEY, tables, "(A B (C D))", Scripted(step, every=10))
    difference = same_rows(run.rows(), wm.oracle(ONE_KEY, tables))
    assert difference is None, difference
    assert built[1:6] == [("(A B)",), (), ("((A B) C)",), ("(C D)",), ("(A B)",)]


def test_switch_builds_from_the_windows_what_tuples_would_have_built() -> None:
    """After any number of tuples: the states, then the same states after they were dropped and built again."""
    looked_at = 0

    def step(seen: Observed) -> None:
        nonlocal looked_at
        before = contents(run.engine)
        assert all(max(entries.values(), default=1) == 1 for entries in before.values()), "an entry is there twice"
        run.engine.apply(Change("drop all states", plan=Plan.mjoin(run.engine.bound.aliases)))
        assert contents(run.engine) == {}
        run.engine.apply(Change("build them again", plan=seen.plan))
        assert contents(run.engine) == before
        looked_at += sum(map(len, before.values()))

    for seed in range(30):
        rng = Random(seed)
        query = random_query(rng, streams=rng.choice((3, 4, 5)))
        case = Case(seed, query, random_streams(rng, query, rows=40), random_plan(rng, query, "bjtree"), [])
        run = Run.of(query, case.streams, case.plan, Scripted(step, every=rng.choice((5, 11))))
        check(case, run.rows())
    assert looked_at > 2_000


def test_switch_while_tables_are_loaded_waits_until_they_are() -> None:
    """A step can come only after all tables are there, or states over tables alone would be filled twice."""
    tables = {"R": stream([1, 2, 3], k=[1, 2, 3]), "A": pa.table({"k": [1, 2, 3]}), "B": pa.table({"k": [1, 2, 3]})}
    text = "SELECT R.k FROM R [UNBOUNDED], A, B WHERE R.k = A.k AND A.k = B.k"
    for every in range(1, 8):
        run = Run.of(text, tables, "(R (A B))", Scripted(lambda seen: "(R (B A))", every))
        assert run.rows().column("k").to_pylist() == [1, 2, 3]
        assert run.engine.metrics()["plan_switches"] == 3 // every + 1


def partitioned(seed: int) -> Case:
    """A random query with PARTITION BY windows wherever a stream has a column for it."""
    rng = Random(seed)
    query = random_query(rng, streams=rng.choice((3, 3, 4)), shape=rng.choice(("chain", "one key", "star")))
    sources = []
    for source in query.sources:
        declared = query.declaration(source.stream)
        assert declared is not None
        columns = [f.name for f in declared.schema.fields if f.name != declared.timestamp]
        if source.window and columns and rng.random() < 0.8:
            source = replace(source, window=Window.rows(rng.choice((1, 2, 5)), (rng.choice(columns),)))
        sources.append(source)
    query = replace(query, sources=tuple(sources))
    return Case(seed, query, random_streams(rng, query, rows=100, results=150), random_plan(rng, query), [])


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_switch_with_partitions_that_states_refer_to(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "SMALLEST", 2)
    dead: list[int] = []
    for seed in range(first, first + 20):
        case = partitioned(seed)
        check(case, Run.of(case.query, case.streams, case.plan).rows())
        changes = RandomChanges(Random(seed), case.query, (2, 9, 40))
        run = Run.of(case.query, case.streams, case.plan, changes)
        changes.watch = lambda run=run: dead.append(max(s.dead for s in run.engine.inspect().stores))  # type: ignore[misc]
        check(case, run.rows())
        assert changes.changes == run.engine.metrics()["plan_switches"] > 0
    assert sum(dead) > 100  # tuples had left that states still referred to when the plan was switched


def test_switch_counts_what_all_plans_did() -> None:
    tables = four_streams()

    def made(controller: Controller | None) -> dict[str, Any]:
        run = Run.of(ONE_KEY, tables, "(A B C D)", controller)
        run.rows()
        return run.engine.metrics()

    alone = made(None)
    switched = made(Scripted(lambda seen: "(A B C D) orders {A: D C B}", every=7))
    assert switched["plan_switches"] == 240 // 7 + 1 and switched["plan_switch_seconds"] > 0
    for name in ("tuples_in", "results", "candidates", "inserts", "expiries"):
        assert switched[name] == alone[name], name


def test_switch_at_every_tuple() -> None:
    for seed in range(20):
        rng = Random(seed)
        query = random_query(rng, streams=rng.choice((3, 4, 5, 6)))
        case = Case(seed, query, random_streams(rng, query), random_plan(rng, query), [])
        rows, pending = run_switching(rng, query, case.streams, case.plan, (1,))
        check(case, rows)
        assert len(pending) == sum(_arrivals(query, case.streams)) + 1  # and at the end


def _arrivals(query: Query, streams: dict[str, pa.Table]) -> Iterator[int]:
    """Rows of each window that the kernel sees: a row that WHERE rejects is seen only where rows are counted."""
    run = Run.of(query, streams, Plan.mjoin(query.aliases))
    (released,) = run.batches.released()
    for intake in run.engine.intakes:
        if not intake.source.static:
            yield intake.rows(released.rows[intake.source.alias]).count
