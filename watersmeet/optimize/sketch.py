"""Sketch: a query whose streams' columns are not known, bound as far as planning needs: who joins whom, on what."""

from __future__ import annotations

from watersmeet.errors import QueryError
from watersmeet.model.bind import BoundQuery, BoundSource, Comparison, Side, bind
from watersmeet.model.expr import And, Between, Column, Compare, Expr, streams_of, walk
from watersmeet.model.query import DEFAULT_TIMESTAMP, Query
from watersmeet.model.types import Schema


def planned(query: Query | BoundQuery) -> BoundQuery:
    """The query bound: properly if it declares its streams, else sketched from its text."""
    if isinstance(query, BoundQuery):
        return query
    return bind(query) if query.declarations else sketch(query)


def sketch(query: Query) -> BoundQuery:
    """Predicates sorted by the streams that they name; columns must say whose they are, types stay unknown."""
    selections: dict[str, list[Expr]] = {a: [] for a in query.aliases}
    equalities: list[Comparison] = []
    comparisons: list[Comparison] = []
    residuals: list[Expr] = []
    for written in (*query.where, *query.on):
        for part in _conjuncts(written):
            for node in walk(part):
                if isinstance(node, Column) and node.stream is None:
                    raise QueryError(
                        f"can't tell whose column '{node.name}' is", None, node.at.line if node.at else None,
                        node.at.column if node.at else None, f"write {query.aliases[0]}.{node.name}, or CREATE STREAM its streams",
                    )  # fmt: skip
            used = streams_of(part)
            found = _between_two(part)
            if len(used) < 2:
                selections[next(iter(used), query.aliases[0])].append(part)
            elif found is None:
                residuals.append(part)
            else:
                (equalities if found.op == "=" else comparisons).append(found)
    sources = tuple(BoundSource(s.alias, s.stream, s.window, Schema(()), DEFAULT_TIMESTAMP) for s in query.sources)
    return BoundQuery(
        query, sources, (), {a: tuple(s) for a, s in selections.items()}, tuple(equalities), tuple(comparisons),
        tuple(residuals),
    )  # fmt: skip


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, And):
        return [c for item in expr.items for c in _conjuncts(item)]
    if isinstance(expr, Between) and len(streams_of(expr)) > 1:
        return [Compare(">=", expr.operand, expr.low), Compare("<=", expr.operand, expr.high)]
    return [expr]


def _between_two(expr: Expr) -> Comparison | None:
    if not isinstance(expr, Compare):
        return None
    left, right = streams_of(expr.left), streams_of(expr.right)
    if len(left) != 1 or len(right) != 1 or left == right:
        return None
    return Comparison(expr.op, Side(next(iter(left)), expr.left), Side(next(iter(right)), expr.right))
