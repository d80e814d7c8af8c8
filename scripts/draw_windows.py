"""Draws docs/pictures/windows.png: three streams, their windows at one moment, and the result that comes about then."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

NOW = 74  # minutes
STREAMS = [
    ("orders [RANGE 1 HOUR]", 60, [(3, "1"), (21, "2"), (33, "3"), (52, "4"), (67, "5")], "#2a6f97"),
    ("payments [RANGE 10 MINUTES]", 10, [(12, "1"), (44, "2"), (66, "3"), (72, "4")], "#b5651d"),
    ("shipments [RANGE 10 MINUTES]", 10, [(25, "1"), (59, "2"), (74, "3")], "#3b7d4f"),
]
RESULT = "3"


def draw(path: Path) -> None:
    figure, axes = plt.subplots(figsize=(9, 3.3))
    at = {}
    for row, (name, window, tuples, colour) in enumerate(STREAMS):
        y = -row
        axes.plot([0, 80], [y, y], color="#bbbbbb", linewidth=1, zorder=1)
        axes.barh(y, window, left=NOW - window, height=0.56, color=colour, alpha=0.18, zorder=0)
        axes.text(-2, y, name, ha="right", va="center", fontsize=10, family="monospace")
        for minute, order in tuples:
            inside = minute >= NOW - window
            axes.scatter(minute, y, s=230, color=colour if inside else "#cccccc", zorder=2)
            axes.text(minute, y, order, ha="center", va="center", color="white", fontsize=9, zorder=3)
            at[row, order] = minute
    xs = [at[row, RESULT] for row in range(3)]
    axes.plot(xs, [0, -1, -2], color="#222222", linewidth=1.6, zorder=1.5)
    axes.axvline(NOW, color="#222222", linewidth=1, linestyle=":")
    axes.annotate(
        "order 3 was paid and is now shipped:\none result, at this moment, once", (NOW, -2), (78, -1), fontsize=9.5,
        arrowprops={"arrowstyle": "->", "color": "#222222"}, va="center",
    )  # fmt: skip
    axes.text(
        2,
        -2.62,
        "order 1: paid long before it was shipped; its payment had left its window",
        fontsize=8.5,
        color="#777777",
    )
    axes.set(xlim=(-1, 112), ylim=(-2.8, 0.6))
    axes.axis("off")
    axes.text(40, 0.45, "time →", fontsize=9, color="#777777")
    figure.savefig(path, dpi=150, bbox_inches="tight", facecolor="white")


if __name__ == "__main__":
    draw(Path(__file__).parents[1] / "docs" / "pictures" / "windows.png")
