"""Every policy for the direction of joins, held to the same checks on random plans."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from watersmeet.adapt.direction import POLICIES, direct
from watersmeet.adapt.direction.coupled import Coupled
from watersmeet.adapt.direction.direct import PAPERS
from watersmeet.adapt.direction.discrete import knapsack, worth
from watersmeet.adapt.direction.grepp import grepp
from watersmeet.adapt.direction.half_joins import JoinTree, join_tree
from watersmeet.adapt.direction.jaqpot import jaqpot, least_tolerance
from watersmeet.adapt.direction.lemmas import refresh_rates, residence, tolerances
from watersmeet.adapt.direction.paths import paths
from watersmeet.adapt.direction.productivity import Entry
from watersmeet.adapt.direction.set_cover import exact_cover, greedy_cover, harmonic, refreshes
from watersmeet.errors import QueryError
from watersmeet.model.plan import Plan
from watersmeet.optimize.cost import price
from watersmeet.optimize.problem import Problem

PLANS = ("(A B C)", "((A B) C)", "(((A B) C) D)", "((A B) (C D))", "(((A B) (C D)) E)", "((A B C) D E)")
SEEDS = range(6)


def random_problem(text: str, seed: int) -> tuple[Problem, Plan]:
    rng = np.random.default_rng([seed, *text.encode()])
    streams = [c for c in text if c.isalpha()]
    rate = {s: float(rng.uniform(30, 1200)) for s in streams}
    window = {s: float(rng.uniform(100, 2000)) for s in streams}
    joins = {pair: float(rng.uniform(0.2, 4) / 1000) for pair in pairwise(streams)}
    return Problem.of(rate, window, joins), Plan.parse(text)


def paper_tree(text: str, seed: int) -> JoinTree:
    """Table 3's ranges, with a productivity that stays in bounds."""
    rng = np.random.default_rng([seed, 1, *text.encode()])
    root = Plan.parse(text).root
    streams = sorted(root.streams)
    inputs = [h.input for h in join_tree(*random_problem(text, seed)).halves]
    rho = {i: float(rng.uniform(0.3, 3)) for i in inputs}
    states = {i: float(rng.uniform(200, 5000)) for i in inputs}
    return JoinTree.of(text, {s: float(rng.uniform(300, 1200)) for s in streams}, rho, states=states)


BINARY = ("((A B) C)", "(((A B) C) D)", "((A B) (C D))", "(((A B) (C D)) E)", "((((A B) C) D) E)")


