"""The experiment sets under a limit: each plan executed with a budget of CPU and memory, for all seeds (Figures 7 and 8).

Three views of a set:

    table 3   CPU at Table 3's prices of what the engine does, with the budget that shows the case
    printed   the same with the printed budget, CPU_avail = 1 s (the paper's own sets)
    here      CPU time of this engine on this machine. How fast it is, is measured in the same run: the reference plan (the one that should
              keep up) runs without a limit, and what it takes in CPU time, divided by what it takes at Table 3's prices, is
              `scale`. The budget is `scale` times that of *table 3*, so the reference plan has the same part of it to spare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from experiments.experiment import Config, Part, Row, Setting, Tables, one_by_one
from experiments.limited import Tick, limited, unlimited
from experiments.qualified_plans.sets import edges, limits, plan_of, prices, shapes, text_of
from experiments.streams import streams

VIEWS = ("table 3", "printed", "here")
BEHIND = 0.02  # of all that came: if less waits at the end, the plan has kept up


def settings(config: Config) -> Iterator[Setting]:
    for name in config["sets"]:
        for view in VIEWS:
            if view == "printed" and "printed" not in config["sets"][name]:
                continue
            for seed in config["seeds"]:
                yield {"set": name, "view": view, "seed": seed}


def all_plans(config: Config, setting: Setting) -> list[Row]:
    """All plans of a set on the streams of one seed, one after the other, with the same budget."""
    name, view = setting["set"], setting["view"]
    one, costs = config["sets"][name], prices(config)
    here = view == "here"
    seconds, tick = (
        (one["here"]["seconds"], one["here"]["tick_s"]) if here else (one["seconds"], config["limited"]["tick_s"])
    )
    tables = streams(one["rate"], edges(one), seconds, setting["seed"])
    budget, scale = limits(config, name, "printed" if view == "printed" else "budget"), 1.0
    if here:
        reference, _ = plan_of(config, name, one["here"]["reference"])
        unlimited(text_of(one), tables, reference, 2 * tick, tick, costs)  # loads the kernel
        taken, priced = unlimited(text_of(one), tables, reference, seconds, tick, costs)
        scale = taken / priced
        budget = replace(budget, cpu=scale * budget.cpu)
    came = sum(t.num_rows for t in tables.values())
    made: list[Row] = []
    for kind in shapes(config, name):
        plan, _ = plan_of(config, name, kind)
        run = list(limited(text_of(one), tables, plan, budget, seconds, tick, costs, not here))
        stopped = next((t.stopped for t in run if t.stopped is not None), "")
        each = ceil(len(run) / config["limited"]["points"])
        for t in run[::-each][::-1]:
            made.append(
                {"kind": kind, "scale": scale, "cpu": budget.cpu, "came": came, "stopped_s": stopped, **_shown(t)}
            )
    return made


def _shown(t: Tick) -> Row:
    return {"at_s": t.at, "results": t.results, "waiting": t.waiting, "tuples": t.tuples, "cpu_s": t.cpu_s}


def ends(tables: Tables, name: str, view: str) -> dict[str, list[dict[str, Any]]]:
    """How each plan of a set ended, by seed."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for r in tables["under_limit"]:
        if str(r["set"]) == name and r["view"] == view:
            found.setdefault(r["kind"], {})[r["seed"]] = r
    return {kind: [by_seed[s] for s in sorted(by_seed)] for kind, by_seed in found.items()}


def ended(row: dict[str, Any]) -> str:
    """How a run ended: `kept up`, `fell behind`, or `out of memory`.

    >>> ended({"stopped_s": "", "waiting": 1, "came": 1000}), ended({"stopped_s": 8.0, "waiting": 1, "came": 1000})
    ('kept up', 'out of memory')
    """
    if row["stopped_s"] != "":
        return "out of memory"
    return "kept up" if row["waiting"] <= BEHIND * row["came"] else "fell behind"


def qualified(tables: Tables, name: str, view: str) -> list[str]:
    """The plans that kept up within the memory, with every seed."""
    return [kind for kind, rows in ends(tables, name, view).items() if {ended(r) for r in rows} == {"kept up"}]


def gain(tables: Tables, name: str, view: str, more: str, less: str) -> list[float]:
    """How much more results one plan delivered than another, by seed."""
    found = ends(tables, name, view)
    return [a["results"] / max(b["results"], 1) - 1 for a, b in zip(found[more], found[less], strict=True)]


def tell(tables: Tables, name: str, view: str) -> str:
    """How the runs of a set ended: mean and range over seeds."""
    said = []
    for kind, rows in ends(tables, name, view).items():
        how: dict[str, int] = {}
        for r in rows:
            how[ended(r)] = how.get(ended(r), 0) + 1
        ways = ", ".join(f"{way} in {count} of {len(rows)} runs" for way, count in how.items())
        if any(r["stopped_s"] != "" for r in rows):
            ways += f" (after {span([r['stopped_s'] for r in rows if r['stopped_s'] != ''])} s)"
        results, waiting = span([r["results"] for r in rows]), span([r["waiting"] for r in rows])
        said.append(f"{kind} {ways}, {results} results, {waiting} tuples waiting at the end")
    return "; ".join(said)


def span(values: list[float]) -> str:
    """Mean and range.

    >>> span([1.0, 2.0, 3.0]), span([5.0, 5.0])
    ('2 (1 to 3)', '5')
    """
    low, high = min(values), max(values)
    if low == high:
        return _digits(low)
    return f"{_digits(float(np.mean(values)))} ({_digits(low)} to {_digits(high)})"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


UNDER_LIMIT = Part("under_limit", settings, one_by_one(all_plans))
