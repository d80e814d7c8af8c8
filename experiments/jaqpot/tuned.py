"""Thresholds that tune themselves, the paper's future work: tried here, and not better than a large fixed ε.

An analysis that leads to nothing raises ε, one that leads to action lowers it; an action that gave less than was
promised raises p, one that did not lowers it; both within bounds.

>>> print(tuned(Thresholds(), acted=False), "|", tuned(Thresholds(), acted=True, promised=10.0, found=4.0))
ε 6.25%, p 5% | ε 4%, p 6.25%
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.experiment import Config, Row, Setting
from experiments.jaqpot.settings import PLANS, parts, tree
from watersmeet.adapt.direction.grepp import grepp
from watersmeet.adapt.direction.half_joins import JoinTree
from watersmeet.adapt.direction.paths import paths
from watersmeet.adapt.direction.thresholds import Thresholds
from watersmeet.model.plan import Plan, nodes

STEP = 1.25
LOWEST, HIGHEST = 0.01, 0.3


def tuned(now: Thresholds, acted: bool, promised: float = 0.0, found: float = 0.0) -> Thresholds:
    """The thresholds after an analysis. promised, found: the gain in results per second of an action."""
    error = now.error / STEP if acted else now.error * STEP
    gain = now.gain
    if acted:
        gain = gain / STEP if found >= promised * (1 - now.gain) else gain * STEP
    return Thresholds(min(max(error, LOWEST), HIGHEST), min(max(gain, LOWEST), HIGHEST))


def tuning_settings(config: Config) -> Iterator[Setting]:
    for run in range(config["tuning"]["runs"]):
        for kind in ("0.05", "0.02", "0.1", "0.3", "tuned"):
            yield {"run": run, "thresholds": kind}


def one_tuning(config: Config, setting: Setting) -> list[Row]:
    """Selectivities walk; statistics are noisy. How often is analysed and acted, and what is lost against deciding always."""
    t = config["tuning"]
    rng = np.random.default_rng([config["seed"], 9, setting["run"]])
    text = PLANS["linear"]
    joins = [str(n) for n in nodes(Plan.parse(text).root)]
    states = dict.fromkeys([*"ABCD", *joins[:-1]], 1000.0)
    rate = {s: float(rng.uniform(300, 1200)) for s in "ABCD"}
    tuning = setting["thresholds"] == "tuned"
    now = Thresholds() if tuning else Thresholds(float(setting["thresholds"]), 0.05)
    log_sigma = np.log(rng.uniform(0.5, 2, 3) / 1000)
    speed, given, known = None, None, dict[str, float]()
    analysed = acted = 0
    got = best = 0.0
    for _ in range(t["steps"]):
        log_sigma = np.clip(log_sigma + rng.normal(0, t["drift"], 3), np.log(1e-4), np.log(1e-2))
        true = tree(text, rate, states, dict(zip(joins, np.exp(log_sigma), strict=True)))
        if given is None:
            speed = 0.3 * true.saturation
        assert speed is not None
        seen = np.exp(log_sigma + rng.normal(0, t["noise"], 3))
        statistics = dict(zip(joins, seen, strict=True))
        if given is None or now.analyse(known, statistics):
            analysed += 1
            believed = tree(text, rate, states, statistics)
            wanted = grepp(paths(believed), speed)
            in_use = 0.0 if given is None else _worth(believed, given, speed)
            act = given is None or now.act(in_use, wanted.output_rate)
            if act:
                before = 0.0 if given is None else _worth(true, given, speed)
                given, known = parts(believed, wanted), statistics
                acted += 1
            else:
                known, before = statistics, 0.0
            if tuning:
                assert given is not None
                found = _worth(true, given, speed) - before
                now = tuned(now, act, wanted.output_rate - in_use, found)
        assert given is not None
        got += _worth(true, given, speed)
        best += grepp(paths(true), speed).output_rate
    return [
        {
            "analysed": analysed,
            "acted": acted,
            "of_best": got / best,
            "error_at_end": now.error,
            "gain_at_end": now.gain,
        }
    ]


def _worth(true: JoinTree, given: dict[tuple[str, str], float], speed: float) -> float:
    """Results of an allocation where states are full; all parts are cut alike if more comes than there are resources for."""
    come = {(w.stream, w.stream): w.rate for w in true.windows}
    spent = output = 0.0
    for half in true.halves:
        for s in half.streams:
            let_in = come[s, half.input] * given.get((s, half.input), 0.0)
            spent += let_in * half.cost
            come[s, half.node] = let_in * half.productivity
            output += let_in * half.productivity if half.node == true.root else 0.0
    return output * min(1.0, speed / spent) if spent else 0.0
