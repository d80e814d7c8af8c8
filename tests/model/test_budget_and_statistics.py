"""Budgets and statistics: what they take, what they refuse, and that they print, save and load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import watersmeet as wm
from watersmeet.model.budget import bytes_text, parse_bytes
from watersmeet.model.durations import duration, unit_us


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (wm.Budget(cpu=0.8), "BUDGET (CPU 0.8)"),
        (wm.Budget(memory="64 MB"), "BUDGET (MEMORY 64 MB)"),
        (wm.Budget(memory=65_536), "BUDGET (MEMORY 64 KiB)"),
        (wm.Budget(cpu=2.0, memory_tuples=500), "BUDGET (CPU 2.0, MEMORY 500 TUPLES)"),
    ],
)
def test_budget_prints_as_the_language_has_it(budget: wm.Budget, text: str) -> None:
    assert str(budget) == text
    assert wm.parse(f"SELECT 1 AS one FROM R [ROWS 1], S [ROWS 1] {text}").budget == budget


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cpu": 0.0}, "CPU"),
        ({"cpu": -1.0}, "CPU"),
        ({"cpu": float("inf")}, "CPU"),
        ({"cpu": float("nan")}, "CPU"),
        ({"memory": 0}, "MEMORY"),
        ({"memory_tuples": -5}, "MEMORY"),
        ({"memory": 5, "memory_tuples": 5}, "not both"),
        ({"memory": "many"}, "can't read"),
        ({"memory": "5 XB"}, "can't read"),
        ({"memory": "0 MB"}, "MEMORY"),
    ],
)
def test_budget_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(wm.QueryError, match=message):
        wm.Budget(**arguments)


def test_budget_amounts_of_memory_print_and_parse() -> None:
    for amount in (1, 999, 1_000, 1_024, 1_536, 10**6, 1 << 20, 10**9, 123_456_789, 1 << 40):
        assert parse_bytes(bytes_text(amount)) == amount


def test_durations_print_in_the_largest_whole_unit_and_read_back() -> None:
    for us in (1, 1_000, 1_001, 60_000_000, 90_000_000, 3_600_000_000, 86_400_000_000, 7 * 86_400_000_000):
        count, unit = duration(us).split()
        assert int(count) * (unit_us(unit) or 0) == us


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": {"A": 0.0}}, "rate of A is 0"),
        ({"rate": {"A": -1.0}}, "rate of A"),
        ({"rate": {"A": float("nan")}}, "rate of A"),
        ({"selectivity": {("A", "B"): 1.5}}, "selectivity of A-B is 1.5; it must be 0 to 1"),
        ({"selectivity": {("A", "A"): 0.5}}, "pairs of two streams"),
        ({"selection": {"A": -0.1}}, "selection of A"),
        ({"distinct": {("A", "a"): -1.0}}, "distinct of A-a"),
        ({"table_rows": {"A": -1}}, "table_rows of A"),
        ({"window_tuples": {"A": float("inf")}}, "window_tuples of A"),
    ],
)
def test_statistics_refuse(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(wm.QueryError, match=message):
        wm.Statistics(**arguments)


def test_costs_refuse_what_is_negative_or_not_finite() -> None:
    for value in (-1.0, float("inf"), float("nan")):
        with pytest.raises(wm.QueryError, match="probe"):
            wm.Costs(probe=value)


def test_statistics_of_an_edge_hold_both_ways_unless_both_are_given() -> None:
    one = wm.Statistics(selectivity={("A", "B"): 0.5})
    assert one.edge("A", "B") == one.edge("B", "A") == 0.5
    both = wm.Statistics(selectivity={("A", "B"): 0.5, ("B", "A"): 0.1})
    assert (both.edge("A", "B"), both.edge("B", "A")) == (0.5, 0.1)
    assert one.edge("A", "C") is None
    assert one.selected("A") == 1.0


def test_statistics_of_zero_selectivity_are_known_not_missing() -> None:
    assert wm.Statistics(selectivity={("A", "B"): 0.0}).edge("B", "A") == 0.0


def test_statistics_cannot_be_changed() -> None:
    given = {"A": 1.0}
    made = wm.Statistics(rate=given)
    given["A"] = 2.0
    assert made.rate["A"] == 1.0
    with pytest.raises(TypeError):
        made.rate["A"] = 3.0  # type: ignore[index]


def test_statistics_save_and_load(tmp_path: Path) -> None:
    made = wm.Statistics(
        rate={"A": 10.0, "B": 2.5}, selectivity={("A", "B"): 0.25}, distinct={("A", "a"): 7.0}, selection={"A": 0.5},
        table_rows={"I": 4}, window_tuples={"A": 100.0}, row_bytes={"A": 32.0}, heavy={("A", "a"): (("x", 0.4), ("y", 0.1))},
        costs=wm.Costs(probe=1e-6, match=2e-6, insert=3e-6, delete=4e-6, source="measured"),
    )  # fmt: skip
    made.save(tmp_path / "stats.json")
    assert wm.Statistics.load(tmp_path / "stats.json") == made
    assert hash(wm.Statistics.load(tmp_path / "stats.json")) == hash(made)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not JSON"), ('{"speed": {}}', "unknown entries: speed"), ('{"rate": {"A": -1}}', "rate of A")],
)
def test_statistics_refuse_a_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "stats.json"
    path.write_text(text)
    with pytest.raises(wm.QueryError, match=message):
        wm.Statistics.load(path)
    with pytest.raises(wm.QueryError, match="can't read statistics"):
        wm.Statistics.load(tmp_path / "missing.json")
