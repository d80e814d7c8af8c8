"""The curves of Figures 2, 4, 5 and 6: ECBs and h of the paper's examples, computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from watersmeet.retain.benefit import benefit
from watersmeet.retain.compiled import Floats
from watersmeet.retain.ecb import caching, joining
from watersmeet.retain.lifetime import exp
from watersmeet.retain.models.model import Model, Noise
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.models.walk import Walk


def chances(model: Model, now: int, value: int, steps: int) -> Floats:
    """The probability of a value at each of the next steps, of a stream that stands at its tuple `now`."""
    place = model.place(np.zeros(now + 1, np.int64))
    low, p = model.forecast(place.row, steps)
    column = value - place.shift - low
    return p[:, column] if 0 <= column < p.shape[1] else np.zeros(steps)


def figure_2(axes: Any) -> None:
    """Three tuples of R and the S that moves over them: y has nearly missed it, x is near its peak, z ahead of it."""
    stream = Trend(1, 0, Noise.normal(4, 12))
    for name, value in (("x", 3), ("y", -9), ("z", 14)):
        axes.plot(range(1, 41), joining(chances(stream, 0, value, 40)), label=name)
    axes.set_title("Figure 2: ECBs of x, y, z", fontsize=10)


def figure_4(axes: Any) -> None:
    stream = Trend(1, 0, Noise.uniform(10))
    for value in (-8, -3, 2, 9):
        axes.plot(range(1, 31), caching(chances(stream, 0, value, 30)), label=f"v = t0 {value:+d}")
    axes.set_title("Figure 4: caching, uniform noise, w = 10", fontsize=10)


def figure_5(axes: Any) -> None:
    r, s = Trend(1, 0, Noise.uniform(10)), Trend(1, 0, Noise.uniform(15))
    for name, stream, value in (("R1", s, -16), ("R2", s, 2), ("S1", r, -11), ("S2", r, 2), ("S3", r, 14)):
        axes.plot(range(1, 41), joining(chances(stream, 0, value, 40)), label=f"{name}: v = t0 {value:+d}")
    axes.set_title("Figure 5: joining, uniform noise, w = 10 and 15", fontsize=10)


def figure_6(axes: Any) -> None:
    """h of a random walk whose steps have variance 1, for a cache of 10."""
    for drift in (0, 2, 4):
        table = benefit(Walk(Noise.normal(1.0, 6, drift)), exp(10.0), caching=True)
        at = table.low + np.arange(table.values.shape[1])
        shown = (at >= -20) & (at <= 40)
        axes.plot(at[shown], table.values[0][shown], label=f"drift {drift}")
    axes.set_title("Figure 6: h of a random walk (caching, alpha 10)", fontsize=10)
    axes.set_xlabel("v - x")
