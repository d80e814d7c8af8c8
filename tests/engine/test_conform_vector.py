"""Expressions over columns (engine/rows/vector.py) are worth what they are row by row (model/evaluate.py), errors included."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.oracle.same import same
from watersmeet.data import arrow_schema
from watersmeet.data.plain_rows import plain_rows
from watersmeet.engine.rows.vector import vector
from watersmeet.errors import DataError
from watersmeet.model.bind import bind
from watersmeet.model.evaluate import evaluator
from watersmeet.model.expr import (
    And,
    Arithmetic,
    Between,
    Cast,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
)  # fmt: skip
from watersmeet.model.query import Output, Query, Source
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, STRING, TIMESTAMP, Field, Schema, Type
from watersmeet.model.window import Window

MONEY, WIDE, COARSE = Type("DECIMAL", 10, 2), Type("DECIMAL", 38, 6), Type("DECIMAL", 4, 1)
COLUMNS: dict[Type, tuple[str, ...]] = {
    BIGINT: ("i", "j"), DOUBLE: ("f", "g"), STRING: ("s", "t"), BOOLEAN: ("b", "c"), DATE: ("d",), TIMESTAMP: ("ts", "u"),
    MONEY: ("m",), WIDE: ("w",), COARSE: ("o",),
}  # fmt: skip
SCHEMA = Schema(tuple(Field(name, kind) for kind, names in COLUMNS.items() for name in names))
BIG = (1 << 63) - 1
MOMENTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC), dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)]

VALUES: dict[Type, list[Any]] = {
    BIGINT: [None, 0, 0, 1, -1, 2, 3, BIG, -BIG - 1, (1 << 53) + 1],
    DOUBLE: [None, 0.0, -0.0, 1.0, 0.35, -2.5, float("nan"), float("inf"), 2.0**63, -(2.0**63), 1e300],
    STRING: [None, "", "a", "ab", "a%b", "a\nb", "é", "\U0001d11e", "\uff5e"],
    BOOLEAN: [None, True, False],
    DATE: [None, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 1, 2)],
    TIMESTAMP: [None, *MOMENTS, dt.datetime(2026, 1, 2, tzinfo=dt.UTC)],
    MONEY: [None, Decimal("0.35"), Decimal("-1.15"), Decimal("99999999.99"), Decimal("2.00")],
    WIDE: [None, Decimal("0.350000"), Decimal("9" * 32), Decimal("-0.000001"), Decimal(2)],
    COARSE: [None, Decimal("999.9"), Decimal("-0.5"), Decimal("2.0")],
}
LITERALS = {
    kind: [v for v in values if v is not None and v == v and v not in (float("inf"), -BIG - 1)]
    for kind, values in VALUES.items()
}


class Draw:
    """Random expressions of a type over the columns of R."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def row(self) -> dict[str, Any]:
        return {f.name: self.rng.choice(VALUES[f.type]) for f in SCHEMA.fields}

    def any(self, depth: int) -> Expr:
        return self.of(self.rng.choice([*COLUMNS, INTERVAL, BOOLEAN, BOOLEAN]), depth)

    def of(self, kind: Type, depth: int) -> Expr:
        """An expression of a type, so deep at most."""
        if depth == 0 or self.rng.random() < 0.2:
            return self.leaf(kind)
        return self.rng.choice(self.compounds(kind, depth - 1))()

    def leaf(self, kind: Type) -> Expr:
        if kind == INTERVAL:
            return Literal(self.rng.choice((0, 1_000_000, -7)), INTERVAL)
        if kind.name != "DECIMAL" and self.rng.random() < 0.3:
            return Literal(self.rng.choice(LITERALS[kind]), kind)
        return Column("R", self.rng.choice(COLUMNS[kind]))

    def compounds(self, kind: Type, depth: int) -> list[Callable[[], Expr]]:
        rng = self.rng

        def arithmetic(ops: str, left: Type, right: Type) -> Callable[[], Expr]:
            return lambda: Arithmetic(rng.choice(ops.split()), self.of(left, depth), self.of(right, depth))

        def negate() -> Expr:
            return Negate(self.of(kind, depth))

        def cast(*sources: Type) -> Callable[[], Expr]:
            return lambda: Cast(self.of(rng.choice(sources), depth), kind)

        if kind == BIGINT:
            return [arithmetic("+ - * %", BIGINT, BIGINT), negate, cast(DOUBLE)]
        if kind == DOUBLE:
            return [
                arithmetic("+ - * / %", DOUBLE, DOUBLE),
                arithmetic("/", BIGINT, BIGINT),
                negate,
                cast(BIGINT, MONEY, WIDE),
            ]
        if kind == STRING:
            return [arithmetic("||", STRING, STRING)]
        if kind == DATE:
            return [cast(TIMESTAMP)]
        if kind == TIMESTAMP:
            return [arithmetic("+ -", TIMESTAMP, INTERVAL), cast(DATE)]
        if kind == INTERVAL:
            return [arithmetic("-", TIMESTAMP, TIMESTAMP), arithmetic("+ -", INTERVAL, INTERVAL), negate]
        return self.conditions(depth) if kind == BOOLEAN else [cast(BIGINT, MONEY, WIDE, COARSE)]

    def conditions(self, depth: int) -> list[Callable[[], Expr]]:
        rng = self.rng

        def some(kind: Type, least: int = 1) -> tuple[Expr, ...]:
            return tuple(self.of(kind, depth) for _ in range(rng.randint(least, 3)))

        def compare() -> Expr:
            kind = rng.choice((BIGINT, DOUBLE, STRING, DATE, TIMESTAMP, INTERVAL, MONEY, WIDE))
            return Compare(rng.choice(("=", "<>", "<", "<=", ">", ">=")), self.of(kind, depth), self.of(kind, depth))

        def between() -> Expr:
            kind = rng.choice((BIGINT, DOUBLE, STRING))
            return Between(self.of(kind, depth), self.of(kind, depth), self.of(kind, depth))

        def in_list() -> Expr:
            kind = rng.choice((BIGINT, DOUBLE, STRING, DATE))
            return InList(self.of(kind, depth), some(kind))

        return [
            compare, compare, between, in_list, lambda: And(some(BOOLEAN, 2)), lambda: Or(some(BOOLEAN, 2)),
            lambda: Not(self.of(BOOLEAN, depth)), lambda: IsNull(self.any(depth)),
            lambda: Like(self.of(STRING, depth), rng.choice(("%", "a%", "_", "%b", r"a\%_", "%a_b%"))),
        ]  # fmt: skip


