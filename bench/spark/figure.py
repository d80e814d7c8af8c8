"""The figure of bench/spark: rates side by side, rate against batch size, batch time and memory against the window, more streams."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

NAMES = {
    "noop": "no-op read", "watersmeet": "Watersmeet", "hdfs": "Spark's own join, HDFS store", "rocksdb": "Spark's own join, RocksDB",
    "flink": "Flink SQL", "flink read": "Flink, no-op read (CSV)", "tuned noop": "no-op read, Watersmeet's settings",
    "hollow": "Watersmeet without the join",
}  # fmt: skip
COLOURS = {
    "noop": "0.6", "watersmeet": "C0", "hdfs": "C1", "rocksdb": "C1", "flink": "C3", "flink read": "0.8", "tuned noop": "0.6",
    "hollow": "C2",
}  # fmt: skip
Row = dict[str, str]


def draw(source: Path, target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with source.open() as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(2, 2, figsize=(13, 8.5), layout="constrained")
    _rates(axes[0][0], rows)
    _sizes(axes[0][1], rows)
    _growth(axes[1][0], rows)
    _ways(axes[1][1], rows)
    figure.suptitle("Watersmeet on Spark, 2 cores, steady state (first batch left out for all)")
    figure.savefig(target, dpi=100)
    plt.close(figure)


def _of(rows: list[Row], measure: str, suffix: str = "", prefix: str = "") -> list[Row]:
    return [r for r in rows if r["measure"] == measure and r["case"].endswith(suffix) and r["case"].startswith(prefix)]


def _rates(axis: Any, rows: list[Row]) -> None:
    found = _of(rows, "rate", "rows a batch")
    if not found:
        axis.set_axis_off()
        return
    first = found[0]["case"]
    bars = [r for r in found if r["case"] == first]
    mine = [r for r in found if r["contestant"] == "watersmeet" and r["case"] != first]
    labels = [NAMES[r["contestant"]] for r in bars]
    if mine:
        top = max(mine, key=lambda r: float(r["value"]))
        bars.append(top)
        labels.append(f"Watersmeet, {top['case']}")
    order = sorted(range(len(bars)), key=lambda i: float(bars[i]["value"]))
    for at, i in enumerate(order):
        value = float(bars[i]["value"])
        spread = [[value - float(bars[i]["low"])], [float(bars[i]["high"]) - value]]
        axis.barh(at, value, color=COLOURS[bars[i]["contestant"]], xerr=spread, capsize=3)
        axis.text(float(bars[i]["high"]) * 1.1, at, f"{value:,.0f}", va="center")
    axis.set_yticks(range(len(order)), [labels[i] for i in order])
    axis.set(xscale="log", xlabel="rows/s (log scale)", title=f"Three-way join, {first}")
    axis.set_xlim(1000, max(float(r["high"]) for r in bars) * 8)


def _sizes(axis: Any, rows: list[Row]) -> None:
    found = _of(rows, "rate", "rows a batch")
    for name in ("noop", "watersmeet", "hdfs"):
        points = sorted(
            (int(r["case"].split()[0].replace(",", "")), float(r["value"])) for r in found if r["contestant"] == name
        )
        axis.plot(*zip(*points, strict=True), "-o", color=COLOURS[name], label=NAMES[name]) if points else None
    axis.set(xscale="log", yscale="log", xlabel="rows a batch", ylabel="rows/s", title="Rate against batch size")
    if found:
        axis.legend()


def _growth(axis: Any, rows: list[Row]) -> None:
    found = _of(rows, "batch", prefix="windows x")
    if not found:
        axis.set_axis_off()
        return
    at = [int(r["case"].split("x")[1]) for r in found]
    values = [float(r["value"]) for r in found]
    spread = [
        [v - float(r["low"]) for v, r in zip(values, found, strict=True)],
        [float(r["high"]) - v for v, r in zip(values, found, strict=True)],
    ]
    axis.errorbar(at, values, spread, fmt="C0-o", capsize=3, label="time of a batch")
    axis.set(
        xscale="log",
        xlabel="window, times 10 s (same results a batch)",
        ylabel="s",
        ylim=(0, max(values) * 1.7),
        title="Larger windows",
    )
    axis.set_xticks(at, [str(a) for a in at])
    memory = [float(r["value"]) / 1e6 for r in _of(rows, "workers' memory", prefix="windows x")]
    state = [float(r["value"]) / 1e6 for r in _of(rows, "state", prefix="windows x")]
    beside = axis.twinx()
    beside.plot(at, memory, "C2--s", label="memory of all workers")
    beside.plot(at, state, "C2:^", label="state in it")
    beside.set(ylabel="MB", ylim=(0, max(memory) * 1.6))
    handles = [h for a in (axis, beside) for h in a.get_legend_handles_labels()[0]]
    axis.legend(handles=handles, loc="upper left")


def _ways(axis: Any, rows: list[Row]) -> None:
    found = _of(rows, "rate", " streams")
    if not found:
        axis.set_axis_off()
        return
    for name in ("noop", "watersmeet"):
        points = [(int(r["case"].split()[0]), float(r["value"]) / 1e6) for r in found if r["contestant"] == name]
        axis.plot(*zip(*points, strict=True), "-o", color=COLOURS[name], label=NAMES[name]) if points else None
    axis.set(xlabel="streams in a chain", ylabel="million rows/s", ylim=(0, None), title="More streams")
    axis.set_xticks(sorted({int(r["case"].split()[0]) for r in found}))
    axis.legend()
