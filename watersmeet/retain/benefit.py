"""Benefit: H, the estimated expected benefit of keeping a value, as a table that holds for all time.

    joining   H = sum over d of Pr{X_d = v} L(d)
    caching   H = sum over d of Pr{X_d = v and not before} L(d)

A row for each state of the model, a column for each value relative to its shift
(`watersmeet/retain/models/model.py`), so one table serves any tuple at any time: Corollary 5 for trends, h1 and h2 of
Theorem 3 for walks and AR(1). With a window there is a row for each number of steps that a tuple has left, too.

>>> from watersmeet.retain.lifetime import exp
>>> from watersmeet.retain.models.model import Noise
>>> from watersmeet.retain.models.stationary import Stationary
>>> fair = Stationary(Noise(0, np.array([0.2, 0.8])))
>>> benefit(fair, exp(2.0)).values.round(3)
array([[0.308, 1.233]])
>>> benefit(fair, exp(2.0), window=2).values.round(3).tolist()     # nothing, one or two steps left
[[0.0, 0.0], [0.121, 0.485], [0.195, 0.78]]

Source: heeb, Sections 5.3 and 6.1.
Departs from the paper in: first references of walks and AR(1) with L = z^d come from H of joining in closed form,
g(x, v) / (1 + g(v, v)); windows, and streams with more or fewer than one tuple a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import Floats
from watersmeet.retain.ecb import first_use
from watersmeet.retain.lifetime import FAR, Lifetime
from watersmeet.retain.models.model import LAST, Model
from watersmeet.retain.models.season import Season
from watersmeet.retain.models.trend import Trend


@dataclass(frozen=True, eq=False)
class Table:
    """Column j is the value low + j from the shift; what is beyond is worth nothing."""

    low: int
    values: Floats


def benefit(model: Model, lifetime: Lifetime, caching: bool = False, window: int = 0, pace: float = 1.0) -> Table:
    """H for a tuple that is joined with (caching: referenced by) the model's stream, whose tuples come `pace` steps apart."""
    if lifetime.caching_only and not caching:
        raise WatersmeetError(
            f"L = {lifetime.name} goes with caching only: sums over joins diverge\n  use exp or fixed"
        )
    if isinstance(model, Season) and lifetime.decay is not None and not window:
        low, values = model.benefit(lifetime.decay**pace, caching)
        return Table(low, values)
    if caching and model.markov and lifetime.decay is not None and not window:
        return _first_of_markov(model, benefit(model, lifetime, pace=pace))
    far = window or min(lifetime.horizon, FAR)
    ahead = max(1, int(far / pace))
    weights = lifetime.at(np.ceil(np.arange(1, ahead + 1) * pace))
    computed = min(ahead, model.settled) if model.settled else ahead
    lives = np.minimum(np.floor(np.arange(window + 1) / pace).astype(int), ahead) if window else None
    if isinstance(model, Trend) and lives is None:
        rows = [model.weigh(row, weights, caching) for row in range(model.rows)]
        return Table(rows[0][0], np.stack([values for _, values in rows]))
    low, made = 0, []
    for row in range(model.rows):
        low, p = model.forecast(row, computed)
        if caching:
            p = np.concatenate([p, np.repeat(p[-1:], ahead - computed, axis=0)])
            p = _first(model, row, low, p)
        if lives is not None:
            p = np.concatenate([p, np.repeat(p[-1:], ahead - len(p), axis=0)])
            sums = np.concatenate([np.zeros((1, p.shape[1])), np.cumsum(weights[:, None] * p, axis=0)])
            made.append(sums[lives])
        else:
            full = weights[: len(p)] @ p
            if len(p) < ahead:
                full = full + weights[len(p) :].sum() * p[-1]
            made.append(full[None, :])
    return Table(low, np.concatenate(made))


def _first(model: Model, row: int, low: int, p: Floats) -> Floats:
    """The probability of a first reference at each step."""
    if not model.markov:
        before = np.cumprod(1 - p, axis=0)
        made: Floats = p * np.concatenate([np.ones((1, p.shape[1])), before[:-1]])
        return made
    again = np.empty_like(p)
    if model.placing().kind == LAST:
        again[:] = p[:, -low][:, None]
    else:
        start, grid = (int(x) for x in model.placing().numbers)
        for column in range(p.shape[1]):
            own = int(np.clip((low + column - start) // grid, 0, model.rows - 1))
            again[:, column] = model.forecast(own, len(p)).p[:, column]
    return first_use(p, again)


def _first_of_markov(model: Model, joined: Table) -> Table:
    """E[z^T], T the time of the first reference: g(x, v) / (1 + g(v, v)), where g sums z^d Pr{X_d = v}."""
    if model.placing().kind == LAST:
        own = joined.values[:, -joined.low][:, None]
    else:
        start, grid = (int(x) for x in model.placing().numbers)
        columns = np.arange(joined.values.shape[1])
        rows = np.clip((joined.low + columns - start) // grid, 0, model.rows - 1)
        own = joined.values[rows, columns][None, :]
    return Table(joined.low, joined.values / (1 + own))


def lives(trend: Trend) -> Table:
    """How many more tuples of a rising, bounded stream may have a value: the steps that a tuple has left without a window."""
    span = len(trend.noise.p)
    steps = int(np.ceil(2 * span / trend.a)) + 2
    low, p = trend.forecast(0, steps)
    last = np.where(p > 0, np.arange(1, steps + 1)[:, None], 0).max(axis=0)
    return Table(low, np.tile(last[: 2 * span].astype(float), (trend.rows, 1)))
