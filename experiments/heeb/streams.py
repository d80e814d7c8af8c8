"""The streams of the configurations: their models, and the values of a run. REAL: the series of temperatures, or one
that is made."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from experiments.experiment import Config
from watersmeet.retain.models.ar1 import AR1
from watersmeet.retain.models.model import Model, Noise
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.models.walk import Walk
from watersmeet.retain.problem import Problem

PAPER = AR1(0.72, 55.9, 42.2)  # fitted by the paper to REAL, in tenths of a degree
DAYS = 3650


def model(given: list[float | str]) -> Model:
    a, b, kind, sd, bound = given
    if kind == "walk":
        return Walk(Noise.normal(float(sd), int(bound)), int(b))
    noise = Noise.uniform(int(bound)) if kind == "uniform" else Noise.normal(float(sd), int(bound))
    return Trend(float(a), float(b), noise)


def problem(config: Config, r: list[float | str], s: list[float | str], name: str, run: int) -> Problem:
    """One run: two streams, seeded by the experiment, the configuration and the run."""
    models = (model(r), model(s))
    rng = np.random.default_rng([config["seed"], run, *name.encode()])
    return Problem.sampled(models, (config["tuples"], config["tuples"]), rng)


def real(config: Config) -> tuple[str, np.ndarray]:
    """Daily maxima in tenths of a degree, and where they come from."""
    checkout = Path(__file__).parents[2]
    places = [base / config["data"] for base in (checkout, checkout.parent)]
    path = next((p for p in places if p.exists()), None)
    if path is None:
        return "made from the paper's AR(1)", PAPER.sample(DAYS, np.random.default_rng(config["seed"]))
    with path.open(newline="") as file:
        return "Melbourne", np.array([round(10 * float(row["Temperature"])) for row in csv.DictReader(file)])
