"""LEFT JOIN by every plan: unmatched rows are the oracle's, whole, in batches, while plans are switched, and from a snapshot."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, agrees, check, run_switching, stream
from watersmeet.engine.executor import Engine
from watersmeet.testing import Case, random_case


@pytest.fixture(scope="module", params=range(0, 400, 50))
def block(request: pytest.FixtureRequest) -> list[Case]:
    return [random_case(seed, preserves=True) for seed in range(request.param, request.param + 50)]


def test_oracle_unmatched_rows_of_random_cases(block: list[Case]) -> None:
    alone = matched = 0
    for case in block:
        check(case, wm.run(case.query, case.streams, plan=case.plan).rows)
        check(case, wm.run(case.query, case.batches, plan=case.plan).rows)
        inner = replace(case.query, where=(*case.query.where, *case.query.on), on=(), preserves=False)
        results = wm.run(inner, case.streams).rows.num_rows
        alone, matched = alone + case.expected.num_rows - results, matched + results
    assert alone > 100 and matched > 500
    assert {str(case.query.sources[0].window)[1:3] for case in block} == {"RA", "RO", "PA", "UN"}


def test_switch_unmatched_rows_of_random_cases(block: list[Case]) -> None:
    changes = 0
    for case in block:
        rows, switched = run_switching(Random(case.seed), case.query, case.streams, case.plan)
        check(case, rows)
        changes += len(switched)
    assert changes > 100


def test_meta_unmatched_rows_are_carried_over_by_snapshots(block: list[Case]) -> None:
    for case in block[::5]:
        run = Run.of(case.query, case.batches, case.plan)
        made: list[pa.RecordBatch] = []
        for released in run.batches.released():
            made += run.engine.feed(released.rows, released.clock, ended=released.ended)
            run.engine = Engine.resume(run.batches.bound, pickle.loads(pickle.dumps(run.engine.snapshot())))
        check(case, pa.Table.from_batches(made, schema=run.engine.output))


TEXT = "SELECT c.id AS c, p.id AS p FROM C [{0}] AS c LEFT JOIN P [RANGE 9 MICROSECONDS] AS p ON c.{1} = p.{1} AND c.id + p.id {2}"


@pytest.mark.parametrize("window", ["RANGE 5 MICROSECONDS", "ROWS 3", "PARTITION BY k ROWS 1", "UNBOUNDED"])
@pytest.mark.parametrize(("key", "condition"), [("k", ">= 0"), ("k", "< 0"), ("s", "> 3"), ("s", "< 9")])
def test_oracle_unmatched_rows_are_told_after_every_predicate(window: str, key: str, condition: str) -> None:
    """Keys that are hashed, and conditions that only whole results settle: the kernel's candidates are no matches yet."""
    c = stream([0, 1, 4, 9, 9, 30], id=[0, 1, 2, 3, 4, 5], k=[1, 1, 2, 1, None, 7], s=["x", "y", "x", "x", None, "z"])
    p = stream([2, 3, 5, 31], id=[0, 1, 2, 3], k=[1, 3, 2, 8], s=["x", "x", "q", "y"])
    found = agrees(TEXT.format(window, key, condition), {"C": c, "P": p})
    assert found.column("p").null_count > 0


def test_oracle_unmatched_rows_cost_nothing_where_none_are_asked_for() -> None:
    rows = stream([0, 1, 4], k=[1, 1, 2])
    for join, number in ((", R [ROWS 9] AS b WHERE", False), ("LEFT JOIN R [ROWS 9] AS b ON", True)):
        run = Run.of(f"SELECT a.k FROM R [ROWS 9] AS a {join} a.k = b.k", {"R": rows}, "(a b)")
        run.rows()
        assert (run.engine.gather.unmatched is not None) == number
        assert ("_wm_number" in run.engine.payloads[0].schema.names) == number


def test_oracle_unmatched_rows_are_exact_so_a_plan_that_sheds_is_refused() -> None:
    text = "SELECT a.k FROM R [ROWS 9] AS a LEFT JOIN R [ROWS 9] AS b ON a.k = b.k"
    with pytest.raises(wm.PlanError, match="with a LEFT JOIN no row can be shed"):
        wm.run(text, {"R": stream([0], k=[1])}, plan=replace(wm.Plan.parse("(a b)"), keep=(("b", 0.5),)))
