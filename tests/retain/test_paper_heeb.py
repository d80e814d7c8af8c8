"""Numbers and theorems of heeb (Xie, Yang, Chen 2005), as read and corrected in docs/internals/papers.md."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from experiments.heeb.curves import chances
from watersmeet.retain.benefit import benefit
from watersmeet.retain.compiled import Words
from watersmeet.retain.ecb import caching, comparable, dominated_subset, dominates, joining
from watersmeet.retain.lifetime import alpha_of, exp, fixed, inv
from watersmeet.retain.models.ar1 import AR1
from watersmeet.retain.models.model import Noise
from watersmeet.retain.models.offline import Offline
from watersmeet.retain.models.stationary import Stationary
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.models.walk import Walk
from watersmeet.retain.policies.heeb import Heeb
from watersmeet.retain.policy import policy
from watersmeet.retain.problem import Problem

# Section 4: the example in which FLOWEXPECT decides wrongly. Tuples to come: probability, value, by stream and step; None never joins.
COMING: dict[int, tuple[list[tuple[float, int | None]], list[tuple[float, int | None]]]] = {
    1: ([(1.0, 2)], [(0.5, 3), (0.5, None)]),
    2: ([(1.0, 3)], [(0.8, 1), (0.2, None)]),
    3: ([(0.5, 2), (0.5, None)], [(0.8, 1), (0.2, None)]),
}


@cache
def adaptive(t: int, kept: tuple[int, int | None]) -> float:
    """The most that a cache of one tuple (side, value) is expected to earn after step t, deciding as tuples arrive."""
    if t == 3:
        return 0.0
    total = 0.0
    for p, r in COMING[t + 1][0]:
        for q, s in COMING[t + 1][1]:
            other = s if kept[0] == 0 else r
            earned = float(kept[1] is not None and kept[1] == other)
            total += p * q * (earned + max(adaptive(t + 1, x) for x in (kept, (0, r), (1, s))))
    return total


def earns(side: int, value: int | None) -> list[float]:
    return [sum(p for p, v in COMING[t][1 - side] if v is not None and v == value) for t in (1, 2, 3)]


def test_paper_flowexpect_counter_example() -> None:
    pytest.importorskip("ortools")
    from watersmeet.retain.policies.flowexpect import best_sequence

    s3 = [0.0, 0.5 * 1.0, 0.0]
    table = np.array([earns(0, 1), earns(1, 2), [0.0, 0.0, 0.0], s3])
    earned, kept = best_sequence(table, np.array([0, 0, 0, 1]), 1)
    assert (earned, kept) == (1.6, [0])
    assert sum(earns(0, 1)) == pytest.approx(1.6)  # keep R 1
    assert sum(earns(1, 2)) == pytest.approx(1.5)  # keep S 2
    assert earns(1, 2)[0] + s3[1] == pytest.approx(1.5)  # S 2, then S 3: it gains at t0 + 2, not t0 + 3 as printed
    assert adaptive(0, (0, 1)) == pytest.approx(1.6)
    assert max(adaptive(0, x) for x in ((0, 1), (1, 2), (0, None))) == adaptive(0, (1, 2)) == pytest.approx(1.75)


def test_paper_heeb_decides_the_counter_example_rightly_below_alpha_13() -> None:
    def h(alpha: float, side: int, value: int) -> float:
        return float(exp(alpha).weights(3) @ np.array(earns(side, value)))

    assert h(13.27, 1, 2) > h(13.27, 0, 1)
    assert h(13.28, 1, 2) < h(13.28, 0, 1)


def test_paper_alpha_for_a_mean_life_of_12_5() -> None:
    assert alpha_of(12.5) == pytest.approx(11.993, abs=5e-4)
    assert 1 / (1 - math.exp(-1 / alpha_of(12.5))) == pytest.approx(12.5)


def test_paper_caching_with_a_rising_uniform_stream_discards_the_smallest() -> None:
    """7.3: every pair of candidates is comparable, and who has the smaller value is dominated; HEEB agrees, and nobody does better."""
    model = Trend(1, 0, Noise.uniform(5))
    t0 = 20
    values = list(range(t0 - 8, t0 + 6))
    ecbs = np.array([caching(chances(model, t0, v, 30)) for v in values])
    for a, b in combinations(range(len(values)), 2):
        assert dominates(ecbs[b], ecbs[a])
    assert dominated_subset(ecbs, 3) == [0, 1, 2]
    rng = np.random.default_rng(3)
    for _ in range(10):
        given = Problem.caching(model.sample(400, rng), model)
        smallest = _discarding(given, k=4, worst=lambda v, x: v)
        assert given.count(smallest) == given.count(Heeb(exp(8.0)).keep(given, 4))


def test_paper_driftless_walk_discards_the_farthest() -> None:
    """7.5: with symmetric unimodal steps tuples rank by their distance from where the walk is; with drift they do not."""
    walk, steps = Walk(Noise.normal(1.0, 5)), 60
    low, p = walk.forecast(0, steps)
    near = joining(p[:, -low - 12 : -low + 13]).T
    order = sorted(range(25), key=lambda j: abs(j - 12))
    for a, b in pairwise(order):
        assert dominates(near[a], near[b])
    low, p = Walk(Noise.normal(1.0, 5, 2.0)).forecast(0, steps)
    drifting = joining(p[:, -low : -low + 20]).T
    assert any(not comparable(drifting[a], drifting[b]) for a, b in combinations(range(20), 2))
    given = Problem.caching(walk.sample(500, np.random.default_rng(1)), walk)
    farthest = _discarding(given, k=5, worst=lambda v, x: -abs(v - x))
    assert given.count(Heeb(exp(5.0)).keep(given, 5)) == pytest.approx(
        given.count(farthest), abs=3
    )  # equals leave differently


def _discarding(given: Problem, k: int, worst: Callable[[int, int], float]) -> Words:
    """A cache that discards the tuple for which `worst(value, last reference)` is least, step by step."""
    until = given.time.copy()
    kept: dict[int, int] = {}
    for t, x in enumerate(given.stream(0)):
        if int(x) in kept:
            until[kept.pop(int(x))] = t
        kept[int(x)] = 2 * t + 1
        if len(kept) > k:
            out = min(kept, key=lambda v: (worst(v, int(x)), kept[v]))
            until[kept.pop(out)] = t
    for index in kept.values():
        until[index] = 1 << 60
    return until


def test_paper_lfd_comes_out_of_the_framework() -> None:
    """7.1: with the references known, ECBs are steps at the next use, all comparable; HEEB with L = 1/d is LFD."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        values = rng.integers(0, 12, 120)
        given = Problem.caching(values, Offline(values))
        coming = Offline(values).forecast(30, 80).p
        ecbs = caching(coming).T
        assert all(comparable(ecbs[a], ecbs[b]) for a, b in combinations(range(12), 2))
        lfd = given.count(policy("lfd").keep(given, 4))
        assert given.count(Heeb(inv()).keep(given, 4)) == lfd
        pytest.importorskip("ortools")
        assert given.count(policy("opt_offline").keep(given, 4)) == lfd


