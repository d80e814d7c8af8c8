"""The figure of bench/engine: speed against the hand-written loop, and how it changes with the window and the number of streams."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any


def draw(source: Path, target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with source.open() as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained", width_ratios=(1.3, 1, 1))
    grouped = [c for c in dict.fromkeys(r["case"] for r in rows) if "keys" in c or "skew" in c]
    _bars(axes[0], rows, grouped, "Three-way join, one core")
    for what, style, case in (
        ("by hand", "k--o", "same matches"), ("mjoin", "C0-o", "once full"), ("xjoin", "C1-s", "once full"),
    ):  # fmt: skip
        points = [r for r in rows if r["case"].startswith("windows") and r["case"].endswith(case) and r["what"] == what]
        axes[1].plot(
            [int(r["case"].split()[1][1:-1]) for r in points],
            [1e9 / float(r["value"]) for r in points],
            style,
            label=what if case == "once full" else f"{what}, filling included",
        )
    axes[1].set(xscale="log", xlabel="window, times 10 s (same matches per tuple)", ylabel="ns a tuple", ylim=(0, None),
                title="Cost against the window")  # fmt: skip
    axes[1].set_xticks([1, 10, 100], ["1", "10", "100"])
    axes[1].legend()
    for what, style in (("mjoin", "C0-o"), ("xjoin", "C1-s")):
        points = [r for r in rows if r["case"].endswith("streams") and r["what"] == what]
        axes[2].plot(
            [int(r["case"].split()[0]) for r in points], [float(r["value"]) / 1e6 for r in points], style, label=what
        )
    axes[2].set(xlabel="streams in a chain", ylabel="million tuples a second", ylim=(0, None), title="More streams")
    axes[2].set_xticks(range(3, 8))
    axes[2].legend()
    figure.savefig(target, dpi=110)
    plt.close(figure)


def _bars(axis: Any, rows: list[dict[str, str]], cases: list[str], title: str) -> None:
    for k, (what, colour) in enumerate((("by hand", "0.6"), ("mjoin", "C0"), ("xjoin", "C1"))):
        found = [(i, r) for i, c in enumerate(cases) for r in rows if r["case"] == c and r["what"] == what]
        values = [float(r["value"]) / 1e6 for _, r in found]
        spread = [[v - float(r["low"]) / 1e6 for v, (_, r) in zip(values, found, strict=True)],
                  [float(r["high"]) / 1e6 - v for v, (_, r) in zip(values, found, strict=True)]]  # fmt: skip
        axis.bar([i + (k - 1) * 0.27 for i, _ in found], values, 0.25, color=colour, label=what, yerr=spread, capsize=2)
    axis.set(ylabel="million tuples a second", title=title)
    axis.set_xticks(
        range(len(cases)), [c.replace("1,000,000", "10⁶").replace(", ", "\n").replace(" keys", "\nkeys") for c in cases]
    )
    axis.legend()
