"""Rows that go through their pipelines together find what they would have found one by one, whatever the size of groups and lists."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from bench.engine.workload import common
from tests.engine.running import Run, Scripted, check, in_time_order, run_switching, stream
from watersmeet.engine import executor
from watersmeet.engine.control import Observed
from watersmeet.testing import Case, random_case, random_query, same_rows

THREE = (
    "SELECT R.a, S.b FROM R [RANGE 5 SECONDS], S [RANGE 5 SECONDS], T [RANGE 5 SECONDS] WHERE R.a = S.a AND S.b = T.b"
)
MJOIN = "(R S T) orders {T: S R}"
STREAMS = {
    "R": stream([1, 2], a=[1, 2]),
    "S": stream([3, 4], a=[1, 2], b=[1, 2]),
    "T": stream([5, 6], b=[1, 2]),
}


@cache  # with their answers
def cases(last: int) -> tuple[Case, ...]:
    """Random cases whose plan is for groups."""
    asked = (
        seed for seed in range(last) if random_query(Random(seed)).emit == "ISTREAM"
    )  # random_case draws its query first
    made = (random_case(seed, rows=120, results=150) for seed in asked)
    return tuple(c for c in made if Run.of(c.query, c.streams, c.plan).engine.inspect().may_group)


@pytest.mark.parametrize(
    ("text", "plan", "groups"),
    [
        (THREE, MJOIN, True),
        (THREE.replace("RANGE 5 SECONDS", "ROWS 5", 1), MJOIN, True),
        (THREE.replace("RANGE 5 SECONDS", "UNBOUNDED"), MJOIN, True),
        (THREE, "((R S) T)", True),
        (THREE, "(R (S T))", True),
        (THREE + " EMIT DSTREAM", "((R S) T)", False),
        (THREE.replace("RANGE 5 SECONDS", "PARTITION BY a ROWS 5", 1), "((R S) T)", False),
        (THREE + " AND R.a < T.b", "((R S) T)", False),
        (THREE + " EMIT DSTREAM", MJOIN, False),
        (THREE + " EMIT CHANGES", MJOIN, False),
        (THREE.replace("RANGE 5 SECONDS", "PARTITION BY a ROWS 5", 1), MJOIN, False),
        (THREE.replace("R.a = S.a", "R.a < S.a"), MJOIN, False),
        (THREE + " AND R.a < T.b", MJOIN, False),
        (THREE, "(R S T) orders {T: R S}", False),
    ],
)
def test_groups_are_for_plans_over_rings_with_one_key_to_a_probe(text: str, plan: str, groups: bool) -> None:
    run = Run.of(text, STREAMS, plan)
    assert run.engine.inspect().may_group is groups
    assert same_rows(run.rows(), wm.oracle(text, STREAMS)) is None
    assert (run.engine.inspect().groups > 0) is groups


@pytest.mark.parametrize("group", [8, 9, 64, 512])
@pytest.mark.parametrize("lists", [0, 200, 1 << 16])
def test_meta_groups_and_lists_of_any_size(group: int, lists: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "LARGEST_GROUP", group)
    monkeypatch.setattr(executor, "LISTS", lists)
    seen = trees = too_much = 0
    for case in cases(200):
        rng = Random(case.seed)
        run = Run.of(case.query, case.streams, case.plan)
        check(case, run.rows())
        too_much += run.engine.inspect().group_size < group
        check(case, Run.of(case.query, in_time_order(case, rng.choice([7, 20, 50])), case.plan).rows())
        check(case, run_switching(rng, case.query, case.streams, case.plan, (1, 10, 50))[0])
        seen += 1
        trees += case.plan.kind != "mjoin"
    assert seen >= 8 and trees >= 3
    assert too_much >= 1 or lists > 200 or group == 512  # all rows of a case fit one group of 512


def runs(n: int, hot: float, seed: int = 0) -> dict[str, pa.Table]:
    """Three streams in which stretches with one key follow stretches with many."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, columns in (("R", "a"), ("S", "ab"), ("T", "b")):
        ts = np.sort(rng.integers(0, n * 1000, n))
        one = (ts // (n * 50)) % 4 == 0
        keys = {c: np.where(one & (rng.random(n) < hot), 0, rng.integers(1, n, n)) for c in columns}
        made[name] = stream(ts, **keys)
    return made


def test_groups_give_way_where_too_much_is_found_and_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches with a key that many share, among rows that meet hardly any: both ways are gone, and the answer is whole."""
    monkeypatch.setattr(executor, "LISTS", 0)
    n = 6_000
    text = THREE.replace("RANGE 5 SECONDS", f"RANGE {n * 20} MICROSECONDS")
    tables = runs(n, 0.35)
    many: list[int] = []

    def look(seen: Observed) -> None:
        many.append(run.engine.inspect().group_size)

    run = Run.of(text, tables, MJOIN, Scripted(look, every=500))
    rows = run.rows()
    assert any(m < 0 for m in many) and any(m == executor.LARGEST_GROUP for m in many[len(many) // 2 :])
    alone = Run.of(text, tables, MJOIN, groups=False)
    assert rows.num_rows > 100_000
    assert same_rows(rows, alone.rows()) is None
    expected, made = alone.engine.metrics(), run.engine.metrics()
    for name in ("probes", "matches", "inserts", "expiries", "peak_state_tuples", "results"):
        assert made[name] == expected[name], name


@pytest.mark.parametrize("window", ["ROWS 64", "ROWS 100", "ROWS 40", "RANGE 2 SECONDS", "UNBOUNDED"])
def test_groups_count_as_rows_one_by_one_do(window: str) -> None:
    """Counters, expiries and the exact peak; ROWS 64 fills its ring to the last slot, so there a row goes alone."""
    work = common(2_000, domain=300)
    text = work.text.replace(f"RANGE {work.window_us} MICROSECONDS", window)
    tables = work.tables()
    together, alone = (Run.of(text, tables, MJOIN, groups=groups) for groups in (True, False))
    rows = together.rows()
    assert rows.num_rows > 100
    assert same_rows(rows, alone.rows()) is None
    assert together.engine.inspect().groups > 0 and alone.engine.inspect().groups == 0
    assert (together.engine.inspect().group_size < 0) == (window == "ROWS 64")
    assert together.engine.operators() == alone.engine.operators()
    assert together.engine.stores() == alone.engine.stores()
    left, right = (
        {k: v for k, v in r.engine.metrics().items() if not k.endswith("seconds")} for r in (together, alone)
    )
    assert left == right


def test_groups_give_results_in_the_order_of_time() -> None:
    work = common(5_000)
    rows: Any = Run.of(work.text, work.tables(), MJOIN).rows().column("result_ts").cast(pa.int64())
    assert len(rows) > 10_000
    assert (np.diff(rows.to_numpy()) >= 0).all()


@pytest.mark.parametrize("out", [1, 50, 3_000])
def test_groups_wait_for_room_in_the_output(out: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "OUT", out)
    work = common(500, domain=400)
    run = Run.of(work.text, work.tables(), MJOIN)
    (released,) = run.batches.released()
    batches = list(run.engine.feed(released.rows))
    assert max(b.num_rows for b in batches) <= out
    alone = Run.of(work.text, work.tables(), MJOIN, groups=False)
    made = pa.Table.from_batches(batches)
    assert made.num_rows > 500
    assert same_rows(made, alone.rows()) is None
