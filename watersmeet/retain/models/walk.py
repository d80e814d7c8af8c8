"""Walk: X_i = X_{i-1} + a step; steps are independent. A mean step other than 0 is the drift.

step: the distribution of a step (`Noise.normal(sd, bound, mean=drift)`).

>>> w = Walk(Noise(-1, np.array([0.25, 0.5, 0.25])))
>>> w.place(np.array([3, 4])), w.forecast(row=0, steps=2).p[1].tolist()
(Place(row=0, shift=4), [0.0625, 0.25, 0.375, 0.25, 0.0625])

Source: heeb, Section 7.5, Theorem 3 (2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import Floats, Words
from watersmeet.retain.models.model import LAST, Forecast, Noise, Place, Placing, Timeless, enough


@dataclass(frozen=True, eq=False)
class Walk(Timeless):
    name: ClassVar[str] = "walk"
    markov: ClassVar[bool] = True
    settled: ClassVar[None] = None
    rows: ClassVar[int] = 1
    step: Noise
    start: int = 0

    @property
    def parameters(self) -> int:
        return self.step.parameters

    def sample(self, n: int, rng: np.random.Generator) -> Words:
        made: Words = self.start + np.cumsum(self.step.sample(n, rng))
        return made

    def place(self, seen: Words) -> Place:
        return Place(0, int(seen[-1]))

    def placing(self) -> Placing:
        return Placing(LAST)

    def forecast(self, row: int, steps: int) -> Forecast:
        """Steps add up; what is 7 deviations away from where the walk drifts to is left out."""
        reach = np.ceil(7 * self.step.sd * np.sqrt(np.arange(steps + 1))).astype(int) + 1
        drift = self.step.mean * np.arange(steps + 1)
        low = max(int(np.floor((drift - reach).min())), min(self.step.low * steps, 0))
        high = min(int(np.ceil((drift + reach).max())), max(self.step.high * steps, 0))
        p: Floats = np.zeros((steps, high - low + 1))
        now = np.zeros(high - low + 1)
        now[-low] = 1.0
        for d in range(steps):
            full = np.convolve(now, self.step.p)
            # full[j] is the probability of low + step.low + j
            cut = np.zeros_like(now)
            source = np.arange(len(full)) + self.step.low
            inside = (source >= 0) & (source < len(now))
            cut[source[inside]] = full[inside]
            now = p[d] = cut
        return Forecast(low, p)

    def log_likelihood(self, series: Words) -> float:
        return self.step.log_likelihood(np.diff(series, prepend=self.start))

    @classmethod
    def fit(cls, series: Words) -> Walk:
        enough(series, 8, cls.name)
        steps = np.diff(series)
        mean, sd = float(steps.mean()), max(float(steps.std()), 0.2)
        bound = int(np.abs(steps - round(mean)).max()) + 1
        return cls(Noise.normal(sd, bound, mean), int(series[0]))
