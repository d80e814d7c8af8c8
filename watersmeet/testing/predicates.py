"""Random predicates and expressions over streams whose columns are made as they are asked for."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from watersmeet.model.expr import (
    And,
    Arithmetic,
    Between,
    Cast,
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
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, NULL, STRING, TIMESTAMP, Type
from watersmeet.testing.values import literal

if TYPE_CHECKING:
    from watersmeet.testing.queries import Draft

_MONEY, _FINE = Type("DECIMAL", 10, 2), Type("DECIMAL", 12, 4)
KEYS: Final = (
    (BIGINT, BIGINT, 30), (STRING, STRING, 15), (DOUBLE, DOUBLE, 8), (BIGINT, DOUBLE, 5), (DATE, DATE, 6),
    (TIMESTAMP, TIMESTAMP, 4), (DATE, TIMESTAMP, 4), (_MONEY, _MONEY, 5), (_MONEY, _FINE, 4), (_MONEY, BIGINT, 3),
    (_FINE, DOUBLE, 2), (BOOLEAN, BOOLEAN, 5),
)  # fmt: skip
"""Types of both sides of an equality, and how often."""
ORDERED: Final = (BIGINT, BIGINT, DOUBLE, STRING, DATE, TIMESTAMP, _MONEY)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


def equality(left: Expr, right: Expr) -> Compare:
    return Compare("=", left, right)


def join(rng: Random, left: Draft, right: Draft, tick_us: int) -> list[Expr]:
    """Predicates between two streams: mostly an equality, some with a second one or a comparison, some without any."""
    kind = rng.choices(("equal", "two columns", "equal and more", "compare", "band"), (55, 12, 13, 12, 8))[0]
    made: list[Expr] = []
    if kind in ("equal", "two columns", "equal and more"):
        made.append(_equal(rng, left, right))
    if kind == "two columns":
        made.append(_equal(rng, left, right))
    if kind in ("equal and more", "compare"):
        made.append(_compare(rng, left, right, tick_us))
    if kind == "band":
        made.append(_band(rng, left, right, tick_us))
    return made


def _equal(rng: Random, left: Draft, right: Draft) -> Expr:
    a, b, _ = rng.choices(KEYS, [weight for *_, weight in KEYS])[0]
    if rng.random() < 0.5:
        a, b = b, a
    x: Expr = left.column(rng, a, 0.5)
    y: Expr = right.column(rng, b, 0.5)
    if rng.random() < 0.15:
        if a == BIGINT:
            x = rng.choice((Arithmetic("+", x, number(1)), Arithmetic("-", x, number(1)), Negate(Negate(x))))
        elif a == b == STRING:
            x, y = Arithmetic("||", x, Literal("!", STRING)), Arithmetic("||", y, Literal("!", STRING))
        elif a == b == BIGINT:
            x, y = Arithmetic("%", x, number(3)), Arithmetic("%", y, number(3))
    return equality(x, y)


def _compare(rng: Random, left: Draft, right: Draft, tick_us: int) -> Expr:
    op = rng.choice(("<", "<=", ">", ">=", "<>"))
    if not (left.stream.static or right.stream.static) and rng.random() < 0.3:
        ahead = Literal(tick_us * rng.randint(1, 5), INTERVAL)
        return Compare(op, Arithmetic(rng.choice("+-"), left.ts, ahead), right.ts)
    kind = rng.choice(ORDERED)
    compared = Compare(op, left.column(rng, kind, 0.5), right.column(rng, kind, 0.5))
    return Not(compared) if rng.random() < 0.1 else compared


def _band(rng: Random, left: Draft, right: Draft, tick_us: int) -> Expr:
    if not (left.stream.static or right.stream.static) and rng.random() < 0.4:
        x, y, width = left.ts, right.ts, Literal(tick_us * rng.randint(1, 5), INTERVAL)
    else:
        kind = rng.choice((BIGINT, DOUBLE))
        x, y, width = left.column(rng, kind, 0.5), right.column(rng, kind, 0.5), literal(kind, rng.randint(1, 2))
    return Between(x, Arithmetic("-", y, width), Arithmetic("+", y, width))


def residual(rng: Random, entries: list[Draft]) -> Expr:
    """A predicate over two or three streams that does not fall apart into one side each."""
    first, second, last = entries[0], entries[1], entries[-1]
    if rng.random() < 0.15:
        text = Arithmetic("||", first.column(rng, STRING, 0.7), second.column(rng, STRING, 0.7))
        return Like(text, rng.choice(("%a%", "%b", "_%")))
    x, y, z = (e.column(rng, BIGINT, 0.7) for e in (first, second, last))
    both = Arithmetic("+", x, y)
    choices: list[Expr] = [
        Compare(rng.choice(("<", "<=", "<>")), both, Arithmetic("+", z, number(2))),
        Compare(">=", Arithmetic("*", x, y), Negate(z)),
        Between(Arithmetic("-", x, y), number(0), Arithmetic("+", z, number(3))),
        Not(Between(both, number(0), z)),
        Not(And((equality(x, y), Compare("<", y, z)))),
        InList(x, (y, Arithmetic("+", z, number(1)), number(0), number(1), number(2))),
        Not(IsNull(both)),
        Compare("<", Arithmetic("/", both, number(2)), Cast(Arithmetic("+", z, number(3)), DOUBLE)),
    ]
    return rng.choice(choices)


def selection(rng: Random, entry: Draft) -> Expr:
    """A predicate on one stream that lets most rows pass."""
    if rng.random() < 0.25:
        either = (_condition(rng, entry), _condition(rng, entry))
        return Or((*either, And((_condition(rng, entry), _condition(rng, entry)))) if rng.random() < 0.5 else either)
    return _condition(rng, entry)


def _condition(rng: Random, entry: Draft) -> Expr:
    kind = rng.choice((BIGINT, BIGINT, DOUBLE, STRING, DATE, BOOLEAN, _MONEY, TIMESTAMP))
    column = entry.column(rng, kind, 0.7)
    low, high = literal(kind, rng.randint(0, 2)), literal(kind, rng.randint(5, 12))
    choices: list[Expr] = [
        Compare("<>", column, high),
        Not(IsNull(column)),
        InList(column, (low, literal(kind, 1), literal(kind, 2), literal(kind, 4), high)),
    ]
    if kind == BOOLEAN:
        choices += [column, Not(column), IsNull(column)]
    else:
        choices += [Compare("<=", column, high), Between(column, low, high), Not(Compare("<", column, low))]
    if kind == STRING:
        choices += [Like(column, rng.choice(("%", "a%", "_%", "%\\%", "%b_"))), Not(Like(column, "%a"))]
    if kind == BIGINT:
        choices += [Compare("<", Arithmetic("%", column, number(4)), number(3))]
        choices += [InList(column, (number(0), number(1), number(2), Literal(None, NULL)))]
    return rng.choice(choices)


def fragile(rng: Random, entry: Draft) -> Expr:
    """A predicate on one stream that divides by zero or overflows on some rows."""
    x, y = entry.column(rng, BIGINT, 0.5), entry.column(rng, BIGINT, 0.5)
    choices: list[Expr] = [
        Compare(">=", Arithmetic("/", x, y), Literal(0.0, DOUBLE)),
        Compare(">=", Arithmetic("%", x, y), number(0)),
        Compare("<>", Arithmetic("+", x, number((1 << 63) - 3)), y),
    ]
    return rng.choice(choices)


def output(rng: Random, entries: list[Draft]) -> Expr:
    """A computed column of SELECT."""
    first, second = rng.choice(entries), rng.choice(entries)
    timed = [e for e in entries if not e.stream.static]
    match rng.randrange(10):
        case 0:
            return Arithmetic(rng.choice("+-*"), first.column(rng, BIGINT, 0.9), second.column(rng, BIGINT, 0.9))
        case 1:
            return Arithmetic("/", first.column(rng, BIGINT, 0.9), Literal(4.0, DOUBLE))
        case 2:
            return Arithmetic("||", first.column(rng, STRING, 0.9), second.column(rng, STRING, 0.9))
        case 3:
            return Cast(first.column(rng, DATE, 0.9), TIMESTAMP)
        case 4:
            return Compare("<", first.column(rng, DOUBLE, 0.9), second.column(rng, DOUBLE, 0.9))
        case 5:
            return Negate(first.column(rng, DOUBLE, 0.9))
        case 6:
            return Cast(first.column(rng, _MONEY, 0.9), DOUBLE)
        case 7:
            return Arithmetic("-", rng.choice(timed).ts, rng.choice(timed).ts)
        case 8:
            return Arithmetic("+", rng.choice(timed).ts, Literal(1_000_000, INTERVAL))
        case _:
            return Literal(7, BIGINT)
