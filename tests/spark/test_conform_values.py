"""Values mean what Spark's ANSI SQL says: the table of cases and all pairs of comparable values, through Spark and the oracle."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product
from math import inf, nan
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import watersmeet as wm
from tests.oracle.cases import CASES, ERROR, ROW, Case
from tests.oracle.same import same
from watersmeet.data import arrow_type
from watersmeet.model.types import Type

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cases(spark: SparkSession) -> str:
    """The name of a view with the row that the cases are about."""
    spark.createDataFrame(ROW).createOrReplaceTempView("cases")
    return "cases"


def test_conform_spark_gives_the_values_of_the_table(spark: SparkSession, cases: str) -> None:
    whole = [c for c in CASES if c.expected is not ERROR]
    # Spark computes what is common to several columns first, needed or not: each of those that divide by zero goes alone.
    groups = [[c for c in whole if "zero" not in c.text], *([c] for c in whole if "zero" in c.text)]
    wrong = []
    for group in groups:
        columns = ", ".join(f"{case.text} AS v{i}" for i, case in enumerate(group))
        found = spark.sql(f"SELECT {columns} FROM {cases}").toArrow()
        for i, case in enumerate(group):
            value = found.column(f"v{i}")[0].as_py()
            if not same(value, case.expected):
                wrong.append(f"{case.text}: Spark says {value!r}, the table {case.expected!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", [c for c in CASES if c.expected is ERROR], ids=lambda c: c.text)
def test_conform_spark_refuses(spark: SparkSession, cases: str, case: Case) -> None:
    with pytest.raises(PySparkException, match=r"OVERFLOW|DIVIDE_BY_ZERO|REMAINDER_BY_ZERO|OUT_OF_RANGE"):
        spark.sql(f"SELECT {case.text} AS v FROM {cases}").collect()


_DAYS: Final = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 1, 2), None]
_INSTANTS: Final = [
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 2, tzinfo=dt.UTC), dt.datetime(2026, 1, 2, 0, 0, 0, 1, tzinfo=dt.UTC), None,
]  # fmt: skip
VALUES: Final[dict[str, list[Any]]] = {
    "BIGINT": [0, 1, -1, 7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None],
    "DOUBLE": [0.0, -0.0, 1.0, -1.0, 7.25, 2.0**53, 2.0**63, -(2.0**63), inf, -inf, nan, 5e-324, None],
    "DECIMAL(10,2)": [Decimal("0.00"), Decimal("7.25"), Decimal("-1.00"), Decimal("99999999.99"), None],
    "DECIMAL(20,4)": [Decimal("7.2500"), Decimal("7.2501"), Decimal("0.0000"), Decimal("9007199254740993.0000"), None],
    "STRING": ["", "a", "A", "ab", "a ", "é", "z", "\uff5e", "\U0001d11e", None],
    "BOOLEAN": [True, False, None],
    "DATE": _DAYS,
    "TIMESTAMP": _INSTANTS,
}
_NUMBERS: Final = ("BIGINT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,4)")
PAIRS: Final = [
    *product(_NUMBERS, _NUMBERS), *product(("DATE", "TIMESTAMP"), repeat=2), ("STRING", "STRING"), ("BOOLEAN", "BOOLEAN"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=[f"{a} with {b}" for a, b in PAIRS])
def test_conform_spark_compares_and_joins_the_same_pairs(spark: SparkSession, left: str, right: str) -> None:
    streams, declared = {}, ""
    for name, kind in (("R", left), ("S", right)):
        values = pa.array(VALUES[kind], arrow_type(Type.parse(kind)))
        times = pa.array([0] * len(values), pa.timestamp("us", tz="UTC"))
        streams[name] = pa.table({"i": range(len(values)), "v": values, "ts": times})
        declared += f"CREATE STREAM {name} (i BIGINT, v {kind}, ts TIMESTAMP); "
        spark.createDataFrame(streams[name]).createOrReplaceTempView(name)
    ops = ("=", "<>") if left == "BOOLEAN" else ("=", "<>", "<", "<=", ">", ">=")
    compared = ", ".join(f"R.v {op} S.v AS v{i}" for i, op in enumerate(ops))
    for text in (
        "SELECT R.i AS r, S.i AS s, {0} FROM R{1}, S{1}",
        "SELECT R.i AS r, S.i AS s FROM R{1}, S{1} WHERE R.v = S.v",
    ):
        theirs = spark.sql(text.format(compared, "")).toArrow().to_pylist()
        ours = (
            wm.oracle(declared + text.format(compared, " [UNBOUNDED]"), streams).drop_columns(["result_ts"]).to_pylist()
        )
        assert sorted(ours, key=_place) == sorted(theirs, key=_place)


def _place(row: dict[str, Any]) -> tuple[int, int]:
    return row["r"], row["s"]


def test_conform_every_pair_of_types_that_compares_is_in_the_table() -> None:
    """A type of the language that compares with another is in PAIRS, so that no coercion goes unchecked."""
    declared = {kind: f"CREATE STREAM {{0}} (v {kind}, ts TIMESTAMP); " for kind in VALUES}
    for left, right in product(VALUES, VALUES):
        text = (
            declared[left].format("R")
            + declared[right].format("S")
            + "SELECT 1 AS one FROM R [ROWS 1], S [ROWS 1] WHERE R.v = S.v"
        )
        try:
            wm.parse(text)
        except wm.QueryError:
            assert (left, right) not in PAIRS
        else:
            assert (left, right) in PAIRS
