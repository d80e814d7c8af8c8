"""Late rows: cells count the same as an engine in process, and a condition that fails on a late row is no error in either."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import watersmeet as wm
from tests.spark.local_cells import LocalCells
from watersmeet.oracle import results_and_late
from watersmeet.testing import random_batches, random_plan, random_query, random_streams, same_rows

UTC = pa.timestamp("us", tz="UTC")


def test_oracle_late_rows_of_cells_are_those_of_a_process() -> None:
    came_late = 0
    for seed in range(60):
        rng = Random(seed)
        query = random_query(rng, idle=rng.random() < 0.5)
        batches = random_batches(rng, query, random_streams(rng, query), late=True)
        plan = random_plan(rng, query)
        expected, late = results_and_late(query, batches)
        if not late:
            continue
        in_process = wm.run(query, batches, plan=plan)
        local = LocalCells(query, plan, rng.choice([1, 2, 3, 4]), rng, 0.1, None, {"late": True})
        made = local.run(batches)
        told = f"seed {seed}\n{query}"
        wrong = same_rows(made.filter(pc.equal(made["kind"], "result")).select(expected.column_names), expected)
        assert wrong is None, f"{told}\n{wrong}"
        given = made.filter(pc.equal(made["kind"], "late"))
        assert Counter(given["late_stream"].to_pylist()) == Counter(name for name, _ in late), told
        assert sum(m["late"] for m in local.metrics) == in_process.metrics["late"] == len(late), told
        came_late += len(late)
    assert came_late > 10


def _rows(*rows: tuple[int, int, int]) -> pa.Table:
    """Rows (second, k, zero) of one stream, and a day that Python has no date for."""
    times, keys, zeros = zip(*rows, strict=True)
    days = pa.array([2_932_897] * len(rows), pa.int32()).cast(pa.date32())
    return pa.table({"k": keys, "zero": zeros, "day": days, "ts": pa.array([t * 1_000_000 for t in times], UTC)})


DECLARED = "".join(f"CREATE STREAM {s} (k BIGINT, zero BIGINT, day DATE, ts TIMESTAMP); " for s in "RS")
FRAGILE = [
    "R.k = S.k AND R.k / R.zero > 0", "R.k / R.zero = S.k / S.zero", "R.k = S.k AND R.k / R.zero <= S.k",
    "R.k = S.k AND R.k > 0 AND 10 / R.zero > 0 AND 10 % R.zero >= 0",
]  # fmt: skip


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("window", ["UNBOUNDED", "ROWS 5", "RANGE 1 MINUTE"])
@pytest.mark.parametrize("where", FRAGILE)
def test_oracle_a_condition_that_fails_on_a_late_row_is_no_error(
    where: str, window: str, cells: int, late: bool
) -> None:
    query = wm.parse(f"{DECLARED} SELECT R.k, R.ts AS r, S.ts AS s FROM R [{window}], S [UNBOUNDED] WHERE {where}")
    first = {"R": _rows((10, 1, 1)), "S": _rows((10, 1, 1), (10, 2, 1))}
    second = {"R": _rows((5, 1, 0), (12, 2, 1), (6, 1, 0), (7, 1, 1), (13, 1, 1)), "S": _rows((11, 1, 1))}
    plan = wm.Plan.parse("(R S)")
    expected, missed = results_and_late(query, [first, second])
    assert len(missed) == 3 and expected.num_rows >= 3
    in_process = wm.run(query, [first, second], plan=plan)
    assert same_rows(in_process.rows, expected) is None and in_process.metrics["late"] == 3
    local = LocalCells(query, plan, cells, Random(1), 0.2, None, {"late": late})
    made = local.run([first, second])
    results = made.filter(pc.equal(made["kind"], "result")) if late else made
    assert (wrong := same_rows(results.select(expected.column_names), expected)) is None, wrong
    assert sum(m["late"] for m in local.metrics) == 3
    if late:
        texts = [json.loads(t) for t in made.filter(pc.equal(made["kind"], "late"))["late_row"].to_pylist()]
        assert sorted((row["k"], row["zero"], row["day"]) for row in texts) == [
            (1, 0, "10000-01-01"),
            (1, 0, "10000-01-01"),
            (1, 1, "10000-01-01"),
        ]


@pytest.mark.parametrize("order", ["event", "arrival"])
@pytest.mark.parametrize("where", FRAGILE)
def test_oracle_a_condition_that_fails_on_a_row_in_time_is_an_error(where: str, order: str) -> None:
    query = wm.parse(f"{DECLARED} SELECT R.k FROM R [UNBOUNDED], S [UNBOUNDED] WHERE {where}")
    first = {"R": _rows((10, 1, 1)), "S": _rows((10, 1, 1))}
    second = {"R": _rows((5, 1, 0), (12, 1, 0) if order == "event" else (12, 1, 1)), "S": _rows((13, 1, 1))}
    with pytest.raises(wm.DataError, match=r"division by zero in .*R\.zero"):
        LocalCells(query, wm.Plan.parse("(R S)"), 3, Random(1), 0.0, None, {"order": order}).run([first, second])


def test_oracle_a_late_row_that_fails_under_one_alias_is_counted_once() -> None:
    query = wm.parse(
        f"{DECLARED} SELECT p.k FROM R [UNBOUNDED] AS p, R [ROWS 9] AS q, S [UNBOUNDED] WHERE p.k = q.k AND q.k = S.k AND 1 / q.zero > 0"
    )
    batches = [
        {"R": _rows((10, 1, 1)), "S": _rows((10, 1, 1))},
        {"R": _rows((5, 1, 0), (6, 1, 1)), "S": _rows((11, 1, 1))},
    ]
    expected, missed = results_and_late(query, batches)
    local = LocalCells(query, wm.Plan.parse("(p q S)"), 2, Random(1))
    assert (wrong := same_rows(local.run(batches), expected)) is None, wrong
    assert sum(m["late"] for m in local.metrics) == len(missed) == 2
