"""Figures 2, 4, 5, 6 and 8 to 16 of heeb, and what is ours: models that are found online."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.drawing import save
from experiments.experiment import Config, Tables
from experiments.heeb.curves import figure_2, figure_4, figure_5, figure_6
from experiments.heeb.parts import SYNTHETIC
from experiments.heeb.summary import Means, hits, means

COLORS = {
    "opt_offline": "#222222", "lfd": "#222222", "flowexpect": "#8172b3", "rand": "#999999", "prob": "#dd8452", "life": "#937860",
    "heeb": "#c44e52", "heeb_adaptive": "#e377c2", "heeb season": "#55a868", "heeb_found": "#2f7d3b", "hist": "#4c72b0",
    "hist printed": "#9ec5e8", "lru": "#dd8452", "lfu": "#937860", "lru_k": "#ccb974", "a_o": "#e6b800",
}  # fmt: skip
NAMES = {
    "opt_offline": "OPT-offline", "lfd": "LFD", "flowexpect": "FLOWEXPECT", "rand": "RAND", "prob": "PROB", "life": "LIFE", "heeb": "HEEB",
    "heeb_adaptive": "HEEB, adaptive α (ours)", "heeb season": "HEEB, season fitted (ours)", "heeb_found": "HEEB found online (ours)",
    "hist": "HIST (ours)", "hist printed": "HIST as printed", "lru": "LRU", "lfu": "LFU", "lru_k": "LRU-2", "a_o": "A_o on AR(1)",
}  # fmt: skip


def figures(config: Config, tables: Tables, folder: Path) -> Iterator[Path]:
    found = means(tables)
    yield _curves(folder / "figure_2_4_5_6.png")
    yield _bars(config, found, folder / "figure_8.png")
    yield _by_size(
        found, SYNTHETIC, ("opt_offline", "heeb", "heeb_adaptive", "life", "prob", "rand"), folder / "figure_9_12.png"
    )
    yield _by_size(found, ("LOW", "HIGH"), ("heeb", "hist", "hist printed", "rand"), folder / "figure_13_14.png")
    yield _real(tables, folder / "figure_15.png")
    yield _memory(tables, folder / "figure_16.png")
    yield _found(config, tables, folder / "found.png")


def _curves(path: Path) -> Path:
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    for axes, draw in zip(figure.subplots(2, 2).flat, (figure_2, figure_4, figure_5, figure_6), strict=True):
        draw(axes)
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
        if draw is not figure_6:
            axes.set_xlabel("steps kept")
            axes.set_ylabel("expected benefit")
    return save(figure, path)


def _bars(config: Config, found: Means, path: Path) -> Path:
    """Results at one size; WALK has a scale of its own, since it has far fewer."""
    names = ("opt_offline", "flowexpect", "heeb", "heeb_adaptive", "heeb_found", "hist", "life", "prob", "rand")
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    for axes, streams in zip(figure.subplots(1, 4), SYNTHETIC, strict=True):
        shown = [n for n in names if (streams, n, config["size"]) in found]
        values = [found[streams, n, config["size"]] for n in shown]
        axes.barh(
            range(len(shown)), [v[0] for v in values], xerr=[v[1] for v in values], color=[COLORS[n] for n in shown],
            error_kw={"lw": 0.8},
        )  # fmt: skip
        axes.set_yticks(
            range(len(shown)),
            [NAMES[n] if streams == SYNTHETIC[0] or streams == "WALK" else "" for n in shown],
            fontsize=7,
        )
        axes.invert_yaxis()
        axes.set_title(streams, fontsize=10)
        axes.grid(alpha=0.3, axis="x")
        axes.tick_params(axis="x", labelsize=8)
    figure.suptitle(
        f"Figure 8: results, cache of {config['size']} tuples (mean and deviation of the runs)", fontsize=10
    )
    return save(figure, path)


def _by_size(found: Means, streams: tuple[str, ...], names: tuple[str, ...], path: Path) -> Path:
    """Mean and deviation of the runs, by cache size."""
    figure = Figure(figsize=(10, 3.4 * -(-len(streams) // 2)), layout="constrained")
    for axes, name in zip(figure.subplots(-(-len(streams) // 2), 2, squeeze=False).flat, streams, strict=True):
        for algorithm in names:
            sizes = sorted(k for of, by, k in found if of == name and by == algorithm)
            if not sizes:
                continue
            values = np.array([found[name, algorithm, k] for k in sizes])
            dashes = "--" if algorithm == "heeb_adaptive" else "-"  # it lies on HEEB in most places
            axes.plot(sizes, values[:, 0], dashes, color=COLORS[algorithm], label=NAMES[algorithm], marker="o", ms=3)
            axes.fill_between(
                sizes, values[:, 0] - values[:, 1], values[:, 0] + values[:, 1], color=COLORS[algorithm], alpha=0.15, lw=0
            )  # fmt: skip
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("cache size (tuples)")
        axes.set_ylabel("results")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    return save(figure, path)


def _real(tables: Tables, path: Path) -> Path:
    """Hits as a share of LFD's, so that the policies can be told apart."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    papers, ours = figure.subplots(1, 2, sharey=True)
    best = hits(tables, "lfd")
    for axes, names in (
        (papers, ("heeb", "lru", "lfu", "rand")),
        (ours, ("heeb_found", "heeb season", "heeb_adaptive", "heeb", "a_o", "lru", "lru_k", "lfu")),
    ):
        for name in names:
            found = hits(tables, name)
            axes.plot(
                list(found),
                [found[k] / best[k] for k in found],
                color=COLORS[name],
                label=NAMES[name],
                marker="o",
                ms=3,
            )
        axes.set_xlabel("cache size (tuples)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    source = tables["real"][0]["source"]
    papers.set_title(f"Figure 15: REAL ({source}), the paper's policies", fontsize=10)
    ours.set_title("with ours", fontsize=10)
    papers.set_ylabel("hits / hits of LFD")
    return save(figure, path)


def _memory(tables: Tables, path: Path) -> Path:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    for axes, what, label in zip(
        figure.subplots(1, 2, sharey=True),
        ("lag", "deviation"),
        ("steps that R lags", "deviation of S (R: 1)"),
        strict=True,
    ):
        rows = [r for r in tables["memory"] if r["what"] == what]
        by = sorted({r["by"] for r in rows})
        each = [[r["share_of_r"] for r in rows if r["by"] == b] for b in by]
        axes.bar([str(b) for b in by], [np.mean(e) for e in each], yerr=[np.std(e) for e in each], color="#4c72b0")
        axes.axhline(0.5, color="0.4", lw=0.8, ls="--")
        axes.set_xlabel(label)
        axes.grid(alpha=0.3, axis="y")
    figure.axes[0].set_ylabel("share of the cache that R takes")
    figure.suptitle("Figure 16: memory between two streams", fontsize=10)
    return save(figure, path)


def _found(config: Config, tables: Tables, path: Path) -> Path:
    """How often the right class is found, and what a wrong one costs."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = [r for r in tables["identify"] if r["possible"]]
    names = list(dict.fromkeys(r["streams"] for r in rows))
    after = sorted({r["after"] for r in rows})
    share = np.full((len(names), len(after)), np.nan)
    for i, name in enumerate(names):
        for j, n in enumerate(after):
            right_one = [r["is"] == r["found"] for r in rows if r["streams"] == name and r["after"] == n]
            if right_one:
                share[i, j] = np.mean(right_one)
                left.text(j, i, f"{share[i, j]:.0%}", ha="center", va="center", fontsize=9)
    left.imshow(share, cmap="RdYlGn", vmin=0, vmax=1.3, aspect="auto")
    left.set_xticks(range(len(after)), [str(n) for n in after])
    left.set_yticks(range(len(names)), names)
    left.set_xlabel("values seen")
    left.set_title("runs in which the right class is found", fontsize=10)
    assumed = list(dict.fromkeys(r["assumed"] for r in tables["cost"]))
    width = 0.8 / len(assumed)
    for i, name in enumerate(assumed):
        heights = [_relative(tables, streams, name) for streams in SYNTHETIC]
        right.bar(
            np.arange(len(SYNTHETIC)) + i * width, heights, width, label=name if name in NAMES else f"HEEB on {name}"
        )
    right.set_xticks(np.arange(len(SYNTHETIC)) + 0.4 - width / 2, SYNTHETIC)
    right.set_title("results / results of HEEB on the true model", fontsize=10)
    right.set_ylim(0, 1.75)
    right.legend(fontsize=7, ncols=3, loc="upper center")
    right.grid(alpha=0.3, axis="y")
    figure.suptitle(f"Ours: models found online, and wrong ones (cache of {config['size']})", fontsize=10)
    return save(figure, path)


def _relative(tables: Tables, streams: str, assumed: str) -> float:
    rows: list[dict[str, Any]] = [r for r in tables["cost"] if r["streams"] == streams]
    total = {a: sum(r["results"] for r in rows if r["assumed"] == a) for a in (assumed, "heeb")}
    return float(total[assumed] / max(total["heeb"], 1))
