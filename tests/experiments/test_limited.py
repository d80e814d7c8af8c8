"""Runs under a limit: nothing is lost or gained, the limit is kept, and what can't be taken waits."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from experiments.limited import SLICES, Tick, limited, unlimited
from experiments.streams import between, query, streams
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Costs
from watersmeet.optimize.cost import Limits

RATE = {"A": 20.0, "B": 20.0, "C": 50.0}
EDGES = {("A", "B"): 0.05, ("B", "C"): 0.1}
SECONDS = 20.0
PRICES = Costs(0.0, 2.2e-6, 2e-7, 2e-7)
TEXT = query(list(RATE), dict.fromkeys(RATE, "[RANGE 4 SECONDS]"), list(EDGES))


def run(plan: str, cpu: float, memory: float = inf, by_prices: bool = True, seed: int = 1) -> list[Tick]:
    tables = streams(RATE, EDGES, SECONDS, seed)
    return list(limited(TEXT, tables, Plan.parse(plan), Limits(cpu, memory), SECONDS, 1.0, PRICES, by_prices))


def came(seconds: float, seed: int = 1) -> int:
    return sum(t.num_rows for t in between(streams(RATE, EDGES, SECONDS, seed), 0, seconds).values())


@pytest.mark.parametrize("plan", ["(A B C) orders {C: B A}", "((A B) C)"])
def test_limited_run_with_enough_cpu_gives_all_results_and_nothing_waits(plan: str) -> None:
    ticks, other = run(plan, cpu=inf), run("(A (B C))", cpu=1.0)
    assert [t.results for t in ticks] == [t.results for t in other]
    assert ticks[-1].results > 10_000
    assert all(t.waiting == 0 for t in ticks) and ticks[-1].at == SECONDS
    assert ticks[-1].cpu_s == ticks[-1].priced_s


def test_limited_run_at_prices_is_the_same_again_and_keeps_its_limit() -> None:
    need = run("((A B) C)", cpu=inf)
    rate = (need[-1].cpu_s - need[9].cpu_s) / 10
    ticks = run("((A B) C)", cpu=rate / 2)
    assert ticks == run("((A B) C)", cpu=rate / 2)
    slice_s = max(b.cpu_s - a.cpu_s for a, b in pairwise(need)) / SLICES
    most = 3 * slice_s  # the last slice may take too much
    assert all(t.cpu_s <= rate / 2 * t.at + most for t in ticks)
    assert ticks[-1].waiting > came(SECONDS) / 4
    assert ticks[-1].results < need[-1].results * 0.75
    taken = [came(t.at) - t.waiting for t in ticks]
    assert taken == sorted(taken) and all(0 <= t.waiting <= came(t.at) for t in ticks)


def test_limited_cpu_that_is_not_used_is_lost() -> None:
    """A quiet first half does not pay for a second half that is too dear."""
    tables = streams(RATE, EDGES, SECONDS, 1)
    late = {n: after(t, SECONDS / 2) for n, t in tables.items()}
    plan, budget = Plan.parse("((A B) C)"), Limits(0.004)
    ticks = list(limited(TEXT, late, plan, budget, SECONDS, 1.0, PRICES, by_prices=True))
    assert ticks[9].cpu_s == 0 and ticks[9].waiting == 0
    assert ticks[-1].waiting > 0


def after(table: pa.Table, seconds: float) -> pa.Table:
    return table.filter(pc.greater_equal(table.column("ts").cast(pa.int64()), round(seconds * 1e6)))


def test_limited_run_stops_when_it_holds_more_than_it_may() -> None:
    free, tree = run("(A B C) orders {C: B A}", 1.0, memory=450), run("((A B) C)", 1.0, memory=450)
    assert free[-1].stopped is None
    stopped = tree[-1].stopped
    assert stopped is not None and 1 < stopped < SECONDS
    rest = [t for t in tree if t.at > stopped]
    assert len({t.results for t in rest}) == 1 and rest[-1].waiting > rest[0].waiting


def test_limited_run_in_cpu_time_takes_time_and_gives_the_same_results() -> None:
    ticks = run("((A B) C)", cpu=inf, by_prices=False)
    assert ticks[-1].results == run("((A B) C)", cpu=inf)[-1].results
    assert ticks[-1].cpu_s > 0 and ticks[-1].cpu_s != ticks[-1].priced_s
    taken, priced = unlimited(TEXT, streams(RATE, EDGES, SECONDS, 1), Plan.parse("((A B) C)"), SECONDS, 1.0, PRICES)
    need = run("((A B) C)", cpu=inf)
    assert taken > 0 and priced == pytest.approx((need[-1].cpu_s - need[9].cpu_s) / 10)