@pytest.mark.parametrize("text", PLANS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_conform_never_above_capacity_and_repeatable(text: str, policy: str, seed: int) -> None:
    problem, plan = random_problem(text, seed)
    before = repr(problem), str(plan)
    cpu_of = direct(problem, plan, 1e9, policy).cpu_of
    for share in (0.05, 0.3, 0.7):
        found = direct(problem, plan, cpu_of * share, policy)
        assert not found.fits or found.cpu <= cpu_of * share * (1 + 1e-9), (seed, share, str(found))
        assert 0 <= found.output_rate <= found.of * (1 + 1e-9)
        assert all(0 <= part <= 1 for _, _, part in found.allowances)
        assert direct(problem, plan, cpu_of * share, policy) == found
    assert (repr(problem), str(plan)) == before


@pytest.mark.parametrize("text", PLANS)
@pytest.mark.parametrize("seed", SEEDS)
def test_conform_coupled_is_never_below_any_other_policy(text: str, seed: int) -> None:
    problem, plan = random_problem(text, seed)
    cpu_of = direct(problem, plan, 1e9).cpu_of
    for share in (0.1, 0.4, 0.8):
        best = direct(problem, plan, cpu_of * share)
        for policy in PAPERS:
            other = direct(problem, plan, cpu_of * share, policy)
            assert best.output_rate >= other.output_rate * (1 - 1e-9), (seed, share, str(best), str(other))


@pytest.mark.parametrize("text", PLANS)
@pytest.mark.parametrize("seed", SEEDS)
def test_conform_with_capacity_for_all_every_probe_is_made(text: str, seed: int) -> None:
    problem, plan = random_problem(text, seed)
    bill = price(problem, plan.root)
    found = direct(problem, plan, 1e9)
    assert {part for _, _, part in found.allowances} == {1.0}
    assert (found.cpu, found.output_rate) == pytest.approx((bill.cpu, bill.output_rate))


@pytest.mark.parametrize("seed", SEEDS)
def test_conform_in_an_mjoin_grepp_is_the_optimum(seed: int) -> None:
    problem, plan = random_problem("(A B C)", seed)
    tree = join_tree(problem, plan)
    spare = 0.4 * tree.saturation
    found = grepp(paths(tree), spare)
    coupled = direct(problem, plan, tree.fixed + spare)
    assert found.output_rate == pytest.approx(coupled.output_rate, rel=1e-5)


@pytest.mark.parametrize("text", ["((A B) C)", "((A B) (C D))"])
@pytest.mark.parametrize("seed", range(3))
def test_conform_coupled_is_the_optimum_of_a_grid(text: str, seed: int) -> None:
    """Brute force over a grid of all parts, each point scaled into the capacity."""
    problem, plan = random_problem(text, seed)
    model = Coupled(join_tree(problem, plan))
    capacity = model.tree.fixed + 0.35 * model.tree.saturation
    steps = (0.0, 0.25, 0.5, 0.75, 1.0) if model.count < 6 else (0.0, 0.5, 1.0)
    grid = [np.array(point) for point in product(steps, repeat=model.count)]
    fitting = [x for x in grid if model.at(x).cpu <= capacity * 1.6]
    best = max(model.at(model.scaled(x, capacity)).output_rate for x in fitting[:: max(len(fitting) // 3000, 1)])
    found = direct(problem, plan, capacity)
    assert found.output_rate >= best * (1 - 1e-6), (seed, found.output_rate / best)


@pytest.mark.parametrize("text", PLANS)
def test_conform_gradients_are_the_slopes(text: str) -> None:
    model = Coupled(join_tree(*random_problem(text, 1)))
    x = np.random.default_rng(3).uniform(0.1, 0.9, model.count)
    value, d_output, d_cpu = model.gradients(x)
    assert value == model.at(x)
    for i in range(model.count):
        up, down = (model.at(x + d * np.eye(model.count)[i]) for d in (1e-4, -1e-4))
        assert d_output[i] == pytest.approx((up.output_rate - down.output_rate) / 2e-4, rel=1e-6, abs=1e-9)
        assert d_cpu[i] == pytest.approx((up.cpu - down.cpu) / 2e-4, rel=1e-6, abs=1e-12)


def test_conform_unknown_policy_is_named() -> None:
    with pytest.raises(QueryError, match="coupled"):
        direct(*random_problem("(A B C)", 0), 1.0, "couple")


def test_conform_grepp_forecast_can_fail_in_a_tree() -> None:
    """All to C, whose state nobody fills: forecast 500 results a second, found none; the coupled model finds some."""
    from watersmeet.model.statistics import Costs

    costs = Costs(0.002, 0, 0, 0)
    problem = Problem.of({"A": 100, "B": 100, "C": 50}, 100, {("A", "B"): 0.01, ("B", "C"): 0.1}, costs)
    naive = direct(problem, Plan.parse("((A B) C)"), 0.1, "grepp")
    assert (naive.forecast, naive.output_rate) == pytest.approx((500, 0))
    assert direct(problem, Plan.parse("((A B) C)"), 0.1).output_rate == pytest.approx(250)


@pytest.mark.parametrize("seed", range(20))
def test_conform_discrete_knapsack_is_the_best_of_all_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = tuple(Entry(s, int(rng.integers(3, 12)), int(rng.integers(1, 9))) for s in "ABC")
    for at_most, limit in ((None, 12), (1, 1), (2, 2)):
        every = (list(zip(c, entries, strict=True)) for c in product(range(limit + 1), repeat=3))
        fitting = [c for c in every if sum(n * e.resources for n, e in c) <= 37]
        best = max(sum(n * e.output_rate for n, e in c) for c in fitting)
        assert worth(entries, knapsack(entries, 37, at_most)) == best


@pytest.mark.parametrize("text", BINARY)
@pytest.mark.parametrize("seed", range(30))
def test_conform_greedy_cover_covers_within_its_bound(text: str, seed: int) -> None:
    tree = paper_tree(text, seed)
    every = paths(tree)
    for times in (1.5, 3.0, 5.0):
        demand = refresh_rates(tree, tolerances(tree, times))
        greedy, exact = greedy_cover(every, demand), exact_cover(every, demand)
        assert greedy.feasible == exact.feasible
        if not greedy.feasible:
            continue
        for cover in (greedy, exact):
            let_in = dict(cover.let_in)
            assert all(0 <= let_in[p.stream] <= p.rate * (1 + 1e-9) for p in every)
            for state, need in demand.items():
                assert sum(refreshes(p).get(state, 0.0) * let_in[p.stream] for p in every) >= need * (1 - 1e-7)
        assert exact.resources <= greedy.resources * (1 + 1e-7)
        if all(m < p.rate for p, (_, m) in zip(every, greedy.let_in, strict=True)):  # no stream is used up
            assert greedy.resources <= harmonic(len(demand)) * exact.resources * (1 + 1e-7)


@pytest.mark.parametrize("text", BINARY)
def test_conform_jaqpot_keeps_tolerances_within_resources(text: str) -> None:
    feasible = infeasible = 0
    for seed, share, times in product(range(20), (0.2, 0.5, 0.9), (1.5, 3.0, 5.0)):
        tree = paper_tree(text, seed)
        resources, tolerance = share * tree.saturation, tolerances(tree, times)
        found = jaqpot(tree, resources, tolerance)
        assert found.resources <= resources * (1 + 1e-9)
        assert found.output_rate <= grepp(paths(tree), resources).output_rate * (1 + 1e-9)
        assert found.feasible == (times >= least_tolerance(tree, resources) * (1 - 1e-9))
        infeasible += not found.feasible
        if found.feasible:
            feasible += 1
            lives = residence(tree, found.by_half)
            assert all(lives[s] <= tolerance[s] * (1 + 1e-9) for s in lives), (seed, lives, tolerance)
            assert 0 < found.for_freshness <= resources
    assert feasible and infeasible, "one kind did not occur, so it was not tested"
