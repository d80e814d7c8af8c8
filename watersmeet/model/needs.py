"""Which columns of a stream the join needs, and whether rows that can't join must come along."""

from __future__ import annotations

from watersmeet.model.bind import BoundQuery, BoundSource
from watersmeet.model.expr import Column, Expr, walk
from watersmeet.model.types import Schema


def counted(source: BoundSource) -> bool:
    """Whether rows that can't join still count: those of a ROWS window."""
    return source.window is not None and source.window.kind == "ROWS"


def needed_columns(bound: BoundQuery, alias: str) -> tuple[str, ...]:
    """The columns of a stream that are needed once selections are done, in declared order: all of them where rows are counted (the tie
    key)."""
    source = bound.source(alias)
    if source.static or counted(source):
        return source.schema.names
    used = {source.timestamp}
    exprs: list[Expr] = [e for _, e in bound.outputs] + list(bound.residuals)
    for join in (*bound.equalities, *bound.comparisons):
        exprs += [join.left.expr, join.right.expr]
    for expr in exprs:
        used |= {n.name for n in walk(expr) if isinstance(n, Column) and n.stream == alias}
    return tuple(n for n in source.schema.names if n in used)


def needed_schema(bound: BoundQuery, alias: str) -> Schema:
    """The same with types."""
    names = needed_columns(bound, alias)
    return Schema(tuple(f for f in bound.source(alias).schema.fields if f.name in names))