def test_paper_a_o_and_prob_come_out_of_the_framework() -> None:
    """7.2: stationary streams rank by probability, for caching (A_o) and joining (PROB): HEEB with any L decides as A_o."""
    model = Stationary(Noise(0, np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])))
    p = model.forecast(0, 40).p
    for ecbs in (caching(p).T, joining(p).T):
        assert all(dominates(ecbs[a], ecbs[a + 1]) for a in range(5))
    rng = np.random.default_rng(1)
    for given in (
        Problem.caching(model.sample(300, rng), model),
        Problem.joining(model.sample(300, rng), model.sample(300, rng), (model, model)),
    ):
        kept = [given.count(Heeb(lifetime).keep(given, 3)) for lifetime in (exp(2.0), exp(50.0), fixed(7))]
        assert kept == [given.count(policy("a_o").keep(given, 3))] * 3


def test_paper_dominance_between_the_categories_r2_and_s2() -> None:
    """7.3 corrected: y of S2 dominates x of R2 iff (v_y - t0 + w_R) / (2 w_R + 1) >= (v_x - t0 + w_S) / (2 w_S + 1); x never does."""
    w_r, w_s, t0, pairs, over = 10, 15, 50, 0, 0
    r, s = Trend(1, 0, Noise.uniform(w_r)), Trend(1, 0, Noise.uniform(w_s))
    for v_x in range(t0 - w_s + 1, t0 + w_r + 1):
        x = joining(chances(s, t0, v_x, 60))
        for v_y in range(t0 - w_r + 1, t0 + w_r + 2):
            y = joining(chances(r, t0, v_y, 60))
            rule = (v_y - t0 + w_r) / (2 * w_r + 1) >= (v_x - t0 + w_s) / (2 * w_s + 1)
            assert dominates(y, x) == rule, (v_x, v_y)
            over += dominates(x, y)
            pairs += 1
    assert (pairs, over) == (525, 0)


