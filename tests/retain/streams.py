"""Problems for tests of retention: small, seeded, of every kind."""

from __future__ import annotations

import numpy as np

from watersmeet.retain.models.ar1 import AR1
from watersmeet.retain.models.model import Model, Noise
from watersmeet.retain.models.season import Season
from watersmeet.retain.models.stationary import Stationary
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.models.walk import Walk
from watersmeet.retain.problem import Problem

MODELS: dict[str, Model] = {
    "stationary": Stationary(Noise.normal(3, 8)),
    "uniform trend": Trend(1, 0, Noise.uniform(6)),
    "normal trend": Trend(2, 5, Noise.normal(2, 8)),
    "slow trend": Trend(0.3, 0, Noise.normal(2, 5)),
    "walk": Walk(Noise.normal(1, 5)),
    "drifting walk": Walk(Noise.normal(1, 5, 2.0)),
    "ar1": AR1(0.7, 15.0, 6.0),
    "season": Season(60, (50.0, 20.0, 5.0, 0.0, 0.0), 0.5, 4.0),
}


def joined(name: str, n: int = 300, seed: int = 1, window: int = 0, pace: tuple[float, float] = (1.0, 1.0)) -> Problem:
    model, rng = MODELS[name], np.random.default_rng(seed)
    return Problem.sampled((model, model), (int(n / pace[0]), int(n / pace[1])), rng, window, pace)


def cached(name: str, n: int = 300, seed: int = 1) -> Problem:
    model = MODELS[name]
    return Problem.caching(model.sample(n, np.random.default_rng(seed)), model)
