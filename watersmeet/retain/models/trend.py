"""Trend: X_i = f(i) + Y_i with f(i) = a i + b rounded, and independent bounded noise Y.

a: rise a tuple. b: level of tuple 0. noise: the distribution of Y (`Noise.uniform`, `Noise.normal`).

Where `a` is whole, all tuples at the same distance from f(i) see the same future (Corollary 5). Where it is not, that
holds for equal fractions of f(i) only; these are told apart to 1/32.

>>> t = Trend(1, 0, Noise.uniform(1))
>>> t.place(np.arange(8)), t.forecast(row=0, steps=2).p.round(2).tolist()
(Place(row=0, shift=7), [[0.33, 0.33, 0.33, 0.0, 0.0], [0.0, 0.33, 0.33, 0.33, 0.0]])

Source: heeb, Sections 7.3, 7.4, Corollary 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import Floats, Words
from watersmeet.retain.models.model import LEVEL, Forecast, Noise, Place, Placing, enough

PHASES = 32


@dataclass(frozen=True, eq=False)
class Trend:
    name: ClassVar[str] = "trend"
    markov: ClassVar[bool] = False
    settled: ClassVar[None] = None
    a: float
    b: float
    noise: Noise

    @property
    def rows(self) -> int:
        return 1 if float(self.a).is_integer() else PHASES

    def level(self, i: Words) -> Words:
        made: Words = np.floor(self.a * i + self.b + 0.5).astype(np.int64)
        return made

    @property
    def parameters(self) -> int:
        return 2 + self.noise.parameters

    def sample(self, n: int, rng: np.random.Generator) -> Words:
        return self.level(np.arange(n)) + self.noise.sample(n, rng)

    def place(self, seen: Words) -> Place:
        exact = self.a * (len(seen) - 1) + self.b
        shift = floor(exact + 0.5)
        return Place(min(int((exact - shift + 0.5) * self.rows), self.rows - 1), shift)

    def placing(self) -> Placing:
        return Placing(LEVEL, (self.a, self.b))

    def forecast(self, row: int, steps: int) -> Forecast:
        fraction = (row + 0.5) / self.rows - 0.5 if self.rows > 1 else self.b - floor(self.b + 0.5)
        move = np.floor(fraction + self.a * np.arange(1, steps + 1) + 0.5).astype(np.int64)
        first, last = floor(min(self.a, self.a * steps)), floor(max(self.a, self.a * steps)) + 1
        p: Floats = np.zeros((steps, last - first + len(self.noise.p)))
        columns = (move - first)[:, None] + np.arange(len(self.noise.p))
        p[np.arange(steps)[:, None], columns] = self.noise.p
        return Forecast(first + self.noise.low, p)

    def weigh(self, row: int, weights: Floats, first_only: bool) -> tuple[int, Floats]:
        """`weights @ forecast`, without the forecast, which is nearly all zeros; first_only: of the first tuple with each value."""
        fraction = (row + 0.5) / self.rows - 0.5 if self.rows > 1 else self.b - floor(self.b + 0.5)
        steps, width = len(weights), len(self.noise.p)
        first, last = floor(min(self.a, self.a * steps)), floor(max(self.a, self.a * steps)) + 1
        total, never = np.zeros(last - first + width), np.ones(last - first + width)
        for d in range(1, steps + 1):
            at = floor(fraction + self.a * d + 0.5) - first
            here = slice(at, at + width)
            if first_only:
                total[here] += weights[d - 1] * self.noise.p * never[here]
                never[here] *= 1 - self.noise.p
            else:
                total[here] += weights[d - 1] * self.noise.p
        return first + self.noise.low, total

    def begun(self, skipped: int) -> Trend:
        """The same stream, counted from a later tuple."""
        return Trend(self.a, self.b + self.a * skipped, self.noise)

    def log_likelihood(self, series: Words) -> float:
        return self.noise.log_likelihood(series - self.level(np.arange(len(series))))

    @classmethod
    def fit(cls, series: Words) -> Trend:
        """Least squares; a slope that a whole number explains as well is that number, since only then levels are whole too."""
        enough(series, 8, cls.name)
        i = np.arange(len(series))
        a, b = (float(x) for x in np.polyfit(i, series, 1))
        error = float(np.std(series - a * i - b)) * np.sqrt(12.0) / len(series) ** 1.5
        if abs(a - round(a)) < 4 * error + 1e-9:
            a = float(round(a))
            b = float(round(np.mean(series - a * i)))
        level = np.floor(a * i + b + 0.5).astype(np.int64)
        return cls(a, b, Noise.fitted(series - level))
