"""Algorithms 1 and 3 of qualified-plans as they are printed do what docs/internals/papers.md says of them."""

from __future__ import annotations

from experiments.qualified_plans.as_printed import ENDLESS, NONE, algorithm_1, algorithm_3, bushy_case
from watersmeet.model.statistics import Costs
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.jtree_finder import jtree_finder
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.state_selection import state_selection

TABLE_3 = Costs(0.0, 2.2e-6, 2e-7, 2e-7)


def set_4() -> NodeCosts:
    chain = {("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}
    return NodeCosts(Problem.of(dict.fromkeys("ABCD", 20.0), 1000.0, chain, TABLE_3))


def test_paper_algorithm_1_as_printed_returns_minus_one_always() -> None:
    assert algorithm_1(set_4(), Limits()) == NONE
    assert len(algorithm_1(set_4(), Limits(), mended=True)) == len(jtree_finder(set_4(), Limits())) == 26


def test_paper_algorithm_1_stops_before_a_plan_that_is_qualified() -> None:
    costs, limits = bushy_case(TABLE_3)
    assert [p.shape for p in jtree_finder(costs, limits)] == [((0, 2), (1, 3))]
    assert algorithm_1(costs, limits, mended=True) == NONE
    found = jtree_finder(set_4(), Limits(35.9, 50_000))
    assert found and algorithm_1(set_4(), Limits(35.9, 50_000), mended=True) == NONE


def test_paper_algorithm_3_as_printed_returns_minus_one_where_there_is_something_to_do() -> None:
    limits = Limits(35.9, 50_000)
    assert limits.allow(state_selection(set_4(), limits)[-1].cpu, state_selection(set_4(), limits)[-1].memory)
    assert algorithm_3(set_4(), limits) == NONE
    assert not isinstance(algorithm_3(set_4(), Limits(40.0, 50_000)), str)  # mjoin fits: the loop is not entered


def test_paper_algorithm_3_without_line_17_never_ends_where_no_edge_helps() -> None:
    assert algorithm_3(set_4(), Limits(1.0, 1e9), without_17=True) == ENDLESS
