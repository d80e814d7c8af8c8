"""A query in words: the first part of what `explain` says. One fact a line, in the order in which a query is understood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from watersmeet.model.bind import BoundQuery, BoundSource
from watersmeet.model.cautions import apart, not_carried_out
from watersmeet.model.durations import duration
from watersmeet.model.expr import streams_of
from watersmeet.model.graph import JoinGraph


def describe(bound: BoundQuery) -> str:
    """The query as understood, its streams and windows, its join graph, what it demands and allows.

    >>> from watersmeet.model.expr import Column, Compare
    >>> from watersmeet.model.bind import bind
    >>> from watersmeet.model.query import Output, Query, Source
    >>> from watersmeet.model.types import BIGINT, TIMESTAMP, Field, Schema
    >>> from watersmeet.model.window import Window
    >>> s = Schema((Field("k", BIGINT), Field("ts", TIMESTAMP)))
    >>> same = Compare("=", Column("a", "k"), Column("b", "k"))
    >>> two = (Source("a", Window.rows(5), "a"), Source("b", Window.unbounded(), "b"))
    >>> print(describe(bind(Query((Output(Column("a", "k")),), two, (same,)), {"a": s, "b": s})))
    Query
      SELECT a.k
      FROM a [ROWS 5], b [UNBOUNDED]
      WHERE a.k = b.k
      EMIT ISTREAM;
    Streams
      a  [ROWS 5]     ordered by ts
      b  [UNBOUNDED]  ordered by ts
    Results
      k BIGINT, result_ts TIMESTAMP
    Join graph
      equal     a.k = b.k
    """
    parts = [
        ("Query", str(replace(bound.query, declarations=())).splitlines()),
        ("Streams", list(_streams(bound))),
        ("Results", [", ".join(map(str, bound.results.fields)), *_emitted(bound)]),
        ("Selections, on arrival", [f"{a}: {p}" for a, ps in bound.selections.items() for p in ps]),
        ("Join graph", list(_graph(bound))),
        ("Not carried out yet", list(not_carried_out(bound.query))),
    ]
    return "\n".join(line for name, lines in parts if lines for line in [name, *(f"  {x}".rstrip() for x in lines)])


def _emitted(bound: BoundQuery) -> Iterator[str]:
    if bound.preserved:
        yield f"and the rows of {bound.preserved} that were in none, with NULLs, when they leave their window or at the end"
    if bound.query.emit == "DSTREAM":
        yield "each when the first of its tuples leaves its window"
    elif bound.query.emit == "CHANGES":
        yield "each twice: 'insert' when it comes about, 'delete' when the first of its tuples leaves its window"


def _streams(bound: BoundQuery) -> Iterator[str]:
    written = [str(s.window or "static table") for s in bound.query.sources]
    rows = [(s.alias, window, _nature(s, bound)) for s, window in zip(bound.sources, written, strict=True)]
    alias = max(len(a) for a, _, _ in rows)
    window = max(len(w) for _, w, _ in rows)
    for name, kept, nature in rows:
        yield f"{name:<{alias}}  {kept:<{window}}  {nature}"


def _nature(source: BoundSource, bound: BoundQuery) -> str:
    said = [] if source.alias == source.stream else [f"of {source.stream}"]
    if not source.static:
        said.append(f"ordered by {source.timestamp}")
        if source.lateness_us:
            said.append(f"up to {duration(source.lateness_us)} late")
        if source.idle_us is not None:
            said.append(f"not waited for when {duration(source.idle_us)} behind")
    declared = bound.query.declaration(source.stream)
    if declared and declared.location:
        said.append(f"from {declared.location}")
    return ", ".join(said)


def _graph(bound: BoundQuery) -> Iterator[str]:
    graph = JoinGraph.of(bound)
    for found in graph.classes:
        yield f"equal     {found}"
    for stream, predicate in graph.implied:
        yield f"implied   {predicate}, on {stream} alone"
    for comparison in graph.comparisons:
        yield f"compared  {comparison}"
    for residual in graph.residuals:
        yield f"residual  {residual}, over {', '.join(s for s in graph.streams if s in streams_of(residual))}"
    if groups := apart(bound):
        yield f"apart     {groups}"
