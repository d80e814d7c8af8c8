"""Packs and cells give the oracle's answer, whatever the number of cells, the batches, and what goes wrong on the way."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.spark.local_cells import LocalCells
from watersmeet.engine.rows.batches import Batches
from watersmeet.oracle import results_and_late
from watersmeet.spark.route import Route, cell_keys, partition_of
from watersmeet.testing import random_case, same_rows


@pytest.mark.parametrize("cells", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(25))
def test_oracle_cells_give_the_answer(seed: int, cells: int) -> None:
    case = random_case(seed)
    made = LocalCells(case.query, case.plan, cells, Random(seed)).run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"


@pytest.mark.parametrize("seed", [*range(100, 130), 1327, 1332])  # the last two: one stream and static tables
def test_oracle_cells_survive_mishaps(seed: int) -> None:
    """Cells are thrown out of memory, and batches are run once in vain before they count."""
    case = random_case(seed)
    made = LocalCells(case.query, case.plan, 2 + seed % 3, Random(seed), mishaps=0.4).run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"


@pytest.mark.parametrize("seed", range(200, 230))
def test_oracle_cells_in_shared_memory(seed: int, tmp_path: Path) -> None:
    """Every batch finds a new worker, which goes on with what lies in shared memory."""
    case = random_case(seed)
    local = LocalCells(case.query, case.plan, 2, Random(seed), 0.2 * (seed % 2), tmp_path)
    made = local.run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"
    if seed % 2 == 0:
        assert sum(m["rebuilt"] for m in local.metrics) <= 2, "a cell was rebuilt although it lay in shared memory"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_oracle_many_cells_survive_mishaps(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    parks = tmp_path if seed % 2 else None
    made = LocalCells(case.query, case.plan, 1 + seed % 9, Random(seed), 0.3, parks).run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"


LATE = """
CREATE STREAM R (a BIGINT, ts TIMESTAMP) LATENESS 3 SECONDS IDLE 20 SECONDS;
CREATE STREAM S (a BIGINT, b BIGINT, ts TIMESTAMP) IDLE 30 SECONDS;
CREATE STREAM T (b BIGINT, ts TIMESTAMP) LATENESS 5 SECONDS;
SELECT R.a, S.b, R.ts AS r, S.ts AS s, T.ts AS t FROM R [RANGE 20 SECONDS], S [{0}], T [RANGE 8 SECONDS]
WHERE R.a = S.a AND S.b = T.b
"""


def _disordered(rng: Random) -> list[dict[str, pa.Table]]:
    """Batches with much disorder, streams that stop for a while, and empty batches."""
    batches = []
    for batch in range(8):
        made = {}
        for name, columns in (("R", "a"), ("S", "ab"), ("T", "b")):
            rows = 0 if rng.random() < 0.3 else rng.randint(1, 12)
            times = [(batch * 10 + rng.randint(-12, 10)) * 1_000_000 for _ in range(rows)]
            data = {c: pa.array([rng.randint(0, 3) for _ in range(rows)], pa.int64()) for c in columns}
            made[name] = pa.table(data | {"ts": pa.array(times, pa.timestamp("us", tz="UTC"))})
        batches.append(made)
    return batches


@pytest.mark.parametrize("window", ["RANGE 10 SECONDS", "ROWS 5", "PARTITION BY a ROWS 2", "UNBOUNDED"])
@pytest.mark.parametrize("seed", range(6))
def test_oracle_cells_late_rows_and_idle_streams(seed: int, window: str) -> None:
    rng = Random(seed)
    query, batches = wm.parse(LATE.format(window)), _disordered(rng)
    expected, late = results_and_late(query, batches)
    plan = wm.Plan.parse("(R S T)")
    for cells in (1, 2, 4):
        local = LocalCells(query, plan, cells, rng, 0.2, None, {"late": True})
        made = local.run(batches)
        kind = made.column("kind").to_pylist()
        results = made.filter(pa.array([k == "result" for k in kind])).select(expected.column_names)
        assert (wrong := same_rows(results, expected)) is None, f"seed {seed}, {cells} cells: {wrong}"
        found = Counter(made.filter(pa.array([k == "late" for k in kind])).column("late_stream").to_pylist())
        assert found == Counter(name for name, _ in late)
        assert sum(m["late"] for m in local.metrics) == len(late)
    assert late, "the case must have late rows"


def test_oracle_late_rows_of_a_self_join_are_counted_once() -> None:
    times = [100, 101, 5, 102, 6]
    rows = pa.table(
        {"a": [1, 1, 1, 1, 2], "ts": pa.array([t * 1_000_000 for t in times], pa.timestamp("us", tz="UTC"))}
    )
    query = wm.parse("SELECT x.a FROM R [RANGE 10 SECONDS] AS x, R [RANGE 20 SECONDS] AS y WHERE x.a = y.a AND y.a < 2")
    local = LocalCells(query, wm.Plan.parse("(x y)"), 4, Random(1))
    local.run([{"R": rows.slice(0, 2)}, {"R": rows.slice(2, 3)}])
    assert sum(m["late"] for m in local.metrics) == 2


@pytest.mark.parametrize("window", ["RANGE 10 SECONDS", "ROWS 3", "PARTITION BY a ROWS 2"])
def test_oracle_late_rows_count_whatever_the_selections_say(window: str) -> None:
    """Late rows that no alias would have taken: rejected by all, by one, and with a NULL for a key."""
    values = [1, 2, 3, 4, None, 1, 2, 3, 4, None]
    times = [100, 101, 102, 103, 104, 5, 6, 7, 8, 9]
    rows = pa.table({"a": values, "ts": pa.array([t * 1_000_000 for t in times], pa.timestamp("us", tz="UTC"))})
    query = wm.parse(
        f"SELECT x.a FROM R [{window}] AS x, R [RANGE 20 SECONDS] AS y WHERE x.a = y.a AND y.a < 2 AND (x.a < 3 OR x.a IS NULL)"
    )
    batches = [{"R": rows.slice(0, 5)}, {"R": rows.slice(5)}]
    late = results_and_late(query, batches)[1]
    for cells in (1, 4):
        local = LocalCells(query, wm.Plan.parse("(x y)"), cells, Random(1), 0.2, None, {"late": True})
        made = local.run(batches)
        texts = [t for t in made.column("late_row").to_pylist() if t is not None]
        assert (
            sorted(json.loads(t)["a"] or 0 for t in texts)
            == sorted(row["a"] or 0 for _, row in late)
            == [0, 1, 2, 3, 4]
        )
        assert sum(m["late"] for m in local.metrics) == len(late)


def test_oracle_rows_in_order_of_arrival_are_never_late() -> None:
    """With order="arrival" nothing waits; on inputs that are in order the answer is the oracle's."""
    rng = Random(3)
    query = wm.parse(LATE.format("RANGE 10 SECONDS"))
    batches = _disordered(rng)
    everything = {n: pa.concat_tables([b[n] for b in batches]).sort_by("ts") for n in ("R", "S", "T")}
    marks = [pa.scalar(t * 10_000_000, pa.timestamp("us", tz="UTC")) for t in range(-2, 9)]
    ordered = []
    for low, high in pairwise(marks):
        ordered.append({n: t.filter(pa.compute.and_(pa.compute.greater_equal(t["ts"], low), pa.compute.less(t["ts"], high)))
                        for n, t in everything.items()})  # fmt: skip
    local = LocalCells(query, wm.Plan.parse("(R S T)"), 2, rng, 0.3, None, {"order": "arrival"})
    assert (wrong := same_rows(local.run(ordered, end=False), wm.oracle(query, everything))) is None, wrong
    local = LocalCells(query, wm.Plan.parse("(R S T)"), 2, rng, 0.3, None, {"order": "arrival"})
    local.run(batches, end=False)
    assert sum(m["late"] for m in local.metrics) == 0
    assert all(m["waiting_rows"] == 0 for m in local.metrics)


