"""PARTITION BY windows: NULL is a partition, n may be 1, the directory grows, payload of rows that have left is let go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, agrees, stream


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("by", ["p", "w", "f", "p, w", "w, f, p"])
def test_oracle_partitions_by_columns_with_nulls(by: str, rows: int) -> None:
    rng = np.random.default_rng(rows)

    def table(n: int) -> pa.Table:
        nulls = [rng.random(n) < 0.2 for _ in range(3)]
        return stream(
            np.sort(rng.integers(0, n, n)), id=np.arange(n), k=rng.integers(0, 4, n),
            p=pa.array(rng.integers(0, 3, n), mask=nulls[0]),
            w=pa.array([["a", "", "ab"][v] for v in rng.integers(0, 3, n)], mask=nulls[1]),
            f=pa.array(rng.choice([0.0, -0.0, np.nan, 1.5], n), mask=nulls[2]),
        )  # fmt: skip

    tables = {"R": table(60), "S": table(60), "T": table(20)}
    text = f"""SELECT R.id AS r, S.id AS s, T.id AS t
        FROM R [PARTITION BY {by} ROWS {rows}], S [PARTITION BY {by} ROWS 1], T [RANGE 30 MICROSECONDS]
        WHERE R.k = S.k AND S.k = T.k AND R.id <> 7"""
    for emit in ("ISTREAM", "DSTREAM"):
        assert agrees(f"{text} EMIT {emit}", tables, "(R S T)", "((R S) T)", "((T S) R)").num_rows > 20


def test_oracle_partitions_null_is_one_partition_and_not_that_of_zero_or_the_empty_string() -> None:
    r = stream([1, 2, 3, 4], id=[1, 2, 3, 4], p=pa.array([None, 0, None, 0]), w=pa.array([None, "", "", None]))
    s = stream([5], one=[1])
    for by, left in (("p", [3, 4]), ("w", [3, 4]), ("p, w", [1, 2, 3, 4])):
        text = f"SELECT R.id AS r FROM R [PARTITION BY {by} ROWS 1], S [UNBOUNDED] WHERE R.id > S.one - 1"
        assert sorted(agrees(text, {"R": r, "S": s}).column("r").to_pylist()) == left


def test_oracle_partitions_by_the_thousand() -> None:
    """The directory grows many times over; the last row of each of 3,000 values is there in the end, and no other."""
    n, values = 9_000, 3_000
    rng = np.random.default_rng(0)
    p = rng.integers(0, values, n)
    tables = {"R": stream(np.arange(n), id=np.arange(n), p=p), "S": stream([n], one=[1])}
    text = "SELECT R.id AS r, R.p AS p FROM R [PARTITION BY p ROWS 1], S [UNBOUNDED]"
    run = Run.of(text, tables, "(R S)")
    made = run.rows()
    last = {int(value): i for i, value in enumerate(p)}
    assert dict(zip(made.column("p").to_pylist(), made.column("r").to_pylist(), strict=True)) == last
    window = run.engine.inspect().store("R")
    assert window.partitions == window.live == len(last)
    assert window.partition_slots >= 2 * len(last)


@pytest.mark.parametrize("select", ["R.id AS r, S.id AS s", "S.id AS s"])
def test_oracle_partitions_let_go_of_payload(select: str) -> None:
    """200,000 rows go through 1,000 partitions of one row; with and without a column of R in the result."""
    n, parts = 200_000, 1_000
    k = np.arange(n)
    tables = {"R": stream(3 * k, id=k, p=k % parts), "S": stream([3 * n - 1], id=[1])}
    run = Run.of(f"SELECT {select} FROM R [PARTITION BY p ROWS 1], S [UNBOUNDED]", tables, "(R S)")
    made = run.rows()
    assert made.num_rows == parts
    if "r" in made.column_names:
        assert sorted(made.column("r").to_pylist()) == list(range(n - parts, n))
        assert run.engine.inspect().store("R").payload_rows < n // 2


def test_meta_partitions_by_a_key_of_one_value_are_a_rows_window() -> None:
    n = 50
    rng = np.random.default_rng(1)
    tables = {
        x: stream(np.sort(rng.integers(0, n, n)), id=np.arange(n), k=rng.integers(0, 3, n), c=[1] * n) for x in "RS"
    }
    text = "SELECT R.id AS r, S.id AS s FROM R [{}ROWS 5], S [ROWS 9] WHERE R.k = S.k EMIT DSTREAM"
    whole = wm.run(text.format(""), tables).rows
    parted = wm.run(text.format("PARTITION BY c "), tables).rows
    assert whole is not None and parted is not None and whole.num_rows > 20
    assert sorted(map(str, whole.to_pylist())) == sorted(map(str, parted.to_pylist()))
