"""Every kind of expression, and the value that it becomes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from watersmeet.lang import parse
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
)
from watersmeet.model.query import Query
from watersmeet.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
)

SECOND = 1_000_000
AX, BX = Column("a", "x"), Column("b", "x")


def select(clauses: str) -> Query:
    return parse(f"SELECT * FROM a [ROWS 1], b [ROWS 1] {clauses}")


def where(condition: str) -> tuple[Expr, ...]:
    query = select(f"WHERE {condition}")
    assert parse(str(query)) == query
    return query.where


def value(text: str) -> Expr:
    """The expression of a SELECT list."""
    query = parse(f"SELECT {text} AS v FROM a [ROWS 1], b [ROWS 1]")
    assert parse(str(query)) == query
    expr = query.select[0].expr
    assert expr is not None
    return expr


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("0", BIGINT, 0),
        ("42", BIGINT, 42),
        ("+42", BIGINT, 42),
        ("-42", BIGINT, -42),
        ("9223372036854775807", BIGINT, (1 << 63) - 1),
        ("-9223372036854775808", BIGINT, -(1 << 63)),
        ("1.5", DOUBLE, 1.5),
        (".5", DOUBLE, 0.5),
        ("5.", DOUBLE, 5.0),
        ("-1.5e-3", DOUBLE, -0.0015),
        ("1E3", DOUBLE, 1000.0),
        ("''", STRING, ""),
        ("'it''s'", STRING, "it's"),
        (r"'it\'s'", STRING, "it's"),
        ('"it\'s"', STRING, "it's"),
        ('"say ""x"""', STRING, 'say "x"'),
        (r"'a\nb\tc\\d'", STRING, "a\nb\tc\\d"),
        (r"'\u0041\101'", STRING, "AA"),
        (r"'50\%'", STRING, r"50\%"),
        (r"'\q\x41\12'", STRING, "qx4112"),
        (r"'\0\Z\b\r'", STRING, "\0\x1a\b\r"),
        (r"'\U0001F600\uD83D\uDE00'", STRING, "\U0001f600\U0001f600"),
        (r'"a\"b"', STRING, 'a"b'),
        ("''''", STRING, "'"),
        ("'two\nlines -- no comment'", STRING, "two\nlines -- no comment"),
        ("TRUE", BOOLEAN, True),
        ("false", BOOLEAN, False),
        ("NULL", NULL, None),
        ("DATE '2026-01-31'", DATE, dt.date(2026, 1, 31)),
        ("TIMESTAMP '2026-01-31 12:00:00.5'", TIMESTAMP, dt.datetime(2026, 1, 31, 12, 0, 0, 500_000, dt.UTC)),
        ("TIMESTAMP '2026-01-31T12:00:00+02:00'", TIMESTAMP, dt.datetime(2026, 1, 31, 10, tzinfo=dt.UTC)),
        ("INTERVAL 5 SECONDS", INTERVAL, 5 * SECOND),
        ("INTERVAL '5' SECOND", INTERVAL, 5 * SECOND),
        ("INTERVAL '5 seconds'", INTERVAL, 5 * SECOND),
        ("INTERVAL '-0.5' SECONDS", INTERVAL, -SECOND // 2),
        ("INTERVAL 1 HOUR 30 MINUTES", INTERVAL, 5400 * SECOND),
        ("INTERVAL -5 SECONDS", INTERVAL, -5 * SECOND),
        ("- INTERVAL 5 SECONDS", INTERVAL, -5 * SECOND),
        ("CAST('1.505' AS DECIMAL(5, 2))", Type("DECIMAL", 5, 2), Decimal("1.51")),
        ("CAST('-1' AS DECIMAL)", Type("DECIMAL", 10, 0), Decimal(-1)),
        (f"CAST('{'9' * 38}' AS DECIMAL(38))", Type("DECIMAL", 38, 0), Decimal("9" * 38)),
    ],
)
def test_literal(text: str, kind: Type, wanted: object) -> None:
    expr = value(text)
    assert isinstance(expr, Literal)
    assert (expr.type, expr.value) == (kind, wanted)
    assert type(expr.value) is type(wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a.x + b.x * 2", Arithmetic("+", AX, Arithmetic("*", BX, Literal(2, BIGINT)))),
        ("(a.x + b.x) % 2", Arithmetic("%", Arithmetic("+", AX, BX), Literal(2, BIGINT))),
        ("a.x - b.x - 1", Arithmetic("-", Arithmetic("-", AX, BX), Literal(1, BIGINT))),
        ("a.x / -1", Arithmetic("/", AX, Literal(-1, BIGINT))),
        ("a.x || 'y'", Arithmetic("||", AX, Literal("y", STRING))),
        ("-a.x", Negate(AX)),
        ("-a.x * b.x", Arithmetic("*", Negate(AX), BX)),
        ("a.x = b.x < 1", Compare("<", Compare("=", AX, BX), Literal(1, BIGINT))),
        ("a.x < 1 = b.x", Compare("=", Compare("<", AX, Literal(1, BIGINT)), BX)),
        ("a.x = b.x IS NULL", IsNull(Compare("=", AX, BX))),
        ("a.x || 'y' = b.x", Compare("=", Arithmetic("||", AX, Literal("y", STRING)), BX)),
        ("-(1)", Negate(Literal(1, BIGINT))),
        ("- -1", Negate(Literal(-1, BIGINT))),
        ("CAST(a.x AS double)", Cast(AX, DOUBLE)),
        ("cast(a.x + 1 AS INT)", Cast(Arithmetic("+", AX, Literal(1, BIGINT)), BIGINT)),
        ("CAST(a.x AS VARCHAR(10))", Cast(AX, STRING)),
        ("CAST('2026-01-01' AS DATE)", Cast(Literal("2026-01-01", STRING), DATE)),
        ("a.x = 1 OR a.x = 2", Or((Compare("=", AX, Literal(1, BIGINT)), Compare("=", AX, Literal(2, BIGINT))))),
    ],
)
def test_operator(text: str, wanted: Expr) -> None:
    assert value(text) == wanted


