"""Statistics that can't be are refused by name, with what to do; those that are only odd are planned for, and said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watersmeet.errors import QueryError
from watersmeet.lang import parse
from watersmeet.model.budget import Budget
from watersmeet.model.statistics import Statistics
from watersmeet.optimize import explain_plan

TEXT = "SELECT A.a FROM A [ROWS 10], B [ROWS 10], C [ROWS 10] WHERE A.a = B.a AND B.b = C.b"
RATE = {"A": 10, "B": 20, "C": 70}
EDGES = {"A.B": 0.5, "B.C": 0.2}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": {**RATE, "A": 0}}, "rate of A is 0"),
        ({"rate": {**RATE, "A": -5}}, "rate of A is -5; it must be a number, above 0"),
        ({"rate": {**RATE, "A": "ten"}}, "rate of A is ten"),
        ({"rate": {**RATE, "A": True}}, "rate of A is True"),
        ({"rate": {**RATE, "A": float("nan")}}, "rate of A is nan"),
        ({"rate": {"A": 10, "B": 20}}, "no rate for C"),
        ({"rate": [1, 2]}, "not an object of objects"),
        ({"rate": RATE, "selectivity": {"A.B": 1.5}}, "selectivity of A-B is 1.5"),
        ({"rate": RATE, "selectivity": {"A.B": -0.1}}, "selectivity of A-B is -0.1"),
        ({"rate": RATE, "selectivity": {"A.B": "half"}}, "selectivity of A-B is half"),
        ({"rate": RATE, "selectivity": {"AB": 0.5}}, "selectivity of 'AB'"),
        ({"rate": RATE, "selectivity": {"A.C": 0.5}}, "no predicate joins the two"),
        ({"rate": RATE, "selectivity": {"A.X": 0.5}}, "selectivity of 'X', which is not in FROM"),
        ({"rate": RATE, "selection": {"A": 2}}, "selection of A is 2"),
        ({"rate": RATE, "heavy": {"A.a": [["1", 1.5]]}}, "heavy values of A-a"),
        ({"rate": RATE, "heavy": {"A.a": 3}}, "statistics file"),
        ({"rate": RATE, "window_tuples": {"A": 0}}, "window_tuples of 'A' is 0"),
        ({"rate": RATE, "costs": {"probe": -1}}, "probe = -1"),
        ({"rate": RATE, "costs": {"prob": 1}}, "probe, match, insert, delete"),
        ({"rate": RATE, "costs": {"probe": "dear"}}, "probe"),
        ({"rates": RATE}, "unknown entries: rates"),
    ],
)
def test_refuses_statistics_that_cannot_be(given: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    path.write_text(json.dumps(given))
    with pytest.raises(QueryError, match=said.replace("(", r"\(")):
        explain_plan(parse(TEXT), Statistics.load(path), Budget(cpu=1))


@pytest.mark.parametrize(
    ("given", "text", "said"),
    [
        ({"rate": RATE, "selectivity": {"A.B": 0.5}}, TEXT, "selectivity of B.b = C.b: 0.1 (nothing known)"),
        ({"rate": RATE, "selectivity": {**EDGES, "A.B": 0}}, TEXT, "by these statistics the query has no results"),
        (
            {"rate": RATE, "selectivity": EDGES, "selection": {"A": 0}},
            TEXT,
            "by these statistics the query has no results",
        ),
        (
            {"rate": RATE, "selectivity": {"A.B": 0.5}},
            TEXT.split(" AND ", maxsplit=1)[0],
            "no join predicate connects A B with C",
        ),
    ],
)
def test_explains_statistics_that_are_odd(given: dict[str, object], text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    path.write_text(json.dumps(given))
    assert said in explain_plan(parse(text), Statistics.load(path), Budget(cpu=1))


def test_explains_each_miss_once() -> None:
    shown = explain_plan(parse(TEXT), Statistics(RATE, {("A", "B"): 0.5, ("B", "C"): 0.2}), Budget(cpu=1e-7))
    misses = [line.split(" needs ")[0] for line in shown.split("nearest misses\n")[1].splitlines() if " needs " in line]
    assert len(misses) == len(set(misses)) >= 3


def test_explains_how_long_results_take() -> None:
    stats = Statistics(RATE, {("A", "B"): 0.5, ("B", "C"): 0.2})
    assert "after its last tuple on average" in explain_plan(parse(TEXT), stats, Budget(cpu=1))
    assert "after its last tuple" not in explain_plan(parse(TEXT), stats)
