"""`watersmeet demo`: it runs anywhere, can be run again, and its answer is right."""

from __future__ import annotations

import datetime as dt
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


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_demo_shows_query_plan_results_and_where_they_are(folder: Path) -> None:
    shown = call("demo", "--orders", "3000")
    for part in (
        "SELECT o.id, i.name",
        "(o p s i)",
        "throughput",
        "rows/s",
        "result_ts",
        "more results",
        "demo-out/results/",
    ):
        assert part in shown
    assert sorted(p.name for p in Path("demo-out").iterdir()) == ["data", "demo.sql", "results"]
    assert pq.read_table("demo-out/results").num_rows > 10


def test_demo_finds_what_a_plain_loop_finds(folder: Path) -> None:
    call("demo", "--orders", "20000", "--seed", "5", "--out", "it's here")
    data = {n: as_table(f"it's here/data/{n}.parquet", n).to_pylist() for n in ("orders", "payments", "shipments")}
    paid = {p["order_id"]: p for p in data["payments"]}
    shipped = {s["order_id"]: s for s in data["shipments"]}
    windows = (dt.timedelta(hours=2), dt.timedelta(hours=1), dt.timedelta(minutes=30))
    expected = []
    for order in data["orders"]:
        payment, shipment = paid.get(order["id"]), shipped.get(order["id"])
        if payment is None or shipment is None or payment["amount"] >= order["price"]:
            continue
        times = (order["ts"], payment["ts"], shipment["ts"])
        last = max(times)
        if all(t >= last - w for t, w in zip(times, windows, strict=True)):
            expected.append((order["id"], payment["amount"], shipment["depot"], last))
    found = pq.read_table("it's here/results").to_pylist()
    assert sorted((r["id"], r["amount"], r["depot"], r["result_ts"]) for r in found) == sorted(expected)
    assert len(expected) > 100


def test_demo_can_be_run_again_and_makes_the_same(folder: Path) -> None:
    call("demo", "--orders", "2000")
    first = pq.read_table("demo-out/results")
    call("demo", "--orders", "2000")
    assert pq.read_table("demo-out/results").equals(first)
    call("run", "demo-out/demo.sql", "--overwrite", "--plan", "xjoin")
    assert pq.read_table("demo-out/results").sort_by("id").equals(first.sort_by("id"))
