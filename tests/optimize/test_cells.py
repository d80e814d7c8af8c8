"""Cells: the shares are the best of all, copies are as told, and every result is made in exactly one cell."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest

from tests.optimize.problems import random_problem
from watersmeet.errors import QueryError
from watersmeet.lang import parse
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Statistics
from watersmeet.optimize.asked import Asked
from watersmeet.optimize.cells import Dimension, _greedy, choose_shares, copies, fullest_cell, prime_factors
from watersmeet.optimize.choose import decide
from watersmeet.optimize.problem import Problem


def random_dimensions(n: int, seed: int) -> list[Dimension]:
    rng = random.Random(seed)
    made = []
    for c in range(rng.randint(1, 4)):
        inside = rng.sample(range(n), rng.randint(2, n))
        heavy = tuple((i, rng.uniform(0.1, 0.9)) for i in inside if rng.random() < 0.3)
        made.append(Dimension(f"S.{c}", sum(1 << i for i in inside), heavy))
    return made


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("cells", [2, 6, 16])
def test_exact_shares_against_all_splits(seed: int, cells: int) -> None:
    problem, dimensions = random_problem("sparse", 4, seed), random_dimensions(4, seed)
    chosen = {s.name: s.count for s in choose_shares(problem, dimensions, cells)}
    load = fullest_cell(problem, dimensions, [chosen.get(d.name, 1) for d in dimensions])
    every = [s for s in product(range(1, cells + 1), repeat=len(dimensions)) if prod(s) == cells]
    assert prod(chosen.values()) == cells
    assert load == pytest.approx(min(fullest_cell(problem, dimensions, s) for s in every), rel=1e-8)
    greedy = _greedy(problem, dimensions, prime_factors(cells))
    assert prod(greedy) == cells
    assert fullest_cell(problem, dimensions, greedy) >= load * (1 - 1e-8)


def test_heavy_values_are_not_split_by() -> None:
    """Half of R has one value of a: splitting by a leaves them all in one cell, so b is split instead."""
    problem = Problem.of({"R": 10.0, "S": 10.0}, 10.0, {("R", "S"): 0.1})
    a, b = Dimension("R.a", 0b11, ((0, 0.5), (1, 0.5))), Dimension("R.b", 0b11)
    assert [s.name for s in choose_shares(problem, [a, b], 8)] == ["R.b"]
    even = Dimension("R.a", 0b11)
    assert [s.name for s in choose_shares(problem, [even, b], 8)] == ["R.a"]


@pytest.mark.parametrize("cells", [1, 4, 6, 8])
def test_each_result_is_made_in_exactly_one_cell(cells: int) -> None:
    """R(a) S(a, b) T(b) U: routed by the shares, the cells' results put together are the join's, each once."""
    rng = random.Random(cells)
    rows = {
        "R": [{"a": rng.randrange(6)} for _ in range(40)],
        "S": [{"a": rng.randrange(6), "b": rng.randrange(6)} for _ in range(40)],
        "T": [{"b": rng.randrange(6)} for _ in range(40)],
    }
    problem = Problem.of(dict.fromkeys("RST", 1.0), 40.0, {("R", "S"): 1 / 6, ("S", "T"): 1 / 6})
    dimensions = [Dimension("a", 0b011), Dimension("b", 0b110)]
    shares = choose_shares(problem, dimensions, cells)
    grid = list(product(*(range(s.count) for s in shares)))
    assert len(grid) == cells

    def goes(row: dict[str, int], cell: tuple[int, ...]) -> bool:
        return all(s.name not in row or row[s.name] % s.count == at for s, at in zip(shares, cell, strict=True))

    made = []
    for cell in grid:
        r, s, t = ([x for x in rows[n] if goes(x, cell)] for n in "RST")
        made += [(id(x), id(y), id(z)) for x in r for y in s if x["a"] == y["a"] for z in t if y["b"] == z["b"]]
    whole = [
        (id(x), id(y), id(z))
        for x in rows["R"] for y in rows["S"] if x["a"] == y["a"] for z in rows["T"] if y["b"] == z["b"]
    ]  # fmt: skip
    assert sorted(made) == sorted(whole)
    told = copies(problem, shares)
    for name in "RST":
        assert all(sum(goes(row, cell) for cell in grid) == told[name] for row in rows[name])


TEXT = """SELECT R.a FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS], T [RANGE 10 SECONDS]
          WHERE R.a = S.a AND S.b = T.b"""
STATS = Statistics(rate={"R": 10.0, "S": 10.0, "T": 50.0}, selectivity={("R", "S"): 0.01, ("S", "T"): 0.01})


def test_cells_are_part_of_the_plan_and_its_cost() -> None:
    one, four = (decide(parse(TEXT), STATS, asked=Asked(kind="mjoin", cells=n)).plan for n in (1, 4))
    assert one is not None and four is not None
    assert one.cells == ()
    assert four.cells == (("S.b", 4),)  # T is the fastest: it is not copied; R, the slow one, is
    assert "cells {`S.b`: 4}" in str(four)
    assert Plan.parse(str(four)) == four
    assert one.memory_tuples == pytest.approx(700)
    assert four.memory_tuples == pytest.approx(4 * 100 + 100 + 500)
    assert four.cpu is not None and one.cpu is not None and four.cpu > one.cpu
    assert four.output_rate == pytest.approx(one.output_rate)


def test_cells_without_a_class_split_the_rows_of_one_stream() -> None:
    query = parse("SELECT R.a FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a < S.a")
    plan = decide(query, Statistics(rate={"R": 10.0, "S": 90.0}), asked=Asked(cells=3)).plan
    assert plan is not None
    assert plan.cells == (("S", 3),)


def test_bad_number_of_cells() -> None:
    with pytest.raises(QueryError, match="1 or more"):
        decide(parse(TEXT), STATS, asked=Asked(cells=0))
