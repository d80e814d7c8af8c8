"""Counters: what goes into a step came out of the one before; what came into a store has left it or is still there."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, Scripted, check, stream
from watersmeet.engine.control import Observed
from watersmeet.model.plan import Plan
from watersmeet.testing import Case, random_case, random_plan, random_query, random_streams


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_counters_add_up(first: int) -> None:
    for seed in range(first, first + 40):
        case = random_case(seed)
        run = Run.of(case.query, case.streams, case.plan)
        rows = run.rows()
        check(case, rows)
        metrics = run.engine.metrics()
        assert metrics["results"] == rows.num_rows <= metrics["candidates"] <= metrics["matches"]
        streams = [s.stream for s in run.batches.bound.sources if not s.static]
        if len(streams) == len(case.query.sources):  # states over tables alone take probes to build
            assert metrics["probes"] == sum(op.tuples_in for op in run.engine.operators())
            assert metrics["matches"] == sum(op.matches for op in run.engine.operators())
        assert metrics["tuples_in"] == sum(case.streams[name].num_rows for name in streams)
        for store in run.engine.stores():
            assert store.inserts - store.expiries == store.tuples, f"{case}\n{store}"
        assert metrics["inserts"] == sum(store.inserts for store in run.engine.stores())
        assert metrics["state_tuples"] == sum(store.tuples for store in run.engine.stores())
        assert (
            metrics["state_bytes"]
            == sum(store.bytes for store in run.engine.stores())
            == run.engine.inspect().state_bytes
        )


def test_counters_of_an_mjoin_run_from_step_to_step() -> None:
    for seed in range(60):
        rng = Random(seed)
        query = random_query(rng, emit="ISTREAM")
        case = Case(seed, query, random_streams(rng, query), random_plan(rng, query, "mjoin"), [])
        run = Run.of(query, case.streams, case.plan)
        run.rows()
        pipelines: dict[str, list[tuple[int, int]]] = {}
        for op in run.engine.operators():
            pipelines.setdefault(op.pipeline, []).append((op.tuples_in, op.matches))
        for steps in pipelines.values():
            for before, after in pairwise(steps):
                assert after[0] == before[1], f"{case}\n{pipelines}"
        assert sum(steps[-1][1] for steps in pipelines.values()) == run.engine.metrics()["candidates"]


def test_counters_of_one_join_by_hand() -> None:
    tables = {
        "R": stream([1, 2, 3, 14], k=pa.array([7, 7, None, 8])),
        "S": stream([4, 5, 15], k=pa.array([7, 9, 8])),
    }
    text = "SELECT R.k FROM R [RANGE 10 MICROSECONDS], S [ROWS 2] WHERE R.k = S.k AND S.k < 9"
    result = wm.run(text, tables, plan="mjoin")
    # S(9) is rejected, but pushes out S(7) when S(8) comes; R(NULL) is rejected and never enters; both R(7) have left at 14.
    assert result.rows is not None and result.rows.column("k").to_pylist() == [7, 7, 8]
    metrics = result.metrics
    assert {name: metrics[name] for name in ("tuples_in", "rejected", "results", "probes", "matches", "inserts", "expiries")} == {
        "tuples_in": 7, "rejected": 2, "results": 3, "probes": 5, "matches": 3, "inserts": 6, "expiries": 3,
    }  # fmt: skip


def test_counters_of_inner_states_count_entries() -> None:
    tables = {name: stream([i, i + 3], k=[1, 1]) for i, name in enumerate("RST")}
    text = "SELECT R.k FROM R [UNBOUNDED], S [UNBOUNDED], T [UNBOUNDED] WHERE R.k = S.k AND S.k = T.k"
    run = Run.of(text, tables, Plan.parse("((R S) T)"))
    assert run.rows().num_rows == 8
    assert {s.name: (s.tuples, s.inserts) for s in run.engine.stores()} == {
        "R": (2, 2), "S": (2, 2), "T": (2, 2), "(R S)": (4, 4),
    }  # fmt: skip
    assert run.engine.metrics()["peak_state_tuples"] == 10
    assert len(run.engine.inspect(entries=True).store("(R S)").entries or ()) == 4


def test_counters_of_the_peak_see_every_tuple() -> None:
    """A burst that has gone before the input ends: the peak is the most that was there after any tuple."""
    burst = [*range(0, 100, 10), *range(100, 140), *range(200, 300, 10)]
    tables = {name: stream(burst, k=[i % 7 for i in range(60)]) for name in "RS"}
    text = "SELECT R.k FROM R [RANGE 20 MICROSECONDS], S [ROWS 9] WHERE R.k = S.k"
    seen: list[int] = []
    watched = Run.of(text, tables, "(R S)", Scripted(partial(_note, seen), every=1))
    watched.rows()
    alone = Run.of(text, tables, "(R S)")
    alone.rows()
    assert len(seen) == 120 + 1
    assert alone.engine.metrics()["peak_state_tuples"] == watched.engine.metrics()["peak_state_tuples"] == max(seen)
    assert max(seen) == 21 + 9 and seen[-1] == 3 + 9


def _note(seen: list[int], step: Observed) -> None:
    seen.append(step.state_tuples)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_counters_of_the_peak_in_random_cases(first: int) -> None:
    for seed in range(first, first + 20):
        case = random_case(seed)
        seen = [0]
        every = Run.of(case.query, case.streams, case.plan, Scripted(partial(_note, seen), 1))
        every.rows()
        peak = every.engine.metrics()["peak_state_tuples"]
        assert peak >= max(seen), str(case)
        if not any(s.name.startswith("(") for s in every.engine.stores()):  # else entries may be swept in mid-tuple
            tables = sum(
                s.tuples for s, b in zip(every.engine.stores(), every.batches.bound.sources, strict=True) if b.static
            )
            assert peak == max(*seen, tables), str(case)
        once = Run.of(case.query, case.streams, case.plan)
        once.rows()
        assert once.engine.metrics()["peak_state_tuples"] == peak, str(case)


def test_counters_of_rejected_rows_are_the_same_for_all_windows() -> None:
    tables = {"R": stream([1, 2, 3, 4], k=pa.array([1, 2, None, 4])), "S": stream([5], k=[1])}
    for window in ("RANGE 1 SECOND", "ROWS 1", "ROWS 9", "PARTITION BY k ROWS 1", "UNBOUNDED"):
        text = f"SELECT R.k FROM R [{window}], S [UNBOUNDED] WHERE R.k = S.k AND R.k < 3"
        assert wm.run(text, tables, plan="mjoin").metrics["rejected"] == 2, window


def test_counters_do_not_count_rows_that_are_put_back() -> None:
    tables = {"R": stream([1, 2, 3], k=[1, 2, 3]), "S": stream([4], k=[1])}
    text = "SELECT R.k FROM R [ROWS 3], S [ROWS 3] WHERE R.k = S.k AND R.k < 3"
    run = Run.of(text, tables, "(R S)")
    run.engine.restore(tables)
    assert (run.engine.metrics()["tuples_in"], run.engine.metrics()["rejected"]) == (0, 0)
