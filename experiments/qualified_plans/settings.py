"""The random settings of Section 6: how long each search takes, how often it finds a qualified plan, and which one.

For each number of streams and seed: rates and selectivities at random as the paper has them, a random connected join graph; what the paper
does not give is in config.toml. Three budgets. *printed*: CPU_avail = 1 s, with which hardly any setting of five streams or more can even
emit its results. *binding*: CPU between that of the binary tree and that of the mjoin, memory between that of the mjoin and that of the
binary tree, both at random: budgets that neither keeps, so that layer two has something to find. *wide*: up to twice as far, so that often
one of the two keeps it, as it must be with three streams, where there is hardly a plan between them.

It runs as a Spark batch job: settings are rows, and each partition searches for its own.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from experiments.experiment import Config, Part, Row, Setting
from experiments.qualified_plans.sets import prices
from watersmeet.model.statistics import Costs
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.jtree_finder import jtree_finder
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate, pareto_front
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.state_removal import state_removal
from watersmeet.optimize.state_selection import state_selection
from watersmeet.optimize.two_layer import two_layer

SEARCHES = ("jtree", "pareto", "selection", "removal", "two_layer")
T = TypeVar("T")


def settings(config: Config) -> Iterator[Setting]:
    r = config["random"]
    for n in range(r["streams_from"], r["streams_to"] + 1):
        for seed in config["seeds"]:
            for number in range(r["settings"]):
                yield {"streams": n, "seed": seed, "number": number}


def random_problem(r: Config, costs: Costs, setting: Setting) -> tuple[Problem, random.Random]:
    """The problem of a setting, and the generator for its budget."""
    n = setting["streams"]
    rng = random.Random(f"qualified-plans {n} {setting['seed']} {setting['number']}")
    names = [f"S{i}" for i in range(n)]
    rate = {s: rng.uniform(*r["rate"]) for s in names}
    graph = [(rng.randrange(i), i) for i in range(1, n)]
    others = [(i, j) for i in range(n) for j in range(i + 1, n) if (i, j) not in graph]
    graph += rng.sample(others, min(len(others), int(n * r["more_edges"])))
    selectivity = {(names[i], names[j]): 1.0 - rng.random() for i, j in graph}
    windows = {s: x * r["window_s"] for s, x in rate.items()}
    return Problem.of(rate, windows, selectivity, costs), rng


def search(r: Config, costs: Costs, setting: Setting) -> list[dict[str, Any]]:
    """All searches on one setting, with each budget."""
    problem, rng = random_problem(r, costs, setting)
    n = setting["streams"]
    every = tuple(range(n))
    base = NodeCosts(problem)
    tree = best_binary_tree(base)
    mjoin = Candidate(base.cpu(every), base.memory(every), every)
    binary = Candidate(base.cpu(tree), base.memory(tree), tree)
    low, high = sorted((mjoin.cpu, binary.cpu))
    binding = Limits(rng.uniform(low, high), rng.uniform(mjoin.memory, binary.memory))
    wide = Limits(
        low + (high - low) * rng.uniform(0, 2), mjoin.memory + (binary.memory - mjoin.memory) * rng.uniform(0, 2)
    )
    budgets = {"printed": Limits(r["cpu"], r["memory_tuples"]), "binding": binding, "wide": wide}
    return [{"budget": name, **_searches(r, problem, n, limits)} for name, limits in budgets.items()]


def _searches(r: Config, problem: Problem, n: int, limits: Limits) -> dict[str, Any]:
    def qualified(plans: list[Candidate]) -> Candidate | None:
        return next((p for p in plans if limits.allow(p.cpu, p.memory)), None)

    def one(run: Callable[[NodeCosts], list[Candidate]]) -> tuple[float, Candidate | None]:
        began = time.thread_time()
        found = qualified(run(NodeCosts(problem)))
        return 1e3 * (time.thread_time() - began), found

    runs: dict[str, Callable[[NodeCosts], list[Candidate]]] = {
        "selection": lambda c: state_selection(c, limits)[-1:],
        "removal": lambda c: state_removal(c, limits, best_binary_tree(c))[-1:],
        "two_layer": lambda c: list(two_layer(c, limits).qualified),
    }
    if n <= r["jtree_finder_to"]:
        runs["jtree"] = lambda c: jtree_finder(c, limits)[:1]
    if n <= r["exact_to"]:
        runs["pareto"] = lambda c: pareto_front(c, limits)[:1]
    made: dict[str, Any] = {}
    for name in SEARCHES:
        took, found = one(runs[name]) if name in runs else ("", None)
        made[f"{name}_ms"] = float(f"{took:.3g}") if name in runs else ""
        made[f"{name}_found"] = int(found is not None) if name in runs else ""
        if name in ("selection", "removal"):
            made[f"{name}_cpu"] = float(f"{found.cpu:.5g}") if found else ""
            made[f"{name}_memory"] = float(f"{found.memory:.5g}") if found else ""
    return made


def measure(config: Config, missing: list[Setting]) -> Iterator[tuple[Setting, list[Row]]]:
    r, costs = config["random"], prices(config)
    if r["on"] == "process":
        for setting in missing:
            yield setting, [*search(r, costs, setting)]
        return
    yield from on_spark(dict(r), costs, missing)


def on_spark(r: dict[str, Any], costs: Costs, missing: list[Setting]) -> Iterator[tuple[Setting, list[Row]]]:
    """A batch job for each chunk of settings, so that a run that is stopped loses one chunk at most."""
    import json

    import pandas as pd

    if not missing:
        return
    root = str(Path(__file__).parents[2])

    def partition(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import sys

        sys.path.insert(0, root)  # workers know the package, but not this checkout
        from experiments.qualified_plans.settings import search

        for frame in frames:
            found = [json.dumps(search(r, costs, json.loads(text))) for text in frame["setting"]]
            yield pd.DataFrame({"setting": frame["setting"], "found": found})

    with session() as spark:
        for at in range(0, len(missing), r["chunk"]):
            chunk = [json.dumps(dict(s)) for s in missing[at : at + r["chunk"]]]
            # settings with many streams are dearer: deal them out like cards
            parts = spark.createDataFrame(pd.DataFrame({"setting": chunk})).repartition(8)
            for row in parts.mapInPandas(partition, "setting string, found string").collect():
                yield json.loads(row["setting"]), json.loads(row["found"])


@contextmanager
def session() -> Iterator[Any]:
    """A local Spark, or the one that is there already."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    made = (
        SparkSession.builder.master("local[2]")
        .appName("watersmeet experiments")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    try:
        yield made
    finally:
        made.stop()


RANDOM = Part("random", settings, measure)
