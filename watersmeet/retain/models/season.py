"""Season: X_i = m(i) + Z_i, where m is a curve of a known period and Z an AR(1) around 0.

period: tuples a season. curve: m as a constant and two harmonics (cosine and sine each). phi, sigma: of Z, in units
of the values.

The row of a place is the part of the season and the distance from its curve, on a grid. Benefits are computed
backwards through the season (`benefit`), exactly on that grid.

>>> s = Season(8, (100.0, 20.0, 0.0, 0.0, 0.0), 0.5, 5.0)
>>> s.curve_at(np.arange(8)).round().astype(int).tolist()
[120, 114, 100, 86, 80, 86, 100, 114]

Source: ours; heeb, Section 8, fits an AR(1) to a series that has a season.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import Floats, Words
from watersmeet.retain.models.ar1 import AR1, whole_log_likelihood
from watersmeet.retain.models.model import SEASON, Forecast, Place, Placing, enough, whole

PARTS = 52  # of a season, at most
STATES = 45  # of the distance from the curve
REACH = 4.0
YEARS = 3  # seasons that benefits look ahead, at most


@dataclass(frozen=True)
class Season:
    name: ClassVar[str] = "season"
    parameters: ClassVar[int] = 8
    markov: ClassVar[bool] = False  # the last value and the time of the year
    settled: ClassVar[None] = None
    period: int
    curve: tuple[float, float, float, float, float]
    phi: float
    sigma: float

    @property
    def sd(self) -> float:
        return self.sigma / float(np.sqrt(1 - self.phi**2))

    @property
    def part(self) -> int:
        """Tuples in a part of the season."""
        return -(-self.period // PARTS)

    @property
    def rows(self) -> int:
        return -(-self.period // self.part) * STATES

    @property
    def state(self) -> float:
        """Width of a state of Z, in units of the values."""
        return 2 * REACH * self.sd / STATES

    @property
    def low(self) -> int:
        return int(np.floor(self.curve_at(np.arange(self.period)).min() - REACH * self.sd))

    @property
    def width(self) -> int:
        return int(np.ceil(self.curve_at(np.arange(self.period)).max() + REACH * self.sd)) - self.low + 1

    def curve_at(self, i: Words) -> Floats:
        made: Floats = _waves(i, self.period) @ np.array(self.curve)
        return made

    def sample(self, n: int, rng: np.random.Generator) -> Words:
        noise, z, made = rng.normal(0, self.sigma, n), self.sd * rng.normal(), np.empty(n)
        for i in range(n):
            z = made[i] = self.phi * z + noise[i]
        values: Words = np.rint(self.curve_at(np.arange(n)) + made).astype(np.int64)
        return values

    def place(self, seen: Words) -> Place:
        i = len(seen) - 1
        z = float(seen[-1]) - float(self.curve_at(np.array([i]))[0])
        state = int(np.clip(np.floor(z / self.state + STATES / 2), 0, STATES - 1))
        return Place((i % self.period) // self.part * STATES + state, 0)

    def placing(self) -> Placing:
        return Placing(SEASON, (float(self.period), *self.curve, float(self.part), self.state, float(STATES)))

    def forecast(self, row: int, steps: int) -> Forecast:
        part, state = divmod(row, STATES)
        i = min(part * self.part + self.part // 2, self.period - 1)
        d = np.arange(1, steps + 1)
        z = (state + 0.5 - STATES / 2) * self.state
        sd = self.sigma * np.sqrt((1 - self.phi ** (2 * d)) / (1 - self.phi**2))
        return Forecast(self.low, whole(self.low, self.width, self.curve_at(i + d) + self.phi**d * z, sd))

    def benefit(self, decay: float, caching: bool) -> tuple[int, Floats]:
        """H by row and value for L(d) = decay^d: F_i = decay P (hit_{i+1} + (1 - hit_{i+1}) F_{i+1}), backwards through some seasons;
        a tuple that is joined, not referenced, goes on earning: F_i = decay P (hit_{i+1} + F_{i+1})."""
        middle = (np.arange(STATES) + 0.5 - STATES / 2) * self.state
        edges = np.concatenate([[-np.inf], middle[1:] - self.state / 2, [np.inf]])
        from scipy.special import ndtr

        step = np.diff(ndtr((edges[None, :] - self.phi * middle[:, None]) / self.sigma), axis=1) * decay
        values = np.arange(self.low, self.low + self.width)
        curve = self.curve_at(np.arange(self.period))
        parts = self.rows // STATES
        table = np.zeros((parts, STATES, self.width))
        chosen = np.minimum(np.arange(parts) * self.part + self.part // 2, self.period - 1)
        rest = np.zeros((STATES, self.width))
        ahead = min(int(np.ceil(6 / -np.log(decay))), YEARS * self.period)
        for i in range(self.period + ahead - 1, -1, -1):
            z = values[None, :] - curve[(i + 1) % self.period] - middle[:, None]
            # the part of a value's unit that lies in a state, as a share of the state
            hit = np.clip(self.state / 2 + 0.5 - np.abs(z), 0.0, min(1.0, self.state)) / self.state
            rest = step @ (hit + (1 - hit) * rest if caching else hit + rest)
            if i < self.period:
                at = np.flatnonzero(chosen == i)
                table[at] = rest
        return self.low, table.reshape(self.rows, self.width)

    def begun(self, skipped: int) -> Season:
        """The same stream, counted from a later tuple: its waves are turned back."""
        c, *waves = self.curve
        turned = [c]
        for harmonic, (a, b) in enumerate(zip(waves[::2], waves[1::2], strict=True), 1):
            turn = 2 * np.pi * harmonic * skipped / self.period
            turned += [float(a * np.cos(turn) + b * np.sin(turn)), float(b * np.cos(turn) - a * np.sin(turn))]
        return Season(self.period, tuple(turned), self.phi, self.sigma)  # type: ignore[arg-type]

    def log_likelihood(self, series: Words) -> float:
        z = series - self.curve_at(np.arange(len(series)))
        mean = self.curve_at(np.arange(len(series)))
        mean[1:] += self.phi * z[:-1]
        sd = np.full(len(series), self.sigma)
        sd[0] = self.sd
        return whole_log_likelihood(series, mean, sd)

    @classmethod
    def fit(cls, series: Words, period: int = 365) -> Season:
        enough(series, period + period // 2, cls.name)
        waves = _waves(np.arange(len(series)), period)
        curve = np.linalg.lstsq(waves, series.astype(float), rcond=None)[0]
        z = AR1.fit(series - waves @ curve)
        return cls(period, tuple(float(c) for c in curve), z.phi1, z.sigma)  # type: ignore[arg-type]


def _waves(i: Words, period: int) -> Floats:
    turn = 2 * np.pi * np.asarray(i, float) / period
    return np.column_stack([np.ones(len(turn)), np.cos(turn), np.sin(turn), np.cos(2 * turn), np.sin(2 * turn)])
