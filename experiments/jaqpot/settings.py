"""Plans, policies and random settings of the experiments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.experiment import Config
from watersmeet.adapt.direction.assignment import Assignment
from watersmeet.adapt.direction.coupled import Coupled
from watersmeet.adapt.direction.direct import PAPERS
from watersmeet.adapt.direction.half_joins import JoinTree
from watersmeet.adapt.direction.jaqpot import jaqpot
from watersmeet.adapt.direction.lemmas import tolerances
from watersmeet.model.plan import Plan, nodes

PLANS = {"linear": "(((A B) C) D)", "bushy": "((A B) (C D))", "five": "(((A B) (C D)) E)"}
HEURISTICS = ("equal_hj", "global_hjpr", "ebest_hjp", "sbest_hjp")
POLICIES = ("jaqpot", "grepp", *HEURISTICS)


def tree(text: str, rate: Mapping[str, float], states: Mapping[str, float], sigma: Mapping[str, float]) -> JoinTree:
    """A plan with ρ_h = σ·|S|, each join with one σ in both directions."""
    rho = {}
    for node in nodes(Plan.parse(text).root):
        left, right = (str(i) for i in node.inputs)
        rho[left], rho[right] = sigma[str(node)] * states[right], sigma[str(node)] * states[left]
    return JoinTree.of(text, rate, rho, selectivity=sigma, states=states)


def random_tree(config: Config, plan: str, setting: int, most: float) -> tuple[JoinTree, int]:
    """A plan drawn from Table 3 whose saturation output is at most so many results a second, and how many draws it took."""
    text, ranges = PLANS[plan], config["table_3"]
    rng = np.random.default_rng([config["seed"], setting, *plan.encode()])
    streams = sorted(Plan.parse(text).root.streams)
    joins = [str(n) for n in nodes(Plan.parse(text).root)]
    draws = 0
    while True:
        draws += 1
        rate = {s: float(rng.uniform(*ranges["rate"])) for s in streams}
        states = {s: float(int(np.exp(rng.uniform(*np.log(ranges["size"]))))) for s in [*streams, *joins[:-1]]}
        sigma = {j: float(np.exp(rng.uniform(*np.log(ranges["selectivity"])))) for j in joins}
        made = tree(text, rate, states, sigma)
        if made.output <= most:
            return made, draws


def assigned(policy: str, given: JoinTree, resources: float, times: float) -> Assignment:
    """What a policy does with these resources; times: tolerance in windows, for JAQPOT."""
    if policy == "jaqpot":
        return jaqpot(given, resources, tolerances(given, times))
    return PAPERS[policy](given, resources)


def parts(given: JoinTree, found: Assignment) -> dict[tuple[str, str], float]:
    """x by (stream, input), as the simulator takes it."""
    model = Coupled(given)
    return {place: float(x) for place, x in zip(model.places, model.vector(found), strict=True)}


def limits(given: JoinTree, times: list[float]) -> Any:
    """Tolerances as [choice, stream], in seconds."""
    return np.array([[t * w.size / w.rate for w in given.windows] for t in times])


def sigmas(given: JoinTree) -> list[float]:
    return [dict(given.selectivity)[j] for j in given.operators]


def readings(config: Config) -> tuple[str, Any]:
    """Where they come from, and the keys of five groups of sensors: [group, number of the reading].

    A key is temperature and humidity, rounded. Groups are ten sensors each, in the order of the files; a group's tuples
    come reading by reading, sensor by sensor. When the files are not there, readings are generated to the same shape:
    50 sensors that follow one daily wave.
    """
    folder = next((p for p in (Path(config["data"]), Path("..") / config["data"]) if p.exists()), None)
    if folder is not None:
        both = [
            np.hstack([np.loadtxt(folder / f"intel-lab-intel{what}{part}.csv", delimiter=",", ndmin=2) for part in ("Train", "Test")])
            for what in ("Temperature", "Humidity")
        ]  # fmt: skip
        source = "Intel lab"
    else:
        rng = np.random.default_rng([config["seed"], 5])
        wave = np.sin(np.arange(240) / 240 * 4 * np.pi + 1)
        own = rng.normal(0, 0.6, (50, 1))
        both = [m + a * wave + b * own + rng.normal(0, 0.2, (50, 240)) for m, a, b in ((21, 4, 1), (38, -6, 1.5))]
        source = "generated"
    sizes = config["weather"]["rounding"]
    temperature, humidity = (np.round(v / size).astype(np.int64) for v, size in zip(both, sizes, strict=True))
    keys = temperature * 10_000 + humidity
    groups = [keys[g * 10 : g * 10 + 10].T.reshape(-1) for g in range(5)]
    return source, np.array(groups)
