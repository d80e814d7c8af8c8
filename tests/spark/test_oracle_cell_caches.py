"""Caches in cells: exact whatever happens to the cells, and kept from batch to batch whichever worker is next."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.spark.local_cells import LocalCells
from watersmeet.testing import same_rows

QUERY = """CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, b BIGINT, ts TIMESTAMP);
    CREATE STREAM T (b BIGINT, ts TIMESTAMP);
    SELECT R.a, S.b, T.ts AS t FROM R [ROWS 20], S [ROWS 40], T [ROWS 5] WHERE R.a = S.a AND S.b = T.b"""
PLAN = "(R S T) orders {R: S T; S: R T; T: S R} caches {T: S R / 16 KiB}"


def batches(rng: Random) -> list[dict[str, pa.Table]]:
    made = []
    for batch in range(12):
        sizes = {"R": ("a", 4), "S": ("ab", 8), "T": ("b", 30)}
        made.append({
            name: pa.table({c: pa.array([rng.randrange(15) for _ in range(n)], pa.int64()) for c in columns}
                           | {"ts": pa.array([10 * batch + rng.randrange(10) for _ in range(n)], pa.timestamp("us", tz="UTC"))})
            for name, (columns, n) in sizes.items()
        })  # fmt: skip
    return made


@pytest.mark.parametrize("parked", [True, False])
def test_oracle_caches_in_cells_with_mishaps(parked: bool, tmp_path: Path) -> None:
    for seed in range(4):
        rng = Random(seed)
        given = batches(rng)
        local = LocalCells(wm.parse(QUERY), wm.Plan.parse(PLAN), 3, rng, 0.3, tmp_path if parked else None)
        difference = same_rows(local.run(given), wm.oracle(QUERY, given))
        assert difference is None, f"seed {seed}: {difference}"
        assert sum(m["totals"]["cache_hits"] for m in local.metrics) > 50
        for folder in tmp_path.iterdir():
            (folder / "head").unlink(missing_ok=True)


def test_caches_of_a_parked_cell_are_there_for_the_next_worker(tmp_path: Path) -> None:
    misses = []
    for mishaps in (0.0, 1.0):
        local = LocalCells(
            wm.parse(QUERY), wm.Plan.parse(PLAN), 1, Random(1), mishaps, tmp_path if not mishaps else None
        )
        local.run(batches(Random(7)))
        misses.append([m["totals"]["cache_misses"] for m in local.metrics])
    kept, rebuilt = misses
    assert kept == sorted(kept)  # totals of one engine, though each batch has a new worker
    assert 0 < kept[-1] < 0.5 * sum(rebuilt)  # each batch a new engine, whose caches begin empty
