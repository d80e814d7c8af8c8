"""same_rows: results as multisets, and a difference that can be read."""

from __future__ import annotations

import pyarrow as pa

from watersmeet.testing import random_case, same_rows


def test_same_rows_in_any_order() -> None:
    for seed in range(30):
        table = random_case(seed).expected
        assert same_rows(table, table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))) is None


def test_same_rows_counts_how_often_each_occurs() -> None:
    twice, once = pa.table({"x": [1, 1, 2]}), pa.table({"x": [1, 2, 2]})
    assert same_rows(twice, once) == (
        "3 rows, expected 3: 1 missing, 1 too many\n  columns: x\n  missing   1 x (2)\n  too many  1 x (1)"
    )


def test_same_rows_takes_nan_for_nan_and_minus_zero_for_zero_and_null_for_null() -> None:
    a = pa.table({"x": pa.array([float("nan"), -0.0, None], pa.float64())})
    b = pa.table({"x": pa.array([None, float("nan"), 0.0], pa.float64())})
    assert same_rows(a, b) is None
    assert same_rows(a, pa.table({"x": pa.array([None, None, 0.0], pa.float64())})) is not None


def test_same_rows_does_not_mistake_the_word_nan_for_the_number() -> None:
    assert same_rows(pa.table({"x": ["NaN"]}), pa.table({"x": ["nan"]})) is not None


def test_same_rows_compares_names_and_types_of_columns() -> None:
    said = same_rows(pa.table({"x": [1]}), pa.table({"x": [1.0]}))
    assert said is not None and "columns differ" in said and "x int64" in said and "x double" in said
    assert same_rows(pa.table({"x": [1]}), pa.table({"y": [1]})) is not None


def test_same_rows_shows_times_and_shortens_long_lists() -> None:
    stamps = pa.table({
        "at": pa.array([0, 1_500_000], pa.timestamp("us", tz="UTC")), "day": pa.array([0, 1], pa.date32()),
        "age": pa.array([1_500_000, None], pa.duration("us")),
    })  # fmt: skip
    said = same_rows(stamps, stamps.slice(0, 0))
    assert said is not None
    assert "1970-01-01 00:00:01.500000Z, 1970-01-02, NULL" in said
    assert "1970-01-01 00:00:00.000000Z, 1970-01-01, 1500000 us" in said
    long = same_rows(pa.table({"x": list(range(100))}), pa.table({"x": pa.array([], pa.int64())}))
    assert long is not None and "... and 80 more" in long
