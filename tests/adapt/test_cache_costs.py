"""What caches save, cost and need: the formulas of a-caching 4.1 and Section 5, and counting of distinct keys."""

from __future__ import annotations

import numpy as np
import pytest

from watersmeet.adapt.cache_costs import Segment
from watersmeet.adapt.cache_memory import PAGE, Want, allocate
from watersmeet.adapt.distinct import Tags, mixed_keys


def test_paper_proc_and_benefit_differ_by_the_cost_without_a_cache() -> None:
    """4.4 restates 4.1: minimising proc + cost is maximising benefit - cost."""
    s = Segment((120.0, 60.0, 30.0), (2.0, 1.0, 4.0), 15.0, 12.0, 0.3, 0.5, 1.5)
    assert s.benefit + s.proc == pytest.approx(s.plain)
    assert s.net == pytest.approx(s.plain - s.proc - s.upkeep)


def test_a_cache_that_never_hits_loses_its_look_ups_and_creations() -> None:
    s = Segment((100.0,), (3.0,), 100.0, 0.0, 1.0, 1.0, 2.0)
    assert s.benefit == pytest.approx(-(100 * 1.0 + 100 * 2.0))


@pytest.mark.parametrize(("values", "look_ups"), [(10, 5000), (500, 5000), (5000, 5000), (10**9, 5000)])
def test_distinct_keys_are_counted_within_three_percent(values: int, look_ups: int) -> None:
    keys = np.random.default_rng(7).integers(0, values, look_ups)
    tags = Tags()
    miss = tags.see(keys)
    first, second = set(keys[: look_ups // 2]), set(keys[look_ups // 2 :])
    assert tags.keys == pytest.approx(len(first | second), rel=0.03)
    assert miss == pytest.approx(len(second - first) / (look_ups / 2), rel=0.03, abs=1e-9)
    assert Tags(tags.packed()).keys == tags.keys


def test_too_few_look_ups_say_nothing_and_a_full_bitmap_is_begun_anew() -> None:
    tags = Tags()
    assert tags.see(np.arange(10)) is None and tags.keys == 0
    for k in range(60):
        assert tags.see(np.arange(5000) + 5000 * k) == pytest.approx(1, abs=0.05)
    assert tags.fill <= 0.55


def test_keys_of_several_columns_are_told_apart() -> None:
    a, b = (x.ravel() for x in np.meshgrid(np.arange(60), np.arange(60)))
    assert len(np.unique(mixed_keys([a, b]))) == 3600


@pytest.mark.parametrize("seed", range(20))
def test_conform_memory_is_never_over_its_budget_and_goes_by_priority(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted = [Want(f"c{i}", float(rng.normal(5, 10)), int(rng.integers(1, 40 * PAGE))) for i in range(8)]
    budget = int(rng.integers(0, 120 * PAGE))
    given = allocate(wanted, budget)
    assert sum(given.values()) <= budget
    assert all(size % PAGE == 0 and size > 0 for size in given.values())
    ranked = sorted((w for w in wanted if w.net > 0), key=lambda w: -w.priority)
    short = next((i for i, w in enumerate(ranked) if given.get(w.name, 0) < w.bytes), len(ranked))
    assert all(w.name not in given for w in ranked[short + 1 :]), "a cache was served before a better one had enough"
    assert set(allocate(wanted, None)) == {w.name for w in ranked}
