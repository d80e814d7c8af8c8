"""Expressions over whole Arrow columns, as Spark's ANSI SQL computes them; model/evaluate.py is the definition, row by row.

Used for selections and key columns when rows come in, for predicates that the kernel can't decide, and for results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.data import arrow_type
from watersmeet.engine.values import encode
from watersmeet.errors import DataError
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
    type_of,
    walk,
)  # fmt: skip
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Type

Columns = Callable[[Column], pa.Array]


def can_fail(expr: Expr) -> bool:
    """Whether some row could stop the query (overflow, division by zero, a cast out of range)."""
    return any(isinstance(n, Arithmetic | Negate | Cast) for n in walk(expr))


def vector(expr: Expr, columns: Columns, n: int) -> pa.Array:
    """The expression's value for each of `n` rows; `columns` gives the rows of a column."""
    try:
        return _Evaluation(columns, n).value(expr)
    except pa.ArrowInvalid as e:
        text = str(e)
        what = "BIGINT overflow" if "overflow" in text else text
        raise DataError(f"{what} in {expr}") from None


def truths(expr: Expr, columns: Columns, n: int) -> Any:
    """Where a predicate is true (not false, not NULL), as a numpy mask."""
    made = vector(expr, columns, n)
    if pa.types.is_null(made.type):
        return np.zeros(n, bool)
    return pc.fill_null(made, False).to_numpy(zero_copy_only=False)


class _Evaluation:
    def __init__(self, columns: Columns, n: int) -> None:
        self.columns, self.n = columns, n

    def value(self, expr: Expr) -> pa.Array:
        match expr:
            case Column():
                return self.columns(expr)
            case Literal():
                return self.constant(expr)
            case Arithmetic():
                return self.arithmetic(expr)
            case Negate():
                operand = self.value(expr.operand)
                if type_of(expr) == DOUBLE:
                    return pc.negate(operand)
                return _from_int(pc.negate_checked(_as_int(operand)), operand.type)
            case Cast():
                return self.cast(expr)
            case Compare():
                return self.compare(expr.op, expr.left, expr.right)
            case Between():
                low = self.compare(">=", expr.operand, expr.low)
                return pc.and_kleene(low, self.compare("<=", expr.operand, expr.high))
            case InList():
                made = [self.compare("=", expr.operand, item) for item in expr.items]
                return _fold(pc.or_kleene, made)
            case Like():
                return pc.match_like(self.value(expr.operand), expr.pattern)
            case IsNull():
                return pc.is_null(self.value(expr.operand))
            case Not():
                return pc.invert(self.boolean(expr.operand))
            case And():
                return _fold(pc.and_kleene, [self.boolean(i) for i in expr.items])
            case Or():
                return _fold(pc.or_kleene, [self.boolean(i) for i in expr.items])

    def boolean(self, expr: Expr) -> pa.Array:
        made = self.value(expr)
        return made.cast(pa.bool_()) if pa.types.is_null(made.type) else made

    def constant(self, expr: Literal) -> pa.Array:
        kind = pa.null() if expr.type.name == "NULL" else arrow_type(expr.type)
        return pa.repeat(pa.scalar(expr.value, kind), self.n)

    def compare(self, op: str, left: Expr, right: Expr) -> pa.Array:
        a, b, kind = self.value(left), self.value(right), type_of(left)
        if kind == DOUBLE:
            a, b = _sortable(a), _sortable(b)
        elif kind == BOOLEAN:
            a, b = a.cast(pa.int8()), b.cast(pa.int8())
        made = _COMPARE[op](a, b)
        return made.cast(pa.bool_()) if pa.types.is_null(made.type) else made

    def arithmetic(self, expr: Arithmetic) -> pa.Array:
        a, b, op = self.value(expr.left), self.value(expr.right), expr.op
        if expr.type == STRING:
            return pc.binary_join_element_wise(a.cast(pa.string()), b.cast(pa.string()), "")
        if op in ("/", "%"):
            return self.divide(expr, a, b)
        if expr.type == DOUBLE:
            return {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[op](a, b)
        checked = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[op]
        assert expr.type is not None
        return _from_int(checked(_as_int(a), _as_int(b)), arrow_type(expr.type))

    def divide(self, expr: Arithmetic, a: pa.Array, b: pa.Array) -> pa.Array:
        both = pc.and_(pc.is_valid(a), pc.is_valid(b)).to_numpy(zero_copy_only=False)
        by = pc.fill_null(b, 1).to_numpy(zero_copy_only=False)
        if bool(np.any(both & (by == 0))):
            raise DataError(f"division by zero in {expr}")
        by = np.where(both, by, 1)
        top = pc.fill_null(a, 0).to_numpy(zero_copy_only=False)
        with np.errstate(all="ignore"):
            if expr.op == "/":
                made = top / by
            elif expr.type == BIGINT:
                made = np.fmod(top, np.where(by == -1, 1, by))
            else:
                made = np.fmod(top, by)
        return pa.array(made, mask=~both)

    def cast(self, expr: Cast) -> pa.Array:
        made, source, target = self.value(expr.operand), type_of(expr.operand), expr.type
        if source == target:
            return made
        if target == BIGINT and source == DOUBLE:
            return _truncated(made, expr)
        if source == DATE and target == TIMESTAMP:
            return made.cast(pa.timestamp("us")).cast(arrow_type(TIMESTAMP))
        return made.cast(arrow_type(target), safe=not (source == BIGINT and target == DOUBLE))


def _truncated(made: pa.Array, expr: Cast) -> pa.Array:
    values = pc.fill_null(made, 0.0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        bad = ~((values > -9223372036854777856.0) & (values < 9223372036854775808.0))
    if bool(bad.any()):
        raise DataError(f"{values[bad][0]} does not fit BIGINT in {expr}")
    valid = pc.is_valid(made).to_numpy(zero_copy_only=False)
    return pa.array(np.trunc(values).astype(np.int64), mask=~valid)


def _as_int(array: pa.Array) -> pa.Array:
    return array if pa.types.is_int64(array.type) else array.cast(pa.int64())


def _from_int(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


def _sortable(array: pa.Array) -> pa.Array:
    values, valid = encode(array, Type("DOUBLE"))
    return pa.array(values, mask=None if valid is None else ~valid)


def _fold(join: Callable[[pa.Array, pa.Array], pa.Array], parts: list[pa.Array]) -> pa.Array:
    made = parts[0]
    for part in parts[1:]:
        made = join(made, part)
    return made


_COMPARE = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
