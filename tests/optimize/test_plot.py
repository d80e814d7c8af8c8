"""`explain --plot`: a picture of the plan and of the plane, whatever was decided."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import watersmeet as wm
from tests.optimize.problems import qualified_set, random_problem
from watersmeet.cli.app import app
from watersmeet.model.query import Overload
from watersmeet.optimize.choose import Decision, decide_problem
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.plot import kind_of, plans, plot_decision

DECISIONS = {
    "a jtree fits": lambda: decide_problem(qualified_set(4), Limits(35.9, 50_000)),
    "nothing fits": lambda: decide_problem(qualified_set(4), Limits(3.0, 50_000)),
    "some is shed": lambda: decide_problem(qualified_set(4), Limits(3.0, 50_000), overload=Overload(shed=True)),
    "no budget": lambda: decide_problem(qualified_set(1), Limits()),
    "two streams": lambda: decide_problem(random_problem("chain", 2, 1), Limits()),
    "twelve streams": lambda: decide_problem(random_problem("sparse", 12, 1), Limits(memory=1e6)),
}
JOB = """CREATE STREAM A (x BIGINT, ts TIMESTAMP);
CREATE STREAM B (x BIGINT, y BIGINT, ts TIMESTAMP); CREATE STREAM C (y BIGINT, ts TIMESTAMP);
SELECT A.x FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS], C [RANGE 5 SECONDS] WHERE A.x = B.x AND B.y = C.y
BUDGET (CPU 1, MEMORY 1000 TUPLES)"""
STATS = wm.Statistics(rate={"A": 20.0, "B": 20.0, "C": 20.0}, selectivity={("A", "B"): 0.05, ("B", "C"): 0.5})


@pytest.mark.parametrize("case", DECISIONS)
def test_plot_draws_every_kind_of_decision(case: str, tmp_path: Path) -> None:
    plot_decision(DECISIONS[case](), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_plot_plane_has_all_trees_of_few_streams() -> None:
    found: Decision = DECISIONS["a jtree fits"]()
    drawn = plans(found)
    kinds = [kind_of(p.shape) for p in drawn]
    assert [kinds.count(k) for k in ("mjoin", "bjtree", "jtree")] == [1, 15, 10]
    assert {p.shape for _, p in found.seen} <= {p.shape for p in drawn}


def test_plot_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text(JOB)
    STATS.save("stats.json")
    result = CliRunner().invoke(app, ["explain", "job.sql", "--stats", "stats.json", "--plot", "plan.svg"])
    assert result.exit_code == 0, result.output
    assert "drawn in plan.svg" in result.stdout
    picture = Path("plan.svg").read_text()
    assert picture.startswith("<?xml") and len(picture) > 10_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plot", "plan.png"], "a plot shows what plans cost"),
        (["--stats", "stats.json", "--plot", "plan.txt"], ".png, .svg, .pdf"),
        (["job.sql", "--stats", "stats.json", "--plot", "plan.png"], "one job"),
        (["--stats", "stats.json", "--plot", "no/such/folder/plan.png"], "can't write"),
    ],
)
def test_plot_mistakes_are_explained(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text(JOB)
    STATS.save("stats.json")
    result = CliRunner().invoke(app, ["explain", "job.sql", *arguments])
    assert result.exit_code == 1
    assert said in result.stderr
