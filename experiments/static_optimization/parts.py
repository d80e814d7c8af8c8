"""What is measured for static-optimization.

example_1: the three plans, by the model and in the engine; a join takes a fixed time for each tuple that comes to it, so a plan's work is
the number of probes of its binary joins. figure_4: two filters in both orders. figure_7: throughput of the three plans by the cost of a
tuple, in the paper's model (a window keeps the last ten *surviving* tuples) and in ours (it counts dropped ones). figure_7_engine: the
same executed, both kinds of windows: survivors by dropping rows before the engine sees them, the other by a selection, since rows that a
selection rejects count. which_plan: random problems with too little CPU: the plan that keeps most against the cheapest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from experiments.counting import steady
from experiments.experiment import Config, Part, Row, Setting, one_by_one
from experiments.streams import US, query, streams
from watersmeet.model.plan import Node, Plan
from watersmeet.model.statistics import Costs
from watersmeet.optimize.cost import Limits, price
from watersmeet.optimize.drop_boxes import drop_boxes
from watersmeet.optimize.filters import Filter, FilterPlan
from watersmeet.optimize.kept import Kept
from watersmeet.optimize.knapsack import knapsack
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.which_plan import best_approximation, cheapest

PLANS = {"a": "((A B) C)", "b": "(A (B C))", "c": "((A C) B)"}
MODELS = ("paper", "faithful")


def example(config: Config, seconds: float, f_bc: float | None = None) -> Problem:
    """Example 1 with so many seconds for each input tuple of a join."""
    e = config["example_1"]
    pairs = {("A", "B"): e["f_ab"], ("B", "C"): f_bc or e["f_bc"]}
    return Problem.of(e["rate"], float(e["window_rows"]), pairs, Costs(seconds, 0.0, 0.0, 0.0))


def root(plan: str) -> Node:
    return Plan.parse(PLANS[plan]).root


def kept(problem: Problem, plan: str, model: str) -> Kept:
    """The best drop boxes of a plan on one processor."""
    if model == "paper":
        return knapsack(problem, root(plan), 1.0)
    return drop_boxes(problem, root(plan), Limits(cpu=1.0))


def example_settings(config: Config) -> Iterator[Setting]:
    for plan in PLANS:
        yield {"plan": plan, "seed": 0}  # the model
        for seed in config["seeds"]:
            yield {"plan": plan, "seed": seed}


def example_1(config: Config, setting: Setting) -> list[Row]:
    plan, seed = setting["plan"], setting["seed"]
    if seed == 0:
        bill = price(example(config, 1.0), root(plan))
        return [{"joins_per_s": bill.cpu, "buffers": bill.memory, "results_per_s": bill.output_rate}]
    done = executed(config, plan, {}, "faithful", seed)
    return [done]


def executed(config: Config, plan: str, keep: dict[str, float], model: str, seed: int) -> dict[str, float]:
    """Example 1 in the engine with drop boxes."""
    e, run = config["example_1"], config["engine"]
    edges = {("A", "B"): e["f_ab"], ("B", "C"): e["f_bc"]}
    tables = streams(e["rate"], edges, run["warm_s"] + run["seconds"], seed)
    rng = np.random.default_rng([seed, 7])
    for name, fraction in keep.items():
        times = tables[name].column("ts").cast(pa.int64()).to_numpy()
        chosen = (times < run["warm_s"] * US) | (rng.random(len(times)) < fraction)
        if model == "paper":
            tables[name] = tables[name].filter(pa.array(chosen))
        else:
            tables[name] = tables[name].append_column("kept", pa.array(chosen.astype(np.int64)))
    rejected = [f"{name}.kept = 1" for name in keep] if model == "faithful" else []
    text = query(list(PLANS_STREAMS), dict.fromkeys(PLANS_STREAMS, f"[ROWS {e['window_rows']}]"), list(edges), rejected)
    done = steady(text, tables, Plan.parse(PLANS[plan]), run["warm_s"], run["seconds"])
    each = run["seconds"]
    return {"joins_per_s": done.probes / each, "buffers": float(done.tuples), "results_per_s": done.results / each}


PLANS_STREAMS = ("A", "B", "C")


def figure_4_settings(config: Config) -> Iterator[Setting]:
    for plan in ("A", "B"):
        for seed in (0, *config["seeds"]):
            yield {"plan": plan, "seed": seed}


def figure_4(config: Config, setting: Setting) -> list[Row]:
    f = config["figure_4"]
    chain = FilterPlan(f["rate"], tuple(map(Filter, f["selectivity"], f["seconds"])))
    if setting["plan"] == "B":
        chain = chain.ordered((1, 0))
    if setting["seed"] == 0:
        return [{"cpu": chain.cpu, "first": chain.parts[0], "second": chain.parts[1], "keep": chain.keep()}]
    rng = np.random.default_rng(setting["seed"])
    passed = rng.random(f["tuples"]) < chain.filters[0].selectivity
    first = chain.filters[0].seconds * f["rate"]
    second = chain.filters[1].seconds * f["rate"] * passed.mean()
    return [{"cpu": first + second, "first": first, "second": second, "keep": min(1.0, 1 / (first + second))}]


def figure_7_settings(config: Config) -> Iterator[Setting]:
    f = config["figure_7"]
    for cost in np.linspace(f["from_s"], f["to_s"], f["points"]).tolist():
        for model in MODELS:
            for plan in PLANS:
                yield {"cost": f"{cost:.6g}", "model": model, "plan": plan}


def figure_7(config: Config, setting: Setting) -> list[Row]:
    found = kept(example(config, float(setting["cost"])), setting["plan"], setting["model"])
    return [{"results_per_s": found.results, **{f"x_{s}": x for s, x in found.keep}}]


def engine_settings(config: Config) -> Iterator[Setting]:
    for cost in config["figure_7"]["executed_s"]:
        for model in MODELS:
            for plan in PLANS:
                for seed in config["seeds"]:
                    yield {"cost": f"{cost:.6g}", "model": model, "plan": plan, "seed": seed}


def figure_7_engine(config: Config, setting: Setting) -> list[Row]:
    cost = float(setting["cost"])
    found = kept(example(config, cost), setting["plan"], setting["model"])
    done = executed(config, setting["plan"], dict(found.keep), setting["model"], setting["seed"])
    return [{"predicted": found.results, "measured": done["results_per_s"], "load": done["joins_per_s"] * cost}]


def which_plan_settings(config: Config) -> Iterator[Setting]:
    w = config["which_plan"]
    for n in w["streams"]:
        for seed in config["seeds"]:
            for number in range(w["problems"]):
                yield {"streams": n, "seed": seed, "problem": number}


def which_plan(config: Config, setting: Setting) -> list[Row]:
    problem = random_problem(setting["streams"], f"{setting['seed']} {setting['problem']}")
    costs = NodeCosts(problem)
    made: list[Row] = []
    least = cheapest(costs, Limits())
    for part in config["which_plan"]["capacity"]:
        limits = Limits(cpu=part * costs.cpu(least))
        best = best_approximation(costs, limits)
        simple = drop_boxes(problem, costs.tree(least), limits)
        assert best is not None
        made.append(
            {"capacity": part, "cheapest": simple.results / simple.of, "best": best.kept.results / best.kept.of}
        )
    return made


def random_problem(n: int, seed: str) -> Problem:
    """A chain, star or cycle; rates 1 to 100, windows 0.3 to 30 s, a probe meets 0.1 to 8 tuples, prices 0.1 to 1 µs."""
    rng = random.Random(f"which plan {n} {seed}")
    names = [f"S{i}" for i in range(n)]
    rate = {s: rng.uniform(1, 100) for s in names}
    window = {s: r * 10 ** rng.uniform(-0.5, 1.5) for s, r in rate.items()}
    kind = rng.choice(("chain", "star", "cycle"))
    pairs = [(0 if kind == "star" else i, i + 1) for i in range(n - 1)] + ([(0, n - 1)] if kind == "cycle" else [])
    selectivity: dict[tuple[str, str], float] = {}
    for i, j in pairs:
        a, b = names[i], names[j]
        selectivity[a, b] = min(1.0, 10 ** rng.uniform(-1.0, 0.9) / (window[a] * window[b]) ** 0.5)
    prices: list[Any] = [10 ** rng.uniform(-7, -6) for _ in range(4)]
    return Problem.of(rate, window, selectivity, Costs(*prices))


PARTS = (
    Part("example_1", example_settings, one_by_one(example_1)),
    Part("figure_4", figure_4_settings, one_by_one(figure_4)),
    Part("figure_7", figure_7_settings, one_by_one(figure_7)),
    Part("figure_7_engine", engine_settings, one_by_one(figure_7_engine)),
    Part("which_plan", which_plan_settings, one_by_one(which_plan)),
)
