"""What a user should know before a query runs: demands that are not carried out yet, and answers that may be larger than meant."""

from __future__ import annotations

from collections.abc import Iterator

from watersmeet.errors import BudgetWarning, QueryWarning
from watersmeet.model.bind import BoundQuery
from watersmeet.model.graph import JoinGraph
from watersmeet.model.query import Query

_OLDER = "older results are given out, too"


def not_carried_out(query: Query) -> Iterator[str]:
    """What the query says that a run does not do yet, and what it does instead."""
    if query.freshness:
        yield f"{_freshness(query)}: {_OLDER}"
    if query.overload.evict:
        yield "ON OVERLOAD EVICT: a run is exact, and may fall behind"


def apart(bound: BoundQuery) -> str:
    """The groups of streams that no condition links; empty if all are linked.

    >>> from watersmeet.model.bind import bind
    >>> from watersmeet.model.expr import Column
    >>> from watersmeet.model.query import Output, Source
    >>> from watersmeet.model.types import TIMESTAMP, Field, Schema
    >>> from watersmeet.model.window import Window
    >>> s, five = Schema((Field("ts", TIMESTAMP),)), Window.rows(5)
    >>> two = Query((Output(Column("a", "ts")),), (Source("a", five, "a"), Source("b", five, "b")))
    >>> apart(bind(two, {"a": s, "b": s}))
    'a | b: no condition links them, so every combination is a result'
    """
    graph = JoinGraph.of(bound)
    if len(graph.components) < 2:
        return ""
    groups = [" ".join(s for s in graph.streams if s in part) for part in graph.components]
    return f"{' | '.join(groups)}: no condition links them, so every combination is a result"


def cautions(bound: BoundQuery) -> Iterator[Warning]:
    """What is said when the query is run. (Of ON OVERLOAD it is said when the budget does not suffice.)"""
    if bound.query.freshness:
        yield BudgetWarning(f"{_freshness(bound.query)} is not carried out yet: {_OLDER}")
    if found := apart(bound):
        yield QueryWarning(f"a cross product: {found}\n  add a condition between them to WHERE, if this is not meant")


def _freshness(query: Query) -> str:
    return f"FRESHNESS ({', '.join(map(str, query.freshness))})"
