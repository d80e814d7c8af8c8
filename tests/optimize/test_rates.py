"""Rates and sizes: the equations, classes of attributes, asymmetric selectivities, tables and cells."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimize.problems import mixed_problem
from watersmeet.errors import QueryError
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Costs
from watersmeet.optimize.cost import price
from watersmeet.optimize.problem import Predicate, Problem, Share, Stream, members


def test_paper_equations_3_to_6() -> None:
    lam, win, f = {"A": 3.0, "B": 5.0, "C": 7.0}, {"A": 11.0, "B": 13.0, "C": 17.0}, (0.1, 0.2)
    rates = Problem.of(lam, win, {("A", "B"): f[0], ("B", "C"): f[1]}).rates
    assert rates.made(0b011, 0b011) == pytest.approx(0.1 * (13 * 3 + 11 * 5))  # (3)
    assert rates.size(0b011) == pytest.approx(0.1 * 11 * 13)  # (4)
    assert rates.output == pytest.approx(0.02 * (3 * 13 * 17 + 5 * 11 * 17 + 7 * 11 * 13))  # (5)
    assert rates.size(0b111) == pytest.approx(0.02 * 11 * 13 * 17)  # (6)
    assert rates.size(0b101) == pytest.approx(11 * 17)  # a Cartesian product has f = 1


def test_selections_thin_rate_and_window() -> None:
    """Equations 1 and 2: a selection that passes half halves both; the join sees a quarter of the pairs and half the arrivals."""
    whole = Problem.of({"A": 10.0, "B": 10.0}, 20.0, {("A", "B"): 0.1})
    half = whole.thinned([0.5, 1.0])
    assert half.rates.made(1, 1) == pytest.approx(5.0)
    assert half.rates.size(1) == pytest.approx(10.0)
    assert half.rates.output == pytest.approx(whole.rates.output / 2)


def test_one_class_is_not_counted_twice() -> None:
    """R.a = S.a = T.a = U.a: three factors for four members, whichever pairs are looked at."""
    names = "RSTU"
    sel = dict.fromkeys(combinations(names, 2), 0.1)
    rates = Problem.of(dict.fromkeys(names, 1.0), 10.0, sel, classes=[names]).rates
    assert rates.size(0b0011) == pytest.approx(10)
    assert rates.size(0b0111) == pytest.approx(10)
    assert rates.size(0b1111) == pytest.approx(10)
    apart = Problem.of(dict.fromkeys(names, 1.0), 10.0, sel).rates  # six equalities on six attributes
    assert apart.size(0b1111) == pytest.approx(10**4 * 0.1**6)


def test_one_class_gives_the_textbook_estimate() -> None:
    """f = 1 / max(d, d') for every pair: the set has d_min / Π d."""
    rng = random.Random(5)
    for _ in range(50):
        n = rng.randint(3, 6)
        d = [rng.randint(2, 500) for _ in range(n)]
        names = "ABCDEF"[:n]
        sel = {(names[i], names[j]): 1 / max(d[i], d[j]) for i, j in combinations(range(n), 2)}
        rates = Problem.of(dict.fromkeys(names, 1.0), 1.0, sel, classes=[names]).rates
        for mask in range(1, 1 << n):
            inside = [d[i] for i in members(mask)]
            assert rates.size(mask) == pytest.approx(min(inside) / np.prod(inside), rel=1e-9)


@given(st.integers(3, 6), st.randoms(use_true_random=False))
def test_one_class_never_grows_with_more_members(n: int, rng: random.Random) -> None:
    """Any selectivities: two members give exactly theirs, and one more member never makes a combination more likely."""
    names = "ABCDEF"[:n]
    sel = {pair: rng.uniform(0.0, 1.0) for pair in combinations(names, 2)}
    problem = Problem.of(dict.fromkeys(names, 1.0), 1.0, sel, classes=[names])
    for (a, b), f in sel.items():
        assert problem.rates.size(1 << names.index(a) | 1 << names.index(b)) == pytest.approx(f)
    for mask in range(1, 1 << n):
        for s in range(n):
            assert problem.rates.size(mask | 1 << s) <= problem.rates.size(mask) * (1 + 1e-12)


def test_asymmetric_selectivities_against_a_simulation() -> None:
    """A B joins 4 % of the A tuples before it, an A joins 1 % of the B tuples before it; windows of 6 s and 3 s."""
    rng = np.random.default_rng(7)
    seconds, lam_a, lam_b, win_a, win_b = 2000.0, 5.0, 10.0, 6.0, 3.0
    t_a = np.sort(rng.uniform(0, seconds, int(seconds * lam_a)))
    t_b = np.sort(rng.uniform(0, seconds, int(seconds * lam_b)))
    later_b = [(a, b) for b in t_b for a in t_a[np.searchsorted(t_a, b - win_a) : np.searchsorted(t_a, b)]]
    later_a = [(a, b) for a in t_a for b in t_b[np.searchsorted(t_b, a - win_b) : np.searchsorted(t_b, a)]]
    by_b = np.array(later_b)[rng.random(len(later_b)) < 0.04]
    by_a = np.array(later_a)[rng.random(len(later_a)) < 0.01]
    problem = Problem.of(
        {"A": lam_a, "B": lam_b}, {"A": lam_a * win_a, "B": lam_b * win_b}, {("A", "B"): 0.01, ("B", "A"): 0.04}
    )
    assert not problem.symmetric
    assert problem.rates.made(0b01, 0b11) == pytest.approx(len(by_a) / seconds, rel=0.02)
    assert problem.rates.made(0b10, 0b11) == pytest.approx(len(by_b) / seconds, rel=0.02)
    # a pair lives from its later tuple until the first of the two leaves
    both = np.concatenate([by_a, by_b])
    lives = np.minimum(both[:, 0] + win_a, both[:, 1] + win_b) - both.max(1)
    assert problem.rates.size(0b11) == pytest.approx(lives.sum() / seconds, rel=0.02)


def test_asymmetric_mean_weights() -> None:
    """T_A = T_B: either may have come last in half of the live pairs. T_A = 4 T_B: A last in an eighth. A table: never last."""
    even = Problem.of({"A": 1.0, "B": 2.0}, {"A": 10.0, "B": 20.0}, {("A", "B"): 0.1, ("B", "A"): 0.3})
    assert even.rates.size(0b11) == pytest.approx(0.2 * 200)
    long_a = Problem.of({"A": 1.0, "B": 1.0}, {"A": 40.0, "B": 10.0}, {("A", "B"): 0.1, ("B", "A"): 0.3})
    assert long_a.rates.size(0b11) == pytest.approx((0.1 / 8 + 0.3 * 7 / 8) * 400)
    table = Problem.of({"A": 1.0}, 10.0, {("A", "B"): 0.1, ("B", "A"): 0.3}, tables={"B": 50})
    assert table.rates.size(0b11) == pytest.approx(0.1 * 500)


def test_tables_cost_nothing_by_themselves() -> None:
    """Section 4: a part over tables alone is computed once; its memory counts, its CPU does not."""
    problem = Problem.of(
        {"A": 10.0},
        20.0,
        {("A", "T"): 0.1, ("T", "U"): 0.01},
        Costs(1e-6, 1e-6, 1e-6, 1e-6),
        tables={"T": 100, "U": 50},
    )
    bill = price(problem, Plan.parse("(A (T U))").root)
    by_name = {str(p.tree): p for p in bill.parts}
    assert by_name["(T U)"].cpu == by_name["T"].cpu == by_name["U"].cpu == 0.0
    assert by_name["(T U)"].memory == pytest.approx(50.0)
    assert bill.memory == pytest.approx(20 + 100 + 50 + 50)
    assert bill.output_rate == pytest.approx(10 * 0.1 * 50)


def test_comparisons_are_checked_on_what_the_hash_returns() -> None:
    """A.k = B.k AND A.x < B.x: the probe returns the tuples with the key, the comparison takes some of them away."""
    both = Problem.of({"A": 1.0, "B": 1.0}, 100.0, {("A", "B"): 0.1})
    compared = replace(both, predicates=(*both.predicates, Predicate(((0, 1, 0.25, 0.25),), hashed=False)))
    assert compared.rates.made(0b01, 0b11) == pytest.approx(2.5)
    assert compared.rates.candidates(0b01, 0b01, 0b10) == pytest.approx(10.0)
    only = Problem.of({"A": 1.0, "B": 1.0}, 100.0, {("A", "B"): 0.25}, comparisons=[("A", "B")])
    assert only.rates.candidates(0b01, 0b01, 0b10) == pytest.approx(25.0)  # an ordered index returns just these


@pytest.mark.parametrize("seed", range(8))
def test_cells_add_up(seed: int) -> None:
    """The cost with shares is that of one cell times the cells: rates and windows divided, selectivities multiplied."""
    problem = replace(mixed_problem(5, seed), shares=())
    group = Predicate(tuple((i, j, f / 3, g / 3) for i, j, f, g in problem.predicates[0].pairs))
    problem = replace(problem, predicates=(group, *problem.predicates[1:]))
    split = replace(problem, shares=(Share("class", group.mask, 3), Share("row", 0b01000, 2)))
    streams, copies = [], split.rates.copies
    for i, s in enumerate(problem.streams):
        part = copies(1 << i) / split.cells
        streams.append(Stream(s.name, s.rate * part, s.window * part, s.expires))
    within = Predicate(tuple((i, j, 3 * f, 3 * g) for i, j, f, g in group.pairs))
    cell = replace(problem, streams=tuple(streams), predicates=(within, *problem.predicates[1:]))
    for text in ("(S0 S1 S2 S3 S4)", "((S0 S1) (S2 S3) S4)", "((((S0 S4) S2) S1) S3)"):
        root = Plan.parse(text).root
        whole, one = price(split, root), price(cell, root)
        assert whole.cpu == pytest.approx(one.cpu * split.cells, rel=1e-9)
        assert whole.memory == pytest.approx(one.memory * split.cells, rel=1e-9)
        assert whole.output_rate == pytest.approx(one.output_rate * split.cells, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Stream("A", -1.0, 10.0), "rate of 'A' is -1"),
        (lambda: Stream("A", float("nan"), 10.0), "rate of 'A' is nan"),
        (lambda: Stream("A", 1.0, 0.0), "its window holds none"),
        (lambda: Predicate(((0, 1, 1.5, 0.1),)), "selectivity 1.5"),
        (lambda: Predicate(((0, 1, 0.1, 0.1), (1, 2, 0.1, 0.1))), "every two of its streams"),
        (lambda: Problem.of({}, 1.0, {}), "no stream"),
        (lambda: Problem.of({"A": 1.0, "B": 1.0}, 1.0, {("A", "X"): 0.1}), "selectivity names 'X'"),
        (lambda: Problem((Stream("A", 0.0, 1.0, False), Stream("B", 0.0, 1.0, False))), "no stream has tuples"),
    ],
)
def test_bad_numbers_are_refused(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(QueryError, match=says):
        make()
