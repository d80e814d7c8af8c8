"""Every policy and every bound, joined by existing: what all of them must do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.retain.streams import MODELS, cached, joined
from watersmeet.errors import WatersmeetError
from watersmeet.retain.policy import CACHING, JOINING, Policy, Scored, bounds, names, policy, scores
from watersmeet.retain.problem import FOREVER, Problem

ALL = [*names(), *bounds()]
PROBLEMS = {
    "trend": lambda: joined("uniform trend"),
    "slow trend": lambda: joined("slow trend"),
    "walk": lambda: joined("walk"),
    "stationary window": lambda: joined("stationary", window=20),
    "unequal rates": lambda: joined("normal trend", pace=(1.0, 2.5)),
    "caching walk": lambda: cached("walk"),
    "caching ar1": lambda: cached("ar1"),
    "caching season": lambda: cached("season"),
}


def fits(one: Policy, given: Problem) -> bool:
    if "solver" in one.needs:
        pytest.importorskip("ortools")
    if (CACHING if given.is_caching else JOINING) not in one.problems:
        return False
    if one.name == "life":
        return bool(given.window) or (given.models[0] is not None and given.models[0].name == "trend")
    return not (one.name == "flowexpect" and given.pace != (1.0, 1.0))


def by_hand(given: Problem, until: np.ndarray) -> int:
    """Results by nested loops: the definition."""
    found = 0
    for x in range(len(given.time)):
        for y in range(len(given.time)):
            apart = given.time[y] - given.time[x]
            if (
                given.side[x] != given.side[y]
                and given.keys[x] == given.keys[y]
                and 0 < apart <= until[x] - given.time[x]
            ):
                found += not given.window or apart <= given.window
    return found


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_conform_policy(name: str, kind: str) -> None:
    given = PROBLEMS[kind]()
    one = policy(name)
    if not fits(one, given):
        pytest.skip("not for this problem")
    before = [a.copy() for a in (given.time, given.side, given.value, given.keys)]
    until = one.keep(given, 5, seed=1)
    # repeatable, from its seed
    assert np.array_equal(until, policy(name).keep(PROBLEMS[kind](), 5, seed=1))
    # never mutates its input
    assert all(
        np.array_equal(a, b) for a, b in zip(before, (given.time, given.side, given.value, given.keys), strict=True)
    )
    # within its bound, at every step, and it uses its room
    held = given.held(until)
    assert held.max() <= 5 and (until >= given.time).all()
    if name not in bounds():
        assert held.max() == 5
    # never more than the exact answer, and as counted by hand
    assert given.count(until) == by_hand(given, until) <= given.count()
    # with room for all it is the exact answer
    assert given.count(one.keep(given, len(given.time), seed=1)) == given.count()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["trend", "walk", "stationary window", "caching ar1"])
def test_conform_no_policy_beats_the_bound(name: str, kind: str) -> None:
    pytest.importorskip("ortools")
    given = PROBLEMS[kind]()
    one = policy(name)
    if not fits(one, given):
        pytest.skip("not for this problem")
    for k in (1, 3, 8):
        best = given.count(policy("opt_offline", after=50).keep(given, k), after=50)
        assert given.count(one.keep(given, k), after=50) <= best


@pytest.mark.parametrize("name", [n for n in ALL if isinstance(policy(n), Scored)])
def test_conform_scores_in_batches_are_those_one_by_one(name: str) -> None:
    one = policy(name)
    assert isinstance(one, Scored)
    given = cached("walk") if name == "lfd" else joined("uniform trend")
    if name == "rand":
        pytest.skip("draws again for each score")
    state = one.prepare(given, 5, 1)
    of = type(one)
    rng = np.random.default_rng(1)
    for e in range(40):
        of.observe(state.numbers, state.words, int(given.time[e]), int(given.side[e]), int(given.value[e]))
    now = int(given.time[39])
    at = rng.integers(0, 40, 30)
    columns = (given.side[at], given.value[at], given.time[at])
    marks = rng.normal(size=30)
    batch = scores(one, state, now, *columns, marks)
    alone = [
        of.score(state.numbers, state.words, now, *(int(c[i]) for c in columns), float(marks[i])) for i in range(30)
    ]
    assert batch.tolist() == alone and len(set(alone)) > 1


@pytest.mark.parametrize("name", ["rand", "lru", "lfu", "lru_k", "heeb", "hist", "heeb_found"])
def test_conform_caching_is_joining_reduced(name: str) -> None:
    """3.1: the results of the reduced problem are the hits of a cache that holds what the policy keeps."""
    given = cached("ar1", n=400)
    until = policy(name).keep(given, 8, seed=2)
    references, hits = given.stream(0), 0
    kept: Counter[int] = Counter()
    leaves: dict[int, list[int]] = {}
    for t, v in enumerate(references.tolist()):
        hits += kept[v] > 0
        assert kept[v] <= 1, "two copies of a tuple"
        for x in leaves.pop(t, []):
            kept[x] -= 1
        supply = 2 * t + 1
        if until[supply] > t:
            kept[v] += 1
            leaves.setdefault(int(until[supply]), []).append(v)
        assert sum(kept.values()) <= 8
    assert hits == given.count(until) > 0
    assert (until[given.side == 0] == given.time[given.side == 0]).all()


def test_conform_registry_names_and_errors() -> None:
    assert {"rand", "prob", "life", "lru", "lru_k", "lfu", "a_o", "heeb", "hist", "flowexpect"} <= set(names())
    assert all(isinstance(policy(n), Policy) and policy(n).name == n and policy(n).about for n in ALL)
    with pytest.raises(WatersmeetError, match="did you mean 'heeb'"):
        policy("heb")
    with pytest.raises(WatersmeetError, match="LIFE needs tuples that end"):
        policy("life").keep(joined("walk"), 3)
    with pytest.raises(WatersmeetError, match="at least one tuple"):
        Problem.joining([], [])


def test_conform_opt_offline_is_optimal() -> None:
    """Against all ways to keep one or two of a few tuples."""
    pytest.importorskip("ortools")
    rng = np.random.default_rng(5)
    for _ in range(30):
        given = Problem.joining(rng.integers(0, 3, 4), rng.integers(0, 3, 4))
        for k in (1, 2):
            assert given.count(policy("opt_offline").keep(given, k)) == _best(given, k)


def _best(given: Problem, k: int) -> int:
    from functools import cache
    from itertools import combinations

    @cache
    def rest(t: int, kept: tuple[int, ...]) -> int:
        if t == given.steps:
            return 0
        came = [int(e) for e in np.flatnonzero(given.time == t)]
        found = sum(given.keys[x] == given.keys[y] and given.side[x] != given.side[y] for x in kept for y in came)
        every = (*kept, *came)
        return int(found) + max(rest(t + 1, c) for n in range(k + 1) for c in combinations(every, n))

    return rest(0, ())


def test_conform_every_model_has_a_problem() -> None:
    assert {m.name for m in MODELS.values()} == {"stationary", "trend", "walk", "ar1", "season"}
    assert FOREVER > 10**15