def bound(expr: Expr) -> Expr:
    sources = tuple(Source("R", Window.unbounded(), alias) for alias in ("R", "S"))
    return bind(Query((Output(expr, "v"),), sources), {"R": SCHEMA}).outputs[0][1]


@pytest.mark.parametrize("first", range(0, 3_000, 500))
def test_conform_columns_are_worth_what_their_rows_are(first: int) -> None:
    failed = 0
    for seed in range(first, first + 500):
        draw = Draw(Random(seed))
        expr = bound(draw.any(draw.rng.choice((1, 2, 3, 4))))
        table = pa.Table.from_pylist([draw.row() for _ in range(draw.rng.choice((1, 2, 6)))], arrow_schema(SCHEMA))
        expected = [_outcome(expr, row) for row in plain_rows(table)]
        failed += DataError in expected
        try:
            made = vector(expr, lambda column, table=table: table.column(column.name).combine_chunks(), len(table))  # type: ignore[misc]
            found = [row["v"] for row in plain_rows(pa.table({"v": made}))]
        except DataError:
            found = [DataError]
        right = DataError in expected if found == [DataError] else all(map(_same, found, expected))
        assert right, f"seed {seed}: {expr} on {table.to_pylist()}\n  is       {found}\n  expected {expected}"
    assert 50 < failed < 250


def _same(a: Any, b: Any) -> bool:
    return same(a, b) or (a == b and not isinstance(a, float | bool))


def _outcome(expr: Expr, row: Any) -> Any:
    try:
        return evaluator(expr)({"R": row})
    except DataError:
        return DataError
