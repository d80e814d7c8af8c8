"""Exact numbers of both papers: what plans cost in the terms of the two papers."""

import pytest

from tests.optimize.problems import QP_COSTS, example_1, qualified_set
from watersmeet.model.plan import Plan
from watersmeet.optimize.cost import Estimate, Limits, pipeline, price
from watersmeet.optimize.mjoin_order import exact_order
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.problem import Problem, dilated
from watersmeet.optimize.shape import Shape

EXAMPLE_1 = [
    ("((A B) C)", (60, 120, 70), 250, 80, 0.125, 0.004),
    ("(A (B C))", (10, 60, 210), 280, 50, 0.14, 1 / 280),
    ("((A C) B)", (110, 20, 770), 900, 130, 0.45, 1 / 900),
]


def priced(problem: Problem, text: str) -> Estimate:
    return price(problem, Plan.parse(text).root)


@pytest.mark.parametrize(("text", "per_stream", "tuples", "buffers", "load", "limit"), EXAMPLE_1)
def test_paper_example_1(
    text: str, per_stream: tuple[int, ...], tuples: int, buffers: int, load: float, limit: float
) -> None:
    unit = example_1(1.0)
    assert priced(unit, text).cpu == pytest.approx(tuples, rel=1e-12)
    assert priced(unit, text).memory_tuples == pytest.approx(buffers, rel=1e-12)
    assert priced(unit, text).output_rate == pytest.approx(1000, rel=1e-12)
    assert priced(example_1(0.0005), text).cpu == pytest.approx(load, rel=1e-12)
    one = Limits(cpu=1.0)
    assert one.allow(priced(example_1(limit), text).cpu, 0)  # at most 1: load is exactly 1 here
    assert not one.allow(priced(example_1(limit * 1.001), text).cpu, 0)
    # a_A, a_B, a_C: what the arrivals of one stream alone cause; the windows stay as they are
    assert [_caused_by(unit, text, s) for s in "ABC"] == pytest.approx(per_stream, rel=1e-12)


def _caused_by(problem: Problem, text: str, stream: str) -> float:
    from watersmeet.optimize.knapsack import cost_coefficients

    return cost_coefficients(problem, Plan.parse(text).root)[problem.names.index(stream)]


def test_paper_example_1_increase_is_260_percent() -> None:
    best, worst = (priced(example_1(0.0005), t).cpu for t in ("((A B) C)", "((A C) B)"))
    assert worst / best - 1 == pytest.approx(2.6, rel=1e-12)  # the paper prints 400 %


def test_paper_output_rate_is_the_same_for_every_plan() -> None:
    problem = qualified_set(4)
    for text in ("(A B C D)", "(((A B) C) D)", "((A B) (C D))", "((A B) C D)"):
        assert priced(problem, text).output_rate == pytest.approx(16_000_000, rel=1e-12)


def test_paper_head_room_processors_and_dilation() -> None:
    from watersmeet.model.budget import Budget

    assert Limits.of(Budget(cpu=1), head_room=0.2).cpu == pytest.approx(0.8)  # section 4: the bound is 0.8, or n
    assert Limits.of(Budget(cpu=3)).cpu == 3
    shared = dilated(QP_COSTS, 0.1)  # 3.3.3: one of ten operators
    assert shared.match == pytest.approx(QP_COSTS.match * 10)


# set: (2) mjoin CPU, (3) its memory, best bjtree, (4) its CPU, (5) its memory, results/s
TABLES = [
    (1, 0.035664, 300, "((A B) C)", 0.033544, 800, 15_000),
    (2, 0.314064, 1350, "((A B) C)", 0.297660, 3150, 135_000),
    (3, 0.476536, 600, "((A B) (C D))", 0.447076, 5100, 202_500),
    (4, 36.1808, 4000, "((A B) (C D))", 35.2073, 74000, 16_000_000),
]


def best_mjoin(problem: Problem) -> Estimate:
    shape: Shape = tuple(range(len(problem.streams)))
    return price(problem, NodeCosts(problem).tree(shape))


@pytest.mark.parametrize(("number", "mjoin", "memory", "text", "bjtree", "bjtree_memory", "output"), TABLES)
def test_paper_tables_2_and_3(
    number: int, mjoin: float, memory: float, text: str, bjtree: float, bjtree_memory: float, output: float
) -> None:
    problem = qualified_set(number)
    found = best_mjoin(problem)
    assert found.cpu == pytest.approx(mjoin, rel=2e-6)
    assert found.memory_tuples == pytest.approx(memory, rel=1e-12)
    assert found.output_rate == pytest.approx(output, rel=1e-12)
    tree = priced(problem, text)
    assert tree.cpu == pytest.approx(bjtree, rel=2e-6)
    assert tree.memory_tuples == pytest.approx(bjtree_memory, rel=1e-12)


