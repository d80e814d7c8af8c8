"""What is measured: fluctuating streams (Figure 6), resources (7), the sensors (8), freshness (9), Table 4, overheads (5.4);
then what is ours: trees whose states expire, and thresholds that tune themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from math import inf
from statistics import median

import numpy as np

from experiments.experiment import Config, Part, Row, Setting
from experiments.heeb.spark_job import spread
from experiments.jaqpot.settings import (
    HEURISTICS,
    PLANS,
    POLICIES,
    assigned,
    limits,
    parts,
    random_tree,
    readings,
    sigmas,
    tree,
)
from experiments.jaqpot.simulator import Simulator
from experiments.jaqpot.tuned import tuning_settings
from watersmeet.adapt.direction.direct import PAPERS, direct
from watersmeet.adapt.direction.half_joins import JoinTree
from watersmeet.adapt.direction.jaqpot import jaqpot, least_tolerance
from watersmeet.adapt.direction.lemmas import refresh_rates, tolerances
from watersmeet.adapt.direction.paths import paths
from watersmeet.adapt.direction.set_cover import exact_cover, greedy_cover
from watersmeet.model.plan import Plan, nodes
from watersmeet.optimize.problem import Problem

MINUTES = 10
ENOUGH = 50  # probes


def table_4_settings(config: Config) -> Iterator[Setting]:
    return ({"policy": p} for p in (*HEURISTICS, "grepp"))


def one_table_4(config: Config, setting: Setting) -> list[Row]:
    rho, sigma = {"A": 0.5, "B": 5, "(A B)": 5, "C": 1}, {"(A B)": 0.001, "((A B) C)": 0.005}
    given = JoinTree.of("((A B) C)", {"A": 500, "B": 700, "C": 500}, rho, selectivity=sigma)
    found = PAPERS[setting["policy"]](given, 300)
    return [{"first": 0.5 * found.by_half["A"] + 5 * found.by_half["B"], "root": found.output_rate}]


def fluctuate_settings(config: Config) -> Iterator[Setting]:
    for plan in ("linear", "bushy"):
        for policy in POLICIES:
            for run in range(config["fluctuate"]["runs"]):
                yield {"plan": plan, "policy": policy, "run": run}


def one_fluctuate(config: Config, setting: Setting) -> list[Row]:
    """Ten minutes; selectivities change after three and seven, resources stay, and each policy decides anew."""
    f = config["fluctuate"]
    text = PLANS[setting["plan"]]
    root = Plan.parse(text).root
    joins = [str(n) for n in nodes(root)]
    streams = sorted(root.streams)
    by_sel = [
        tree(
            text,
            dict.fromkeys(streams, f["rate"]),
            dict.fromkeys(streams, f["window"]) | dict.fromkeys(joins[:-1], f["state"]),
            dict(zip(joins, s, strict=True)),
        )
        for s in f["sel"]
    ]
    simulator = Simulator(by_sel[0], config["seed"] + setting["run"])
    rows: list[Row] = []
    total = 0
    for minute in range(-1, MINUTES):
        given = by_sel[0 if minute < 3 else 1 if minute < 7 else 2]
        resources = f["share"] * given.saturation
        found = assigned(setting["policy"], given, resources, 1.5)
        ran = simulator.run(
            f["minute_s"], sigmas(given), parts(given, found), limits(given, config["times"]), resources
        )
        if minute >= 0:  # the first is for warming up
            total += ran["results"]
            rows.append(
                {
                    "minute": minute + 1,
                    "results": total,
                    "stale": int(ran["stale"][0]),
                    "used": float(ran["probes"].sum() / f["minute_s"] / resources),
                    "feasible": found.feasible,
                }
            )
    return rows


def resource_settings(config: Config) -> Iterator[Setting]:
    for plan in PLANS:
        for number in range(config["resources"]["settings"]):
            yield {"plan": plan, "number": number}


def _simulated(config: Config, given: JoinTree, policy: str, resources: float, seed: int) -> Row:
    found = assigned(policy, given, resources, config["times"][0])
    simulator = Simulator(given, seed)
    how = sigmas(given), parts(given, found), limits(given, config["times"]), resources
    simulator.run(config["warm_s"], *how)
    ran = simulator.run(config["seconds"], *how)
    return {
        "policy": policy,
        "throughput": ran["results"] / config["seconds"] / given.output,
        "expected": found.output_rate / given.output,
        "used": float(ran["probes"].sum() / config["seconds"] / given.saturation),
        "feasible": found.feasible,
        **{
            f"stale_{t:g}": float(s / max(ran["results"], 1))
            for t, s in zip(config["times"], ran["stale"], strict=True)
        },
    }


def one_resource(config: Config, setting: Setting) -> list[Row]:
    """Every policy at every share of the saturation resources."""
    given, draws = random_tree(config, setting["plan"], setting["number"], config["most"][setting["plan"]])
    return [
        {
            "share": share,
            "draws": draws,
            **_simulated(config, given, policy, share * given.saturation, setting["number"]),
        }
        for share in config["resources"]["shares"]
        for policy in POLICIES
    ]


def freshness_settings(config: Config) -> Iterator[Setting]:
    for plan in PLANS:
        for number in range(config["freshness"]["settings"]):
            yield {"plan": plan, "number": number}


def one_freshness(config: Config, setting: Setting) -> list[Row]:
    """How much is stale, at μ = 300 and at a share of saturation."""
    given, _ = random_tree(config, setting["plan"], setting["number"], config["most"][setting["plan"]])
    rows: list[Row] = []
    for resources in config["freshness"]["resources"]:
        mu = resources if resources > 1 else resources * given.saturation
        rows += [
            {"resources": resources, **_simulated(config, given, policy, mu, setting["number"])} for policy in POLICIES
        ]
    return rows


def share_settings(config: Config) -> Iterator[Setting]:
    for plan in PLANS:
        for number in range(config["share"]["settings"]):
            yield {"plan": plan, "number": number}


def one_share(config: Config, setting: Setting) -> list[Row]:
    """What keeping states fresh takes, greedily and at least."""
    given, _ = random_tree(config, setting["plan"], setting["number"], 100 * config["most"][setting["plan"]])
    rows: list[Row] = []
    for times in config["times"]:
        demand = refresh_rates(given, tolerances(given, times))
        greedy, exact = greedy_cover(paths(given), demand), exact_cover(paths(given), demand)
        for share in config["share"]["shares"]:
            mu = share * given.saturation
            rows.append(
                {
                    "times": times,
                    "share": share,
                    "coverable": greedy.feasible,
                    "feasible": greedy.feasible and greedy.resources <= mu,
                    "for_freshness": greedy.resources / mu,
                    "over_exact": greedy.resources / exact.resources if exact.resources else 1.0,
                }
            )
    return rows


def weather_settings(config: Config) -> Iterator[Setting]:
    for resources in config["weather"]["resources"]:
        for policy in POLICIES:
            for run in range(config["weather"]["runs"]):
                yield {"resources": resources, "policy": policy, "run": run}


def one_weather(config: Config, setting: Setting) -> list[Row]:
    """((A B) (C D)) E over five groups of sensors. Productivities are learnt with all probes made; then each minute from the last."""
    w = config["weather"]
    source, keys = readings(config)
    text = PLANS["five"]
    root = Plan.parse(text).root
    streams, joins = sorted(root.streams), [str(n) for n in nodes(root)]
    rate = dict.fromkeys(streams, float(w["rate"]))
    states = dict.fromkeys([*streams, *joins[:-1]], float(w["window"]))
    blank = tree(text, rate, states, dict.fromkeys(joins, 0.001))
    simulator = Simulator(blank, config["seed"] + setting["run"])
    by_key, all_probes = [-1.0] * len(joins), dict.fromkeys(simulator.places, 1.0)
    none = limits(blank, config["times"])
    simulator.run(2 * w["window"] / w["rate"], by_key, all_probes, none, keys=keys)
    learnt = simulator.run(w["learn_s"], by_key, all_probes, none, keys=keys)
    at = np.array([i for _, i in simulator.places])
    rho = dict.fromkeys(dict.fromkeys(at), 1.0)
    rows: list[Row] = []
    total, ran = 0, learnt
    for minute in range(-1, w["minutes"]):
        for i in rho:  # monitoring: averages of the last minute, where there were probes enough
            if ran["probes"][at == i].sum() >= ENOUGH:
                rho[i] = max(float(ran["matches"][at == i].sum() / ran["probes"][at == i].sum()), 1e-6)
        sigma = {
            j: sum(rho[h.input] for h in halves) / sum(states[h.steps[0].target] for h in halves)
            for j, halves in blank.operators.items()
        }
        given = JoinTree.of(text, rate, rho, selectivity=sigma, states=states)
        found = assigned(setting["policy"], given, setting["resources"], w["times"])
        ran = simulator.run(w["minute_s"], by_key, parts(given, found), none, setting["resources"], keys)
        if minute >= 0:
            total += ran["results"]
            stale = {f"stale_{t:g}": int(s) for t, s in zip(config["times"], ran["stale"], strict=True)}
            rows.append(
                {
                    "minute": minute + 1,
                    "results": total,
                    **stale,
                    "used": float(ran["probes"].sum() / w["minute_s"]),
                    "expected": float(found.output_rate),
                    "seconds": w["minute_s"],
                    "saturation": float(given.saturation),
                    "for_freshness": float(found.for_freshness / setting["resources"]),
                    "feasible": bool(found.feasible),
                    "source": source,
                }
            )
    return rows


def overhead_settings(config: Config) -> Iterator[Setting]:
    for streams in config["overhead"]["streams"]:
        for turn in range(config["overhead"]["turns"]):
            yield {"streams": streams, "turn": turn}


def one_overhead(config: Config, setting: Setting) -> list[Row]:
    """Milliseconds of an analysis: the path table with GH-WMSCP and GrePP, and of the coupled search, for a left-deep plan."""
    n = setting["streams"]
    rng = np.random.default_rng([config["seed"], n, setting["turn"]])
    names = [f"S{i}" for i in range(n)]
    plan = Plan.left_deep(names)
    inner = [str(x) for x in nodes(plan.root)]
    rate = {s: float(rng.uniform(300, 1200)) for s in names}
    states = {s: float(rng.uniform(200, 5000)) for s in [*names, *inner[:-1]]}
    given = tree(str(plan.root), rate, states, {j: float(rng.uniform(0.5, 1.5)) / 2500 for j in inner})
    joins = {(a, b): float(rng.uniform(0.5, 1.5)) / 2500 for a, b in pairwise(names)}
    problem = Problem.of(rate, {s: states[s] for s in names}, joins)
    cpu = direct(problem, plan, 1e9).cpu_of

    def took(what: object) -> float:
        each = []
        for _ in range(3):
            began = time.perf_counter()
            what()  # type: ignore[operator]
            each.append((time.perf_counter() - began) * 1e3)
        return median(each)

    times = 2 * least_tolerance(given, inf)

    def analysis() -> None:
        fresh = JoinTree(given.halves, given.windows, given.selectivity, given.states)
        assert jaqpot(fresh, fresh.saturation, tolerances(fresh, times)).feasible

    demand = refresh_rates(given, tolerances(given, times))
    return [
        {
            "jaqpot_ms": took(analysis),
            "cover_ms": took(lambda: greedy_cover(paths(given), demand)),
            "exact_ms": took(lambda: exact_cover(paths(given), demand)),
            "grepp_direct_ms": took(lambda: direct(problem, plan, 0.3 * cpu, "grepp")),
            "coupled_ms": took(lambda: direct(problem, plan, 0.3 * cpu)),
        }
    ]


def coupled_settings(config: Config) -> Iterator[Setting]:
    for plan in PLANS:
        for number in range(config["coupled"]["settings"]):
            yield {"plan": plan, "number": number}


def one_coupled(config: Config, setting: Setting) -> list[Row]:
    """Windows that expire, states that hold what was put there: forecasts of GrePP, what comes of them, and the coupled choice."""
    rng = np.random.default_rng([config["seed"], 7, setting["number"], *setting["plan"].encode()])
    plan = Plan.parse(PLANS[setting["plan"]])
    names = sorted(plan.root.streams)
    rate = {s: float(rng.uniform(300, 1200)) for s in names}
    joins = {(a, b): float(rng.uniform(0.3, 3)) / 2500 for a, b in pairwise(names)}
    problem = Problem.of(rate, {s: float(rng.uniform(200, 5000)) for s in names}, joins)
    cpu = direct(problem, plan, 1e9).cpu_of
    rows: list[Row] = []
    for share in config["coupled"]["shares"]:
        best = direct(problem, plan, share * cpu)
        others = {p: direct(problem, plan, share * cpu, p) for p in PAPERS}
        heuristic = max(others[p].output_rate for p in HEURISTICS)
        rows.append(
            {
                "share": share,
                "coupled": best.output_rate / best.of,
                "grepp": others["grepp"].output_rate / best.of,
                "grepp_forecast": others["grepp"].forecast / best.of,
                "best_heuristic": heuristic / best.of,
            }
        )
    return rows


def _part(name: str, settings: object, run: str) -> Part:
    return Part(name, settings, spread(f"experiments.jaqpot.parts:{run}"))  # type: ignore[arg-type]


PARTS = (
    _part("table_4", table_4_settings, "one_table_4"),
    _part("fluctuate", fluctuate_settings, "one_fluctuate"),
    _part("resources", resource_settings, "one_resource"),
    _part("weather", weather_settings, "one_weather"),
    _part("freshness", freshness_settings, "one_freshness"),
    _part("share", share_settings, "one_share"),
    _part("overhead", overhead_settings, "one_overhead"),
    _part("coupled", coupled_settings, "one_coupled"),
    Part("tuning", tuning_settings, spread("experiments.jaqpot.tuned:one_tuning")),
)
