"""Figures 7, 8, 13 and 14 of qualified-plans, and predictions against measurements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.drawing import save
from experiments.experiment import Config, Tables
from experiments.qualified_plans.prediction import cpu_predicted
from experiments.qualified_plans.sets import limits
from experiments.qualified_plans.settings import SEARCHES

KINDS = {"mjoin": "#c44e52", "bjtree": "#4c72b0", "jtree": "#55a868"}
NAMES = {
    "jtree": "JTree-Finder", "pareto": "Pareto JTree-Finder", "selection": "state-selection", "removal": "state-removal",
    "two_layer": "two-layer",
}  # fmt: skip
COLORS = {"jtree": "#8172b3", "pareto": "#ccb974", "selection": "#c44e52", "removal": "#4c72b0", "two_layer": "#55a868"}


def figures(config: Config, tables: Tables, folder: Path) -> Iterator[Path]:
    yield _sets(config, tables, "table 3", folder / "figure_7_8.png")
    yield _sets(config, tables, "here", folder / "figure_7_8_here.png")
    yield _searches(tables, folder / "figure_13.png")
    yield _distribution(tables, folder / "figure_14.png")
    yield _predicted(tables, folder / "predicted.png")


def _sets(config: Config, tables: Tables, view: str, path: Path) -> Path:
    """Results, tuples held and tuples waiting over time: mean and range of the seeds."""
    names = list(config["sets"])
    figure = Figure(figsize=(11.5, 2.4 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), 3, squeeze=False)
    for row, name in zip(grid, names, strict=True):
        rows = [r for r in tables["under_limit"] if str(r["set"]) == name and r["view"] == view]
        for kind, color in KINDS.items():
            each = [r for r in rows if r["kind"] == kind]
            for axes, column in zip(row, ("results", "tuples", "waiting"), strict=True) if each else ():
                _course(axes, each, column, color, kind)
        row[1].axhline(limits(config, name, "budget").memory, color="0.3", ls="--", lw=0.9)
        row[1].set_yscale("log")
        row[2].set_ylim(bottom=0, top=max(row[2].get_ylim()[1], 10))
        cpu = float(np.mean([r["cpu"] for r in rows]))
        row[0].set_ylabel(f"set {name}\nCPU {cpu:.3g}, {limits(config, name, 'budget').memory:,.0f} tuples")
        row[0].legend(fontsize=7)
        for axes in row:
            axes.grid(alpha=0.3)
            axes.tick_params(labelsize=8)
    titles = (
        "results so far (x: out of memory)",
        "tuples held (dashed: budget; x: beyond it)",
        "tuples waiting (until out of memory)",
    )
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title, fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel("seconds of the streams")
    return save(figure, path, dpi=75)


def _course(axes: Any, rows: list[dict[str, Any]], column: str, color: str, label: str) -> None:
    """One line: the mean of the seeds, and their range; a cross where a run ended without memory."""
    by_time: dict[float, list[float]] = {}
    for r in rows:
        stopped = r["stopped_s"]
        if column == "results" or stopped == "" or r["at_s"] < stopped:
            by_time.setdefault(r["at_s"], []).append(r[column])
    at = sorted(by_time)
    axes.plot(at, [np.mean(by_time[t]) for t in at], color=color, label=label)
    axes.fill_between(at, [min(by_time[t]) for t in at], [max(by_time[t]) for t in at], color=color, alpha=0.2, lw=0)
    if column != "waiting":
        for r in {r["seed"]: r for r in rows if r["stopped_s"] != ""}.values():
            axes.plot(r["stopped_s"], r[column], "x", color=color, ms=7, mew=1.5)


def _searches(tables: Tables, path: Path) -> Path:
    rows = tables["random"]
    sizes = sorted({r["streams"] for r in rows})
    figure = Figure(figsize=(13, 4), layout="constrained")
    time, share, exists = figure.subplots(1, 3)
    binding = [r for r in rows if r["budget"] == "binding"]
    for name in SEARCHES:
        there = [n for n in sizes if any(r[f"{name}_ms"] != "" for r in binding if r["streams"] == n)]
        taken = [[r[f"{name}_ms"] for r in binding if r["streams"] == n] for n in there]
        time.plot(there, [np.mean(t) for t in taken], "o-", ms=3, color=COLORS[name], label=NAMES[name])
        time.fill_between(
            there,
            [np.quantile(t, 0.1) for t in taken],
            [np.quantile(t, 0.9) for t in taken],
            color=COLORS[name],
            alpha=0.15,
            lw=0,
        )
    time.set_yscale("log")
    time.set_title("(a) time of a search: mean, 10 to 90 %", fontsize=10)
    time.set_ylabel("ms of CPU")
    known = [r for r in binding if r["pareto_found"] == 1]
    for name in ("selection", "removal", "two_layer"):
        there = sorted({r["streams"] for r in known})
        per_seed = [by_seed([r for r in known if r["streams"] == n], f"{name}_found") for n in there]
        mean = [np.mean(s) for s in per_seed]
        low = [m - min(s) for m, s in zip(mean, per_seed, strict=True)]
        high = [max(s) - m for m, s in zip(mean, per_seed, strict=True)]
        share.errorbar(
            there, mean, yerr=[low, high], fmt="o-", ms=3, capsize=3, color=COLORS[name], label=NAMES[name]
        )  # fmt: skip
    share.set_ylim(0, 103)
    share.set_title("(b) qualified percentage, binding budgets:\nmean and range of seeds", fontsize=10)
    for budget, style in (("printed", "o--"), ("binding", "s-"), ("wide", "^-")):
        there = [n for n in sizes if any(r["pareto_found"] != "" for r in rows if r["streams"] == n)]
        exists.plot(
            there, [np.mean([100 * r["pareto_found"] for r in rows if r["streams"] == n and r["budget"] == budget]) for n in there],
            style, ms=4, label=f"{budget} budget",
        )  # fmt: skip
    exists.set_ylim(-3, 103)
    exists.set_title("(c) % of settings with a qualified plan", fontsize=10)
    for axes in (time, share, exists):
        axes.set_xlabel("streams")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return save(figure, path, dpi=85)


def by_seed(rows: list[dict[str, Any]], column: str) -> list[float]:
    """Percentage of a 0/1 column, seed by seed."""
    seeds = sorted({r["seed"] for r in rows})
    return [100 * float(np.mean([r[column] for r in rows if r["seed"] == s])) for s in seeds]


def _distribution(tables: Tables, path: Path) -> Path:
    sizes = [n for n in (3, 5, 10) if any(r["streams"] == n for r in tables["random"])]
    figure = Figure(figsize=(4.2 * len(sizes), 4), layout="constrained")
    for axes, n in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        for name, marker in (("selection", "o"), ("removal", "^")):
            rows = [
                r for r in tables["random"] if r["streams"] == n and r["budget"] == "wide" and r[f"{name}_cpu"] != ""
            ]
            axes.scatter(
                [r[f"{name}_memory"] for r in rows], [r[f"{name}_cpu"] for r in rows], s=16, marker=marker, alpha=0.6,
                color=COLORS[name], label=f"{NAMES[name]} ({len(rows)})", linewidths=0,
            )  # fmt: skip
        if any(r["streams"] == n and r["budget"] == "wide" and r["two_layer_found"] == 1 for r in tables["random"]):
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.set_title(f"N = {n}", fontsize=10)
        axes.set_xlabel("memory (tuples)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("CPU (s/s)")
    return save(figure, path, dpi=85)


def _predicted(tables: Tables, path: Path) -> Path:
    rows = tables["predicted"]
    figure = Figure(figsize=(12.5, 4.2), layout="constrained")
    cpu, tuples, results = figure.subplots(1, 3)
    guess = cpu_predicted(tables)
    for axes, x, y, title in (
        (cpu, guess, [r["cpu_least"] for r in rows], "CPU: seconds per second"),
        (tuples, [r["tuples_predicted"] for r in rows], [r["tuples"] for r in rows], "tuples held"),
        (results, [r["results_predicted"] for r in rows], [r["results"] for r in rows], "results per second"),
    ):
        positive = [(a, b, r["streams"]) for a, b, r in zip(x, y, rows, strict=True) if a > 0 and b > 0]
        dots = axes.scatter(
            [p[0] for p in positive],
            [p[1] for p in positive],
            c=[p[2] for p in positive],
            cmap="viridis",
            s=14,
            alpha=0.8,
            linewidths=0,
        )
        ends = [min(min(p[:2]) for p in positive), max(max(p[:2]) for p in positive)]
        axes.plot(ends, ends, color="0.3", lw=0.9)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("predicted")
        axes.grid(alpha=0.3)
    cpu.set_ylabel("measured")
    figure.colorbar(dots, ax=results, label="streams", ticks=sorted({r["streams"] for r in rows}))
    return save(figure, path, dpi=85)
