"""Rows of a group that tell caches and look them up together find what they would have found one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.caching import CacheChanges, audited, cached_plan, counted
from tests.engine.running import Run, Scripted, check, in_time_order, stream
from watersmeet.engine import executor
from watersmeet.engine.control import Observed
from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.batches import Batches
from watersmeet.testing import Case, random_query, random_streams, same_rows

CHAIN = "SELECT R.a AS a, S.b AS b FROM R [{0}], S [{0}], T [{0}] WHERE R.a = S.a AND S.b = T.b"
ORDERS = "(R S T) orders {R: S T; S: R T; T: S R}"
CACHED = f"{ORDERS} caches {{T: S R / 16 KiB}}"


def cases(first: int, last: int) -> Iterator[Case]:
    """Random cases with caches whose plan is for groups."""
    for seed in range(first, last):
        rng = Random(seed)
        shape = rng.choice(("one key", "one key", "chain", "star"))
        query = random_query(rng, streams=rng.choice((3, 4, 4, 5)), shape=shape, emit="ISTREAM")
        streams = random_streams(rng, query, rows=rng.choice((60, 120)), results=150)
        plan = cached_plan(rng, query, Batches(query, streams).bound, "mjoin")
        if plan.caches and Run.of(query, streams, plan).engine.inspect().may_group:
            yield Case(seed, query, streams, plan, [])


def grouped(engine: Engine) -> int:
    """How many groups there have been."""
    return engine.inspect().groups


@pytest.mark.parametrize("group", [8, 64, 512])
@pytest.mark.parametrize("lists", [0, 200, 1 << 16])
def test_meta_groups_with_caches_whatever_the_size_of_groups_and_lists(
    group: int, lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "LARGEST_GROUP", group)
    monkeypatch.setattr(executor, "LISTS", lists)
    done, seen, together = Counter[str](), 0, 0
    for case in cases(group, group + 60):
        rng = Random(case.seed)
        run, _ = audited(case.query, case.streams, case.plan, rng.choice((20, 50, 1_000)))
        check(case, run.rows())
        batches = in_time_order(case, rng.choice((7, 20, 50)))
        check(case, audited(case.query, batches, case.plan, 50)[0].rows())
        changes = CacheChanges(rng, case.query, (1, 10, 50))
        check(case, audited(case.query, case.streams, case.plan, changes)[0].rows())
        counted(run.engine, done)
        seen += 1
        together += grouped(run.engine)
    assert seen >= 5 and done["cache_hits"] > 50 and done["cache_updates"] > 20
    assert together > 5


def dead_ends(n: int, keys: int, fan: int, seed: int = 0) -> dict[str, pa.Table]:
    """T(b) finds some `fan` tuples of S(a, b) at a time, hardly any of which is in R(a)."""
    rng = np.random.default_rng(seed)
    b = rng.integers(0, keys, n)
    return {
        "R": stream(np.sort(rng.integers(0, n, n // 4)), a=rng.integers(0, n * 10, n // 4)),
        "S": stream(np.sort(rng.integers(0, n, n)), a=rng.integers(0, n * 10, n), b=b),
        "T": stream(np.sort(rng.integers(0, n, 2 * n)), b=rng.integers(0, keys, 2 * n)),
    }  # fmt: skip


@pytest.mark.parametrize("window", ["ROWS 400", "RANGE 300 MICROSECONDS", "UNBOUNDED"])
def test_groups_with_caches_find_what_rows_find_one_by_one(window: str) -> None:
    tables = dead_ends(3_000, 60, 5)
    text = CHAIN.format(window)
    plain, together = Run.of(text, tables, ORDERS), Run.of(text, tables, CACHED)
    alone = Run.of(text, tables, CACHED, groups=False)
    rows = together.rows()
    assert grouped(together.engine) > 5 and rows.num_rows > 10
    assert same_rows(rows, alone.rows()) is None and same_rows(rows, plain.rows()) is None
    (cache,), (by_one,) = together.engine.caches(), alone.engine.caches()
    assert cache.hits + cache.misses == by_one.hits + by_one.misses == 6_000
    assert by_one.hits - cache.hits < 0.1 * by_one.hits  # two rows of a group that miss one key both miss
    assert cache.updates > 10


@pytest.mark.parametrize("fan", [3, 10, 30])
def test_a_cache_saves_the_probes_of_dead_ends_in_groups(fan: int) -> None:
    """Work is counted in tuples that come to probes and lookups."""
    keys = 40
    tables = dead_ends(6_000, keys, fan)
    text = CHAIN.format(f"ROWS {keys * fan}")
    work = []
    for plan in (ORDERS, CACHED):
        run = Run.of(text, tables, plan)
        run.rows()
        assert grouped(run.engine) > 5
        found = run.engine.metrics()
        work.append(found["probes"] + found["cache_hits"] + found["cache_misses"])
    assert work[0] > (1.3, 3.0, 6.0)[(3, 10, 30).index(fan)] * work[1]


def test_groups_with_caches_give_way_where_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hot key overflows the lists: rows go one by one, told and untold ones among them."""
    monkeypatch.setattr(executor, "LISTS", 0)
    rng = np.random.default_rng(3)
    n = 3_000
    hot = (np.arange(n) // 500) % 2 == 0
    tables = {
        name: stream(np.sort(rng.integers(0, n, n)),
                     **{c: np.where(hot & (rng.random(n) < 0.2), 0, rng.integers(1, n, n)) for c in columns})
        for name, columns in (("R", "a"), ("S", "ab"), ("T", "b"))
    }  # fmt: skip
    sizes: list[int] = []
    entries = 0

    def look(seen: Observed) -> None:
        nonlocal entries
        sizes.append(run.engine.inspect().group_size)
        if len(sizes) % 20 == 0:
            entries += run.engine.audit()

    text = CHAIN.format("ROWS 150")
    run = Run.of(text, tables, CACHED, Scripted(look, 100))
    rows = run.rows()
    assert any(size < 512 for size in sizes) and any(size > 8 for size in sizes)
    assert same_rows(rows, Run.of(text, tables, ORDERS).rows()) is None
    assert rows.num_rows > 1_000 and entries > 100 and run.engine.caches()[0].hits > 100


@pytest.mark.parametrize(
    ("where", "plan", "groups"),
    [
        ("", CACHED, True),
        (" AND R.a < T.b", CACHED, False),  # something to check after the lookup
        ("", "(R S T) orders {R: S T; S: R T; T: S R} caches {R: S T | R}", False),  # globally consistent
        (" EMIT DSTREAM", CACHED, False),
    ],
)
def test_groups_take_caches_of_one_key_with_nothing_to_check(where: str, plan: str, groups: bool) -> None:
    tables = dead_ends(200, 30, 3)
    run = Run.of(CHAIN.format("ROWS 40") + where, tables, plan)
    assert run.engine.inspect().may_group is groups
    assert same_rows(run.rows(), wm.oracle(CHAIN.format("ROWS 40") + where, tables)) is None