@pytest.mark.parametrize(("number", "expected"), [(1, 0.011228), (2, 0.099272)])
def test_paper_equation_1(number: int, expected: float) -> None:
    problem = qualified_set(number)
    rate = problem.streams[0].rate
    _, matches = pipeline(problem, (1, 2, 4), 0, (1, 2))  # a tuple of A probes B, then C
    cpu = rate * (QP_COSTS.insert + QP_COSTS.delete) + matches * QP_COSTS.match
    assert cpu == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("number", "recompute", "maintain"), [(1, 0.0022, 0.00008), (2, 0.0165, 0.000096)])
def test_paper_equations_6_and_7(number: int, recompute: float, maintain: float) -> None:
    """(6): what the mjoin spends on B C for tuples of C; (7): what the bjtree spends to keep A B."""
    problem = qualified_set(number)
    rates = problem.rates
    assert rates.made(0b100, 0b110) * QP_COSTS.match == pytest.approx(recompute, rel=1e-12)
    state = next(p for p in priced(problem, "((A B) C)").parts if p.streams == 0b011)
    upkeep = state.inserts * QP_COSTS.insert + state.deletes * QP_COSTS.delete
    assert upkeep == pytest.approx(maintain, rel=1e-12)
    saved = best_mjoin(problem).cpu - priced(problem, "((A B) C)").cpu
    assert saved == pytest.approx(recompute - maintain, rel=1e-9)


@pytest.mark.parametrize(("number", "cpu", "memory"), [(3, 0.461806, 2850), (4, 35.5585, 24000)])
def test_paper_mixed_tree(number: int, cpu: float, memory: float) -> None:
    costs = NodeCosts(qualified_set(number))
    found = price(costs.problem, costs.tree(((0, 1), 2, 3)))
    assert found.cpu == pytest.approx(cpu, rel=2e-6)
    assert found.memory_tuples == pytest.approx(memory, rel=1e-12)


def test_paper_claims_at_one_second() -> None:
    """What Section 4.2 claims for CPU_avail = 1 s, and what its own numbers say."""
    cpu = {n: (best_mjoin(qualified_set(n)).cpu, priced(qualified_set(n), TABLES[n - 1][3]).cpu) for n in (1, 2, 3, 4)}
    assert max(cpu[1]) <= 1  # set 1 holds
    assert cpu[2][0] <= 1  # set 2 fails: the mjoin fits
    assert max(cpu[3]) <= 1  # set 3: the CPU fits
    assert min(cpu[4]) > 1  # set 4 fails: nothing fits; the output alone is too much
    assert qualified_set(4).rates.output * QP_COSTS.match == pytest.approx(35.2, rel=1e-3)


def test_paper_cost_scales() -> None:
    """By how much the prices must grow for the claims to hold: < 28.04, 3.184 to 3.360, <= 2.098, 0.02764 to 0.02812."""
    first, second, third, fourth = (
        (best_mjoin(qualified_set(n)).cpu, priced(qualified_set(n), TABLES[n - 1][3]).cpu) for n in (1, 2, 3, 4)
    )
    mixed = price(qualified_set(4), NodeCosts(qualified_set(4)).tree(((0, 1), 2, 3))).cpu
    assert 1 / max(first) == pytest.approx(28.04, abs=0.005)
    assert (1 / second[0], 1 / second[1]) == pytest.approx((3.184, 3.360), abs=0.0005)
    assert 1 / max(third) == pytest.approx(2.098, abs=0.0005)
    assert (1 / fourth[0], 1 / mixed) == pytest.approx((0.02764, 0.02812), abs=0.000005)


def test_paper_set_2_made_to_show_more_than_100_percent() -> None:
    rate = {"A": 2.0, "B": 200.0, "C": 1000.0}
    sel = {("A", "B"): 0.001, ("B", "C"): 0.01}
    problem = Problem.of(rate, {n: r * 15 for n, r in rate.items()}, sel, QP_COSTS)
    assert best_mjoin(problem).cpu == pytest.approx(0.0724, abs=0.00005)
    assert priced(problem, "((A B) C)").cpu == pytest.approx(0.00645, abs=0.000005)


def test_paper_set_4_greedy_and_exact_order() -> None:
    problem, blocks = qualified_set(4), (1, 2, 4, 8)
    from watersmeet.optimize.mjoin_order import least_next

    assert least_next(problem, blocks, 2) == (3, 1, 0)
    assert exact_order(problem, blocks, 2) == (1, 0, 3)
