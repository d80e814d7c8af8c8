"""Calibration: prices that explain the runs they were measured in, kept for explain and optimize, and said where they are used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import watersmeet as wm
from watersmeet.cli.app import app
from watersmeet.engine.calibrate import PLANS, Shape, Timed, calibrate, fit
from watersmeet.model.prices import TOGETHER, load_prices, priced, save_prices

FEW = tuple(Shape(plan, window, fan) for plan in PLANS[:3] for window in (100, 1000) for fan in (0.2, 5.0))
QUERY = """CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, ts TIMESTAMP);
SELECT R.a FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a"""
STATS = wm.Statistics(rate={"R": 10.0, "S": 20.0}, selectivity={("R", "S"): 0.1})


@pytest.fixture
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache" / "prices.json"
    monkeypatch.setenv("WATERSMEET_PRICES", str(path))
    return path


def test_calibrate_finds_the_prices_that_made_the_times() -> None:
    """Times made up from known prices give these prices back."""
    true = (100e-9, 30e-9, 70e-9, 5e-9)
    counts = [(1000, 50, 1000, 900), (1000, 9000, 1000, 1000), (4000, 3000, 1000, 990), (2000, 2500, 3000, 2900)]
    runs = tuple(
        Timed(
            Shape(plan, 100, 1.0),
            part * sum(p * c for p, c in zip(true, each, strict=True)),
            *each,
            10_000,
            10_000 * true[3],
        )
        for each in counts
        for plan, part in (("((S0 S1) S2)", 1.0), ("(S0 S1 S2)", 0.4))
    )
    found, errors = fit(runs)
    assert (found.probe, found.match, found.insert, found.delete) == pytest.approx(true, rel=1e-6)
    assert found.together == pytest.approx(0.4)
    assert max(map(abs, errors)) < 1e-9
    assert fit(runs[::2])[0].together == 1.0  # no plan of one node among them


def test_calibrate_measures_this_engine() -> None:
    found = calibrate(rows=4000, repeats=2, shapes=FEW, source="test")
    costs = found.costs
    assert costs.source == "test"
    assert all(0 <= getattr(costs, n) < 1e-5 for n in ("probe", "match", "insert", "delete"))
    assert costs.probe + costs.insert > 1e-9 and costs.match > 0
    assert len(found.runs) == len(FEW)
    assert found.runs[0].probes == found.runs[0].inserts > 0


def test_calibrate_prices_are_kept_and_used(prices: Path) -> None:
    assert load_prices() is None and priced(STATS) == replace(STATS, costs=wm.Costs(together=TOGETHER))
    mine = wm.Costs(1e-6, 2e-6, 3e-6, 4e-6, "measured here")
    assert save_prices(mine) == prices
    assert load_prices() == mine
    assert "prices (measured here): probe 1000 ns" in wm.explain(QUERY, STATS)
    # 30 inserts, deletes and probes and 400 matches a second
    assert wm.optimize(QUERY, STATS).cpu == pytest.approx(30 * 8e-6 + 400 * 2e-6)


def test_calibrate_explain_says_default_or_given(prices: Path) -> None:
    assert "prices (default: `watersmeet calibrate` measures this machine's)" in wm.explain(QUERY, STATS)
    given = wm.Statistics(rate=STATS.rate, selectivity=STATS.selectivity, costs=wm.Costs(probe=1e-6))
    save_prices(wm.Costs(source="measured here"))
    assert "prices (given): probe 1000 ns" in wm.explain(QUERY, given)


def test_calibrate_a_broken_file_is_explained(prices: Path) -> None:
    prices.parent.mkdir()
    prices.write_text('{"probe": "much"}')
    with pytest.raises(wm.DataError, match="watersmeet calibrate"):
        wm.explain(QUERY, STATS)


def test_calibrate_from_the_command_line(prices: Path) -> None:
    result = CliRunner().invoke(app, ["calibrate", "--rows", "2000", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "probe" in result.stdout and str(prices.name) in result.stdout.replace("\n", "")
    found = load_prices()
    assert found is not None and found.source.startswith("measured on this machine")