@pytest.mark.parametrize("window", ["RANGE 10 SECONDS", "ROWS 50", "PARTITION BY a ROWS 2"])
def test_stored_state_stays_within_twice_what_lives(window: str) -> None:
    rng = Random(5)
    query = wm.parse(f"SELECT R.a, S.b FROM R [{window}], S [RANGE 5 SECONDS] WHERE R.a = S.a")
    batches = []
    for batch in range(40):
        made = {}
        for name, columns in (("R", "a"), ("S", "ab")):
            times = sorted(batch * 10_000_000 + rng.randint(0, 9_999_999) for _ in range(300))
            data = {c: [rng.randint(0, 40) for _ in range(300)] for c in columns}
            made[name] = pa.table(data | {"ts": pa.array(times, pa.timestamp("us", tz="UTC"))})
        batches.append(made)
    local = LocalCells(query, wm.Plan.parse("(R S)"), 2, rng, 0.1)
    assert (wrong := same_rows(local.run(batches), wm.oracle(query, batches))) is None, wrong
    for m in local.metrics:
        assert m["stored_rows"] <= 2 * (m["window_rows"] + m["waiting_rows"]) + 1024, m
        assert m["chunks"] <= 60


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 16, 200])
def test_cell_keys_lie_one_in_each_partition(cells: int) -> None:
    assert [partition_of(k, cells) for k in cell_keys(cells)] == list(range(cells))


@pytest.mark.parametrize("seed", range(40))
def test_members_of_a_result_meet_in_one_cell(seed: int) -> None:
    """Along each dimension at least one stream is fixed, and copies fill the rest of the grid exactly."""
    case = random_case(seed)
    bound = Batches(case.query, case.streams).bound
    for cells in (1, 2, 4, 6, 12):
        route = Route.of(bound, cells)
        for lane in route.lanes.values():
            places = [b + o for b in lane.bases for o in lane.offsets]
            assert sorted(places) == list(range(cells))
