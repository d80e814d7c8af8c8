"""From a bound query and Statistics to a Problem; whatever had to be assumed is said.

Refused (QueryError): names that the query does not have, some rates given and others not, no rates at all where a
budget must be kept, selectivities of pairs that no predicate joins. Assumed, and said so: what is only unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from watersmeet.errors import QueryError, nearest_name
from watersmeet.model.bind import BoundQuery, BoundSource
from watersmeet.model.budget import Budget
from watersmeet.model.graph import JoinGraph
from watersmeet.model.statistics import Statistics
from watersmeet.optimize.cells import Dimension, choose_shares
from watersmeet.optimize.pair_selectivity import pair_selectivities
from watersmeet.optimize.problem import Problem, Stream
from watersmeet.optimize.widths import row_bytes

DEFAULT_RATE = 100.0
DEFAULT_TABLE_ROWS = 1000
DEFAULT_PARTITIONS = 100
UNBOUNDED_S = 3600.0  # an UNBOUNDED window of unknown size is planned for as it is after this time


@dataclass(frozen=True)
class Stated:
    """The problem, what was assumed to state it, and the dimensions that cells may be split by."""

    problem: Problem
    assumptions: tuple[str, ...]
    dimensions: tuple[Dimension, ...]


def state_problem(bound: BoundQuery, stats: Statistics | None = None, budget: Budget | None = None) -> Stated:
    """The problem of a query under a budget."""
    stats = stats or Statistics()
    _check_names(bound, stats)
    said: list[str] = []
    rates = _rates(bound, stats, budget, said)
    in_bytes = budget is not None and budget.memory_bytes is not None
    streams = tuple(_stream(bound, s, stats, rates, budget, in_bytes, said) for s in bound.sources)
    graph = JoinGraph.of(bound)
    predicates, residual = pair_selectivities(bound, graph, stats, said)
    emit = bound.query.emit
    problem = Problem(
        streams,
        predicates,
        residual,
        stats.costs,
        inner_passes=1 if emit == "ISTREAM" else 2,
        root_passes=2 if emit == "CHANGES" else 1,
        unit="bytes" if in_bytes else "tuples",
        grouped=emit == "ISTREAM" and _grouped(bound, graph),
    )
    _say_products(problem, said)
    if not problem.rates.output:
        said.append(
            "by these statistics the query has no results: a selectivity or selection is 0, so plans hardly differ"
        )
    return Stated(problem, tuple(said), _dimensions(bound, graph, stats))


def _grouped(bound: BoundQuery, graph: JoinGraph) -> bool:
    """Whether the engine takes rows in groups through a plan of one node: windows are first in, first out, and each probe has one key and
    nothing else to check, which is so if the streams are a tree of equalities."""
    partitioned = any(s.window is not None and s.window.partition for s in bound.sources)
    links = sum(len(group.streams) - 1 for group in graph.classes)
    return not partitioned and not bound.comparisons and links == len(bound.sources) - 1


def _check_names(bound: BoundQuery, stats: Statistics) -> None:
    aliases = bound.aliases
    tables = [s.alias for s in bound.sources if s.static]
    for what in ("rate", "selection", "window_tuples", "row_bytes", "table_rows", "selectivity", "distinct", "heavy"):
        for key in getattr(stats, what):
            names = key if what == "selectivity" else key[:1] if isinstance(key, tuple) else (key,)
            for name in names:
                if name not in aliases:
                    raise QueryError(
                        f"statistics: {what} of '{name}', which is not in FROM", hint=nearest_name(name, aliases)
                    )
            if what in ("distinct", "heavy"):
                schema = bound.source(key[0]).schema
                if schema.fields and schema.find(key[1]) is None:
                    raise QueryError(
                        f"statistics: {what} of {key[0]}.{key[1]}", hint=nearest_name(key[1], schema.names)
                    )
    for name in stats.table_rows:
        if name not in tables:
            raise QueryError(f"statistics: table_rows of '{name}', which is a stream", hint="a stream has a rate")
    for name in tables:
        if name in stats.rate:
            raise QueryError(f"statistics: rate of '{name}', which is a table", hint="a table has table_rows")


def _rates(bound: BoundQuery, stats: Statistics, budget: Budget | None, said: list[str]) -> dict[str, float]:
    wanted = [s.alias for s in bound.sources if not s.static]
    missing = [a for a in wanted if a not in stats.rate]
    if not missing:
        return dict(stats.rate)
    if len(missing) < len(wanted):
        raise QueryError(
            f"statistics: no rate for {', '.join(missing)}",
            hint="rates of all streams are needed, in tuples per second, or of none",
        )
    if budget is not None:
        raise QueryError(
            "a budget can't be kept without knowing the rates of the streams",
            hint=f'give stats=Statistics(rate={{"{wanted[0]}": ...}}), or learn them from data',
        )
    said.append(f"no rates are known: {DEFAULT_RATE:g} tuples/s for every stream")
    return dict.fromkeys(wanted, DEFAULT_RATE)


def _stream(
    bound: BoundQuery, source: BoundSource, stats: Statistics, rates: dict[str, float], budget: Budget | None, in_bytes: bool,
    said: list[str],
) -> Stream:  # fmt: skip
    alias, window = source.alias, source.window
    passed = stats.selected(alias)
    if bound.selections.get(alias) and alias not in stats.selection:
        said.append(f"selection of {alias}: all its tuples pass the predicates on it")
    memory_matters = budget is not None and (budget.memory_tuples is not None or in_bytes)

    def unknown(what: str, hint: str, value: float, text: str) -> float:
        """A size that nothing is known of: refused where a memory budget rests on it, else assumed."""
        if memory_matters:
            raise QueryError(f"a memory budget needs {what}", hint=hint)
        said.append(text)
        return value

    if window is None:
        rows = stats.table_rows.get(alias, stats.window_tuples.get(alias))
        if rows is None:
            rows = unknown(
                f"the number of rows of table '{alias}'", f'table_rows={{"{alias}": ...}}', DEFAULT_TABLE_ROWS,
                f"table {alias} has {DEFAULT_TABLE_ROWS} rows",
            )  # fmt: skip
        width = row_bytes(bound, source, stats, rows * passed, said) if in_bytes else 0.0
        return Stream(alias, 0.0, rows * passed, expires=False, row_bytes=width)
    rate = rates[alias]
    if alias in stats.window_tuples:
        size = float(stats.window_tuples[alias])
    elif window.kind == "RANGE":
        size = rate * max(window.size, 1) / 1e6
    elif window.kind == "UNBOUNDED":
        size = unknown(
            f"a size of the unbounded window of '{alias}'", f'window_tuples={{"{alias}": ...}}: its tuples at the time to plan for',
            rate * UNBOUNDED_S, f"{alias} is unbounded and keeps growing: as it is after {UNBOUNDED_S / 3600:g} hour",
        )  # fmt: skip
    elif not window.partition:
        size = float(window.size)
    else:
        counts = [_distinct(stats, alias, column) for column in window.partition]
        known = [c for c in counts if c]
        if len(known) == len(counts):
            size = window.size * prod(known)
        else:
            columns = ", ".join(window.partition)
            size = unknown(
                f"the number of partitions of '{alias}'", f'distinct={{("{alias}", "{window.partition[0]}"): ...}}',
                window.size * DEFAULT_PARTITIONS, f"{alias} has {DEFAULT_PARTITIONS} partitions by {columns}",
            )  # fmt: skip
    if size == 0:
        raise QueryError(f"statistics: window_tuples of '{alias}' is 0: a window holds at least the tuple that arrives")
    width = row_bytes(bound, source, stats, size * passed, said) if in_bytes else 0.0
    return Stream(alias, rate * passed, size * passed, expires=window.kind != "UNBOUNDED", row_bytes=width)


def _distinct(stats: Statistics, alias: str, column: str) -> float | None:
    return next((v for (a, c), v in stats.distinct.items() if a == alias and c.lower() == column.lower()), None)


def _say_products(problem: Problem, said: list[str]) -> None:
    if len(problem.components) > 1:
        parts = [" ".join(n for i, n in enumerate(problem.names) if part >> i & 1) for part in problem.components]
        said.append(f"no join predicate connects {' with '.join(parts)}: every plan contains their Cartesian product")


def _dimensions(bound: BoundQuery, graph: JoinGraph, stats: Statistics) -> tuple[Dimension, ...]:
    """The classes of equal attributes that streams have, with their heavy values. A preserved stream (LEFT JOIN) is in each of them, or its
    rows are split: each of its rows must live in one cell, which knows whether a result had it."""
    number = {a: i for i, a in enumerate(bound.aliases)}
    streams = {s.alias for s in bound.sources if not s.static}
    made = []
    for group in graph.classes:
        heavy = []
        split = group.streams & streams
        if not split or (bound.preserved is not None and bound.preserved not in split):
            continue
        for side in (m for m in group.members if m.stream in streams):
            parts = [
                max((part for _, part in values), default=0.0)
                for (a, c), values in stats.heavy.items()
                if a == side.stream and str(side.expr).lower() in (c.lower(), f"{a}.{c}".lower())
            ]
            if parts:
                heavy.append((number[side.stream], max(parts)))
        made.append(Dimension(group.name, sum(1 << number[s] for s in split), tuple(heavy)))
    if bound.preserved is not None and not made:
        made.append(Dimension(bound.preserved, 1 << number[bound.preserved]))
    return tuple(made)


def shares_of(bound: BoundQuery, stats: Statistics | None, cells: int) -> tuple[tuple[str, int], ...]:
    """The shares for so many cells, as a Plan has them: rates, windows and heavy values decide."""
    stated = state_problem(bound, stats)
    return tuple((s.name, s.count) for s in choose_shares(stated.problem, stated.dimensions, cells))
