"""What is planned is what runs: the shares that the optimizer chose and paid for are those that rows are routed by."""

from __future__ import annotations

from math import prod
from random import Random

import pytest

import watersmeet as wm
from tests.spark.local_cells import LocalCells
from watersmeet.api import choose
from watersmeet.engine.estimate import observe
from watersmeet.engine.rows.batches import Batches
from watersmeet.errors import PlanError
from watersmeet.model.bind import bind
from watersmeet.spark.route import Route
from watersmeet.testing import random_case, same_rows

CHAIN = """
CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, b BIGINT, ts TIMESTAMP); CREATE STREAM T (b BIGINT, ts TIMESTAMP);
SELECT R.a FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS], T [RANGE 10 SECONDS] WHERE R.a = S.a AND S.b = T.b
"""
FAST_T = wm.Statistics(rate={"R": 10.0, "S": 10.0, "T": 1000.0}, selectivity={("R", "S"): 0.01, ("S", "T"): 0.01})


@pytest.mark.parametrize("cells", [2, 3, 4, 6])
@pytest.mark.parametrize("seed", range(25))
def test_oracle_cells_by_planned_shares(seed: int, cells: int) -> None:
    case = random_case(seed, preserves=seed % 5 == 4)
    batches = Batches(case.query, case.streams)
    stats = observe(batches.bound, batches.sample(), whole=True)
    plan = choose(batches.bound, "auto", stats, cells=cells)
    assert prod(n for _, n in plan.cells) == cells
    local = LocalCells(case.query, plan, cells, Random(seed))
    made = local.run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"
    planned = [n for _, n in plan.cells]
    assert [d.share for d in local.flow.spec.route.dimensions] == planned


def test_the_fast_stream_is_not_copied() -> None:
    plan = wm.optimize(CHAIN, FAST_T, cells=4)
    assert plan.cells == (("S.b", 4),)
    route = Route.of(bind(wm.parse(CHAIN)), 4, plan.cells)
    assert {a: route.copies(a) for a in "RST"} == {"R": 4, "S": 1, "T": 1}


def test_copies_are_in_the_cost_of_the_plan() -> None:
    one, four = wm.optimize(CHAIN, FAST_T), wm.optimize(CHAIN, FAST_T, cells=4)
    assert one.memory_tuples is not None and four.memory_tuples is not None
    assert four.memory_tuples - one.memory_tuples == pytest.approx(3 * 100)  # R's window three times more
    assert four.cpu is not None and one.cpu is not None and four.cpu > one.cpu


def test_a_heavy_value_changes_the_shares() -> None:
    heavy = wm.Statistics(rate=FAST_T.rate, selectivity=FAST_T.selectivity, heavy={("T", "b"): (("7", 0.9),)})
    assert wm.optimize(CHAIN, heavy, cells=4).cells != wm.optimize(CHAIN, FAST_T, cells=4).cells


@pytest.mark.parametrize(
    ("shares", "cells", "says"),
    [
        ((("S.b", 4),), 2, "the plan is for 4 cells"),
        ((("S.c", 2),), 2, "nothing is called 'S.c'"),
    ],
)
def test_shares_that_do_not_fit_are_refused(shares: tuple[tuple[str, int], ...], cells: int, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Route.of(bind(wm.parse(CHAIN)), cells, shares)


def test_a_table_is_whole_in_every_cell() -> None:
    text = CHAIN.replace("CREATE STREAM T (b BIGINT, ts TIMESTAMP)", "CREATE TABLE T (b BIGINT)").replace(
        "T [RANGE 10 SECONDS]", "T"
    )
    stats = wm.Statistics(
        rate={"R": 10.0, "S": 10.0}, table_rows={"T": 50}, selectivity={("R", "S"): 0.01, ("S", "T"): 0.01}
    )
    plan = wm.optimize(text, stats, cells=2)
    assert plan.cells == (("R.a", 2),)
    assert plan.kind != "mjoin" or plan.memory_tuples == pytest.approx(100 + 100 + 2 * 50)


@pytest.mark.parametrize("search", ["auto", "pareto", "jtree_finder", "two_layer"])
@pytest.mark.parametrize("policy", ["least_cpu", "least_memory", "non_dominated", "any"])
def test_every_search_and_policy_keeps_the_budget(search: str, policy: str) -> None:
    best = wm.optimize(CHAIN, FAST_T)
    assert best.cpu is not None and best.memory_tuples is not None
    limit = wm.Budget(cpu=best.cpu * 1.5, memory_tuples=int(best.memory_tuples) + 1)
    plan = wm.optimize(CHAIN, FAST_T, limit, policy=policy, search=search)
    assert plan.cpu is not None and plan.cpu <= best.cpu * 1.5 * (1 + 1e-9)
    assert plan.memory_tuples is not None and plan.memory_tuples <= best.memory_tuples + 1


def test_head_room_and_cpu_share_tighten_the_budget() -> None:
    best = wm.optimize(CHAIN, FAST_T)
    assert best.cpu is not None
    exactly = wm.Budget(cpu=best.cpu)
    assert wm.optimize(CHAIN, FAST_T, exactly).cpu == pytest.approx(best.cpu)
    with pytest.raises(wm.NoQualifiedPlan):
        wm.optimize(CHAIN, FAST_T, exactly, head_room=0.2)
    with pytest.raises(wm.NoQualifiedPlan):
        wm.optimize(CHAIN, FAST_T, exactly, cpu_share=0.5)
    halved = wm.optimize(CHAIN, FAST_T, cpu_share=0.5)
    assert halved.cpu == pytest.approx(2 * best.cpu)
    assert "50% of each processor" in wm.explain(CHAIN, FAST_T, cpu_share=0.5)
    assert "4 cells: 4 by S.b" in wm.explain(CHAIN, FAST_T, cells=4)


def test_the_nearest_miss_is_named_although_something_fits() -> None:
    """A tree just over the memory, and cheapest, is told."""
    stats = wm.Statistics(rate={"R": 100.0, "S": 100.0, "T": 100.0}, selectivity={("R", "S"): 0.0001, ("S", "T"): 0.05})
    free = wm.optimize(CHAIN, stats)
    assert free.kind == "bjtree" and free.memory_tuples is not None
    told = wm.explain(CHAIN, stats, wm.Budget(memory_tuples=int(free.memory_tuples) - 1))
    assert f"{free.root} needs" in told
    assert "too much memory" in told
