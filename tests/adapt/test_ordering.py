"""A-Greedy: its order is the cheapest for independent joins, its invariant notices when it no longer is, and it does not flap."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from watersmeet.adapt.ordering import AGreedy


def pipeline_cost(order: tuple[str, ...], fanout: dict[str, float], cost: dict[str, float]) -> float:
    tuples, total = 1.0, 0.0
    for s in order:
        total += tuples * cost[s]
        tuples *= fanout[s]
    return total


@pytest.mark.parametrize("seed", range(40))
def test_oracle_a_greedy_is_the_cheapest_order_of_independent_joins_that_filter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fanout = {s: float(rng.uniform(0.05, 1.0)) for s in "STUVW"}
    cost = {s: float(rng.uniform(0.5, 4.0)) for s in "STUVW"}
    a = AGreedy(lambda have, s: fanout[s], lambda have, s: cost[s], lambda have, s: True)
    best = min(pipeline_cost(p, fanout, cost) for p in permutations("STUVW"))
    assert pipeline_cost(a.order("R", "STUVW"), fanout, cost) == pytest.approx(best)


def test_adapts_a_greedy_notices_a_drift_beyond_its_margin_only() -> None:
    fanout = {"S": 0.5, "T": 0.55}
    a = AGreedy(lambda have, s: fanout[s], lambda have, s: 1.0, lambda have, s: True)
    order = a.order("R", fanout)
    assert order == ("S", "T")
    fanout["S"] = 0.6  # now T is better, by less than the margin
    assert a.violation("R", order) is None
    fanout["S"] = 0.9
    assert a.violation("R", order) == 0


def test_a_greedy_puts_products_last_and_uses_what_is_bound() -> None:
    links = {frozenset("RS"), frozenset("ST")}
    a = AGreedy(
        lambda have, s: 0.01 if s == "T" else 5.0,
        lambda have, s: 1.0,
        lambda have, s: any(frozenset((h, s)) in links for h in have),
    )
    assert a.order("R", "ST") == ("S", "T")
    assert a.violation("R", ("T", "S")) == 0
