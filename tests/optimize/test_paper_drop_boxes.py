"""Exact numbers of Figure 7 and of Section 5 of static-optimization: what is kept when the processor is too slow."""

import pytest

from tests.optimize.problems import example_1
from watersmeet.model.plan import Plan
from watersmeet.optimize.cost import Limits, price
from watersmeet.optimize.drop_boxes import drop_boxes
from watersmeet.optimize.filters import Filter, FilterPlan
from watersmeet.optimize.knapsack import cost_coefficients, knapsack

PLANS = {"a": "((A B) C)", "b": "(A (B C))", "c": "((A C) B)"}
TABLE = [
    (0.004, (1000, 900, 409.09), (1000, 880, 252.9)),
    (0.005, (916.67, 733.33, 363.64), (705.88, 680, 195.4)),
    (0.01, (750, 400, 272.73), (173.0, 280.0, 81.2)),
    (0.02, (500, 233.33, 227.27), (38.1, 94.5, 26.7)),
    (2 / 95, (475, 225, 225), (34.0, 86.2, 24.1)),
    (0.05, (200, 133.33, 200), (4.8, 12.2, 3.5)),
    (0.1, (100, 100, 100), (0.9, 1.9, 0.7)),
]


def paper(seconds: float, plan: str, f_bc: float = 0.2) -> float:
    return knapsack(example_1(seconds, f_bc), Plan.parse(PLANS[plan]).root, 1.0).results


def faithful(seconds: float, plan: str) -> float:
    return drop_boxes(example_1(seconds), Plan.parse(PLANS[plan]).root, Limits(cpu=1.0)).results


@pytest.mark.parametrize(("seconds", "printed", "true"), TABLE)
def test_paper_throughput_of_the_three_plans(
    seconds: float, printed: tuple[float, ...], true: tuple[float, ...]
) -> None:
    assert [paper(seconds, p) for p in PLANS] == pytest.approx(printed, abs=0.005)
    assert [faithful(seconds, p) for p in PLANS] == pytest.approx(true, abs=0.051)


def test_paper_objective_coefficients_are_100_200_700() -> None:
    problem = example_1(1.0)
    assert [problem.rates.made(1 << k, 0b111) for k in range(3)] == pytest.approx([100, 200, 700], rel=1e-12)
    assert cost_coefficients(problem, Plan.parse("((A B) C)").root) == pytest.approx([60, 120, 70], rel=1e-12)


def test_paper_exact_crossings_of_figure_7() -> None:
    b_meets_c = 2 / 95  # the paper prints 0.022
    assert paper(b_meets_c, "b") == pytest.approx(paper(b_meets_c, "c"), rel=1e-9)
    assert paper(b_meets_c * 0.99, "b") > paper(b_meets_c * 0.99, "c")
    assert paper(b_meets_c * 1.01, "b") < paper(b_meets_c * 1.01, "c")
    assert paper(0.05, "a") == pytest.approx(paper(0.05, "c"), rel=1e-9)
    assert paper(0.049, "a") > paper(0.049, "c")
    assert paper(0.1, "a") == pytest.approx(paper(0.1, "b"), rel=1e-9)  # the paper prints 0.095 to 0.097
    assert paper(0.097, "b") < paper(0.097, "a") - 1


def test_paper_faithful_b_overtakes_a_below_186_25_tuples() -> None:
    assert faithful(1 / 187, "a") > faithful(1 / 187, "b")
    assert faithful(1 / 186.25, "a") == pytest.approx(faithful(1 / 186.25, "b"), rel=1e-6)
    assert faithful(1 / 185.5, "a") < faithful(1 / 185.5, "b")


def test_paper_the_cheapest_plan_can_lose() -> None:
    """Figure 7 never shows it. With f_BC = 0.1, b (190) is cheaper than a (250), but keeps less between capacity 10 and 160."""
    problem = example_1(1.0, 0.1)
    cost = {p: price(problem, Plan.parse(PLANS[p]).root).cpu for p in "ab"}
    assert cost == pytest.approx({"a": 250, "b": 190}, rel=1e-12)
    assert paper(1 / 100, "a", 0.1) == pytest.approx(375, rel=1e-9)
    assert paper(1 / 100, "b", 0.1) == pytest.approx(275, rel=1e-9)
    for capacity, a_wins in ((9, False), (11, True), (159, True), (161, False)):
        assert (paper(1 / capacity, "a", 0.1) > paper(1 / capacity, "b", 0.1) + 1e-9) is a_wins, capacity


def test_paper_figure_4() -> None:
    plan_a = FilterPlan(1000.0, (Filter(0.25, 0.0005), Filter(0.5, 0.001)))
    plan_b = plan_a.ordered((1, 0))
    assert plan_a.cpu == pytest.approx(0.75, rel=1e-12)
    assert plan_b.cpu == pytest.approx(1.25, rel=1e-12)
    assert plan_a.parts == pytest.approx((0.5, 0.25), rel=1e-12)
    assert plan_b.parts == pytest.approx((1.0, 0.25), rel=1e-12)
    assert plan_b.keep() == pytest.approx(0.8, rel=1e-12)
    assert plan_a.keep() == 1.0


def test_paper_observation_2_drop_before_the_first_filter() -> None:
    """No boxes in the other places do better than x_1 = 1 / C, tried on a grid; and the cheapest order keeps most."""
    plan = FilterPlan(1000.0, (Filter(0.5, 0.001), Filter(0.25, 0.0005), Filter(0.8, 0.002)))
    best = plan.dropped_rate((plan.keep(), 1.0, 1.0, 1.0))
    steps = [i / 20 for i in range(1, 21)]
    for x in ((a, b, c, d) for a in steps for b in steps for c in steps for d in (0.5, 1.0)):
        if plan.dropped_cpu(x) <= 1.0:
            assert plan.dropped_rate(x) <= best * (1 + 1e-12)
    orders = [plan.ordered(o) for o in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))]
    assert plan.cheapest().cpu == pytest.approx(min(p.cpu for p in orders), rel=1e-12)
    kept = [p.dropped_rate((p.keep(), 1.0, 1.0, 1.0)) for p in orders]
    assert max(kept) == pytest.approx(plan.cheapest().keep() * plan.output_rate, rel=1e-12)


def test_paper_weights_and_minimum_rates_of_the_knapsack() -> None:
    problem, root = example_1(0.01), Plan.parse(PLANS["a"]).root
    plain = dict(knapsack(problem, root, 1.0).keep)
    assert plain["C"] == 1.0  # 10 results for each unit of cost
    weighted = dict(knapsack(problem, root, 1.0, weights={"B": 100.0}).keep)
    assert weighted["B"] == pytest.approx(100 / 120)
    least = knapsack(problem, root, 1.0, at_least={"A": 0.2, "B": 0.2})
    assert all(x >= 0.2 for _, x in least.keep)
    assert least.results < knapsack(problem, root, 1.0).results + 1e-9
    refused = knapsack(problem, root, 1.0, at_least={"A": 1.0, "B": 1.0})
    assert not refused.feasible and "not even" in str(refused)
