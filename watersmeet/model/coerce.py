"""Types meeting types: the casts that Spark's ANSI SQL would add so that both sides of an operator have one type."""

from __future__ import annotations

import datetime as dt

from watersmeet.errors import QueryError
from watersmeet.model.expr import At, Cast, Expr, Literal, type_of
from watersmeet.model.types import BIGINT, DATE, DOUBLE, INTERVAL, NULL, STRING, TIMESTAMP, Type

TIME_ARITHMETIC = {
    ("TIMESTAMP", "+", "INTERVAL"): TIMESTAMP,
    ("INTERVAL", "+", "TIMESTAMP"): TIMESTAMP,
    ("TIMESTAMP", "-", "INTERVAL"): TIMESTAMP,
    ("TIMESTAMP", "-", "TIMESTAMP"): INTERVAL,
    ("INTERVAL", "+", "INTERVAL"): INTERVAL,
    ("INTERVAL", "-", "INTERVAL"): INTERVAL,
}
_CASTS = {
    "BIGINT": {"DOUBLE", "DECIMAL"},
    "DOUBLE": {"BIGINT"},
    "DECIMAL": {"DOUBLE", "DECIMAL"},
    "DATE": {"TIMESTAMP"},
    "TIMESTAMP": {"DATE"},
}


def check_cast(expr: Cast) -> None:
    source, target = type_of(expr.operand), expr.type
    if source not in (target, NULL) and target.name not in _CASTS.get(source.name, set()):
        raise QueryError(f"can't cast {source} to {target}: {expr}")


def cast(expr: Expr, target: Type) -> Expr:
    """The expression as `target`; no cast where it is that already."""
    if type_of(expr) == target:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(None, target, expr.at)
    if isinstance(expr, Literal) and type_of(expr) == BIGINT and target == DOUBLE:
        assert isinstance(expr.value, int)
        return Literal(float(expr.value), DOUBLE, expr.at)
    return Cast(expr, target, expr.at)


def same_type(left: Expr, right: Expr, whole: Expr) -> tuple[Expr, Expr]:
    """Both operands of a comparison in the type in which Spark compares them."""
    a, b = type_of(left), type_of(right)
    if a == b:
        return left, right
    if a == NULL or b == NULL:
        return cast(left, b if a == NULL else a), cast(right, a if b == NULL else b)
    names = {a.name, b.name}
    if names <= {"BIGINT", "DOUBLE", "DECIMAL"}:
        common = DOUBLE if DOUBLE in (a, b) else _common_decimal(a, b)
        return cast(left, common), cast(right, common)
    if names == {"DATE", "TIMESTAMP"}:
        return cast(left, TIMESTAMP), cast(right, TIMESTAMP)
    for text, other, kind in ((left, right, b), (right, left, a)):
        if isinstance(text, Literal) and text.type == STRING and kind in (DATE, TIMESTAMP):
            made = time_literal(str(text.value), kind, text.at)
            return (made, other) if text is left else (other, made)
    raise QueryError(f"can't compare {a} with {b}: {whole}", hint="both sides must be numbers, or both of one type")


def _common_decimal(a: Type, b: Type) -> Type:
    """The decimal type that holds both; BIGINT counts as DECIMAL(20,0), as in Spark."""
    shapes = [(t.precision, t.scale) if t.name == "DECIMAL" else (20, 0) for t in (a, b)]
    scale = max(s for _, s in shapes)
    whole = max(p - s for p, s in shapes)
    if whole + scale > 38:
        raise QueryError(f"can't compare {a} with {b} exactly: more than 38 digits", hint="CAST one side AS DOUBLE")
    return Type("DECIMAL", whole + scale, scale)


def time_literal(text: str, kind: Type, at: At | None = None) -> Literal:
    """A DATE or TIMESTAMP from text; without a zone it is UTC."""
    try:
        if kind == DATE:
            return Literal(dt.date.fromisoformat(text.strip()), DATE, at)
        moment = dt.datetime.fromisoformat(text.strip())
        moment = moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        example = "'2026-01-31'" if kind == DATE else "'2026-01-31 12:00:00'"
        line, column = (at.line, at.column) if at else (None, None)
        raise QueryError(f"{text!r} is not a {kind}", None, line, column, f"for example {example}") from None
    return Literal(moment, TIMESTAMP, at)
