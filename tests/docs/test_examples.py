"""The examples: their data is always the same, each job runs, and the answer is the one that the definition gives."""

from __future__ import annotations

import hashlib
import runpy
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import watersmeet as wm
from watersmeet.cli.app import app
from watersmeet.cli.job import Job
from watersmeet.data import as_table, read_declared
from watersmeet.testing import same_rows

ROOT = Path(__file__).parents[2]
JOBS = sorted(p.name for p in (ROOT / "examples").glob("*.sql"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples in a folder of their own, with their data."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("data", "out", "__pycache__"))
    made = runpy.run_path(str(folder / "examples" / "make_data.py"))
    made["make"](folder / "examples" / "data")
    return folder


def test_examples_are_at_least_three_and_use_the_language() -> None:
    text = " ".join((ROOT / "examples" / job).read_text() for job in JOBS)
    assert len(JOBS) >= 3
    for word in (
        "RANGE",
        "ROWS",
        "PARTITION BY",
        "CREATE TABLE",
        "BUDGET",
        "ON OVERLOAD",
        "FRESHNESS",
        "LIKE",
        "BETWEEN",
    ):
        assert word in text


def test_examples_data_is_always_the_same(copy: Path, tmp_path: Path) -> None:
    made = runpy.run_path(str(ROOT / "examples" / "make_data.py"))["make"](tmp_path)
    digests = [hashlib.sha256(p.read_bytes()).hexdigest() for p in made]
    assert digests == [hashlib.sha256((copy / "examples" / "data" / p.name).read_bytes()).hexdigest() for p in made]


@pytest.mark.parametrize("job", JOBS)
def test_examples_run_and_give_one_answer_by_every_plan(job: str, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy)
    answers: list[pa.Table] = []
    for plan in ("mjoin", "xjoin"):
        result = CliRunner().invoke(app, ["run", f"examples/{job}", "--overwrite", "--plan", plan])
        assert result.exit_code == 0, result.output
        into = Job.load(Path("examples") / job).query.into
        assert into is not None
        answers.append(pa.table(wm.run((Path("examples") / job).read_text(), plan=plan).rows))
    assert answers[0].num_rows > 10
    assert same_rows(answers[0], answers[1]) is None


@pytest.mark.parametrize("job", JOBS)
def test_examples_agree_with_the_oracle_on_part_of_their_data(
    job: str, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy)
    loaded = Job.load(Path("examples") / job)
    tables = {d.name: read_declared(d) for d in loaded.sources()}
    part = {n: t if t.num_rows < 100 else t.slice(0, 150) for n, t in tables.items()}
    assert same_rows(wm.oracle(loaded.text, part), wm.run(loaded.text, part).rows) is None


def test_examples_fraud_finds_every_planted_case(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy)
    rows = as_table("examples/data/card_payments.parquet", "t").to_pylist()
    by_card: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_card.setdefault(row["card"], []).append(row)
    expected = sorted(
        (a["card"], a["ts"], b["ts"])
        for same in by_card.values() for a in same for b in same
        if a["country"] != b["country"] and 0 < (b["ts"] - a["ts"]).total_seconds() <= 600
        and a["amount"] * 0.95 <= b["amount"] <= a["amount"] * 1.05
    )  # fmt: skip
    found = wm.run((Path("examples") / "fraud.sql").read_text()).rows
    assert found is not None
    assert sorted((r["card"], r["first_ts"], r["result_ts"]) for r in found.to_pylist()) == expected


@pytest.mark.parametrize("job", JOBS)
def test_examples_are_explained(job: str, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy)
    result = CliRunner().invoke(app, ["explain", f"examples/{job}"])
    assert result.exit_code == 0, result.output
    query = wm.parse((Path("examples") / job).read_text())
    for source in query.sources:
        assert source.alias in result.stdout
