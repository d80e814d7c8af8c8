"""What is measured: policies over cache sizes (Figures 8 to 14), REAL (15), memory between streams (16), and what is
ours: finding models online.

Results are those after the warm-up. OPT-offline maximises these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.experiment import Config, Part, Row, Setting
from experiments.heeb.spark_job import spread
from experiments.heeb.streams import model, problem, real
from watersmeet.retain.models.ar1 import AR1
from watersmeet.retain.models.identify import CLASSES, identify
from watersmeet.retain.models.model import Model, Noise
from watersmeet.retain.models.season import Season
from watersmeet.retain.models.stationary import Stationary
from watersmeet.retain.policy import Policy, policy
from watersmeet.retain.problem import Problem

SYNTHETIC = ("TOWER", "ROOF", "FLOOR", "WALK")
JOINERS = (
    "rand",
    "prob",
    "life",
    "heeb",
    "heeb_adaptive",
    "hist",
    "hist printed",
    "heeb_found",
    "flowexpect",
    "opt_offline",
)
LEARNERS = ("rand", "heeb", "hist", "hist printed")
SLOW = ("flowexpect", "heeb_found")
REAL = (
    "rand", "lru", "lfu", "lru_k", "lfd", "heeb", "heeb_adaptive", "heeb season", "heeb_found", "hist", "a_o",
)  # fmt: skip


def made(name: str, config: Config) -> Policy:
    """A policy by its name in the results."""
    if name == "hist printed":
        return policy("hist", printed=True)
    options: dict[str, Any] = {
        "flowexpect": {"look_ahead": config["look_ahead"]},
        "opt_offline": {"after": config["warm_up"]},
        "heeb_found": {"season": config["season"]},
    }
    return policy(name, **options.get(name, {}))


def run_settings(config: Config) -> Iterator[Setting]:
    for name in config["streams"]:
        for run in range(config["runs"]):
            for algorithm in JOINERS if name in SYNTHETIC else LEARNERS:
                if not (name == "WALK" and algorithm == "life"):
                    yield {"streams": name, "run": run, "algorithm": algorithm}


def one_run(config: Config, setting: Setting) -> list[Row]:
    """One algorithm on one run, at every cache size."""
    name = setting["streams"]
    given = _problem(config, config["streams"][name], name, setting["run"])
    chosen = made(setting["algorithm"], config)
    sizes = config["slow_sizes"] if setting["algorithm"] in SLOW else config["sizes"]
    after = config["warm_up"]
    exact = given.count(after=after)
    return [
        {"size": k, "results": given.count(chosen.keep(given, k, setting["run"]), after), "exact": exact} for k in sizes
    ]


_LAST: dict[Any, Problem] = {}


def _problem(config: Config, streams: Config, name: str, run: int) -> Problem:
    """The problem of a run; kept for the next algorithm."""
    key = (name, run, config["tuples"], config["seed"])
    if key not in _LAST:
        _LAST.clear()
        _LAST[key] = problem(config, streams["r"], streams["s"], name, run)
    return _LAST[key]


def real_settings(config: Config) -> Iterator[Setting]:
    for algorithm in (*REAL, *(f"heeb {n}x{n}" for n in config["surface"]["points"])):
        yield {"algorithm": algorithm}


def one_real(config: Config, setting: Setting) -> list[Row]:
    """One algorithm on the temperatures, at every cache size; from the first reference on, as there is one run only."""
    source, series = real(config)
    name = setting["algorithm"]
    known = Season.fit(series, config["season"]) if name == "heeb season" else AR1.fit(series)
    given = Problem.caching(series, known)
    if "x" in name:
        chosen = policy("heeb", surface=int(name.split()[1].split("x")[0]))
    else:
        chosen = made("heeb" if name == "heeb season" else name, config)
    return [
        {
            "size": k,
            "hits": given.count(chosen.keep(given, k, config["seed"])),
            "references": len(series),
            "source": source,
        }
        for k in config["real_sizes"]
    ]


def memory_settings(config: Config) -> Iterator[Setting]:
    m = config["memory"]
    for lag in m["lags"]:
        yield {"what": "lag", "by": lag}
    for deviation in m["deviations"]:
        yield {"what": "deviation", "by": deviation}


def one_memory(config: Config, setting: Setting) -> list[Row]:
    """The share of the cache that tuples of R take, by HEEB."""
    base, k = config["memory"]["base"], config["size"]
    rows: list[Row] = []
    r, s = list(base), list(base)
    if setting["what"] == "lag":
        r[1] = -setting["by"]
    else:
        s[3] = float(setting["by"])
    for run in range(config["memory"]["runs"]):
        given = problem(config, r, s, f"memory {setting['what']} {setting['by']}", run)
        until = made("heeb", config).keep(given, k)
        held = [given.held(np.where(given.side == side, until, given.time))[config["warm_up"] :] for side in (0, 1)]
        rows.append({"run": run, "share_of_r": float(held[0].sum() / (held[0].sum() + held[1].sum()))})
    return rows


def identify_settings(config: Config) -> Iterator[Setting]:
    for name in (*SYNTHETIC, "STATIONARY", "AR1", "SEASON"):
        for run in range(config["identify"]["runs"]):
            yield {"streams": name, "run": run}


def one_identify(config: Config, setting: Setting) -> list[Row]:
    """The class that is found after so many values."""
    name = setting["streams"]
    others: dict[str, Model] = {
        "STATIONARY": Stationary(Noise.normal(5.0, 15)),
        "AR1": AR1(0.72, 55.9, 42.2),
        "SEASON": Season(100, (200.0, 57.0, 20.0, -7.0, 5.0), 0.44, 39.0),
    }
    truth = others[name] if name in others else model(config["streams"][name]["r"])
    rng = np.random.default_rng([config["seed"], 1, setting["run"], *name.encode()])
    after = config["identify"]["after"]
    series = truth.sample(max(after), rng)
    return [
        {
            "after": n,
            "is": truth.name,
            "found": identify(series[:n], period=100).name,
            "possible": n >= 150 or name != "SEASON",
        }
        for n in after
    ]


def cost_settings(config: Config) -> Iterator[Setting]:
    for name in SYNTHETIC:
        for run in range(config["identify"]["cost_runs"]):
            yield {"streams": name, "run": run}


def one_cost(config: Config, setting: Setting) -> list[Row]:
    """HEEB with a model of each class, right or wrong, fitted to the first half; results of the second half."""
    name, k, half = setting["streams"], config["size"], config["tuples"] // 2
    given = _problem(config, config["streams"][name], name, setting["run"])
    rows: list[Row] = [
        {"assumed": p, "results": given.count(made(p, config).keep(given, k, setting["run"]), half)}
        for p in ("heeb", "rand", "hist", "heeb_found")
    ]
    for kind in ("stationary", "trend", "walk", "ar1"):
        fitted = tuple(CLASSES[kind].fit(given.stream(side)[:half]) for side in (0, 1))
        guess = replace(given, models=fitted, _known={})
        rows.append({"assumed": kind, "results": given.count(made("heeb", config).keep(guess, k), half)})
    return rows


RUNS = Part("runs", run_settings, spread("experiments.heeb.parts:one_run"))
REAL_PART = Part("real", real_settings, spread("experiments.heeb.parts:one_real"))
MEMORY = Part("memory", memory_settings, spread("experiments.heeb.parts:one_memory"))
IDENTIFY = Part("identify", identify_settings, spread("experiments.heeb.parts:one_identify"))
COST = Part("cost", cost_settings, spread("experiments.heeb.parts:one_cost"))
