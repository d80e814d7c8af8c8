"""Response time: the numbers that follow from Example 1, the properties of section 3.4, and a queue that is simulated."""

from __future__ import annotations

import heapq
import random
from itertools import pairwise
from math import inf

import pytest

from tests.optimize.problems import example_1, random_problem
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Costs
from watersmeet.optimize.cost import price
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.response import demands, response_time
from watersmeet.optimize.shape import all_jtrees

PLANS = {"a": "((A B) C)", "b": "(A (B C))", "c": "((A C) B)"}


def test_paper_example_1_has_the_response_times_that_its_loads_give() -> None:
    """At 0.5 ms the loads are 12.5, 14 and 45 %, and 100 tuples arrive: D is 1.25, 1.4 and 4.5 ms."""
    problem = example_1(0.0005)
    found = {p: response_time(problem, Plan.parse(text).root) for p, text in PLANS.items()}
    assert found == pytest.approx({"a": 0.00125 / 0.875, "b": 0.0014 / 0.86, "c": 0.0045 / 0.55})


def test_paper_response_time_grows_without_bound_towards_saturation() -> None:
    """Plan (a) saturates at 4 ms: "the response time of a plan can increase arbitrarily"."""
    root = Plan.parse(PLANS["a"]).root
    found = [response_time(example_1(ms / 1000), root) for ms in (1.0, 2.0, 3.0, 3.9, 3.99)]
    assert found == sorted(found) and found[-1] > 100 * found[0]
    assert response_time(example_1(0.004), root) == inf
    assert response_time(example_1(0.004), root, cpu=2) == pytest.approx(0.01 / (1 - 0.5))
    assert response_time(example_1(0.001), root, cpu=0.5) == pytest.approx(0.0025 / 0.5 / (1 - 0.5))


@pytest.mark.parametrize("seed", range(20))
def test_paper_least_utilization_is_least_response_time_where_windows_hold_as_many_tuples(seed: int) -> None:
    """With windows of one size in tuples, as in Example 1, each stream completes results in proportion to its rate."""
    rng = random.Random(seed)
    rate = {s: rng.uniform(1, 50) for s in "ABCD"}
    edges = {("A", "B"): rng.random() / 20, ("B", "C"): rng.random() / 20, ("C", "D"): rng.random() / 20}
    problem = Problem.of(rate, 100.0, edges)
    costs = NodeCosts(problem)
    plans = [
        (price(problem, root).cpu, response_time(problem, root))
        for s in all_jtrees((0, 1, 2, 3))
        for root in [costs.tree(s)]
    ]
    plans.sort()
    assert all(b[1] >= a[1] * (1 - 1e-9) for a, b in pairwise(plans))
    cpu, response = plans[0]
    assert response == pytest.approx(cpu / (1 - cpu) / sum(rate.values()))


def test_least_utilization_need_not_be_least_response_time() -> None:
    """C is renewed every fifth of a second and completes nearly all results: the plan of least CPU makes it do more than another would."""
    problem = Problem.of(
        {"A": 50.0, "B": 50.0, "C": 50.0}, {"A": 500.0, "B": 500.0, "C": 10.0}, {("A", "B"): 0.01, ("B", "C"): 0.05},
        Costs(probe=1e-5, match=1e-5, insert=1e-4, delete=0.0),
    )  # fmt: skip
    found = {}
    for text in ("(A B C) orders {C: B A}", "((A B) C)", "(A (B C))"):
        root = Plan.parse(text).root
        found[text] = (price(problem, root).cpu, response_time(problem, root))
    assert min(found, key=lambda p: found[p][0]) != min(found, key=lambda p: found[p][1]), found


@pytest.mark.parametrize("seed", range(30))
def test_demands_of_all_streams_are_the_cpu_of_the_plan(seed: int) -> None:
    problem = random_problem(("chain", "star", "cycle")[seed % 3], 3 + seed % 3, seed, "wide")
    costs = NodeCosts(problem)
    for shape in all_jtrees(tuple(range(len(problem.streams)))):
        root = costs.tree(shape)
        assert sum(demands(problem, root).values()) == pytest.approx(price(problem, root).cpu)


def test_response_time_is_that_of_a_simulated_queue() -> None:
    """Tuples arrive at random, all that are there share the processor, and each leaves when its work is done."""
    rng = random.Random(5)
    problem = Problem.of(
        {"A": 10.0, "B": 20.0, "C": 70.0}, {"A": 10.0, "B": 40.0, "C": 35.0}, {("A", "B"): 0.5, ("B", "C"): 0.2},
        Costs(probe=0.0005, match=1e-5, insert=1e-5, delete=0.0),
    )  # fmt: skip
    root = Plan.parse("((A B) C)").root
    work, rate = demands(problem, root), [s.rate for s in problem.streams]
    per_tuple = [work[k] / rate[k] for k in range(3)]
    completed = [problem.rates.made(1 << k, problem.all) / rate[k] for k in range(3)]
    now = served = weighted = weights = 0.0
    waiting: list[tuple[float, float, int]] = []  # (served time at which it is done, arrival, stream)
    for _ in range(300_000):
        arrival = now + rng.expovariate(sum(rate))
        while waiting and now + (waiting[0][0] - served) * len(waiting) <= arrival:
            done, came, k = waiting[0]
            now += (done - served) * len(waiting)
            served = done
            heapq.heappop(waiting)
            weighted += completed[k] * (now - came)
            weights += completed[k]
        if waiting:
            served += (arrival - now) / len(waiting)
        now = arrival
        k = rng.choices(range(3), rate)[0]
        heapq.heappush(waiting, (served + per_tuple[k], now, k))
    assert sum(work.values()) > 0.1
    assert weighted / weights == pytest.approx(response_time(problem, root), rel=0.03)
