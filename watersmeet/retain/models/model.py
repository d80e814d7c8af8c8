"""Model: a stream as a stochastic process of whole numbers.

The future depends on a *place*: a row (what state the process is in) and a shift (where its values lie). `forecast`
gives the probability of each value at each of the next tuples, relative to the shift, so a table of benefits by row
and value minus shift holds for all time.

    stationary   row 0, shift 0           walk      row 0, shift = the last value
    trend        row = phase, shift f(i)  AR(1)     row = the last value on a grid, shift 0
    offline      row = i, shift 0         season    row = time of the year and distance from its mean, shift 0

Source: heeb, Sections 3 and 6.1 (Corollary 5 and Theorem 3 say why this is enough).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
from scipy.special import ndtr

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import Floats, Words

NEVER = 1e-12  # for log-likelihoods of what a model thinks impossible


class Place(NamedTuple):
    row: int
    shift: int


class Forecast(NamedTuple):
    """`p[d - 1, j]` is the probability that the d-th tuple from now has the value shift + low + j."""

    low: int
    p: Floats


class Placing(NamedTuple):
    """How compiled code finds the place: a kind and its parameters (`watersmeet/retain/lookup.py`)."""

    kind: int
    numbers: tuple[float, ...] = ()


FIXED, LEVEL, LAST, GRID, COUNT, SEASON = range(6)


class Model(Protocol):
    """`settled`: after so many tuples the forecast stays as it is (None: never). `markov`: the last value is all that counts."""

    name: ClassVar[str]

    @property
    def markov(self) -> bool: ...
    @property
    def settled(self) -> int | None: ...
    @property
    def rows(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    def sample(self, n: int, rng: np.random.Generator) -> Words: ...
    def place(self, seen: Words) -> Place: ...
    def placing(self) -> Placing: ...
    def forecast(self, row: int, steps: int) -> Forecast: ...
    def log_likelihood(self, series: Words) -> float: ...
    def begun(self, skipped: int) -> Model: ...
    @classmethod
    def fit(cls, series: Words) -> Self: ...


class Timeless:
    """A model that is the same from whichever tuple one counts."""

    def begun(self, skipped: int) -> Self:
        return self


@dataclass(frozen=True, eq=False)
class Noise:
    """A distribution over the whole numbers from `low` on.

    >>> Noise.uniform(1).p
    array([0.333..., 0.333..., 0.333...])
    >>> round(float(Noise.normal(1.0, 3).sd), 3)
    1.037
    """

    low: int
    p: Floats
    parameters: int = 0  # that were fitted

    @classmethod
    def uniform(cls, bound: int) -> Noise:
        return cls(-bound, np.full(2 * bound + 1, 1 / (2 * bound + 1)), 1)

    @classmethod
    def normal(cls, sd: float, bound: int, mean: float = 0.0) -> Noise:
        """Normal, made whole by rounding, cut at the bound (on both sides of the rounded mean)."""
        low = round(mean) - bound
        p = whole(low, 2 * bound + 1, np.array([mean]), np.array([sd]))[0]
        return cls(low, p / p.sum(), 2)

    @classmethod
    def of(cls, residuals: Words) -> Noise:
        """What was seen, as it was seen."""
        low = int(residuals.min())
        counts = np.bincount(residuals - low)
        return cls(low, counts / counts.sum(), int(np.count_nonzero(counts)) - 1)

    @classmethod
    def fitted(cls, residuals: Words) -> Noise:
        """Uniform, normal or as seen, whichever explains the residuals best for its number of parameters (BIC)."""
        bound = int(np.abs(residuals).max())
        mean, sd, n = float(residuals.mean()), max(float(residuals.std()), 0.2), len(residuals)
        tried = [cls.uniform(bound), cls.normal(sd, max(bound, 1), mean), cls.of(residuals)]
        return min(tried, key=lambda t: t.parameters * np.log(n) - 2 * t.log_likelihood(residuals))

    @property
    def high(self) -> int:
        return self.low + len(self.p) - 1

    @property
    def mean(self) -> float:
        return float(self.p @ np.arange(self.low, self.high + 1))

    @property
    def sd(self) -> float:
        return float(np.sqrt(self.p @ (np.arange(self.low, self.high + 1) - self.mean) ** 2))

    def sample(self, n: int, rng: np.random.Generator) -> Words:
        drawn: Words = rng.choice(np.arange(self.low, self.high + 1), size=n, p=self.p)
        return drawn

    def log_likelihood(self, values: Words) -> float:
        at = values - self.low
        inside = (at >= 0) & (at < len(self.p))
        p = np.where(inside, self.p[np.clip(at, 0, len(self.p) - 1)], 0.0)
        return float(np.log(np.maximum(p, NEVER)).sum())


def whole(low: int, width: int, mean: Floats, sd: Floats) -> Floats:
    """Normal distributions made whole by rounding: a row for each mean, a column for each value from `low` on."""
    edges = np.arange(low, low + width + 1) - 0.5
    below = ndtr((edges[None, :] - mean[:, None]) / sd[:, None])
    made: Floats = np.diff(below, axis=1)
    return made


def enough(series: Words, needed: int, name: str) -> None:
    if len(series) < needed:
        raise WatersmeetError(f"too few values to fit a {name} model: {len(series)}\n  give at least {needed}")
