"""`watersmeet demo`: on local Spark, or without Java in this process; it can be run again, and its answer is right."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from watersmeet.cli.app import app
from watersmeet.data import as_table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java-here"))


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def expected(data: Path) -> list[tuple[object, ...]]:
    """The answer by a plain loop."""
    rows = {n: as_table(str(data / n), n).to_pylist() for n in ("orders", "payments", "shipments")}
    paid = {p["order_id"]: p for p in rows["payments"]}
    shipped = {s["order_id"]: s for s in rows["shipments"]}
    windows = (dt.timedelta(hours=2), dt.timedelta(hours=1), dt.timedelta(minutes=30))
    made = []
    for order in rows["orders"]:
        payment, shipment = paid.get(order["id"]), shipped.get(order["id"])
        if payment is None or shipment is None or payment["amount"] >= order["price"]:
            continue
        times = (order["ts"], payment["ts"], shipment["ts"])
        last = max(times)
        if all(t >= last - w for t, w in zip(times, windows, strict=True)):
            made.append((order["id"], payment["amount"], shipment["depot"], last))
    return sorted(made)


def found(folder: Path) -> list[tuple[object, ...]]:
    results = pq.read_table(folder)
    columns = [results.column(name).to_pylist() for name in ("id", "amount", "depot", "result_ts")]
    return sorted(zip(*columns, strict=True))


@pytest.mark.spark
def test_demo_on_spark_finds_what_a_plain_loop_finds(folder: Path) -> None:
    shown = call("demo", "--orders", "8000", "--seed", "5", "--out", "it's here")
    for part in (
        "SELECT o.id, i.name", "(o p s i)", "The run on Spark", "batch 1 ", "batch 5 ", "the end", "The same results.", "result_ts",
        "more results", "it's here/results/",
    ):  # fmt: skip
        assert part in shown
    assert found(Path("it's here/results")) == expected(Path("it's here/data"))
    assert len(expected(Path("it's here/data"))) > 100
    again = [sys.executable, "-m", "watersmeet", "demo", "--orders", "1000", "--out", "it's here"]
    done = subprocess.run(again, capture_output=True, text=True, check=True)
    assert not re.search("WARN|log4j|log level|incubator", done.stderr), done.stderr  # only our own words
    assert found(Path("it's here/results")) == expected(Path("it's here/data"))
    Path("it's here/results/mine.txt").write_text("keep this")
    refused = CliRunner().invoke(app, ["demo", "--orders", "100", "--out", "it's here"])
    assert refused.exit_code == 1 and Path("it's here/results/mine.txt").exists()


@pytest.mark.usefixtures("no_java")
def test_demo_without_java_runs_in_process_and_says_so(folder: Path) -> None:
    shown = call("demo", "--orders", "20000")
    for part in (
        "bin/java can't be run",
        "runs in this process",
        "SELECT o.id",
        "throughput",
        "rows/s",
        "more results",
    ):
        assert part in shown.replace("\n", " ")
    assert sorted(p.name for p in Path("demo-out").iterdir()) == ["data", "demo.sql", "results"]
    assert found(Path("demo-out/results")) == expected(Path("demo-out/data"))


@pytest.mark.usefixtures("no_java")
def test_demo_can_be_run_again_and_makes_the_same(folder: Path) -> None:
    call("demo", "--orders", "2000")
    first = pq.read_table("demo-out/results")
    call("demo", "--orders", "2000")
    assert pq.read_table("demo-out/results").equals(first)
    call("run", "demo-out/demo.sql", "--overwrite", "--plan", "xjoin")
    assert pq.read_table("demo-out/results").sort_by("id").equals(first.sort_by("id"))
