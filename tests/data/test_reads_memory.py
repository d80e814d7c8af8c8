"""Tables that are in memory already: every kind is taken, brought to canonical types, and refused where a value can't fit."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from watersmeet.data import arrow_schema, as_table, check_timestamps, schema_of
from watersmeet.errors import DataError
from watersmeet.model.types import Field, Schema, Type

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
ROWS: list[dict[str, Any]] = [{"id": 1, "price": 2.5, "ts": NOON}, {"id": 2, "price": None, "ts": NOON}]


def schema(text: str) -> Schema:
    """Columns from text such as 'id BIGINT, price DECIMAL(5;2)'."""
    pairs = [column.strip().split(" ", 1) for column in text.split(",")]
    return Schema(tuple(Field(name, Type.parse(kind.replace(";", ","))) for name, kind in pairs))


ORDERS = schema("id BIGINT, price DOUBLE, ts TIMESTAMP")


def refusal(value: Any, declared: Schema | None = None, **how: Any) -> str:
    with pytest.raises(DataError) as e:
        as_table(value, "orders", declared, **how)
    return str(e.value)


def kinds() -> dict[str, Any]:
    table = pa.Table.from_pylist(ROWS)
    return {
        "table": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "dataset": ds.dataset(table),
        "pandas": table.to_pandas(),
        "rows": ROWS,
        "columns": {k: [r[k] for r in ROWS] for k in ROWS[0]},
    }


@pytest.mark.parametrize("kind", list(kinds()))
@pytest.mark.parametrize("declared", [ORDERS, None])
def test_reads_every_kind_of_table(kind: str, declared: Schema | None) -> None:
    made = as_table(kinds()[kind], "orders", declared)
    assert made.schema == arrow_schema(ORDERS)
    assert made.to_pylist() == ROWS


def test_reads_columns_by_name_whatever_the_case_in_declared_order_and_drops_others() -> None:
    table = pa.table({"x": [[1]], "PRICE": [1.5], "Id": pa.array([7], pa.int8())})
    assert as_table(table, "orders", schema("id BIGINT, price DOUBLE")).to_pydict() == {"id": [7], "price": [1.5]}


def test_reads_the_very_name_before_one_that_differs_in_case() -> None:
    assert as_table(pa.table({"ID": [1], "id": [2]}), "t", schema("id BIGINT")).to_pydict() == {"id": [2]}


@pytest.mark.parametrize(
    ("array", "declared", "expected"),
    [
        (pa.array([1, None], pa.uint8()), "BIGINT", [1, None]),
        (pa.array([2.0, None], pa.float32()), "BIGINT", [2, None]),
        (pa.array([Decimal("3.00")]), "BIGINT", [3]),
        (pa.array([5], pa.int32()), "DOUBLE", [5.0]),
        (pa.array([Decimal("1.25")]), "DOUBLE", [1.25]),
        (pa.array(["a", None], pa.large_string()), "STRING", ["a", None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "STRING", ["a", "b", "a"]),
        (pa.array(["a"], pa.string_view()), "STRING", ["a"]),
        (pa.array([True, None]), "BOOLEAN", [True, None]),
        (pa.array([dt.date(2026, 1, 31)], pa.date64()), "DATE", [dt.date(2026, 1, 31)]),
        (pa.array([dt.date(2026, 1, 31)]), "TIMESTAMP", [dt.datetime(2026, 1, 31, tzinfo=dt.UTC)]),
        (pa.array([1_769_860_800], pa.timestamp("s")), "TIMESTAMP", [NOON]),
        (pa.array([NOON], pa.timestamp("ns", "Europe/Berlin")), "TIMESTAMP", [NOON]),
        (pa.array([Decimal("1.5")], pa.decimal128(20, 4)), "DECIMAL(5;2)", [Decimal("1.50")]),
        (pa.array([7]), "DECIMAL(5;2)", [Decimal("7.00")]),
        (pa.array([-(2**63)]), "DECIMAL(38;19)", [Decimal(-(2**63))]),
        (pa.nulls(2), "TIMESTAMP", [None, None]),
    ],
)  # fmt: skip
def test_reads_values_that_fit_their_declared_type(array: pa.Array, declared: str, expected: list[object]) -> None:
    made = as_table(pa.table({"v": array}), "t", schema(f"v {declared}"))
    assert made.column("v").to_pylist() == expected
    assert made.schema == arrow_schema(schema(f"v {declared}"))


@pytest.mark.parametrize(
    ("array", "declared", "message"),
    [
        (pa.array([1.0, 1.5]), "BIGINT", "row 2, column 'v': 1.5 is not a whole number that fits a BIGINT"),
        (pa.array([float("nan")]), "BIGINT", "row 1, column 'v': nan is not a whole number that fits a BIGINT"),
        (pa.array([1, 2**63], pa.uint64()), "BIGINT", "row 2, column 'v': 9223372036854775808 does not fit a BIGINT"),
        (pa.array([0, 2**53 + 1]), "DOUBLE", "row 2, column 'v': 9007199254740993 does not fit a DOUBLE"),
        (pa.array([Decimal("1.255")]), "DECIMAL(5;2)", "row 1, column 'v': 1.255 does not fit a DECIMAL(5,2)"),
        (pa.array([Decimal(1234)]), "DECIMAL(5;2)", "row 1, column 'v': 1234 does not fit a DECIMAL(5,2)"),
        (pa.array([1000]), "DECIMAL(5;2)", "row 1, column 'v': 1000 does not fit a DECIMAL(5,2)"),
        (
            pa.array([1_000, 1_001], pa.timestamp("ns")), "TIMESTAMP",
            "row 2, column 'v': 1970-01-01 00:00:00.000001001 is finer than a microsecond",
        ),
        (
            pa.array([2**60], pa.timestamp("ms")), "TIMESTAMP",
            f"row 1, column 'v': {2**60} ms since 1970 is outside the years 1 to 9999",
        ),
        (
            pa.array([2**60], pa.timestamp("us", "UTC")), "TIMESTAMP",
            f"row 1, column 'v': {2**60} us since 1970 is outside the years 1 to 9999",
        ),
    ],
)  # fmt: skip
def test_refuses_a_value_that_does_not_fit(array: pa.Array, declared: str, message: str) -> None:
    assert refusal(pa.table({"v": array}), schema(f"v {declared}")) == f"orders, {message}"


def test_refuses_a_bad_value_deep_in_many_chunks() -> None:
    chunks = [pa.array([float(i) for i in range(k, k + 100)]) for k in range(0, 1000, 100)]
    chunks[7] = pa.array([0.5, *range(99)], pa.float64())
    assert refusal(pa.table({"v": pa.chunked_array(chunks)}), schema("v BIGINT")).startswith(
        "orders, row 701, column 'v': 0.5"
    )


@pytest.mark.parametrize(
    ("array", "declared", "message"),
    [
        (pa.array(["1"]), "BIGINT", "is STRING, but BIGINT is declared\n  declare it STRING, or convert the column"),
        (pa.array([True]), "BIGINT", "is BOOLEAN, but BIGINT is declared\n  declare it BOOLEAN, or convert the column"),
        (pa.array([1]), "STRING", "is BIGINT, but STRING is declared\n  declare it BIGINT, or convert the column"),
        (pa.array([1]), "BOOLEAN", "is BIGINT, but BOOLEAN is declared\n  declare it BIGINT, or convert the column"),
        (pa.array([1.5]), "DECIMAL(5;2)", "is DOUBLE, but DECIMAL(5,2) is declared\n  declare it DOUBLE, or convert the column"),
        (
            pa.array([1]), "TIMESTAMP",
            "is BIGINT, but TIMESTAMP is declared\n  if it counts the time since 1970, say in what: TIMESTAMP v IN MILLISECONDS",
        ),
        (
            pa.array(["2026-01-31"]), "DATE",
            "is STRING, but DATE is declared\n  convert the strings to dates before they come here, or declare the column STRING",
        ),
        (pa.array([[1]]), "BIGINT", "is list<item: int64>, but BIGINT is declared\n  convert or drop the column"),
    ],
)  # fmt: skip
def test_refuses_a_column_of_another_type(array: pa.Array, declared: str, message: str) -> None:
    assert refusal(pa.table({"v": array}), schema(f"v {declared}")) == f"orders, column 'v': {message}"


def test_refuses_a_missing_column_and_names_the_nearest() -> None:
    table = pa.table({"id": [1], "prise": [1.0]})
    assert refusal(table, schema("id BIGINT, price DOUBLE")) == (
        "orders: no column 'price'\n  did you mean 'prise'? found: id, prise"
    )
    assert refusal(table, schema("when TIMESTAMP")) == "orders: no column 'when'\n  found: id, prise"


def test_refuses_a_name_that_is_there_twice() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["Id", "ID"])
    assert refusal(table, schema("id BIGINT")) == "orders: column 'id' is there 2 times\n  rename or drop the others"
    assert refusal(table) == (
        "orders: two columns are named 'Id' and 'ID'\n  names must differ in more than their case: rename one"
    )


def test_refuses_types_that_no_language_type_holds() -> None:
    assert refusal(pa.table({"v": [b"x"]})) == (
        "orders: column 'v' has the Arrow type binary, which is not supported\n"
        "  drop or convert it, or declare only the columns you need"
    )
    assert "has only NULLs, so its type is not known" in refusal(pa.table({"v": pa.nulls(1)}))


def test_refuses_a_null_timestamp() -> None:
    table = pa.table({"ts": pa.array([NOON, None, None])})
    message = "orders, row 2, column 'ts': NULL, but every row of a stream needs its timestamp"
    assert refusal(table, schema("ts TIMESTAMP"), timestamp="ts") == message
    with pytest.raises(DataError, match="orders, row 2, column 'ts': NULL"):
        check_timestamps(as_table(table, "orders"), "orders", "ts")


def test_refuses_what_is_no_table() -> None:
    assert refusal(7) == (
        "orders: can't make a table of int\n"
        "  an Arrow table, a pandas DataFrame, a list of dicts, or a path to csv, parquet or json files"
    )


def test_reads_pandas_nan_as_null_and_whole_floats_as_integers() -> None:
    frame = pd.DataFrame({"id": [1.0, float("nan")], "name": ["a", None]})
    assert as_table(frame, "t", schema("id BIGINT, name STRING")).to_pydict() == {"id": [1, None], "name": ["a", None]}


def test_refuses_a_pandas_column_of_mixed_types() -> None:
    frame = pd.DataFrame({"ok": [1, 2], "id": [1, "b"]})
    assert refusal(frame) == "orders, column 'id': mixes int and str\n  a column needs values of one type"
    assert as_table(frame, "t", schema("ok BIGINT")).to_pydict() == {"ok": [1, 2]}


def test_refuses_a_pandas_nanosecond() -> None:
    frame = pd.DataFrame({"ts": pd.to_datetime([0, 1], unit="ns")})
    assert refusal(frame) == "orders, row 2, column 'ts': 1970-01-01 00:00:00.000000001 is finer than a microsecond"


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (2.0, "BIGINT", 2),
        (Decimal(3), "BIGINT", 3),
        (1, "DOUBLE", 1.0),
        ("Infinity", "DOUBLE", float("inf")),
        ("2026-01-31", "DATE", dt.date(2026, 1, 31)),
        ("2026-01-31 12:00:00", "TIMESTAMP", NOON),
        ("2026-01-31T13:00:00.000000000+01:00", "TIMESTAMP", NOON),
        (dt.datetime(2026, 1, 31, 13, tzinfo=dt.timezone(dt.timedelta(hours=1))), "TIMESTAMP", NOON),
        (dt.date(2026, 1, 31), "TIMESTAMP", NOON.replace(hour=0)),
        ("12345678901234567890123456789012345.67", "DECIMAL(38;2)", Decimal("12345678901234567890123456789012345.67")),
    ],
)
def test_reads_python_values_that_fit(value: object, kind: str, expected: object) -> None:
    assert as_table([{"v": value}], "t", schema(f"v {kind}")).to_pylist() == [{"v": expected}]


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ("1", "BIGINT", "'1' is not a BIGINT"),
        (True, "BIGINT", "True is not a BIGINT"),
        (1.5, "BIGINT", "1.5 is not a BIGINT"),
        (2**63, "BIGINT", "9223372036854775808 is not a BIGINT"),
        (float("inf"), "BIGINT", "inf is not a BIGINT"),
        ("x", "DOUBLE", "'x' is not a DOUBLE"),
        (2**53 + 1, "DOUBLE", "9007199254740993 is not a DOUBLE"),
        (1, "STRING", "1 is not a STRING"),
        ("\ud800", "STRING", "'\\ud800' is not a STRING"),
        (1, "BOOLEAN", "1 is not a BOOLEAN"),
        (NOON, "DATE", "2026-01-31 12:00:00+00:00 is not a DATE"),
        ("31.1.2026", "DATE", "'31.1.2026' is not a DATE"),
        (
            0,
            "TIMESTAMP",
            "0 is not a TIMESTAMP\n  if it counts the time since 1970, say in what: TIMESTAMP v IN MILLISECONDS",
        ),
        ("noon", "TIMESTAMP", "'noon' is not a TIMESTAMP"),
        ("2026-01-31 12:00:00.1234567", "TIMESTAMP", "'2026-01-31 12:00:00.1234567' is finer than a microsecond"),
        (pd.Timestamp(1, unit="ns"), "TIMESTAMP", "1970-01-01 00:00:00.000000001 is finer than a microsecond"),
        ("1.234", "DECIMAL(5;2)", "'1.234' is not a DECIMAL(5,2)"),
        (1000, "DECIMAL(5;2)", "1000 is not a DECIMAL(5,2)"),
        (1.5, "DECIMAL(5;2)", "1.5 is not a DECIMAL(5,2)"),
        (Decimal("NaN"), "DECIMAL(5;2)", "NaN is not a DECIMAL(5,2)"),
    ],
)
def test_refuses_python_values_that_do_not_fit(value: object, kind: str, message: str) -> None:
    rows = [{"v": None}, {"v": value}]
    assert refusal(rows, schema(f"v {kind}")) == f"orders, row 2, column 'v': {message}"


def test_reads_rows_with_missing_keys_as_null_and_no_rows_as_empty() -> None:
    assert as_table([{"a": 1}, {"b": 2}], "t", schema("a BIGINT, b BIGINT")).to_pylist() == [
        {"a": 1, "b": None}, {"a": None, "b": 2},
    ]  # fmt: skip
    assert as_table([], "t", ORDERS).schema == arrow_schema(ORDERS)
    assert as_table([], "t").num_columns == 0


def test_refuses_rows_that_are_no_rows() -> None:
    assert refusal([{"a": 1}, (2,)]) == "orders, row 2: expected a row as a dict of columns, found tuple"
    assert refusal([{"a": 1}], schema("b BIGINT")) == "orders: no column 'b'\n  found: a"
    assert refusal([{"a": 1}, {"a": "x"}]) == (
        "orders, column 'a': mixes int and str\n  use one type in a column, or declare the columns"
    )
    assert refusal({"a": [1], "b": [1, 2]}) == "orders: the columns differ in length\n  a: 1, b: 2"


def test_reads_never_change_their_input() -> None:
    table = pa.table({"ID": pa.array([1], pa.int8()), "other": ["x"]})
    before = table.to_pydict()
    as_table(table, "t", schema("id BIGINT"))
    assert table.to_pydict() == before and table.schema.field("ID").type == pa.int8()


def test_reads_a_canonical_table_without_copying_it() -> None:
    table = as_table(ROWS, "orders", ORDERS)
    again = as_table(table, "orders", ORDERS)
    address = [c.chunk(0).buffers()[1].address for c in table.columns]
    assert [c.chunk(0).buffers()[1].address for c in again.columns] == address


def test_schema_of_covers_every_language_type() -> None:
    text = "a BIGINT, b DOUBLE, c STRING, d BOOLEAN, e DATE, f TIMESTAMP, g DECIMAL(10;2)"
    assert schema_of(arrow_schema(schema(text))) == schema(text)


@pytest.mark.parametrize(
    ("streaming", "advice"), [(True, "wm.stream(query, {'orders': frame, ...})"), (False, "frame.toArrow()")]
)
def test_spark_frames_are_refused_with_what_to_do(streaming: bool, advice: str) -> None:
    class Frame:
        sparkSession = None
        isStreaming = streaming

        def __arrow_c_stream__(self) -> None: ...

    with pytest.raises(DataError, match="DataFrame of Spark") as error:
        as_table(Frame(), "orders")
    assert advice in str(error.value)
