"""Groups in trees: entries of inner states are stored and met as if rows had come one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, Scripted, stream
from watersmeet.engine import executor
from watersmeet.engine.executor import Engine
from watersmeet.engine.store.arena import Arena
from watersmeet.testing import same_rows

CHAIN = "R.a = S.a AND S.b = T.b AND T.c = U.c"
STAR = "R.a = S.a AND R.b = T.b AND R.c = U.c"
COLUMNS = {CHAIN: {"R": "a", "S": "ab", "T": "bc", "U": "c"}, STAR: {"R": "abc", "S": "a", "T": "b", "U": "c"}}
PLANS = [
    (CHAIN, "((R S) (T U))"),
    (CHAIN, "(((R S) T) U)"),
    (CHAIN, "(R (S (T U)))"),
    (CHAIN, "((R S) T U) orders {U: T (R S)}"),
    (CHAIN, "(R (S T) U) orders {U: (S T) R}"),
    (STAR, "(((R S) T) U)"),
    (STAR, "((R S) T U)"),
    (STAR, "((R S T) U) orders {S: R T; T: R S}"),
]


def text(where: str, *windows: str) -> str:
    """The query: a window for each stream, the last one for all that are left."""
    sources = ", ".join(f"{name} [{windows[min(i, len(windows) - 1)]}]" for i, name in enumerate("RSTU"))
    return f"SELECT R.ts AS r, S.ts AS s, T.ts AS t, U.ts AS u FROM {sources} WHERE {where}"


def rows(where: str, n: int, domain: int, seed: int, hot: float = 0.0) -> dict[str, pa.Table]:
    """`n` rows of each stream, one of all in a microsecond on average; `hot` of the keys are 0 in a fifth of the time."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, columns in COLUMNS[where].items():
        ts = np.sort(rng.integers(0, 4 * n, n))
        burst = (ts * 5 // (4 * n) == 2) & (rng.random(n) < hot)
        made[name] = stream(ts, **{c: np.where(burst, 0, rng.integers(1, domain + 1, n)) for c in columns})
    return made


def alone(query: str, tables: dict[str, pa.Table], plan: str) -> Run:
    run = Run.of(query, tables, plan, groups=False)
    assert run.engine.inspect().may_group
    return run


def comparable(run: Run) -> tuple[Any, ...]:
    """What must not depend on groups: counters, and what states hold once dead entries are swept."""
    run.engine.sweep()
    stores = [(s.name, s.tuples, s.inserts, s.expiries) for s in run.engine.stores()]
    return run.engine.operators(), stores, run.engine.metrics()["results"]


@pytest.mark.parametrize("window", [20, pytest.param(60, marks=pytest.mark.long), 200, 700])
@pytest.mark.parametrize(("where", "plan"), PLANS)
def test_oracle_trees_whose_windows_are_shorter_or_longer_than_a_group(where: str, plan: str, window: int) -> None:
    """Of `window` rows: in a group of 512 rows entries come to be, are met, and are gone again."""
    for seed, query in enumerate((text(where, f"RANGE {window} MICROSECONDS"),
                                  text(where, f"ROWS {window // 4}"),
                                  text(where, f"ROWS {window // 4}", f"RANGE {window} MICROSECONDS"))):  # fmt: skip
        tables = rows(where, 500, max(window // 6, 2), seed)
        run, other = Run.of(query, tables, plan), alone(query, tables, plan)
        made = run.rows()
        assert made.num_rows > 100
        assert same_rows(made, wm.oracle(query, tables)) is None
        assert same_rows(other.rows(), made) is None
        assert comparable(run) == comparable(other)
        assert run.engine.inspect().groups > 0 and other.engine.inspect().groups == 0


@pytest.mark.parametrize(("where", "plan"), PLANS)
def test_meta_trees_that_keep_all_count_as_one_by_one(where: str, plan: str) -> None:
    """Nothing is swept, so that all is the same: the peak, the stores and their bytes."""
    query, tables = text(where, "UNBOUNDED"), rows(where, 600, 400, 3)
    run, other = Run.of(query, tables, plan), alone(query, tables, plan)
    assert same_rows(run.rows(), other.rows()) is None
    left, right = ({k: v for k, v in r.engine.metrics().items() if not k.endswith("seconds")} for r in (run, other))
    assert left == right
    assert run.engine.stores() == other.engine.stores()


@pytest.mark.parametrize(("where", "plan"), PLANS)
def test_meta_trees_peak_after_every_row(where: str, plan: str) -> None:
    """Windows pass, but states have room for all entries: the peak is what it is one by one."""
    query, tables = text(where, "RANGE 300 MICROSECONDS", "ROWS 50"), rows(where, 2_000, 5_000, 4)
    run, other = Run.of(query, tables, plan), alone(query, tables, plan)
    run.rows(), other.rows()
    peak = other.engine.metrics()["peak_state_tuples"]
    assert all(s.expiries == 0 for s in run.engine.stores()[4:]) and peak > run.engine.metrics()["state_tuples"]
    assert run.engine.metrics()["peak_state_tuples"] == peak


@pytest.mark.parametrize("lists", [0, 4_000])
@pytest.mark.parametrize(("where", "plan"), PLANS)
def test_meta_trees_go_on_one_by_one_where_too_much_is_found(
    where: str, plan: str, lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows whose entries are stored already, by a group that then found too much, store them no more."""
    monkeypatch.setattr(executor, "LISTS", lists)
    n = 3_000
    query = text(where, "RANGE 300 MICROSECONDS", "ROWS 60")
    tables = rows(where, n, 60, 5, hot=0.12)
    many: list[int] = []
    run = Run.of(query, tables, plan, Scripted(lambda seen: many.append(run.engine.inspect().group_size), every=700))
    other = alone(query, tables, plan)
    made = run.rows()
    assert min(many) < 512
    assert made.num_rows > 10_000
    assert same_rows(made, other.rows()) is None
    assert comparable(run) == comparable(other)


@pytest.mark.parametrize(("where", "plan"), PLANS)
def test_meta_trees_wait_for_room_in_a_state(where: str, plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """States are swept and grow while a group is under way, and while its rows go on one by one."""
    phases: list[str] = []
    grow = Arena.grow
    running: list[Engine] = []

    def growing(state: Arena, s: int) -> None:
        if running and s >= state.leaves:
            phases.append(running[0].inspect().under_way)
        grow(state, s)

    monkeypatch.setattr(Arena, "grow", growing)
    query, tables = text(where, "RANGE 2000 MICROSECONDS"), rows(where, 8_000, 500, 6)
    other = alone(query, tables, plan)
    expected = other.rows()
    run = Run.of(query, tables, plan)
    running.append(run.engine)
    assert same_rows(run.rows(), expected) is None
    assert phases.count("probes") > 5 and phases.count("singles") > 0
    assert comparable(run) == comparable(other)


@pytest.mark.parametrize("out", [1, 100])
@pytest.mark.parametrize(("where", "plan"), PLANS[:4])
def test_meta_trees_wait_for_room_in_the_output(
    where: str, plan: str, out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "OUT", out)
    query, tables = text(where, "RANGE 400 MICROSECONDS"), rows(where, 1_000, 80, 7)
    run = Run.of(query, tables, plan)
    (released,) = run.batches.released()
    batches = list(run.engine.feed(released.rows))
    assert len(batches) > 10 and max(b.num_rows for b in batches) <= out
    assert same_rows(pa.Table.from_batches(batches), alone(query, tables, plan).rows()) is None
