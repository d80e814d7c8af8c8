"""Shortlists: the victims of a full scan, or nearly, at a cost for each that does not grow with the state."""

from __future__ import annotations

import numpy as np
import pytest

from tests.retain.streams import joined
from watersmeet.retain.policy import Scored, policy, scores
from watersmeet.retain.problem import FOREVER, Problem
from watersmeet.retain.victims import Shortlist


def kept(given: Problem, name: str, k: int, share: float, group: int = 1) -> tuple[np.ndarray, Shortlist, int]:
    """What a store of k slots keeps, evicting by a shortlist after each group of steps."""
    one = policy(name)
    assert isinstance(one, Scored)
    of, state, short = type(one), one.prepare(given, k, 1), Shortlist(share)
    until = np.full(len(given.time), FOREVER)
    room = k + 2 * group
    slots, used, evicted = np.full(room, -1), np.zeros(room, bool), 0
    for begin in range(0, given.steps, group):
        came = np.flatnonzero((given.time >= begin) & (given.time < begin + group))
        for e in came:
            of.observe(state.numbers, state.words, int(given.time[e]), int(given.side[e]), int(given.value[e]))
        fresh = np.flatnonzero(~used)[: len(came)]
        slots[fresh], used[fresh] = came, True
        now, over = int(given.time[came[-1]]), int(used.sum()) - k
        if over > 0:

            def worth(at: np.ndarray, now: int = now) -> np.ndarray:
                e = slots[at]
                return scores(one, state, now, given.side[e], given.value[e], given.time[e], np.zeros(len(e)))

            out = short.victims(over, worth, np.flatnonzero(used), fresh, alive=lambda at: used[at])
            assert len(set(out.tolist())) == over and used[out].all()
            until[slots[out]], used[out] = now, False
            evicted += over
        assert used.sum() <= k
    return until, short, evicted


def test_conform_shortlist_of_one_is_the_full_scan() -> None:
    given = joined("normal trend", n=400)
    until, short, evicted = kept(given, "heeb", 10, share=0.0)
    assert given.count(until) == pytest.approx(given.count(policy("heeb").keep(given, 10)), rel=0.01)
    assert short.refreshed > 0.3 * evicted


@pytest.mark.parametrize("name", ["heeb", "lru", "prob"])
def test_conform_shortlist_loses_little(name: str) -> None:
    given = joined("slow trend", n=3000)
    exact = given.count(policy(name).keep(given, 60))
    until, _, evicted = kept(given, name, 60, share=1 / 8)
    assert evicted > 4000 and given.count(until) >= 0.95 * exact


def test_conform_shortlist_scores_a_victim_as_often_whatever_the_state() -> None:
    each: dict[int, float] = {}
    for k in (64, 512, 2048):
        given = joined("stationary", n=6000)
        _, short, evicted = kept(given, "heeb", k, share=1 / 16, group=16)
        each[k] = short.scored / evicted
        assert evicted > 5000
    assert max(each.values()) <= 16 + 2, each
