"""sqlglot's tree of operators over leaves becomes an expression of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from sqlglot import exp

from watersmeet.lang.positions import wrong
from watersmeet.model.expr import (
    And,
    Arithmetic,
    At,
    Between,
    Call,
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
)
from watersmeet.model.types import BIGINT, DOUBLE, INTERVAL, STRING

# How deep an expression may nest: a + b + c is 2 deep, NOT and the minus sign count twice. Printed with all its parentheses
# it must still parse within Python's stack.
MAX_DEPTH: Final = 48
TOO_DEEP: Final = f"at most {MAX_DEPTH} operators within each other"

TOO_LARGE: Final = (
    "whole numbers go from -9223372036854775808 to 9223372036854775807; with a point or an exponent it is a DOUBLE"
)


class Leaf(exp.Expression):
    """A column or a literal, already of the model: what the operators stand between."""

    arg_types = {"this": True}  # noqa: RUF012 (declared so by sqlglot)
    is_primitive = True


class Conversion(exp.Expression):
    """CAST(this AS to), with `to` already of the model."""

    arg_types = {"this": True, "to": True, "at": True}  # noqa: RUF012


class Function(exp.Expression):
    """NAME(expressions), with its name already of the model. CASE: conditions and values in turn, then that of ELSE."""

    arg_types = {"this": True, "expressions": True, "at": True}  # noqa: RUF012


def expression(tree: exp.Expr) -> Expr:
    """The tree as an expression of the model; raises QueryError where it nests too deep."""
    return _convert(tree, 0)


def conjuncts(tree: exp.Expr) -> list[Expr]:
    """The conditions that AND combines, in written order."""
    return [_convert(item, 0) for item in _flat(tree, exp.And)]


def start(tree: exp.Expr) -> At:
    """Where the expression begins: the place of its leftmost leaf, CAST or function."""
    while not isinstance(tree, Leaf | Conversion | Function):
        tree = tree.this
    at: At = tree.this.at if isinstance(tree, Leaf) else tree.args["at"]
    return at


def _flat(tree: exp.Expr, kind: type[exp.Connector]) -> list[exp.Expr]:
    """Operands of a chain of AND or of OR, parentheses within the chain removed; a loop, for chains may be long."""
    items: list[exp.Expr] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        bare = node.unnest()
        if type(bare) is kind:
            waiting += [bare.expression, bare.this]
        else:
            items.append(node)
    return items


def _convert(tree: exp.Expr, depth: int) -> Expr:
    if depth > MAX_DEPTH:
        raise wrong("the expression nests too deep", start(tree), TOO_DEEP)
    return _RULES[type(tree)](tree, depth + 1)


_Rule: TypeAlias = Callable[[exp.Expr, int], Expr]


def _leaf(tree: exp.Expr, _: int) -> Expr:
    done: Expr = tree.this
    if isinstance(done, Literal) and done.type == BIGINT and done.value == 1 << 63:  # fine only after a minus sign
        raise wrong(f"{done.value} does not fit into a BIGINT", start(tree), TOO_LARGE)
    return done


def _cast(tree: exp.Expr, depth: int) -> Expr:
    return Cast(_convert(tree.this, depth), tree.args["to"], tree.args["at"])


def _call(tree: exp.Expr, depth: int) -> Expr:
    return Call(tree.this, tuple(_convert(a, depth) for a in tree.expressions), at=tree.args["at"])


def _paren(tree: exp.Expr, depth: int) -> Expr:
    return _convert(tree.unnest(), depth - 1)


def _arithmetic(op: str) -> _Rule:
    return lambda tree, depth: Arithmetic(
        op, _convert(tree.this, depth), _convert(tree.expression, depth), at=start(tree)
    )


def _compare(op: str) -> _Rule:
    return lambda tree, depth: Compare(op, _convert(tree.this, depth), _convert(tree.expression, depth), start(tree))


def _chain(kind: type[exp.Connector], build: type[And | Or]) -> _Rule:
    return lambda tree, depth: build(tuple(_convert(item, depth) for item in _flat(tree, kind)), start(tree))


def _between(tree: exp.Expr, depth: int) -> Expr:
    low, high = tree.args["low"], tree.args["high"]
    return Between(_convert(tree.this, depth), _convert(low, depth), _convert(high, depth), start(tree))


def _in(tree: exp.Expr, depth: int) -> Expr:
    return InList(_convert(tree.this, depth), tuple(_convert(e, depth) for e in tree.expressions), start(tree))


def _like(tree: exp.Expr, depth: int) -> Expr:
    pattern = tree.expression.unnest()
    value = pattern.this if isinstance(pattern, Leaf) else None
    if not isinstance(value, Literal) or value.type != STRING:
        raise wrong("LIKE needs its pattern as text", start(pattern), "for example name LIKE 'A%'")
    made = Like(_convert(tree.this, depth), str(value.value), start(tree))
    return Not(made, made.at) if tree.args.get("negate") else made


def _is_null(tree: exp.Expr, depth: int) -> Expr:
    return IsNull(_convert(tree.this, depth), start(tree))


def _not(tree: exp.Expr, depth: int) -> Expr:
    return Not(_convert(tree.this, depth + 1), start(tree))


def _negate(tree: exp.Expr, depth: int) -> Expr:
    """A minus sign right before a number or an interval belongs to it: -1 is a literal, -(1) is not."""
    inner = tree.this.this if isinstance(tree.this, Leaf) else None
    if isinstance(inner, Literal) and inner.type in (BIGINT, DOUBLE, INTERVAL) and not _negative(inner):
        assert isinstance(inner.value, int | float)
        return Literal(-inner.value, inner.type, inner.at)
    return Negate(_convert(tree.this, depth + 1), start(tree))


def _negative(literal: Literal) -> bool:
    return str(literal.value).startswith("-")


_RULES: Final[dict[type[exp.Expr], _Rule]] = {
    Leaf: _leaf,
    Conversion: _cast,
    Function: _call,
    exp.Paren: _paren,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.Mod: _arithmetic("%"),
    exp.DPipe: _arithmetic("||"),
    exp.EQ: _compare("="),
    exp.NEQ: _compare("<>"),
    exp.LT: _compare("<"),
    exp.LTE: _compare("<="),
    exp.GT: _compare(">"),
    exp.GTE: _compare(">="),
    exp.And: _chain(exp.And, And),
    exp.Or: _chain(exp.Or, Or),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Is: _is_null,
    exp.Not: _not,
    exp.Neg: _negate,
}
