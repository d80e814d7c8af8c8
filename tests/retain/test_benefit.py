"""H by every route: from its definition, from tables, step by step, from a neighbour, and from the first reference found by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.retain.streams import MODELS, cached, joined
from watersmeet.errors import WatersmeetError
from watersmeet.retain.benefit import benefit
from watersmeet.retain.ecb import caching, dominated_subset, dominates, first_use, joining, strongly_dominates
from watersmeet.retain.incremental import next_caching, next_joining, of_neighbour
from watersmeet.retain.lifetime import Lifetime, alpha_of, broken_properties, exp, fixed, inf, inv
from watersmeet.retain.models.ar1 import AR1
from watersmeet.retain.models.model import Model, Noise, Place
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.models.walk import Walk
from watersmeet.retain.policies.heeb import Heeb
from watersmeet.retain.policy import policy
from watersmeet.retain.problem import Problem
from watersmeet.retain.surface import approximated

ALPHA = 5.0


@pytest.mark.parametrize("name", [n for n in MODELS if n != "season"])
@pytest.mark.parametrize("lifetime", [exp(ALPHA), fixed(9)], ids=["exp", "fixed"])
def test_benefit_is_the_sum_that_defines_it(name: str, lifetime: Lifetime) -> None:
    model = MODELS[name]
    table = benefit(model, lifetime)
    for row in range(0, model.rows, max(1, model.rows // 4)):
        low, p = model.forecast(row, lifetime.horizon)
        for column in range(0, p.shape[1], 7):
            at = low + column - table.low
            if 0 <= at < table.values.shape[1]:
                assert table.values[row, at] == pytest.approx(
                    float(lifetime.weights(lifetime.horizon) @ p[:, column]), abs=2e-4
                )


@pytest.mark.parametrize("name", MODELS)
def test_benefit_of_caching_is_that_of_the_first_reference(name: str) -> None:
    """E[L(T)] over many streams, T the time of the first reference; from a place that comes up often."""
    model, seen = MODELS[name], 40
    table = benefit(model, exp(ALPHA), caching=True)
    weights = np.concatenate([exp(ALPHA).weights(60), [0.0]])
    found: dict[int, list[float]] = {d: [] for d in (-3, 0, 2)}
    foretold: dict[int, list[float]] = {d: [] for d in found}
    for seed in range(3000):
        s = model.sample(seen + 60, np.random.default_rng([seed, 7]))
        place = model.place(s[:seen])
        centre = int(s[seen - 1]) if model.markov else _middle(model, place)
        for d, waited in found.items():
            column = centre + d - place.shift - table.low
            if 0 <= column < table.values.shape[1]:
                used = np.flatnonzero(s[seen:] == centre + d)
                waited.append(weights[used[0] if len(used) else 60])
                foretold[d].append(table.values[place.row, column])
    for d, waited in found.items():
        allowed = 4 * np.std(waited) / np.sqrt(len(waited)) + 0.01
        assert np.mean(waited) == pytest.approx(np.mean(foretold[d]), abs=allowed)


def _middle(model: Model, place: Place) -> int:
    low, p = model.forecast(place.row, 1)
    return round(float(low + place.shift + p[0] @ np.arange(p.shape[1]) / p[0].sum()))


def test_benefit_first_use_by_renewal_agrees_with_the_closed_form() -> None:
    walk = Walk(Noise.normal(1.0, 5))
    low, p = walk.forecast(0, 120)
    again = np.repeat(p[:, -low][:, None], p.shape[1], axis=1)
    by_renewal = exp(ALPHA).weights(120) @ first_use(p, again)
    closed = benefit(walk, exp(ALPHA), caching=True)
    width = closed.values.shape[1]
    assert by_renewal[low * -1 - 5 : low * -1 + 6] == pytest.approx(
        closed.values[0][-closed.low - 5 : -closed.low + 6], abs=1e-6
    )
    assert width > 11
    fixed_too = benefit(walk, fixed(20), caching=True)
    assert fixed_too.values.max() < 1 and (fixed_too.values >= 0).all()


def test_benefit_walk_is_what_fourier_says() -> None:
    """h1 = sum z^d p^(*d), whose transform is z q / (1 - z q)."""
    step, n = Noise.normal(1.0, 5, 0.5), 4096
    ring = np.zeros(n)
    ring[np.arange(step.low, step.high + 1) % n] = step.p
    q = np.fft.fft(ring)
    z = np.exp(-1 / ALPHA)
    exact = np.fft.ifft(z * q / (1 - z * q)).real
    table = benefit(Walk(step), exp(ALPHA))
    at = np.arange(-15, 16)
    assert table.values[0][at - table.low] == pytest.approx(exact[at % n], abs=1e-6)


def test_benefit_step_by_step_corollaries_3_and_4() -> None:
    model, value, steps = Trend(1, 0, Noise.normal(3, 10)), 12, 15
    for first_only, step in ((False, next_joining), (True, next_caching)):
        table = benefit(model, exp(ALPHA), caching=first_only)

        def whole(t: int, table=table) -> float:  # type: ignore[no-untyped-def]
            return float(table.values[0, value - t - table.low])

        h = whole(0)
        for t in range(1, steps):
            offset = value - t - model.noise.low
            p = float(model.noise.p[offset]) if 0 <= offset < len(model.noise.p) else 0.0
            h = step(h, p, ALPHA)
            assert h == pytest.approx(whole(t), abs=1e-5)


def test_benefit_from_a_neighbour_corollary_5() -> None:
    model, now = Trend(2, 3, Noise.uniform(8)), 10
    table = benefit(model, exp(ALPHA))
    level = int(model.level(np.array([now]))[0])

    def whole(value: int) -> float:
        return float(table.values[0, value - level - table.low])

    for value, neighbour in ((level, level + 6), (level + 4, level - 2), (level, level)):
        assert of_neighbour(whole(neighbour), neighbour, value, model, now, ALPHA) == pytest.approx(
            whole(value), abs=1e-6
        )


def test_benefit_theorem_2_and_the_five_properties() -> None:
    """H agrees with dominance for every L that has the properties; an L that lacks one is found out."""
    rng = np.random.default_rng(1)
    compared = strong = 0
    for _ in range(300):
        p = rng.choice([0.0, 0.1, 0.2, 0.5], size=(2, 40)) * (rng.random((2, 40)) < 0.6)
        b = joining(p.T).T
        for lifetime in (exp(3.0), exp(30.0), fixed(6)):
            h = p @ lifetime.weights(40)
            if dominates(b[0], b[1]):
                compared += 1
                assert h[0] >= h[1] - 1e-12
            if strongly_dominates(b[0], b[1]):
                strong += 1
                assert h[0] > h[1]
    assert compared > 30 and strong > 10
    ecbs = joining(np.array([[0.5] * 64, [0.1] * 64]).T).T

    def tried(*rows: np.ndarray) -> list[int]:
        return broken_properties(np.array(rows), ecbs)

    good, d = exp(3.0).weights(64), np.arange(1, 65)
    assert tried(good, good) == []
    assert tried(good * 3, good * 3) == [1]
    assert tried(np.roll(good, 1), np.roll(good, 1)) == [2]
    assert tried(np.ones(64), np.ones(64)) == [3] and tried(1 / d, 1 / d) == [3]
    assert tried(good / 2, good) == [4]
    assert tried(good * 0, good * 0) == [5]
    referenced = caching(np.array([[0.5] * 64, [0.3] * 64]).T).T
    assert broken_properties(np.array([inf().weights(64)] * 2), referenced, caching=True) == []


def test_ecb_dominated_subset_is_the_largest_there_is() -> None:
    rng = np.random.default_rng(2)
    sizes = set()
    for _ in range(200):
        ecbs = np.cumsum(rng.choice([0.0, 1.0, 2.0], size=(5, 4)), axis=1)
        for most in (1, 2, 3):
            best = 0
            for size in range(1, most + 1):
                for inside in combinations(range(5), size):
                    outside = [u for u in range(5) if u not in inside]
                    if all(dominates(ecbs[u], ecbs[v]) for u in outside for v in inside):
                        best = size
            found = dominated_subset(ecbs, most)
            assert len(found) == best
            assert all(dominates(ecbs[u], ecbs[v]) for v in found for u in range(5) if u not in found)
            sizes.add(best)
    assert sizes == {0, 1, 2, 3}


def test_benefit_surface_gets_better_with_points() -> None:
    table = benefit(MODELS["ar1"], exp(20.0), caching=True)
    off = [np.abs(approximated(table, n).values - table.values).max() for n in (5, 9, 17, 33)]
    assert off == sorted(off, reverse=True) and off[-1] < 0.1 * off[0]
    given = cached("ar1", n=600)
    hits = {n: given.count(Heeb(exp(20.0), n).keep(given, 10)) for n in (5, 33, None)}
    assert abs(hits[33] - hits[None]) <= 0.05 * hits[None]
    assert hits[5] > 0.7 * hits[None]


def test_benefit_windows_and_unequal_rates_pay() -> None:
    """7.2: with a window neither PROB nor LIFE is optimal; HEEB does at least as well. A slow stream's tuples are worth more."""
    ahead = 0
    for seed in range(8):
        given = joined("stationary", n=1500, seed=seed, window=15)
        made = {n: given.count(policy(n).keep(given, 8)) for n in ("heeb_adaptive", "prob", "life", "rand")}
        ahead += made["heeb_adaptive"] >= max(made["prob"], made["life"])
        assert made["heeb_adaptive"] > made["rand"]
    assert ahead >= 6
    slow = joined("uniform trend", n=900, pace=(1.0, 3.0))
    assert slow.count(policy("heeb").keep(slow, 6)) > slow.count(policy("rand").keep(slow, 6))


def test_benefit_heeb_leads_on_streams_that_an_ar1_makes() -> None:
    """What Figure 15 claims, where the model is true: alpha = k, hits of 3,650 references."""
    model = AR1(0.72, 55.9, 42.2)
    for seed in range(3):
        given = Problem.caching(model.sample(3650, np.random.default_rng(seed)), model)
        for k in (50, 100, 200):
            made = {n: given.count(policy(n).keep(given, k)) for n in ("heeb", "lru", "lfu", "rand", "lru_k")}
            assert max(made, key=lambda n: made[n]) == "heeb", (k, made)


def test_benefit_refuses_what_diverges() -> None:
    with pytest.raises(WatersmeetError, match="caching only"):
        benefit(MODELS["walk"], inv())
    with pytest.raises(WatersmeetError, match="alpha must be a number above 0"):
        exp(0.0)
    with pytest.raises(WatersmeetError, match="longer than a step"):
        alpha_of(1.0)
