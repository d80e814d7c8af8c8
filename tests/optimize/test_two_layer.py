"""Two-layer: how often it finds a qualified plan where there is one, how much it looks at, and that what it returns is qualified."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Any

import pytest

from tests.optimize.problems import KINDS, binding_limits, binds, mixed_problem, qualified_set, random_problem
from watersmeet.optimize import pareto
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.bounds import lower_bounds
from watersmeet.optimize.cost import Limits, price
from watersmeet.optimize.group_selection import group_selection
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate, pareto_front
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.shape import Shape
from watersmeet.optimize.state_removal import state_removal
from watersmeet.optimize.state_selection import state_selection
from watersmeet.optimize.two_layer import two_layer

Record = Callable[[str, object], None]


def priced(costs: NodeCosts, shape: Shape) -> Candidate:
    return Candidate(costs.cpu(shape), costs.memory(shape), shape)


def hits(n: int, regime: str, seeds: int) -> tuple[int, int, int, int]:
    """(found, of) for random binding limits, and for limits that are points of the front."""
    found = of = on_front = of_front = 0
    for kind in KINDS:
        for seed in range(seeds):
            costs = NodeCosts(random_problem(kind, n, seed, regime))
            front = pareto_front(costs)
            mjoin, binary = priced(costs, tuple(range(n))), priced(costs, best_binary_tree(costs))
            for limits in binding_limits(front, mjoin, binary, random.Random(seed), 5):
                of += 1
                found += bool(two_layer(costs, limits).qualified)
            for plan in front:
                limits = Limits(plan.cpu, plan.memory)
                if binds(limits, mjoin, binary):
                    of_front += 1
                    on_front += bool(two_layer(costs, limits).qualified)
    return found, of, on_front, of_front


@pytest.mark.parametrize("regime", ["even", "wide", "narrow", "paper"])
@pytest.mark.parametrize(("n", "seeds"), [(4, 10), (5, 8), (6, 5), (7, 3)])
def test_bound_two_layer_finds_95_percent(
    n: int, seeds: int, regime: str, record_property: Record
) -> None:  # fmt: skip
    found, of, on_front, of_front = hits(n, regime, seeds)
    record_property("found", f"{found}/{of}, on the front {on_front}/{of_front}")
    assert of >= 50
    assert found >= 0.95 * of, f"{found} of {of}"


def test_bound_two_layer_finds_95_percent_of_three_streams() -> None:
    """Three streams have one state at most, so limits bind only where a smaller state costs more CPU than a larger one."""
    found, of, _, _ = hits(3, "wide", 200)
    assert of >= 10
    assert found >= 0.95 * of, f"{found} of {of}"
    # where all windows have one length, CPU rises with the state: the binary tree of least CPU has least memory too
    assert hits(3, "paper", 20)[1] == 0


@pytest.mark.long
@pytest.mark.parametrize("regime", ["even", "wide", "narrow", "paper"])
@pytest.mark.parametrize(("n", "seeds"), [(4, 40), (6, 40), (8, 20), (9, 8)])
def test_bound_two_layer_finds_95_percent_at_length(
    n: int, seeds: int, regime: str, record_property: Record
) -> None:  # fmt: skip
    found, of, on_front, of_front = hits(n, regime, seeds)
    record_property("found", f"{found}/{of}, on the front {on_front}/{of_front}")
    assert found >= 0.95 * of, f"{found} of {of}"


@pytest.mark.parametrize("seed", range(6))
def test_two_layer_what_is_called_qualified_is(seed: int) -> None:
    """Every step keeps its books: the CPU and memory it names are those of the plan, and qualified means within the limits."""
    problems = [random_problem(kind, n, seed) for kind in KINDS for n in (4, 6, 12)] + [mixed_problem(5, seed)]
    qualified = 0
    for problem in problems:
        costs = NodeCosts(problem)
        mjoin, binary = priced(costs, tuple(range(len(problem.streams)))), priced(costs, best_binary_tree(costs))
        limits = Limits((mjoin.cpu + binary.cpu) / 2, (mjoin.memory + binary.memory) / 2)
        found = two_layer(costs, limits)
        for _, plan in found.seen:
            bill = price(problem, costs.tree(plan.shape))
            assert plan.cpu == pytest.approx(bill.cpu, rel=1e-9)
            assert plan.memory == pytest.approx(bill.memory, rel=1e-9)
        qualified += len(found.qualified)
        for plan in found.qualified:
            bill = price(problem, costs.tree(plan.shape))
            assert limits.allow(bill.cpu * (1 - 1e-9), bill.memory * (1 - 1e-9))
        again = two_layer(NodeCosts(problem), limits)
        assert [p for _, p in again.seen] == [p for _, p in found.seen]
    assert qualified > len(problems) / 2


def test_paper_sets_with_budgets_that_show_each_case() -> None:
    """Section 4, last line: which plan is qualified in the four scenarios of Section 4.1."""
    found = {n: two_layer(NodeCosts(qualified_set(n)), limits) for n, limits in (
        (1, Limits(1, 15_000)), (2, Limits(0.305, 15_000)), (3, Limits(1, 1_500)), (4, Limits(35.9, 50_000)),
    )}  # fmt: skip
    assert [found[n].by for n in (1, 2, 3)] == ["mjoin", "binary tree", "mjoin"]
    assert found[4].by == "state-selection"
    assert found[4].qualified[0].shape == ((0, 1), 2, 3)
    both = NodeCosts(qualified_set(1))
    for shape in ((0, 1, 2), ((0, 1), 2)):
        assert Limits(1, 15_000).allow(both.cpu(shape), both.memory(shape))  # set 1: both are
    short = NodeCosts(qualified_set(4, window_s=5))
    limits = Limits(0.043, 800)
    mjoin, binary = priced(short, (0, 1, 2, 3)), priced(short, best_binary_tree(short))
    assert binds(limits, mjoin, binary)
    assert two_layer(short, limits).qualified[0].shape == ((0, 1), 2, 3)


@pytest.mark.parametrize(("regime", "memory", "cpu"), [("paper", 0.85, 0.2), ("even", 0.6, 0.7)])
def test_paper_state_selection_and_state_removal_differ(regime: str, memory: float, cpu: float) -> None:
    """Section 6.3: state-selection's plans tend to need less memory and more CPU than state-removal's.

    The first holds under the paper's own parameters; the second does not there, but where results are of the order of
    the input.
    """
    less_memory = more_cpu = cases = 0
    for kind in KINDS:
        for seed in range(12):
            costs = NodeCosts(random_problem(kind, 6, seed, regime))
            mjoin, binary = priced(costs, tuple(range(6))), priced(costs, best_binary_tree(costs))
            for part in (0.2, 0.5, 0.8):
                limits = Limits(
                    binary.cpu + part * (mjoin.cpu - binary.cpu), mjoin.memory + part * (binary.memory - mjoin.memory)
                )
                one, other = state_selection(costs, limits)[-1], state_removal(costs, limits, binary.shape)[-1]
                if limits.allow(one.cpu, one.memory) and limits.allow(other.cpu, other.memory):
                    cases += 1
                    less_memory += one.memory <= other.memory
                    more_cpu += one.cpu >= other.cpu
    assert cases > 50
    assert less_memory >= memory * cases
    assert more_cpu >= cpu * cases


def test_state_removal_ends_at_the_mjoin() -> None:
    costs = NodeCosts(random_problem("cycle", 7, 2))
    path = state_removal(costs, Limits(cpu=1e-12, memory=1e-12), best_binary_tree(costs))
    assert len(path) == 6  # n − 2 states, each removed once
    assert path[-1].shape == tuple(range(7))


def test_searches_end_when_nothing_helps() -> None:
    """Algorithm 3 as printed loops for ever where no merge lowers the CPU."""
    costs = NodeCosts(random_problem("chain", 5, 10, "narrow"))
    nothing = Limits(cpu=1e-12, memory=inf)
    assert state_selection(costs, nothing)
    assert group_selection(costs, nothing, priced(costs, (0, 1, 2, 3, 4)))
    assert two_layer(costs, nothing).by == "none"


class CountingCosts(NodeCosts):
    """Counts how often a search asks for the price of a node."""

    asked = 0

    def node_cpu(self, blocks: tuple[int, ...]) -> float:
        self.asked += 1
        return super().node_cpu(blocks)


@pytest.mark.parametrize("kind", ["chain", "star", "cycle", "sparse"])
def test_effort_of_two_layer_at_20_streams(kind: str) -> None:
    """With limits that let every step run: a plan or so for each stream, a few thousand prices; there are 10^22 trees."""
    steps = set()
    for seed in range(3):
        costs = CountingCosts(random_problem(kind, 20, seed))
        mjoin, binary = priced(costs, tuple(range(20))), priced(costs, best_binary_tree(costs))
        for part in (0.0, 0.2):
            memory = mjoin.memory + part * abs(binary.memory - mjoin.memory)
            counted = CountingCosts(random_problem(kind, 20, seed))
            found = two_layer(counted, Limits(binary.cpu + part * (mjoin.cpu - binary.cpu), memory))
            steps |= {by for by, _ in found.seen}
            assert len(found.seen) <= 2 * 20 and counted.asked <= 3_000, f"seed {seed}, part {part}"
    assert {"mjoin", "binary tree", "state-removal"} <= steps


def looked_into(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The partitions that the exact search combines sub-plans for, as it goes on."""
    partitions: list[tuple[int, ...]] = []
    combined = pareto._Search._combined

    def combining(search: Any, blocks: tuple[int, ...]) -> Any:
        partitions.append(blocks)
        return combined(search, blocks)

    monkeypatch.setattr(pareto._Search, "_combined", combining)
    return partitions


