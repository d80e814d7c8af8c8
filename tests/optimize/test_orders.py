"""Probe orders: both implementations agree, the exact one is exact, the greedy one is never better."""

from itertools import permutations

import pytest

from tests.optimize.problems import KINDS, mixed_problem, random_problem
from watersmeet.model.plan import Node, nodes
from watersmeet.optimize.cost import pipeline, price
from watersmeet.optimize.mjoin_order import exact_order, least_next
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.order_arrays import ArrayOrders
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.shape import Shape


def work(problem: Problem, blocks: tuple[int, ...], orders: tuple[tuple[int, ...], ...]) -> float:
    total = 0.0
    for i, order in enumerate(orders):
        probes, matches = pipeline(problem, blocks, i, order)
        total += problem.costs.probe * probes + problem.costs.match * matches
    return total


def problems() -> list[Problem]:
    made = [random_problem(kind, n, seed) for kind in KINDS for n in (3, 5) for seed in range(3)]
    return made + [mixed_problem(n, seed) for n in (4, 5) for seed in range(10)]


BLOCKS: dict[int, list[tuple[int, ...]]] = {
    3: [(1, 2, 4)],
    4: [(1, 2, 4, 8), (3, 4, 8)],
    5: [(1, 2, 4, 8, 16), (1, 6, 8, 16), (5, 2, 24)],
}


@pytest.mark.parametrize("problem", problems())
def test_exact_orders_are_the_best_of_all(problem: Problem) -> None:
    for blocks in BLOCKS[len(problem.streams)]:
        for i in range(len(blocks)):
            others = [j for j in range(len(blocks)) if j != i]
            each = [pipeline(problem, blocks, i, order) for order in permutations(others)]
            best = min(problem.costs.probe * p + problem.costs.match * m for p, m in each)
            p, m = pipeline(problem, blocks, i, exact_order(problem, blocks, i))
            assert problem.costs.probe * p + problem.costs.match * m == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("problem", [p for p in problems() if p.symmetric])
def test_arrays_decide_as_the_reference(problem: Problem) -> None:
    arrays = ArrayOrders(problem)
    for blocks in BLOCKS[len(problem.streams)]:
        every = range(len(blocks))
        least, orders = arrays.exact(blocks)
        reference = tuple(exact_order(problem, blocks, i) for i in every)
        assert least == pytest.approx(work(problem, blocks, reference), rel=1e-9)
        assert work(problem, blocks, orders) == pytest.approx(least, rel=1e-9)
        greedy, orders = arrays.least_next(blocks)
        reference = tuple(least_next(problem, blocks, i) for i in every)
        assert work(problem, blocks, orders) == pytest.approx(greedy, rel=1e-9)
        assert greedy == pytest.approx(work(problem, blocks, reference), rel=1e-9)
        assert greedy >= least * (1 - 1e-9)


@pytest.mark.parametrize("problem", problems()[::3])
def test_a_tree_costs_what_its_plan_costs(problem: Problem) -> None:
    costs = NodeCosts(problem)
    shapes: list[Shape] = [tuple(range(len(problem.streams))), ((0, 1), *range(2, len(problem.streams)))]
    for shape in shapes:
        bill = price(problem, costs.tree(shape))
        assert costs.cpu(shape) == pytest.approx(bill.cpu, rel=1e-9)
        assert costs.memory(shape) == pytest.approx(bill.memory, rel=1e-9)


def test_orders_follow_their_inputs_when_a_node_is_written_otherwise() -> None:
    """The best orders are kept by set of streams; a tree that names its inputs in another order gets the same ones."""
    problem = random_problem("sparse", 5, 3)
    costs = NodeCosts(problem)
    one, other = costs.tree((0, 1, (2, 3), 4)), costs.tree((4, (3, 2), 1, 0))
    assert price(problem, one).cpu == pytest.approx(price(problem, other).cpu, rel=1e-12)
    assert routes(one) == routes(other)


def routes(root: Node) -> dict[str, tuple[str, ...]]:
    def name(tree: object) -> str:
        return "".join(sorted(str(tree).replace("(", "").replace(")", "").split()))

    return {
        name(i): tuple(name(n.inputs[j]) for j in n.orders[at]) for n in nodes(root) for at, i in enumerate(n.inputs)
    }


def test_selectivity_zero_and_huge_windows_stay_numbers() -> None:
    empty = Problem.of(dict.fromkeys("ABCD", 1.0), 1e6, {("A", "B"): 0.0, ("B", "C"): 0.5, ("C", "D"): 0.0})
    least, _ = ArrayOrders(empty).exact((1, 2, 4, 8))
    reference = tuple(exact_order(empty, (1, 2, 4, 8), i) for i in range(4))
    assert least == pytest.approx(work(empty, (1, 2, 4, 8), reference), rel=1e-9)
    huge = Problem.of({f"S{i}": 1e6 for i in range(32)}, 1e12, {})
    shape = tuple(range(32))
    assert NodeCosts(huge).cpu(shape) == float("inf")  # 10^384 combinations: more than a double holds, and said so
