"""Stationary: values are drawn from one distribution, independently.

noise: the distribution of a value.

>>> Stationary(Noise(5, np.array([0.25, 0.75]))).forecast(row=0, steps=2)
Forecast(low=5, p=array([[0.25, 0.75],
       [0.25, 0.75]]))

Source: heeb, Section 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import Words
from watersmeet.retain.models.model import FIXED, Forecast, Noise, Place, Placing, Timeless, enough


@dataclass(frozen=True, eq=False)
class Stationary(Timeless):
    name: ClassVar[str] = "stationary"
    markov: ClassVar[bool] = False
    settled: ClassVar[int] = 1
    rows: ClassVar[int] = 1
    noise: Noise

    @property
    def parameters(self) -> int:
        return self.noise.parameters

    def sample(self, n: int, rng: np.random.Generator) -> Words:
        return self.noise.sample(n, rng)

    def place(self, seen: Words) -> Place:
        return Place(0, 0)

    def placing(self) -> Placing:
        return Placing(FIXED)

    def forecast(self, row: int, steps: int) -> Forecast:
        return Forecast(self.noise.low, np.tile(self.noise.p, (steps, 1)))

    def log_likelihood(self, series: Words) -> float:
        return self.noise.log_likelihood(series)

    @classmethod
    def fit(cls, series: Words) -> Stationary:
        """Normal, uniform or as seen, whichever explains the values best for its number of parameters."""
        enough(series, 2, cls.name)
        middle = round(float(series.mean()))
        noise = Noise.fitted(series - middle)
        return cls(Noise(noise.low + middle, noise.p, noise.parameters + 1))
