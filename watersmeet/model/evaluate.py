"""What an expression means: a bound expression as a Python function of one combination of rows.

Values are those of Spark's ANSI SQL (tests/spark/test_conform_values.py runs one table of cases through both): three-valued
logic with None for NULL; overflow, division by zero and casts out of range are a DataError; NaN equals NaN and is greater
than all else; -0.0 equals 0.0; strings compare by code point, which is the order of their UTF-8 bytes.

A TIMESTAMP is microseconds since 1970 in UTC, a DATE is days since 1970, an INTERVAL is microseconds: all plain int.
A DECIMAL is a Decimal with the digits of its type.

Operands are evaluated as Spark does it, which shows only where one of them is an error: from left to right, stopping when the
answer is known (a NULL operand, a FALSE in AND, a TRUE in OR, a match in IN); the divisor of / and % before the dividend.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final, TypeAlias

from watersmeet.errors import DataError, QueryError
from watersmeet.model.expr import (
    And,
    Arithmetic,
    Between,
    Call,
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
    type_of,
)  # fmt: skip
from watersmeet.model.functions import PLAIN
from watersmeet.model.types import Type

Combination: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Alias -> the row of that stream: column name -> value."""
Evaluator: TypeAlias = Callable[[Combination], Any]

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
DAY_US: Final = 86_400_000_000
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def evaluate(expr: Expr, combination: Combination) -> Any:
    """The value of a bound expression on one combination.

    >>> from watersmeet.model.types import BIGINT
    >>> x = Column("R", "x", BIGINT)
    >>> evaluate(Compare(">", Arithmetic("+", x, Literal(1, BIGINT), BIGINT), Literal(7, BIGINT)), {"R": {"x": 7}})
    True
    >>> print(evaluate(Compare("=", x, x), {"R": {"x": None}}))
    None
    """
    return evaluator(expr)(combination)


def evaluator(expr: Expr) -> Evaluator:
    """The bound expression as a function of a combination."""
    match expr:
        case Column(stream=stream, name=name):
            assert stream is not None, f"{expr} is not bound"
            return lambda c: c[stream][name]
        case Literal(value=value):
            constant = _plain(value)
            return lambda c: constant
        case Arithmetic():
            return _arithmetic(expr)
        case Negate():
            return _negate(expr)
        case Cast():
            return _cast(expr)
        case Call():
            return _call(expr)
        case Compare(op=op, left=left, right=right):
            return _lazy(evaluator(left), evaluator(right), COMPARE[op])
        case Between(operand=operand, low=low, high=high):
            bounds = (Compare(">=", operand, low), Compare("<=", operand, high))
            return _settled_by(False, [evaluator(b) for b in bounds])
        case And(items=items):
            return _settled_by(False, [evaluator(i) for i in items])
        case Or(items=items):
            return _settled_by(True, [evaluator(i) for i in items])
        case InList(operand=operand, items=items):
            return _settled_by(True, [evaluator(Compare("=", operand, item)) for item in items])
        case Not(operand=operand):
            inner = evaluator(operand)
            return lambda c: None if (v := inner(c)) is None else not v
        case IsNull(operand=operand):
            inner = evaluator(operand)
            return lambda c: inner(c) is None
        case Like(operand=operand, pattern=pattern):
            inner, form = evaluator(operand), like_form(pattern)
            return lambda c: None if (v := inner(c)) is None else form.fullmatch(v) is not None


def _settled_by(decisive: bool, items: list[Evaluator]) -> Evaluator:
    """AND is settled by the first FALSE, OR by the first TRUE; otherwise NULL if any is NULL."""

    def value(c: Combination) -> bool | None:
        answer: bool | None = not decisive
        for item in items:
            v = item(c)
            if v is None:
                answer = None
            elif v == decisive:
                return decisive
        return answer

    return value


def _lazy(left: Evaluator, right: Evaluator, operation: Callable[[Any, Any], Any]) -> Evaluator:
    """A binary operator whose right operand is not evaluated where the left one is NULL."""

    def value(c: Combination) -> Any:
        a = left(c)
        if a is None:
            return None
        b = right(c)
        return None if b is None else operation(a, b)

    return value


def equal(a: Any, b: Any) -> bool:
    """Whether two values that are not NULL are equal; NaN is the only value that is not itself."""
    return bool(a == b or (a != a and b != b))


def less(a: Any, b: Any) -> bool:
    """Whether `a` comes before `b`, neither of them NULL; NaN comes last."""
    return bool(a < b or (a == a and b != b))


COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": equal,
    "<>": lambda a, b: not equal(a, b),
    "<": less,
    "<=": lambda a, b: not less(b, a),
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: not less(a, b),
}


def order_key(value: Any) -> tuple[int, Any]:
    """A key that sorts NULL first and NaN last, and that is equal for equal values.

    >>> sorted([2.0, None, float("nan"), -1.0], key=order_key)
    [None, -1.0, 2.0, nan]
    """
    if value is None:
        return (0, 0)
    return (2, 0) if value != value else (1, value)


