"""Figures 6 to 9 of jaqpot, and what is ours: trees whose states expire, thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.drawing import save
from experiments.experiment import Config, Tables
from experiments.jaqpot.settings import PLANS, POLICIES
from experiments.jaqpot.summary import mean_by

COLORS = {
    "jaqpot": "#c44e52", "grepp": "#e377c2", "equal_hj": "#999999", "global_hjpr": "#4c72b0", "ebest_hjp": "#dd8452",
    "sbest_hjp": "#937860",
}  # fmt: skip
NAMES = {
    "jaqpot": "JAQPOT", "grepp": "GrePP", "equal_hj": "EqualHJ", "global_hjpr": "GlobalHJPR", "ebest_hjp": "EBestHJP",
    "sbest_hjp": "SBestHJP",
}  # fmt: skip


def figures(config: Config, tables: Tables, folder: Path) -> Iterator[Path]:
    yield _fluctuate(config, tables, folder / "figure_6.png")
    yield _resources(tables, folder / "figure_7.png")
    yield _weather(config, tables, folder / "figure_8.png")
    yield _freshness(config, tables, folder / "figure_9.png")
    yield _ours(config, tables, folder / "coupled.png")


def _lines(axes: Any, rows: list[dict[str, Any]], x: str, y: str) -> None:
    for policy in POLICIES:
        found = mean_by([r for r in rows if r["policy"] == policy], (x,), y)
        if found:
            dashes = "--" if policy == "grepp" else "-"  # it lies on JAQPOT where freshness is cheap
            at = [k[0] for k in found]
            axes.plot(at, list(found.values()), dashes, color=COLORS[policy], label=NAMES[policy], marker="o", ms=3)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _fluctuate(config: Config, tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    for axes, plan in zip(figure.subplots(1, 2), ("linear", "bushy"), strict=True):
        _lines(axes, [r for r in tables["fluctuate"] if r["plan"] == plan], "minute", "results")
        for change in (3, 7):
            axes.axvline(change, color="0.6", lw=0.8, ls=":")
        axes.set_title(f"Figure 6: {plan} plan, selectivities change at 3 and 7", fontsize=10)
        axes.set_xlabel(f"minute (of {config['fluctuate']['minute_s']:g} simulated seconds)")
        axes.set_ylabel("results so far")
    return save(figure, path)


def _resources(tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    for axes, plan in zip(figure.subplots(1, 3, sharey=True), PLANS, strict=True):
        _lines(axes, [r for r in tables["resources"] if r["plan"] == plan], "share", "throughput")
        axes.plot([0, 1], [0, 1], color="0.7", lw=0.8, ls=":")
        axes.set_title(f"Figure 7: {plan} plan", fontsize=10)
        axes.set_xlabel("resources / saturation")
    figure.axes[0].set_ylabel("throughput / saturation")
    return save(figure, path)


def _weather(config: Config, tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    for axes, mu in zip(figure.subplots(1, 3), config["weather"]["resources"], strict=True):
        _lines(axes, [r for r in tables["weather"] if r["resources"] == mu], "minute", "results")
        axes.set_title(f"Figure 8: sensors ({tables['weather'][0]['source']}), μ = {mu}", fontsize=10)
        axes.set_xlabel(f"minute (of {config['weather']['minute_s']:g} simulated seconds)")
    figure.axes[0].set_ylabel("results so far")
    return save(figure, path)


def _freshness(config: Config, tables: Tables, path: Path) -> Path:
    """Stale results by tolerance, then the resources that freshness takes. JAQPOT: where the tolerances can be kept (sensors: always)."""
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    axes = figure.subplots(2, 3)
    times = config["times"]
    for at, plan in zip(axes.flat, [*PLANS, "sensors"], strict=False):
        for i, policy in enumerate(POLICIES):
            heights = [_stale(config, tables, plan, policy, t) for t in times]
            at.bar(np.arange(len(times)) + 0.13 * i, heights, 0.13, color=COLORS[policy], label=NAMES[policy])
        at.set_xticks(np.arange(len(times)) + 0.32, [f"{t:g}x" for t in times])
        at.set_ylim(0, 1.05)
        mu = "μ = 300" if plan == "sensors" else f"μ = {config['freshness']['resources'][1]:.0%} of saturation"
        at.set_title(f"Figure 9 a to c: {plan}, {mu}", fontsize=10)
        at.set_ylabel("stale results")
        at.grid(alpha=0.3, axis="y")
    axes.flat[0].legend(fontsize=7)
    spent, feasible = axes.flat[4], axes.flat[5]
    for plan in PLANS:
        rows = [r for r in tables["share"] if r["plan"] == plan]
        means = mean_by([r for r in rows if r["feasible"]], ("times",), "for_freshness")
        spent.plot([k[0] for k in means], list(means.values()), marker="o", label=plan)
        able = mean_by(rows, ("times",), "feasible")
        feasible.plot([k[0] for k in able], list(able.values()), marker="o", label=plan)
    for at, title in (
        (spent, "Figure 9 d: share of resources for freshness"),
        (feasible, "settings that can be kept fresh"),
    ):
        at.set_title(title, fontsize=10)
        at.set_xlabel("tolerance / window")
        at.set_ylim(0, 1.05)
        at.grid(alpha=0.3)
        at.legend(fontsize=7)
    return save(figure, path)


def _stale(config: Config, tables: Tables, plan: str, policy: str, times: float) -> float:
    if plan == "sensors":
        rows = [r for r in tables["weather"] if r["policy"] == policy and r["resources"] == 300]
        made = [r["results"] for r in rows if r["minute"] == config["weather"]["minutes"]]
        return float(sum(r[f"stale_{times:g}"] for r in rows) / max(sum(made), 1))
    share = config["freshness"]["resources"][1]
    rows = [r for r in tables["freshness"] if (r["plan"], r["policy"], r["resources"]) == (plan, policy, share)]
    kept = [r[f"stale_{times:g}"] for r in rows if r["feasible"] or policy != "jaqpot"]
    return float(np.mean(kept)) if kept else 0.0


def _ours(config: Config, tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = tables["coupled"]
    shares = config["coupled"]["shares"]
    for i, (name, label, color) in enumerate(
        (("coupled", "coupled (ours)", "#55a868"), ("grepp", "GrePP, found", "#e377c2"),
         ("grepp_forecast", "GrePP, forecast", "#f7c6e4"), ("best_heuristic", "best heuristic", "#4c72b0"))
    ):  # fmt: skip
        means = mean_by(rows, ("share",), name)
        left.bar(np.arange(len(shares)) + 0.2 * i, list(means.values()), 0.2, color=color, label=label)
    left.set_xticks(np.arange(len(shares)) + 0.3, [f"{s:.0%}" for s in shares])
    left.set_title("ours: trees whose states expire", fontsize=10)
    left.set_xlabel("CPU / CPU of all probes")
    left.set_ylabel("results / all results")
    over = (
        mean_by(tables["overhead"], ("streams",), "jaqpot_ms"),
        mean_by(tables["overhead"], ("streams",), "coupled_ms"),
    )
    for found, label in zip(over, ("JAQPOT", "coupled search"), strict=True):
        middle.semilogy([k[0] for k in found], list(found.values()), marker="o", label=label)
    middle.axhline(20, color="0.5", lw=0.8, ls=":")
    middle.set_title("5.4: an analysis, ms", fontsize=10)
    middle.set_xlabel("streams")
    kinds = list(dict.fromkeys(str(r["thresholds"]) for r in tables["tuning"]))
    for kind in kinds:
        mine = [r for r in tables["tuning"] if str(r["thresholds"]) == kind]
        right.scatter(
            [np.mean([r["analysed"] for r in mine])], [np.mean([r["of_best"] for r in mine])], label=f"ε {kind}"
        )
    right.set_title("ours: thresholds (linear plan, drifting)", fontsize=10)
    right.set_xlabel(f"analyses in {config['tuning']['steps']} steps")
    right.set_ylabel("results / deciding anew each step")
    for at in (left, middle, right):
        at.grid(alpha=0.3)
        at.legend(fontsize=7)
    return save(figure, path)
