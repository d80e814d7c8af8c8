"""Figures 4 and 7 of static-optimization, and how much the choice of plan gains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.drawing import save
from experiments.experiment import Config, Tables
from experiments.static_optimization.parts import MODELS, PLANS

COLORS = {"a": "#4c72b0", "b": "#dd8452", "c": "#55a868"}
TITLES = {
    "paper": "the paper's model: windows of surviving tuples",
    "faithful": "windows that count dropped tuples",
}


def figures(config: Config, tables: Tables, folder: Path) -> Iterator[Path]:
    yield _figure_4(tables, folder / "figure_4.png")
    yield _figure_7(tables, folder / "figure_7.png")
    yield _which_plan(tables, folder / "which_plan.png")


def _figure_4(tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    rows = [r for r in tables["figure_4"] if r["seed"] == 0]
    names = [f"plan {r['plan']}" for r in rows]
    first, second = [r["first"] for r in rows], [r["second"] for r in rows]
    axes.barh(names, first, color="#4c72b0", label="first filter")
    axes.barh(names, second, left=first, color="#dd8452", label="second filter")
    for at, plan in enumerate("AB"):
        totals = [r["cpu"] for r in tables["figure_4"] if r["plan"] == plan and r["seed"]]
        axes.errorbar(
            np.mean(totals), at, xerr=[[np.mean(totals) - min(totals)], [max(totals) - np.mean(totals)]], fmt="k|", capsize=4,
            label="counted, all seeds" if at == 0 else None,
        )  # fmt: skip
    axes.axvline(1.0, color="0.2", ls="--", lw=1)
    axes.set_xlabel("CPU seconds per second; more than 1 is infeasible")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.65)
    axes.legend(fontsize=8, loc="upper right")
    return save(figure, path, dpi=110)


def _figure_7(tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    for axes, model in zip(figure.subplots(1, 2), MODELS, strict=True):
        for plan, text in PLANS.items():
            line = [r for r in tables["figure_7"] if r["model"] == model and r["plan"] == plan]
            axes.plot(
                [r["cost"] for r in line],
                [r["results_per_s"] for r in line],
                color=COLORS[plan],
                label=f"({plan})  {text}",
            )
            runs = [r for r in tables["figure_7_engine"] if r["model"] == model and r["plan"] == plan]
            for cost in sorted({r["cost"] for r in runs}):
                seen = [r["measured"] for r in runs if r["cost"] == cost]
                mean = float(np.mean(seen))
                axes.errorbar(
                    cost,
                    mean,
                    yerr=[[mean - min(seen)], [max(seen) - mean]],
                    fmt="o",
                    ms=4,
                    capsize=3,
                    color=COLORS[plan],
                )
        axes.set_title(TITLES[model], fontsize=10)
        axes.set_xlabel("cost of a tuple at a join (s)")
        axes.set_xlim(0, 0.112)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, title="lines: model; dots: engine, range of seeds", title_fontsize=7)
    figure.axes[0].set_ylabel("results kept per second")
    figure.axes[0].set_ylim(-20, 1060)
    figure.axes[1].set_yscale("log")
    return save(figure, path, dpi=110)


def _which_plan(tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(6.5, 3.8), layout="constrained")
    axes = figure.subplots()
    rows = tables["which_plan"]
    parts, seeds = sorted({r["capacity"] for r in rows}), sorted({r["seed"] for r in rows})
    for n in sorted({r["streams"] for r in rows}):
        line = []
        for part in parts:
            here = [r for r in rows if r["streams"] == n and r["capacity"] == part]
            line.append([_better([r for r in here if r["seed"] == s]) for s in seeds])
        mean = [np.mean(x) for x in line]
        axes.plot(parts, mean, "o-", label=f"{n} streams")
        axes.fill_between(parts, [min(x) for x in line], [max(x) for x in line], alpha=0.15, lw=0)
    axes.set_xlabel("CPU there is, as a part of what the cheapest plan needs")
    axes.set_ylabel("% of problems in which another plan\nkeeps over 0.1 % more: mean, range of seeds")
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return save(figure, path, dpi=110)


def _better(rows: list[dict[str, Any]]) -> float:
    """% of problems in which the best plan keeps over 0.1 % more than the cheapest."""
    return 100 * float(np.mean([r["best"] / r["cheapest"] > 1.001 for r in rows]))
