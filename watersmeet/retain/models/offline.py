"""Offline: every value is known in advance.

values: the whole stream.

>>> Offline(np.array([4, 6, 4])).forecast(row=0, steps=2).p
array([[0., 0., 1.],
       [1., 0., 0.]])

Source: heeb, Section 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import Floats, Words
from watersmeet.retain.models.model import COUNT, Forecast, Place, Placing, enough


@dataclass(frozen=True, eq=False)
class Offline:
    name: ClassVar[str] = "offline"
    parameters: ClassVar[int] = 0
    markov: ClassVar[bool] = False
    settled: ClassVar[None] = None
    values: Words

    @property
    def rows(self) -> int:
        return len(self.values)

    def sample(self, n: int, rng: np.random.Generator) -> Words:
        return self.values[:n]

    def place(self, seen: Words) -> Place:
        return Place(len(seen) - 1, 0)

    def placing(self) -> Placing:
        return Placing(COUNT)

    def forecast(self, row: int, steps: int) -> Forecast:
        low = int(self.values.min())
        p: Floats = np.zeros((steps, int(self.values.max()) - low + 1))
        coming = self.values[row + 1 : row + 1 + steps]
        p[np.arange(len(coming)), coming - low] = 1.0
        return Forecast(low, p)

    def begun(self, skipped: int) -> Offline:
        return Offline(self.values[skipped:])

    def log_likelihood(self, series: Words) -> float:
        return 0.0 if np.array_equal(series, self.values[: len(series)]) else -np.inf

    @classmethod
    def fit(cls, series: Words) -> Offline:
        enough(series, 1, cls.name)
        return cls(series)