def _arithmetic(expr: Arithmetic) -> Evaluator:
    left, right, op = evaluator(expr.left), evaluator(expr.right), expr.op
    if op in ("/", "%"):
        return _lazy(right, left, _divide(expr) if op == "/" else _remainder(expr))
    if op == "||":
        return _lazy(left, right, lambda a, b: a + b)
    if type_of(expr).name == "DOUBLE":
        plain = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
        return _lazy(left, right, plain[op])
    if op == "+":
        return _lazy(left, right, lambda a, b: _int64(a + b, expr))
    if op == "-":
        return _lazy(left, right, lambda a, b: _int64(a - b, expr))
    return _lazy(left, right, lambda a, b: _int64(a * b, expr))


def _divide(expr: Arithmetic) -> Callable[[float, float], float]:
    def divided(by: float, number: float) -> float:
        if by == 0:
            raise DataError(f"division by zero in {expr}")
        return number / by

    return divided


def _remainder(expr: Arithmetic) -> Callable[[Any, Any], Any]:
    def remainder(by: Any, number: Any) -> Any:
        if by == 0:
            raise DataError(f"division by zero in {expr}")
        if isinstance(number, int):
            return abs(number) % abs(by) * (-1 if number < 0 else 1)
        return math.nan if math.isinf(number) else math.fmod(number, by)

    return remainder


def _negate(expr: Negate) -> Evaluator:
    inner = evaluator(expr.operand)
    if type_of(expr).name == "DOUBLE":
        return lambda c: None if (v := inner(c)) is None else -v
    return lambda c: None if (v := inner(c)) is None else _int64(-v, expr)


def _int64(value: int, expr: Expr) -> int:
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise DataError(f"overflow in {expr}: {value} does not fit {type_of(expr)}")


def _cast(expr: Cast) -> Evaluator:
    inner, source, target = evaluator(expr.operand), type_of(expr.operand), expr.type
    convert = _CONVERT.get((source.name, target.name))
    if source == target or convert is None:  # no convert: the operand is the NULL of no type
        return inner
    return lambda c: None if (v := inner(c)) is None else convert(v, target, expr)


def _call(expr: Call) -> Evaluator:
    args = [evaluator(a) for a in expr.args]
    if expr.name == "COALESCE":
        return lambda c: next((v for arg in args if (v := arg(c)) is not None), None)
    if expr.name == "CASE":
        pairs = list(zip(args[:-1:2], args[1:-1:2], strict=True))
        return lambda c: next((value for condition, value in pairs if condition(c)), args[-1])(c)
    function, whole = PLAIN[expr.name], type_of(expr).name in ("BIGINT", "INTERVAL")

    def value(c: Combination) -> Any:
        given = []
        for arg in args:
            given.append(arg(c))
            if given[-1] is None:
                return None
        made = function(*given)
        return _int64(made, expr) if whole else made

    return value


def _double_to_bigint(value: float, target: Type, expr: Expr) -> int:
    """Cut towards zero. 2^63 itself becomes the greatest BIGINT, as in Spark, because that bound rounds to it."""
    if math.isnan(value) or not -(2.0**63) <= value <= 2.0**63:
        raise DataError(f"overflow in {expr}: {value} does not fit {target}")
    return min(math.trunc(value), INT64_MAX)


_EXACT: Final = Context(prec=80, rounding=ROUND_HALF_UP)


def _to_decimal(value: int | Decimal, target: Type, expr: Expr) -> Decimal:
    made = _EXACT.quantize(Decimal(value), Decimal((0, (1,), -target.scale)))
    if len(made.as_tuple().digits) > target.precision:
        raise DataError(f"overflow in {expr}: {value} does not fit {target}")
    return made


_CONVERT: Final[Mapping[tuple[str, str], Callable[[Any, Type, Expr], Any]]] = {
    ("BIGINT", "DOUBLE"): lambda v, target, expr: float(v),
    ("DECIMAL", "DOUBLE"): lambda v, target, expr: float(v),
    ("DOUBLE", "BIGINT"): _double_to_bigint,
    ("BIGINT", "DECIMAL"): _to_decimal,
    ("DECIMAL", "DECIMAL"): _to_decimal,
    ("DATE", "TIMESTAMP"): lambda v, target, expr: _int64(v * DAY_US, expr),
    ("TIMESTAMP", "DATE"): lambda v, target, expr: v // DAY_US,
}


def like_form(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression: % any run, _ any one character, a backslash before %, _ or backslash.

    >>> bool(like_form(r"a\\_%").fullmatch("a_xyz")), bool(like_form("a_").fullmatch("abc"))
    (True, False)
    """
    parts, at = [], 0
    while at < len(pattern):
        char, after = pattern[at], pattern[at + 1 : at + 2]
        if char == "\\":
            if after not in ("%", "_", "\\"):
                raise QueryError(f"LIKE '{pattern}': a backslash must stand before %, _ or a backslash")
            parts.append(re.escape(after))
            at += 1
        else:
            parts.append({"%": ".*", "_": "."}.get(char) or re.escape(char))
        at += 1
    return re.compile("".join(parts), re.DOTALL)


def _plain(value: Any) -> Any:
    """The value of a literal in the form in which values are computed."""
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // dt.timedelta(microseconds=1)
    return (value - _EPOCH.date()).days if isinstance(value, dt.date) else value
