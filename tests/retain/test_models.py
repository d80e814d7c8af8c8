"""Models: what they forecast is what they generate, what they are fitted to, and what compiled code follows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.retain.streams import MODELS
from watersmeet.errors import WatersmeetError
from watersmeet.retain.benefit import Table
from watersmeet.retain.compiled import OBSERVE, Floats, Words, compiled
from watersmeet.retain.lookup import ROW, SHIFT, follow, lookups
from watersmeet.retain.models.identify import CLASSES, identify, ranked
from watersmeet.retain.models.model import Model, Noise
from watersmeet.retain.models.offline import Offline
from watersmeet.retain.models.trend import Trend


@compiled(OBSERVE)
def _follow(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    follow(numbers, words, side, value)


@pytest.mark.parametrize("name", MODELS)
def test_conform_model_is_seeded_and_generates_what_it_forecasts(name: str) -> None:
    """Over many streams the d-th tuple after a place has the forecast distribution."""
    model, seen, ahead = MODELS[name], 30, 6
    streams = [model.sample(seen + ahead, np.random.default_rng([seed, 1])) for seed in range(4000)]
    assert np.array_equal(streams[0], model.sample(seen + ahead, np.random.default_rng([0, 1])))
    for d in (1, ahead):
        foretold = came = spread = 0.0
        for s in streams[:1500]:
            place = model.place(s[:seen])
            low, p = model.forecast(place.row, d)
            assert p.shape[0] == d and 0.99 < p[-1].sum() < 1 + 1e-9
            values = low + place.shift + np.arange(p.shape[1])
            middle = p[-1] @ values
            foretold += middle
            came += s[seen + d - 1]
            spread += p[-1] @ (values - middle) ** 2
        assert came / 1500 == pytest.approx(foretold / 1500, abs=5 * np.sqrt(spread / 1500**2) + 0.3)


@pytest.mark.parametrize("name", MODELS)
def test_conform_compiled_place_is_the_models(name: str) -> None:
    model = MODELS[name]
    series = model.sample(200, np.random.default_rng(1))
    state = lookups((model, None), [[Table(0, np.zeros((model.rows, 3)))], []])
    for i, value in enumerate(series):
        _follow(state.numbers, state.words, i, 0, int(value))
        place = model.place(series[: i + 1])
        assert (state.words[ROW], state.words[SHIFT]) == place


@pytest.mark.parametrize("name", ["normal trend", "walk", "drifting walk", "ar1", "stationary", "season"])
def test_conform_model_counted_from_later_is_the_same(name: str) -> None:
    model = MODELS[name]
    series = model.sample(150, np.random.default_rng(4))
    later = model.begun(40)
    here, there = model.place(series), later.place(series[40:])
    a, b = model.forecast(here.row, 3), later.forecast(there.row, 3)
    assert a.low + here.shift == b.low + there.shift
    assert a.p == pytest.approx(b.p, abs=0.02)


def test_models_are_fitted() -> None:
    rng = np.random.default_rng(1)
    trend = Trend.fit(Trend(2, 7, Noise.uniform(9)).sample(500, rng))
    assert (trend.a, trend.b, trend.noise.high, trend.noise.low) == (2, 7, 9, -9)
    slow = Trend.fit(Trend(0.3, 0, Noise.normal(2, 6)).sample(2000, rng))
    assert slow.a == pytest.approx(0.3, abs=1e-3) and slow.noise.sd == pytest.approx(2, rel=0.1)
    walk = CLASSES["walk"].fit(MODELS["drifting walk"].sample(2000, rng))
    assert walk.step.mean == pytest.approx(2, abs=0.1)
    ar1 = CLASSES["ar1"].fit(MODELS["ar1"].sample(4000, rng))
    assert (ar1.phi1, ar1.sigma) == pytest.approx((0.7, 6.0), rel=0.07)
    season = CLASSES["season"].fit(MODELS["season"].sample(1200, rng), 60)
    assert season.curve[:3] == pytest.approx((50, 20, 5), abs=1.5) and season.phi == pytest.approx(0.5, abs=0.1)
    assert Offline.fit(np.array([3, 1])).forecast(0, 1).p.tolist() == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", MODELS)
def test_models_are_identified(name: str) -> None:
    model: Model = MODELS[name]
    right = sum(
        identify(model.sample(600, np.random.default_rng(seed)), period=60).name == model.name for seed in range(10)
    )
    assert right >= 9
    assert ranked(model.sample(200, np.random.default_rng(1)), period=365)[0][1].name != "season"


def test_models_say_when_there_is_too_little() -> None:
    with pytest.raises(WatersmeetError, match="at least 32"):
        identify(np.arange(10))
    with pytest.raises(WatersmeetError, match="too few values to fit a trend model: 3"):
        Trend.fit(np.arange(3))
