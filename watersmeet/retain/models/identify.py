"""Identify: which class a stream belongs to, and with which parameters, from its values so far.

Each class is fitted and pays for its parameters (BIC): 2 log-likelihood less the number of parameters times log n.
All are distributions over the same whole numbers, so their likelihoods compare.

series: the last values of a stream. period: of the season that is looked for; it takes one and a half of them.

>>> from watersmeet.retain.models.model import Noise
>>> rng = np.random.default_rng(1)
>>> made = [Trend(1, 0, Noise.uniform(10)), Walk(Noise.normal(1, 5)), AR1(0.7, 60.0, 8.0), Stationary(Noise.normal(4, 12))]
>>> [identify(m.sample(300, rng)).name for m in made]
['trend', 'walk', 'ar1', 'stationary']

Source: ours; heeb takes the form of a stream as given (Section 2 points to time-series analysis).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import Words
from watersmeet.retain.models.ar1 import AR1
from watersmeet.retain.models.model import Model
from watersmeet.retain.models.season import Season
from watersmeet.retain.models.stationary import Stationary
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.models.walk import Walk

CLASSES: dict[str, Any] = {m.name: m for m in (Stationary, Trend, Walk, AR1, Season)}
LEAST = 32  # values


def ranked(series: Words, period: int = 365) -> list[tuple[float, Model]]:
    """The classes that can be fitted, with what each scores; the best first."""
    if len(series) < LEAST:
        raise WatersmeetError(f"too few values to tell what a stream is: {len(series)}\n  give at least {LEAST}")
    found: list[tuple[float, Model]] = []
    for name, kind in CLASSES.items():
        if name == Season.name:
            if len(series) < period + period // 2:
                continue
            model = kind.fit(series, period)
        else:
            model = kind.fit(series)
        score = 2 * model.log_likelihood(series) - model.parameters * float(np.log(len(series)))
        found.append((score, model))
    return sorted(found, key=lambda f: -f[0])


def identify(series: Words, period: int = 365) -> Model:
    """The class and parameters that explain the values best."""
    return ranked(series, period)[0][1]
