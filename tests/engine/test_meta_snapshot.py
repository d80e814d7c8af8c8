"""A snapshot carries all that an engine is: another goes on as if nothing had been in between, with the same counts and changes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import RandomChanges, Run, Scripted, check, in_time_order, stream
from watersmeet.engine.executor import Engine
from watersmeet.engine.inspect import StoreView
from watersmeet.engine.snapshot import Snapshot
from watersmeet.model.plan import Plan
from watersmeet.model.query import Query
from watersmeet.testing import random_case


class _Moving(Run):
    """Each batch is run by an engine in another place: all that it knows has been through bytes. Keeps the events of all of them."""

    def steps(self) -> Any:
        self.events: list[Any] = []
        for released in self.batches.released():
            batches = list(self.engine.feed(released.rows, released.clock, ended=released.ended))
            self.events += self.engine.events.take()
            query = self.batches.query
            self.engine = Engine.resume(self.batches.bound, _moved(self.engine.snapshot()), _controller(query))
            yield pa.Table.from_batches(batches, self.engine.output)


def _moved(snapshot: Snapshot) -> Snapshot:
    made: Snapshot = pickle.loads(pickle.dumps(snapshot))
    return made


def _controller(query: Query) -> RandomChanges:
    """What it does is all in its memory."""
    return RandomChanges(Random(), query)


def _counts(run: Run) -> dict[str, Any]:
    """What must not depend on moves: not clocks, nor the bytes of rows, which Arrow packs again when they are pickled."""
    return {k: v for k, v in run.engine.metrics().items() if not k.endswith("seconds") and k != "payload_bytes"}


def _stores(run: Run) -> list[StoreView]:
    """All but how many rows of payload are kept, which nothing tells of rows without columns."""
    return [replace(s, payload_rows=0) for s in run.engine.inspect(entries=True).stores]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_meta_an_engine_that_moves_after_each_batch_does_what_one_that_stays_does(first: int) -> None:
    """With changes forced at random tuples: the same results, the same counts, the same changes at the same moments."""
    changes = 0
    for seed in range(first, first + 20):
        case = random_case(seed)
        moving = _Moving.of(case.query, in_time_order(case, 15), case.plan, RandomChanges(Random(seed), case.query))
        staying = Run.of(case.query, in_time_order(case, 15), case.plan, RandomChanges(Random(seed), case.query))
        check(case, moving.rows())
        check(case, staying.rows())
        assert isinstance(moving, _Moving)
        assert _counts(moving) == _counts(staying), str(case)
        assert moving.events == list(staying.engine.events.take()), str(case)
        assert _stores(moving) == _stores(staying), str(case)
        assert [e.number for e in moving.events] == list(range(len(moving.events)))
        changes += len(moving.events)
    assert changes > 150


def test_meta_groups_grow_on_in_another_engine() -> None:
    """How large groups may be is learnt, too: a snapshot carries it, and how many there have been."""
    n = 3_000
    rng = np.random.default_rng(0)
    tables = {name: stream(np.arange(n) * 3 + i, a=rng.integers(0, n, n)) for i, name in enumerate("RS")}
    run = Run.of("SELECT R.a FROM R [ROWS 500], S [ROWS 500] WHERE R.a = S.a", tables, "(R S)")
    list(run.steps())
    other = Engine.resume(run.batches.bound, _moved(run.engine.snapshot()))
    assert run.engine.inspect().groups > 0
    assert other.inspect() == run.engine.inspect()


def test_meta_words_given_with_a_snapshot_are_used_in_place_and_later_ones_are_asked_for() -> None:
    tables = {name: stream(range(100), k=[1] * 100) for name in "RS"}
    text = "SELECT R.k FROM R [UNBOUNDED], S [ROWS 2] WHERE R.k = S.k"
    run = Run.of(text, [{n: t.slice(i, 20) for n, t in tables.items()} for i in range(0, 100, 20)], "(R S)")
    steps = run.steps()
    next(steps)
    snapshot = run.engine.snapshot()
    asked: list[int] = []

    def allocate(words: int) -> Any:
        asked.append(words)
        return np.zeros(words, np.int64)

    assert snapshot.rest.words is None and snapshot.rest.pieces == ()
    words = snapshot.words.copy()
    run.engine = Engine.resume(run.batches.bound, snapshot.rest.with_rows(words, snapshot.pieces), allocate=allocate)
    assert np.shares_memory(run.engine.snapshot().words, words) and asked == []
    list(steps)
    assert asked, "a window has outgrown the words of the snapshot"


def test_refuses_a_snapshot_in_the_middle_of_a_feed_and_one_of_another_query() -> None:
    tables = {name: stream(range(500), k=[1] * 500) for name in "RS"}
    run = Run.of("SELECT R.k FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.k = S.k", tables, "(R S)")
    (released,) = run.batches.released()
    results = run.engine.feed(released.rows)
    next(results)
    with pytest.raises(wm.PlanError, match="in the middle of a feed"):
        run.engine.snapshot()
    list(results)
    other = Run.of("SELECT R.k FROM R [ROWS 1], S [ROWS 1], S AS t [ROWS 2] WHERE R.k = S.k", tables, "(R S t)")
    with pytest.raises(wm.WatersmeetError):
        Engine.resume(other.batches.bound, run.engine.snapshot())


def test_a_change_between_two_feeds_is_in_the_snapshot() -> None:
    tables = {name: stream(range(9), k=[1] * 9) for name in "RST"}
    text = "SELECT R.k FROM R [ROWS 3], S [ROWS 3], T [ROWS 3] WHERE R.k = S.k AND S.k = T.k"
    run = Run.of(text, tables, "(R S T)", Scripted(lambda seen: "((R S) T)", every=5))
    list(run.steps())
    other = Engine.resume(run.batches.bound, run.engine.snapshot())
    assert other.plan == Plan.parse("((R S) T)") and other.stores() == run.engine.stores()
    assert other.metrics() == run.engine.metrics()
