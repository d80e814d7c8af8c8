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
from watersmeet.engine.rows.functions import applied
from watersmeet.engine.rows.like import like
from watersmeet.engine.rows.values import encode
from watersmeet.errors import DataError
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
    walk,
)  # fmt: skip
from watersmeet.model.functions import can_overflow
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Type

Columns = Callable[[Column], pa.Array]


def can_fail(expr: Expr) -> bool:
    """Whether some row could stop the query (overflow, division by zero, a cast out of range)."""
    return any(
        isinstance(n, Arithmetic | Negate | Cast) or (isinstance(n, Call) and can_overflow(n)) for n in walk(expr)
    )


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
    """Operands are looked at row by row only where Spark would: an error in one that is skipped is no error.

    After a NULL on the left the right is skipped; AND stops at FALSE, OR at TRUE, IN at a match, BETWEEN where the low bound fails; the
    divisor comes before the dividend.
    """

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
            case Call():
                return self.call(expr)
            case Compare():
                return self.compare(expr.op, *self.pair(expr.left, expr.right), type_of(expr.left))
            case Between():
                operand, low = self.pair(expr.operand, expr.low)
                above = self.compare(">=", operand, low, type_of(expr.operand))
                high = self.where(~_is(above, False) & _there(operand), expr.high)
                return pc.and_kleene(above, self.compare("<=", operand, high, type_of(expr.operand)))
            case InList():
                return self.in_list(expr)
            case Like():
                return like(self.value(expr.operand), expr.pattern)
            case IsNull():
                return pc.is_null(self.value(expr.operand))
            case Not():
                return pc.invert(_boolean(self.value(expr.operand)))
            case And():
                return self.chain(expr.items, False, pc.and_kleene)
            case Or():
                return self.chain(expr.items, True, pc.or_kleene)

    def where(self, rows: Any, expr: Expr) -> pa.Array:
        """The value in these rows only (NULL in the others), if some other row could fail."""
        if not can_fail(expr) or bool(rows.all()):
            return self.value(expr)
        taken = np.flatnonzero(rows)
        part = vector(expr, lambda column: self.columns(column).take(pa.array(taken)), len(taken))
        back = np.zeros(self.n, np.int64)
        back[taken] = np.arange(len(taken))
        return part.take(pa.array(back, mask=~rows))

    def pair(self, first: Expr, second: Expr) -> tuple[pa.Array, pa.Array]:
        """Two operands, the second where the first is not NULL."""
        made = self.value(first)
        return made, self.where(_there(made), second)

    def chain(self, items: tuple[Expr, ...], stop: bool, join: Callable[[pa.Array, pa.Array], pa.Array]) -> pa.Array:
        """AND or OR from left to right, no further in a row than the value that settles it."""
        made = _boolean(self.value(items[0]))
        for item in items[1:]:
            made = join(made, _boolean(self.where(~_is(made, stop), item)))
        return made

    def in_list(self, expr: InList) -> pa.Array:
        operand, kind = self.value(expr.operand), type_of(expr.operand)
        made = None
        for item in expr.items:
            open_rows = _there(operand) if made is None else _there(operand) & ~_is(made, True)
            found = self.compare("=", operand, self.where(open_rows, item), kind)
            made = found if made is None else pc.or_kleene(made, found)
        return made

    def call(self, expr: Call) -> pa.Array:
        if expr.name == "COALESCE":
            made = self.value(expr.args[0])
            for arg in expr.args[1:]:
                made = pc.coalesce(made, self.where(~_there(made), arg))
            return made
        if expr.name != "CASE":
            return applied(expr, [self.value(a) for a in expr.args])
        open_rows, parts = np.ones(self.n, bool), []
        for condition, value in zip(expr.args[:-1:2], expr.args[1:-1:2]):
            hit = open_rows & _is(_boolean(self.where(open_rows, condition)), True)
            parts.append((hit, self.where(hit, value)))
            open_rows &= ~hit
        made = self.where(open_rows, expr.args[-1])
        for hit, part in parts:
            made = pc.if_else(pa.array(hit), part, made)
        return made

    def constant(self, expr: Literal) -> pa.Array:
        kind = pa.null() if expr.type.name == "NULL" else arrow_type(expr.type)
        return pa.repeat(pa.scalar(expr.value, kind), self.n)

    def compare(self, op: str, a: pa.Array, b: pa.Array, kind: Type) -> pa.Array:
        if kind == DOUBLE:
            a, b = _sortable(a), _sortable(b)
        elif kind == BOOLEAN:
            a, b = a.cast(pa.int8()), b.cast(pa.int8())
        return _boolean(_COMPARE[op](a, b))

    def arithmetic(self, expr: Arithmetic) -> pa.Array:
        op = expr.op
        if op in ("/", "%"):
            b, a = self.pair(expr.right, expr.left)
            return self.divide(expr, a, b)
        a, b = self.pair(expr.left, expr.right)
        if expr.type == STRING:
            return pc.binary_join_element_wise(a.cast(pa.string()), b.cast(pa.string()), "")
        if expr.type == DOUBLE:
            return {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[op](a, b)
        checked = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[op]
        assert expr.type is not None
        return _from_int(checked(_as_int(a), _as_int(b)), arrow_type(expr.type))

    def divide(self, expr: Arithmetic, a: pa.Array, b: pa.Array) -> pa.Array:
        both = _there(a) & _there(b)
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
        if target.name == "DECIMAL":
            return _decimal(made, source, expr)
        if source.name == "DECIMAL" and target == DOUBLE:
            return made.cast(pa.string()).cast(
                pa.float64()
            )  # the nearest double, which Arrow's own cast does not always give
        if source == DATE and target == TIMESTAMP:
            return made.cast(pa.timestamp("us")).cast(arrow_type(TIMESTAMP))
        return made.cast(arrow_type(target), safe=not (source == BIGINT and target == DOUBLE))


def _there(array: pa.Array) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _is(array: pa.Array, value: bool) -> Any:
    """Where a condition has this value (not the other, not NULL)."""
    return pc.fill_null(pc.equal(array, value), False).to_numpy(zero_copy_only=False)


def _boolean(array: pa.Array) -> pa.Array:
    return array.cast(pa.bool_()) if pa.types.is_null(array.type) else array


def _truncated(made: pa.Array, expr: Cast) -> pa.Array:
    """DOUBLE to BIGINT: towards zero; 2^63 itself becomes the greatest BIGINT, as in Spark."""
    values = np.trunc(pc.fill_null(made, 0.0).to_numpy(zero_copy_only=False))
    top = 9223372036854775808.0
    bad = ~((values >= -top) & (values <= top))
    if bool(bad.any()):
        raise DataError(f"BIGINT overflow: {values[bad][0]} in {expr}")
    whole = np.where(values == top, (1 << 63) - 1, np.where(values == top, 0.0, values).astype(np.int64))
    return pa.array(whole, mask=~_there(made))


def _decimal(made: pa.Array, source: Type, expr: Cast) -> pa.Array:
    """BIGINT or DECIMAL to DECIMAL: digits beyond the scale are rounded half up; what does not fit is an error."""
    target = expr.type
    if source == BIGINT:
        made = made.cast(pa.decimal128(19, 0))
    elif source.scale > target.scale:
        wide = made.cast(pa.decimal256(76, source.scale))  # 9.99 to one digit is 10.0: a digit more
        made = pc.round(wide, target.scale, "half_towards_infinity")
    try:
        return made.cast(arrow_type(target))
    except pa.ArrowInvalid:
        raise DataError(f"DECIMAL overflow in {expr}") from None


def _as_int(array: pa.Array) -> pa.Array:
    return array if pa.types.is_int64(array.type) else array.cast(pa.int64())


def _from_int(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


def _sortable(array: pa.Array) -> pa.Array:
    values, valid = encode(array, Type("DOUBLE"))
    return pa.array(values, mask=None if valid is None else ~valid)


_COMPARE = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