def test_comparisons() -> None:
    signs = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
    for written, op in signs.items():
        assert where(f"a.x {written} b.x") == (Compare(op, AX, BX),)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a.x BETWEEN 1 AND 2", Between(AX, Literal(1, BIGINT), Literal(2, BIGINT))),
        ("a.x NOT BETWEEN 1 AND 2", Not(Between(AX, Literal(1, BIGINT), Literal(2, BIGINT)))),
        ("a.x IN (1, b.x)", InList(AX, (Literal(1, BIGINT), BX))),
        ("a.x NOT IN (1)", Not(InList(AX, (Literal(1, BIGINT),)))),
        ("a.x LIKE 'p%'", Like(AX, "p%")),
        ("a.x NOT LIKE 'p\\_%'", Not(Like(AX, "p\\_%"))),
        ("a.x IS NULL", IsNull(AX)),
        ("a.x IS NOT NULL", Not(IsNull(AX))),
        ("a.x + 1 IS NULL", IsNull(Arithmetic("+", AX, Literal(1, BIGINT)))),
        ("NOT a.x = 1", Not(Compare("=", AX, Literal(1, BIGINT)))),
        ("a.x", AX),
    ],
)
def test_predicate(text: str, wanted: Expr) -> None:
    assert where(text) == (wanted,)


def test_conjunctions_are_flat_and_or_binds_weaker() -> None:
    one, two = Compare("=", AX, Literal(1, BIGINT)), Compare("=", AX, Literal(2, BIGINT))
    three = Compare("=", AX, Literal(3, BIGINT))
    assert where("a.x = 1 AND (a.x = 2 AND (a.x = 3))") == (one, two, three)
    assert where("a.x = 1 AND a.x = 2 OR a.x = 3") == (Or((And((one, two)), three)),)
    assert where("a.x = 1 AND (a.x = 2 OR (a.x = 3 OR a.x = 1))") == (one, Or((two, three, one)))
    assert where("a.x BETWEEN 1 AND 2 AND a.x = 3") == (Between(AX, Literal(1, BIGINT), Literal(2, BIGINT)), three)
