"""LEFT JOIN in cells: each unmatched row comes out once, whatever the number of cells, restarts and mishaps."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.spark.local_cells import DictStore, LocalCells
from watersmeet.engine.rows.batches import Batches
from watersmeet.spark.chunks import Manifest
from watersmeet.spark.route import Route
from watersmeet.testing import random_case, random_plan, same_rows

UTC = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("cells", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(25))
def test_oracle_unmatched_rows_of_cells(seed: int, cells: int) -> None:
    case = random_case(seed, preserves=True)
    made = LocalCells(case.query, case.plan, cells, Random(seed)).run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"


@pytest.mark.parametrize("seed", range(100, 140))
def test_oracle_unmatched_rows_survive_mishaps(seed: int, tmp_path: Path) -> None:
    """Cells are thrown out of memory, batches are run once in vain, and cells move between workers."""
    case = random_case(seed, preserves=True)
    parks = tmp_path if seed % 2 else None
    made = LocalCells(case.query, case.plan, 2 + seed % 3, Random(seed), 0.4, parks).run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, f"{wrong}\n{case}"


@pytest.mark.parametrize("seed", range(200, 212))
def test_oracle_unmatched_rows_survive_a_restart_with_another_plan(seed: int) -> None:
    case, rng = random_case(seed, preserves=True), Random(seed)
    static = {n: t for n, t in case.streams.items() if not any(n == s.stream and s.window for s in case.query.sources)}
    half = len(case.batches) // 2
    made: list[pa.Table] = []
    stores: list[DictStore] = []
    for part, end in ((case.batches[:half], False), (case.batches[half:], True)):
        local = LocalCells(case.query, random_plan(rng, case.query), 2, rng, 0.2)
        local.stores = stores
        made.append(local.run([{**static, **b} for b in part] or [static], end=end))
        stores = local.stores
    assert (wrong := same_rows(pa.concat_tables(made), case.expected)) is None, f"{wrong}\n{case}"


@pytest.mark.parametrize("seed", range(20))
def test_conform_each_preserved_row_lives_in_one_cell(seed: int) -> None:
    case = random_case(seed, preserves=True)
    bound = Batches(case.query, case.streams).bound
    for cells in (1, 2, 4, 6):
        lane = Route.of(bound, cells).lanes[case.query.sources[0].alias]
        assert lane.offsets == (0,) and lane.bases == tuple(range(cells))


TEXT = """
CREATE STREAM C (id BIGINT, k BIGINT, ts TIMESTAMP);
CREATE STREAM P (k BIGINT, ts TIMESTAMP);
SELECT c.id, p.k FROM C [RANGE 20 SECONDS] AS c LEFT JOIN P [RANGE 1 SECOND] AS p ON c.k = p.k
"""


def _batch(rng: Random, at: int) -> dict[str, pa.Table]:
    times = pa.array(sorted(rng.randint(10 * at, 10 * at + 9) * 1_000_000 for _ in range(40)), UTC)
    keys = [pa.array([rng.randint(0, 60) for _ in range(40)], pa.int64()) for _ in range(2)]
    ids = pa.array(range(40 * at, 40 * at + 40), pa.int64())
    return {"C": pa.table({"id": ids, "k": keys[0], "ts": times}), "P": pa.table({"k": keys[1], "ts": times})}


def test_oracle_marks_outlive_the_rows_that_made_them() -> None:
    """A payment is gone after a second, its cart 20 seconds later: only the marks tell that there was a match."""
    rng = Random(5)
    batches, query = [_batch(rng, at) for at in range(20)], wm.parse(TEXT)
    local = LocalCells(query, wm.Plan.parse("(c p)"), 2, rng, 0.5)
    made, expected = local.run(batches), wm.oracle(query, batches)
    assert (wrong := same_rows(made, expected)) is None, wrong
    assert 0 < expected.column("k").null_count < expected.num_rows
    assert sum(m["rebuilt"] for m in local.metrics) > 10
    for store in local.stores:
        manifest = Manifest.read(store.text or "")
        assert manifest.numbered > 300 and manifest.marks[2] < 150
        assert set(store.chunks) == {*(c.number for c in manifest.chunks), manifest.marks[0]}


def test_oracle_rows_that_came_out_at_a_flush_do_not_come_again() -> None:
    rng = Random(6)
    batches, query = [_batch(rng, at) for at in range(4)], wm.parse(TEXT)
    local = LocalCells(query, wm.Plan.parse("(c p)"), 2, rng, 0.5)
    first = local.run(batches)
    again = LocalCells(query, wm.Plan.parse("(c p)"), 2, rng, 0.5)
    again.stores = local.stores
    later = again.run([_batch(rng, 9)])
    ids = [*first.column("id").to_pylist(), *later.column("id").to_pylist()]
    assert set(ids) == {*range(160), *range(360, 400)}
    assert not set(first.column("id").to_pylist()) & set(later.column("id").to_pylist())
