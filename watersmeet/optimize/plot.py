"""Plot: a decision as a picture: the plan's tree, and every plan as a point between CPU and memory, with the budget as a box.

For few streams all join trees are drawn, each with its best probe orders; for more, those that the search looked at. The plane shows
why a plan was chosen: mjoins lie where memory is least, binary trees where CPU is mostly least, and jtrees between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Any

from watersmeet.errors import DataError
from watersmeet.model.plan import Leaf, Tree
from watersmeet.optimize.choose import Decision
from watersmeet.optimize.cost import Part
from watersmeet.optimize.explain import amount, number
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.policy import non_dominated
from watersmeet.optimize.shape import Shape, all_jtrees, normal

ALL_TREES = 6  # streams up to which all join trees are drawn: 2752 of them
KINDS = {"mjoin": ("s", "#c44e52"), "bjtree": ("^", "#4c72b0"), "jtree": ("o", "#8c8c8c")}
FORMATS = (".png", ".svg", ".pdf")
BEYOND = 4.0  # plans that cost so many times what the dearest plan looked at costs are left outside
SPREAD = 30.0  # axes are logarithmic where the dearest plan costs so many times the cheapest


def plot_decision(d: Decision, path: str | Path) -> None:
    """Draw the decision into a file: .png, .svg or .pdf."""
    from matplotlib.figure import Figure

    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"can't draw into '{path}'\n  a name that ends in {', '.join(FORMATS)}")
    wide = max(6.0, 1.0 * len(d.problem.streams))
    figure = Figure(figsize=(wide + 7.0, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(wide, 7.0))
    _draw_tree(left, d)
    _draw_plane(right, d)
    try:
        figure.savefig(path, dpi=130)
    except OSError as e:
        raise DataError(f"can't write the plot to {path}: {e.strerror}") from None


def kind_of(shape: Shape) -> str:
    """
    >>> kind_of((0, 1, 2)), kind_of(((0, 1), 2)), kind_of(((0, 1, 2), 3)), kind_of((0, 1))
    ('mjoin', 'bjtree', 'jtree', 'mjoin')
    """
    assert not isinstance(shape, int)
    if all(isinstance(s, int) for s in shape):
        return "mjoin"
    return "bjtree" if _binary(shape) else "jtree"


def _binary(shape: Shape) -> bool:
    return isinstance(shape, int) or (len(shape) == 2 and all(map(_binary, shape)))


def plans(d: Decision) -> list[Candidate]:
    """The plans to draw: all join trees, or those that were looked at; each once."""
    n = len(d.problem.streams)
    found = {normal(p.shape): p for _, p in d.seen}
    if n <= ALL_TREES:
        for shape in all_jtrees(tuple(range(n))):
            key = normal(shape)
            if key not in found:
                found[key] = Candidate(d.costs.cpu(shape), d.costs.memory(shape), key)
    return [p for p in found.values() if p.cpu < inf]


def _draw_plane(axes: Any, d: Decision) -> None:
    drawn = plans(d)
    for kind, (marker, color) in KINDS.items():
        points = [p for p in drawn if kind_of(p.shape) == kind]
        size, alpha = (90, 1.0) if kind == "mjoin" else (22, 0.55)
        if points:
            axes.scatter(
                [p.cpu for p in points], [p.memory for p in points], marker=marker, color=color, s=size, alpha=alpha,
                label=f"{kind} ({len(points)})", linewidths=0, zorder=3 if kind == "mjoin" else 2,
            )  # fmt: skip
    front = non_dominated(drawn)
    axes.plot(
        [p.cpu for p in front], [p.memory for p in front], drawstyle="steps-post", color="0.25", lw=0.9, zorder=1,
        label="no plan is better in both",
    )  # fmt: skip
    if d.chosen is not None:
        axes.scatter(
            d.chosen.cpu, d.chosen.memory, marker="*", s=320, color="#dd8452", edgecolor="black", zorder=5, label="chosen"
        )  # fmt: skip
    bill = d.estimate
    if d.kept is not None and bill is not None:
        axes.scatter(
            bill.cpu,
            bill.memory,
            marker="*",
            s=200,
            color="white",
            edgecolor="black",
            zorder=5,
            label="behind drop boxes",
        )
    low_x, high_x = _scale(axes, "x", [p.cpu for p in drawn], [p.cpu for _, p in d.seen], d.limits.cpu)
    low_y, high_y = _scale(axes, "y", [p.memory for p in drawn], [p.memory for _, p in d.seen], d.limits.memory)
    beyond = sum(p.cpu > high_x or p.memory > high_y for p in drawn)
    if d.limits.bounded:
        right, top = min(d.limits.cpu, high_x), min(d.limits.memory, high_y)
        axes.fill([low_x, right, right, low_x], [low_y, low_y, top, top], color="#55a868", alpha=0.14, zorder=0)
        axes.plot([right, right, low_x], [low_y, top, top], color="#55a868", lw=1.6, zorder=1, label="budget")
    axes.set_xlabel("CPU: seconds of work per second")
    axes.set_ylabel(f"memory: {d.problem.unit} held")
    every = "all join trees" if len(d.problem.streams) <= ALL_TREES else "the plans that were looked at"
    dearer = f"; {beyond} dearer ones are outside" if beyond else ""
    axes.set_title(f"Where plans lie: {every}{dearer}", fontsize=11)
    axes.legend(fontsize=8, framealpha=0.9)
    axes.grid(alpha=0.25)


def _scale(
    axes: Any, which: str, values: Iterable[float], looked_at: Iterable[float], limit: float
) -> tuple[float, float]:
    """Limits of an axis: all values but those far beyond what was looked at; logarithmic where values are far apart."""
    marks = [v for v in looked_at if v > 0] + ([limit] if limit < inf else [])
    shown = [v for v in values if 0 < v <= BEYOND * max(marks)] + marks
    low, high = min(shown), max(shown)
    if high / low > SPREAD:
        getattr(axes, f"set_{which}scale")("log")
        low, high = low / (high / low) ** 0.06, high * (high / low) ** 0.06
    else:
        room = 0.08 * (high - low) or 0.1 * high
        low, high = max(low - room, 0.0), high + room
    getattr(axes, f"set_{which}lim")(low, high)
    return low, high


def _draw_tree(axes: Any, d: Decision) -> None:
    axes.axis("off")
    bill = d.estimate
    if d.root is None or bill is None:
        axes.text(0.5, 0.5, "no plan fits the budget", ha="center", va="center", fontsize=13, transform=axes.transAxes)
        return
    parts = {id(p.tree): p for p in bill.parts}
    width = len(d.root.streams)
    depth = _depth(d.root)
    place = {name: i for i, name in enumerate(_leaves(d.root))}

    def draw(tree: Tree, level: int) -> tuple[float, float]:
        y = -float(level) if not isinstance(tree, Leaf) else -float(depth)
        if isinstance(tree, Leaf):
            x = float(place[tree.stream])
        else:
            ends = [draw(child, level + 1) for child in tree.inputs]
            x = sum(end for end, _ in ends) / len(ends)
            for end, below in ends:
                axes.plot([x, end], [y, below], color="0.45", lw=1.4, zorder=1)
        axes.text(
            x, y, _said(parts[id(tree)], tree, tree is d.root, d.problem.unit), ha="center", va="center", fontsize=7.5, zorder=2,
            bbox={"boxstyle": "round,pad=0.4", "facecolor": "#eaf1fb" if isinstance(tree, Leaf) else "#fdf1e3", "edgecolor": "0.5"},
        )  # fmt: skip
        return x, y

    draw(d.root, 0)
    axes.set_xlim(-0.6, width - 0.4)
    axes.set_ylim(-depth - 0.45, 0.45)
    kept = f", keeping {d.kept.results / d.kept.of:.1%} of the results" if d.kept is not None and d.kept.of else ""
    axes.set_title(
        f"Plan {d.root}\n{number(bill.cpu)} CPU, {amount(bill.memory, d.problem.unit)}, {number(bill.output_rate)} results/s{kept}",
        fontsize=11,
    )


def _said(part: Part, tree: Tree, root: bool, unit: str) -> str:
    name = str(tree) if isinstance(tree, Leaf) else f"⋈ {len(tree.inputs)} inputs"
    state = "nothing kept" if root else f"keeps {amount(part.memory, unit).removesuffix(' tuples')}"
    return f"{name}\n{number(part.rate)}/s\n{state}\nCPU {part.cpu:.2g}"


def _depth(tree: Tree) -> int:
    return 0 if isinstance(tree, Leaf) else 1 + max(map(_depth, tree.inputs))


def _leaves(tree: Tree) -> list[str]:
    return [tree.stream] if isinstance(tree, Leaf) else [name for child in tree.inputs for name in _leaves(child)]
