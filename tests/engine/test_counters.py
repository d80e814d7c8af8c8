"""Counters: what goes into a step came out of the one before; what came into a store has left it or is still there."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, check, stream
from watersmeet.engine import layout as L
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
        assert metrics["state_bytes"] == sum(store.bytes for store in run.engine.stores()) == run.engine.state.m.nbytes


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
    # S(9) is rejected but pushes out S(7) when S(8) comes; R(NULL) never enters; R(7), R(7) have left when R(8) comes at 14.
    assert result.rows is not None and result.rows.column("k").to_pylist() == [7, 7, 8]
    metrics = result.metrics
    assert {name: metrics[name] for name in ("tuples_in", "rejected", "results", "probes", "matches", "inserts", "expiries")} == {
        "tuples_in": 7, "rejected": 1, "results": 3, "probes": 5, "matches": 3, "inserts": 6, "expiries": 3,
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
    assert run.engine.state.S[3, L.NEXT] == 4
