"""AR(1): X_i = phi0 + phi1 X_{i-1} + Y_i with normal Y of deviation sigma; values are whole.

phi0, phi1, sigma: in units of the values.

>>> m = AR1(0.5, 50.0, 10.0)
>>> round(m.mean, 3), round(m.sd, 3), m.settled
(100.0, 11.547, 13)

Source: heeb, Section 8 (REAL), Theorem 3 (1).
Departs from the paper in: fitted by conditional maximum likelihood, which is least squares; the paper says only
"standard MLE"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import Floats, Words
from watersmeet.retain.models.model import GRID, NEVER, Forecast, Place, Placing, Timeless, enough, whole

REACH = 4.5  # deviations on either side of the mean that the grid covers
ROWS = 320  # at most


@dataclass(frozen=True)
class AR1(Timeless):
    name: ClassVar[str] = "ar1"
    parameters: ClassVar[int] = 3
    markov: ClassVar[bool] = True
    phi1: float
    phi0: float
    sigma: float

    @property
    def mean(self) -> float:
        return self.phi0 / (1 - self.phi1)

    @property
    def sd(self) -> float:
        return self.sigma / float(np.sqrt(1 - self.phi1**2))

    @property
    def settled(self) -> int:
        """After so many tuples less than 1e-4 of where the stream was is left."""
        return max(2, int(np.ceil(np.log(1e-4) / np.log(max(abs(self.phi1), 1e-9)))) - 1)

    @property
    def low(self) -> int:
        return int(np.floor(self.mean - REACH * self.sd))

    @property
    def width(self) -> int:
        return int(np.ceil(2 * REACH * self.sd)) + 1

    @property
    def grid(self) -> int:
        """Values a row."""
        return -(-self.width // ROWS)

    @property
    def rows(self) -> int:
        return -(-self.width // self.grid)

    def sample(self, n: int, rng: np.random.Generator) -> Words:
        noise, x, made = rng.normal(0, self.sigma, n), self.mean + self.sd * rng.normal(), np.empty(n)
        for i in range(n):
            x = made[i] = self.phi0 + self.phi1 * x + noise[i]
        whole_numbers: Words = np.rint(made).astype(np.int64)
        return whole_numbers

    def place(self, seen: Words) -> Place:
        return Place(int(np.clip((int(seen[-1]) - self.low) // self.grid, 0, self.rows - 1)), 0)

    def placing(self) -> Placing:
        return Placing(GRID, (float(self.low), float(self.grid)))

    def forecast(self, row: int, steps: int) -> Forecast:
        d = np.arange(1, steps + 1)
        last = self.low + row * self.grid + (self.grid - 1) / 2
        mean = np.asarray(self.mean + self.phi1**d * (last - self.mean), float)
        sd = np.asarray(self.sigma * np.sqrt((1 - self.phi1 ** (2 * d)) / (1 - self.phi1**2)), float)
        return Forecast(self.low, whole(self.low, self.width, mean, sd))

    def log_likelihood(self, series: Words) -> float:
        before = np.concatenate([[self.mean], series[:-1]])
        sd = np.full(len(series), self.sigma)
        sd[0] = self.sd
        return whole_log_likelihood(series, self.phi0 + self.phi1 * before, sd)

    @classmethod
    def fit(cls, series: Words) -> AR1:
        enough(series, 8, cls.name)
        x, y = series[:-1].astype(float), series[1:].astype(float)
        phi1, phi0 = (float(v) for v in np.polyfit(x, y, 1))
        phi1 = float(np.clip(phi1, -0.999, 0.999))
        phi0 = float(np.mean(y - phi1 * x))
        return cls(phi1, phi0, max(float(np.std(y - phi1 * x - phi0)), 0.2))


def whole_log_likelihood(series: Words, mean: Floats, sd: Floats) -> float:
    """Of whole numbers under normal distributions, each with its own mean and deviation."""
    from scipy.special import ndtr

    p = ndtr((series + 0.5 - mean) / sd) - ndtr((series - 0.5 - mean) / sd)
    return float(np.log(np.maximum(p, NEVER)).sum())