def test_paper_category_2_ends_a_step_earlier_than_printed() -> None:
    w, t0, v = 10, 50, 47
    ecb = caching(chances(Trend(1, 0, Noise.uniform(w)), t0, v, 40))
    leaves = next(t for t in range(t0, t0 + 60) if v < t - w)
    grows = leaves - t0 - 1
    d = np.arange(1, grows + 1)
    assert ecb[:grows] == pytest.approx(1 - (1 - 1 / (2 * w + 1)) ** d)
    assert ecb[grows:] == pytest.approx(np.full(40 - grows, ecb[grows - 1]))


def test_paper_window_join_of_stationary_streams() -> None:
    """H = p z (1 - z^life) / (1 - z); x dominates y iff p_x >= p_y and p_x life_x >= p_y life_y."""
    alpha, window = 6.0, 12
    z = math.exp(-1 / alpha)
    table = benefit(Stationary(Noise(0, np.array([0.3, 0.7]))), exp(alpha), window=window).values
    for life in range(window + 1):
        assert table[life] == pytest.approx(np.array([0.3, 0.7]) * z * (1 - z**life) / (1 - z))
    rng = np.random.default_rng(1)
    steps = np.arange(1, 31)
    for _ in range(200):
        (p, q), (m, n) = rng.choice([0.1, 0.2, 0.3, 0.6], 2), rng.integers(1, 30, 2)
        x, y = p * np.minimum(steps, m), q * np.minimum(steps, n)
        assert dominates(x, y) == (p >= q - 1e-12 and p * m >= q * n - 1e-12)


def test_paper_ar1_fitted_to_the_temperatures() -> None:
    root = Path(__file__).parents[2]
    name = "shared/data/melbourne-daily-max-temperatures.csv"
    path = next((p / name for p in (root.parent, root.parent.parent) if (p / name).exists()), None)
    if path is None:
        pytest.skip("the series of temperatures is not beside the checkout")
    with path.open(newline="") as file:
        series = np.array([round(10 * float(row["Temperature"])) for row in csv.DictReader(file)])
    fitted = AR1.fit(series)
    assert (fitted.phi1, fitted.phi0 / 10, fitted.sigma / 10) == pytest.approx((0.72, 5.59, 4.22), abs=0.01)


def test_paper_memory_goes_to_the_stream_ahead() -> None:
    """Figure 16: R that lags gets less of the cache."""
    models = (Trend(1, -4, Noise.normal(1, 15)), Trend(1, 0, Noise.normal(1, 15)))
    rng = np.random.default_rng(1)
    given = Problem.sampled(models, (1500, 1500), rng)
    until = policy("heeb").keep(given, 10)
    held = [given.held(np.where(given.side == side, until, given.time))[200:].mean() for side in (0, 1)]
    assert held[0] < 0.5 * held[1]
