"""Predicted against measured: random qualified plans in the engine.

A query: 3 to 6 streams in a chain, star, cycle or random tree; rates, windows and selectivities at random, so that a probe meets
0.1 to 4 tuples on average. A budget: some times the least CPU and the least memory of the query, at random. A plan: any of the
join trees within it, at random, with its best probe orders. The plan runs on streams of these rates and selectivities; after
windows are full, CPU time of the thread, results and state are measured for the rest, repeatedly, least and most time kept.
Predictions come from the cost model: counts from the rates alone, CPU from them with the prices that calibration found (part
`prices`, once per seed).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from experiments.counting import steady
from experiments.experiment import Config, Part, Row, Setting, one_by_one
from experiments.streams import query, streams
from watersmeet.engine.calibrate import calibrate
from watersmeet.model.plan import Plan
from watersmeet.optimize.cost import Limits, price
from watersmeet.optimize.jtree_finder import jtree_finder
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.problem import Problem

COUNTS = ("probes", "matches", "inserts", "deletes")
Case = tuple[dict[str, float], dict[str, float], dict[tuple[str, str], float]]


def price_settings(config: Config) -> Iterator[Setting]:
    for seed in config["seeds"]:
        yield {"seed": seed}


def measured_prices(config: Config, setting: Setting) -> list[Row]:
    c = config["calibration"]
    found = calibrate(c["rows"], c["repeats"], setting["seed"])
    each = {name: getattr(found.costs, name) for name in ("probe", "match", "insert", "delete")}
    return [{**each, "typical_error": found.typical_error, "worst_error": max(map(abs, found.errors))}]


def random_case(config: Config, seed: int, number: int) -> Case:
    """Rates (a second), windows (seconds) and selectivities of a query."""
    p = config["predicted"]
    rng = random.Random(f"predicted {seed} {number}")
    n = rng.randint(*p["streams"])
    names = [f"S{i}" for i in range(n)]
    rate = {s: 10 ** rng.uniform(2, 3.5) for s in names}
    window = {s: 10 ** rng.uniform(-1, 0.5) for s in names}
    kind = rng.choice(("chain", "star", "cycle", "tree"))
    if kind == "star":
        graph = [(0, i) for i in range(1, n)]
    elif kind == "tree":
        graph = [(rng.randrange(i), i) for i in range(1, n)]
    else:
        graph = [(i, i + 1) for i in range(n - 1)] + ([(0, n - 1)] if kind == "cycle" and n > 2 else [])
    held = {s: rate[s] * window[s] for s in names}
    selectivity = {}
    for i, j in graph:
        a, b = names[i], names[j]
        selectivity[a, b] = min(0.5, 10 ** rng.uniform(-1, 0.6) / (held[a] * held[b]) ** 0.5)
    return rate, window, selectivity


def settings(config: Config) -> Iterator[Setting]:
    for seed in config["seeds"]:
        for number in range(config["predicted"]["queries"]):
            yield {"seed": seed, "query": number}


def one_query(config: Config, setting: Setting) -> list[Row]:
    """Some plans of one query, each run."""
    p = config["predicted"]
    rate, window, selectivity = random_case(config, setting["seed"], setting["query"])
    problem = Problem.of(rate, {s: r * window[s] for s, r in rate.items()}, selectivity)
    costs = NodeCosts(problem)
    warm = 1.2 * max(window.values())
    seconds = p["input_rows"] / sum(rate.values())
    windows = {s: f"[RANGE {round(w * 1e6)} MICROSECONDS]" for s, w in window.items()}
    tables = streams(rate, selectivity, warm + seconds, setting["seed"])
    text = query(list(rate), windows, list(selectivity))
    made: list[Row] = []
    for chosen in _qualified(costs, config, setting, seconds):
        root = costs.tree(chosen.shape)
        bill = price(problem, root)
        runs = [steady(text, tables, Plan(root), warm, seconds) for _ in range(p["repeats"])]
        done, cpu = runs[0], sorted(r.cpu_s / seconds for r in runs)
        counted = zip(COUNTS, (done.probes, done.matches, done.inserts, done.expiries), strict=True)
        made.append(
            {
                "streams": len(rate), "plan": str(root), "seconds": seconds,
                **{f"{n}_predicted": sum(getattr(x, n) for x in bill.parts) for n in COUNTS},
                **{n: count / seconds for n, count in counted},
                "results_predicted": bill.output_rate, "results": done.results / seconds,
                "tuples_predicted": bill.memory, "tuples": done.tuples, "cpu_least": cpu[0], "cpu_most": cpu[-1],
            }
        )  # fmt: skip
    return made


def _qualified(costs: NodeCosts, config: Config, setting: Setting, seconds: float) -> list[Candidate]:
    """Different random plans, each within a random budget of its own; none that makes more matches than there is time for."""
    rng = random.Random(f"plan {setting['seed']} {setting['query']}")
    most = config["predicted"]["most_matches"] / seconds
    every = [p for p in jtree_finder(costs, Limits()) if _matches(costs, p) <= most]
    chosen: list[Candidate] = []
    for _ in range(config["predicted"]["plans"]):
        budget = Limits(
            min(p.cpu for p in every) * 10 ** rng.uniform(0, 1.5),
            min(p.memory for p in every) * 10 ** rng.uniform(0, 1.0),
        )
        fits = [p for p in every if p not in chosen and budget.allow(p.cpu, p.memory)]
        if fits:
            chosen.append(rng.choice(fits))
    return chosen


def _matches(costs: NodeCosts, plan: Candidate) -> float:
    return sum(part.matches for part in price(costs.problem, costs.tree(plan.shape)).parts)


PRICES = Part("prices", price_settings, one_by_one(measured_prices))
PREDICTED = Part("predicted", settings, one_by_one(one_query))