def check_front(problem: Problem, front: list[Candidate]) -> None:
    """Rising CPU, falling memory, priced as plans are, and no plan that other searches know is outside it."""
    costs = NodeCosts(problem, exact_inputs=len(problem.streams))
    for p in front:
        bill = price(problem, costs.tree(p.shape))
        assert (p.cpu, p.memory) == pytest.approx((bill.cpu, bill.memory), rel=1e-9)
    assert all(p.cpu < q.cpu and p.memory > q.memory for p, q in pairwise(front))
    mjoin, binary = priced(costs, tuple(range(len(problem.streams)))), priced(costs, best_binary_tree(costs))
    tight = two_layer(costs, Limits(binary.cpu, mjoin.memory), Limits(binary.cpu * 1e-6, mjoin.memory))
    known = [mjoin, binary, *(p for _, p in tight.seen)]
    for p in known:
        assert any(q.cpu <= p.cpu * (1 + 1e-9) and q.memory <= p.memory * (1 + 1e-9) for q in front), p


@pytest.mark.parametrize("kind", KINDS)
def test_effort_of_pareto_at_8_streams(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 20,891 partitions of 8 streams and their subsets, most are dominated by their corner and not looked into."""
    partitions = looked_into(monkeypatch)
    problem = random_problem(kind, 8, 0)
    check_front(problem, pareto_front(NodeCosts(problem)))
    assert 8 < len(partitions) < 20_891 / 5
    assert len(set(partitions)) == len(partitions)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_effort_of_pareto_at_10_streams(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = looked_into(monkeypatch)
    problem = random_problem(kind, 10, 0)
    check_front(problem, pareto_front(NodeCosts(problem)))
    assert 10 < len(partitions) < 677_546 / 20


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_for_every_plan(seed: int) -> None:
    problems = [random_problem(kind, n, seed, r) for kind in KINDS for n in (3, 5) for r in ("even", "paper")]
    for problem in [*problems, *(mixed_problem(n, seed) for n in (4, 5, 6))]:
        bounds = lower_bounds(problem)
        front = pareto_front(NodeCosts(problem))
        assert all(p.cpu >= bounds.cpu * (1 - 1e-9) and p.memory >= bounds.memory * (1 - 1e-9) for p in front)
        assert min(p.memory for p in front) == pytest.approx(bounds.memory, rel=1e-9)  # the mjoin's
        assert not bounds.proves(Limits(front[0].cpu, front[0].memory))
        assert bounds.proves(Limits(bounds.cpu * 0.999, inf))
        assert bounds.proves(Limits(inf, bounds.memory * 0.999))
