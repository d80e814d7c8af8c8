"""Cells whose controllers change them while they run: the answer stays, and plan, counts and memory go on whichever worker is next."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import RandomChanges
from tests.spark.local_cells import DictStore, LocalCells
from watersmeet.engine.control import Change, Observed
from watersmeet.model.bind import BoundQuery
from watersmeet.model.query import Query
from watersmeet.spark.listener import NAME, events_of, metrics_by_cell, metrics_of
from watersmeet.testing import random_case, same_rows

UTC = pa.timestamp("us", tz="UTC")
TEXT = """SELECT R.a, S.b, R.ts AS r, S.ts AS s, T.ts AS t FROM R [RANGE 20 SECONDS], S [ROWS 8], T [RANGE 9 SECONDS]
WHERE R.a = S.a AND S.b = T.b"""


@dataclass(frozen=True)
class AtRandom:
    """Makes the controller of a cell. It travels to workers, as the query does."""

    query: Query
    seed: int

    def __call__(self, bound: BoundQuery) -> RandomChanges:
        return RandomChanges(Random(self.seed), self.query)


@dataclass
class Once:
    """Takes another plan in its third step, and only then; it remembers how many there have been, and how many rows came."""

    every: int = 1 << 40
    steps: int = 0
    rows: int = 0

    def step(self, seen: Observed) -> Change | None:
        self.steps += 1
        self.rows += sum(seen.rows_in.values())
        assert seen.arrivals == self.rows
        return Change("the third step", plan=wm.Plan.parse("((R S) T)")) if self.steps == 3 else None

    def memory(self) -> bytes:
        return json.dumps([self.steps, self.rows]).encode()

    def recall(self, memory: bytes) -> None:
        self.steps, self.rows = json.loads(memory)


def _once(bound: BoundQuery) -> Once:
    return Once()


def _batches(count: int = 7) -> list[dict[str, pa.Table]]:
    rng = Random(2)
    made = []
    for b in range(count):
        batch = {}
        for name, columns in (("R", "a"), ("S", "ab"), ("T", "b")):
            times = sorted(rng.randint(10 * b, 10 * b + 9) * 1_000_000 for _ in range(20))
            data = {c: pa.array([rng.randint(0, 3) for _ in times], pa.int64()) for c in columns}
            batch[name] = pa.table(data | {"ts": pa.array(times, UTC)})
        made.append(batch)
    return made


def _by_cell(local: LocalCells) -> Iterator[list[dict[str, Any]]]:
    made = defaultdict(list)
    for told in local.metrics:
        made[told["cell"]].append(told)
    yield from made.values()


@pytest.mark.parametrize("way", ["one worker", "each batch another", "mishaps", "mishaps and another each batch"])
@pytest.mark.parametrize("first", range(400, 420, 10))
def test_switch_cells_at_random_tuples(first: int, way: str, tmp_path: Path) -> None:
    changes = 0
    for seed in range(first, first + 10):
        case = random_case(seed)
        parks = tmp_path / str(seed) if "another" in way else None
        if parks:
            parks.mkdir()
        options = {"controller": AtRandom(case.query, seed)}
        local = LocalCells(case.query, case.plan, 2, Random(seed), 0.3 * ("mishaps" in way), parks, options)
        made = local.run(case.batches)
        assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"
        for told in _by_cell(local):
            events = [e for t in told for e in t["events"]]
            changes += len(events)
            # The plan in use goes on: by the snapshot, or where a cell is rebuilt by the manifest.
            assert [e["was"] for e in events[1:]] == [e["now"] for e in events[:-1]], str(case)
    assert changes > 100


@pytest.mark.parametrize("cells", [1, 2])
def test_totals_plan_and_memory_go_on_in_another_worker(cells: int, tmp_path: Path) -> None:
    batches = _batches()
    local = LocalCells(wm.parse(TEXT), wm.Plan.parse("(R S T)"), cells, Random(1), 0.0, tmp_path, {"controller": _once})
    made = local.run(batches)
    assert (wrong := same_rows(made, wm.oracle(TEXT, batches))) is None, wrong
    for told in _by_cell(local):
        assert len(told) > 6 and [t["rebuilt"] for t in told] == [1] + [0] * (len(told) - 1)
        assert [len(t["events"]) for t in told] == [0, 0, 1] + [0] * (len(told) - 3)
        (event,) = told[2]["events"]
        assert (event["was"], event["now"], event["reason"]) == ("(R S T)", "((R S) T)", "the third step")
        assert event["arrivals"] == sum(t["rows_in"] for t in told[:3])
        for k, t in enumerate(told, 1):
            assert t["totals"]["results"] == sum(earlier["results"] for earlier in told[:k])
            assert t["totals"]["tuples_in"] == sum(earlier["rows_in"] for earlier in told[:k])
            assert t["totals"]["plan_switches"] == (k >= 3)
        for before, after in pairwise(told):
            assert after["totals"]["probes"] >= before["totals"]["probes"]
            assert after["totals"]["cpu_seconds"] > before["totals"]["cpu_seconds"]
    assert sum(t["results"] for t in local.metrics) == made.num_rows > 50


def test_a_rebuilt_cell_begins_with_the_plan_that_was_in_use() -> None:
    batches = _batches()
    query, plan = wm.parse(TEXT), wm.Plan.parse("(R S T)")
    local = LocalCells(query, plan, 1, Random(1), options={"controller": _once})
    made = [local.run(batches[:4], end=False)]
    (stored,) = [json.loads(s.text or "") for s in local.stores]
    assert (stored["plan"], stored["given_plan"], stored["layout"]) == ("((R S) T)", "(R S T)", 3)
    made.append(local.run(batches[4:]))
    assert (wrong := same_rows(pa.concat_tables(made), wm.oracle(TEXT, batches))) is None, wrong
    assert local.metrics[4]["rebuilt"] == 1
    changed = [t["events"] for t in local.metrics[4:]]
    assert [e["was"] for events in changed for e in events] == ["((R S) T)"], (
        "its controller began again, its plan did not"
    )


@pytest.mark.parametrize("parked", [False, True])
def test_a_query_started_with_another_plan_takes_that(parked: bool, tmp_path: Path) -> None:
    batches = _batches()
    made: list[pa.Table] = []
    stores: list[DictStore] = []
    parks = tmp_path if parked else None
    for plan, part, end in (("(R S T)", batches[:3], False), ("(R (S T))", batches[3:], True)):
        local = LocalCells(wm.parse(TEXT), wm.Plan.parse(plan), 1, Random(1), 0.0, parks)
        local.stores = stores
        made.append(local.run(part, end=end))
        stores = local.stores
    assert (wrong := same_rows(pa.concat_tables(made), wm.oracle(TEXT, batches))) is None, wrong
    assert [t["rebuilt"] for t in local.metrics] == [int(not parked), 0, 0, 0, 0]
    events = [e for t in local.metrics for e in t["events"]]
    assert [(e["was"], e["now"], e["reason"]) for e in events] == (
        [("(R S T)", "(R (S T))", "the query was started with another plan")] if parked else []
    )
    assert json.loads(stores[0].text or "")["plan"] == "(R (S T))"


def test_a_manifest_without_plans_is_read() -> None:
    """As layout 2 wrote it: the cell begins with the plan that the query is started with."""
    batches = _batches()
    local = LocalCells(wm.parse(TEXT), wm.Plan.parse("(R S T)"), 1, Random(1))
    made = [local.run(batches[:3], end=False)]
    (store,) = local.stores
    older = json.loads(store.text or "")
    del older["plan"], older["given_plan"], older["digest"]
    store.text = json.dumps({**older, "layout": 2, "chunks": [chunk[:-1] for chunk in older["chunks"]]})
    made.append(local.run(batches[3:]))
    assert (wrong := same_rows(pa.concat_tables(made), wm.oracle(TEXT, batches))) is None, wrong
    assert json.loads(store.text)["layout"] == 3


def test_events_and_totals_reach_the_driver_by_cell() -> None:
    local = LocalCells(wm.parse(TEXT), wm.Plan.parse("(R S T)"), 2, Random(1), options={"controller": _once})
    local.run(_batches())
    batch = local.metrics[4:6]  # the third batch, of both cells
    progress = SimpleNamespace(observedMetrics={NAME: SimpleNamespace(cells=[json.dumps(t) for t in batch])})
    assert [t["cell"] for t in metrics_by_cell(progress)] == [0, 1]
    assert [(e["cell"], e["reason"]) for e in events_of(progress)] == [(0, "the third step"), (1, "the third step")]
    added = metrics_of(progress)
    assert added["rows_in"] == sum(t["rows_in"] for t in batch)
    assert {"cell", "totals", "events"}.isdisjoint(added)
