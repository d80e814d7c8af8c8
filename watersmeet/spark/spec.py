"""CellSpec: all that a cell must know of its query, as a value that travels to the workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from watersmeet.data import arrow_schema
from watersmeet.engine.control import Controller, unchanging
from watersmeet.engine.rows.unmatched import NUMBER
from watersmeet.errors import QueryError
from watersmeet.model.bind import BoundQuery
from watersmeet.model.expr import Column
from watersmeet.model.needs import counted, needed_columns
from watersmeet.model.plan import Plan
from watersmeet.model.query import BadRows, Overload, Query
from watersmeet.model.types import BOOLEAN, TIMESTAMP, Field, Schema
from watersmeet.spark.blob import AGAIN, ALIVE, ERROR, SHOWN, encode_table
from watersmeet.spark.route import Route
from watersmeet.spark.waiting import WAITING_BYTES

EFFECTIVE = "_wm_ts"  # with order="arrival": the time at which a row counts as having come
METRICS = "_wm_metrics"
LATE_COLUMNS = ("kind", "late_stream", "late_row")


@dataclass(frozen=True)
class CellSpec:
    """bound: the query as cells see it: selections are done, columns that only they needed are gone. tables: static tables by alias,
    encoded. times: the timestamp column of each stream, by alias. late, bad: whether late and bad rows are given out. order: "event" or
    "arrival". waiting_bytes: how much may wait in a cell. controller: makes the one of each cell."""

    bound: BoundQuery
    plan: Plan
    route: Route
    tables: Mapping[str, bytes]
    times: Mapping[str, str]
    fingerprint: Mapping[str, str]
    late: bool = False
    order: str = "event"
    refresh_tables: bool = False
    waiting_bytes: int = WAITING_BYTES
    controller: Callable[[BoundQuery], Controller] = unchanging
    bad: bool = False

    @classmethod
    def of(
        cls, bound: BoundQuery, plan: Plan, route: Route, tables: Mapping[str, pa.Table], *, late: bool = False, bad: bool = False,
        order: str = "event", refresh_tables: bool = False, waiting_bytes: int = WAITING_BYTES,
        controller: Callable[[BoundQuery], Controller] = unchanging,
    ) -> CellSpec:  # fmt: skip
        encoded = {a: encode_table(t) for a, t in tables.items()}
        content = {bound.source(a).stream: t for a, t in tables.items()}
        pins = fingerprint(bound, route, content, late, order)
        times = {s.alias: s.timestamp for s in bound.sources if not s.static}
        sent = cell_bound(bound, late, order)
        return cls(
            sent,
            replace(plan, keep=()),
            route,
            encoded,
            times,
            pins,
            late,
            order,
            refresh_tables,
            waiting_bytes,
            controller,
            bad,
        )

    @property
    def aside(self) -> bool:
        """Whether rows that are no results are given out too."""
        return self.late or self.bad

    @property
    def output(self) -> pa.Schema:
        """The columns that a cell gives out: results, then what late rows need, then metrics."""
        fields = list(arrow_schema(self.bound.results))
        if self.aside:
            fields += [pa.field(n, pa.string()) for n in LATE_COLUMNS]
        return pa.schema([*fields, pa.field(METRICS, pa.string())])


def sent_columns(bound: BoundQuery, alias: str, late: bool) -> tuple[str, ...]:
    """The columns of a stream that go to cells; all of them where late rows are given out."""
    return bound.source(alias).schema.names if late else needed_columns(bound, alias)


def cell_bound(bound: BoundQuery, late: bool, order: str) -> BoundQuery:
    """before: selections on all columns -> after: no selections but `alive` where rows are counted, and only the columns sent."""
    sources, selections, chosen = [], {}, bound.chosen
    for source in bound.sources:
        names = sent_columns(bound, source.alias, late)
        fields = [f for f in source.schema.fields if f.name in names]
        selections[source.alias] = () if not source.static else bound.selections[source.alias]
        if counted(source) or source.alias == bound.preserved:
            fields.append(Field(ALIVE, BOOLEAN))
            selections[source.alias] = (Column(source.alias, ALIVE, BOOLEAN),)
        if source.alias == bound.preserved:
            fields.append(Field(SHOWN, BOOLEAN))
            chosen = (Column(source.alias, SHOWN, BOOLEAN),)
        timestamp = source.timestamp
        if order == "arrival" and not source.static:
            timestamp = EFFECTIVE
            fields.append(Field(EFFECTIVE, TIMESTAMP))
        sources.append(replace(source, schema=Schema(tuple(fields)), timestamp=timestamp))
    return replace(bound, sources=tuple(sources), selections=selections, chosen=chosen)


def fingerprint(
    bound: BoundQuery, route: Route, tables: Mapping[str, pa.Table], late: bool, order: str
) -> dict[str, str]:
    """What routing and state depend on, in words, so that a difference can be named. Cells add how they hash."""
    made = {
        "query": str(_essence(bound.query)),
        "columns": "; ".join(
            f"{s.alias} ({', '.join(map(str, s.schema.fields))}) by {s.timestamp},"
            f" sends {', '.join(sent_columns(bound, s.alias, late))}"
            for s in bound.sources
        ),
        "cells": str(route.cells),
        "shares": ", ".join(map(str, route.dimensions)),
        "keys": " ".join(map(str, route.keys)),
        "order": order,
    }
    for name, table in tables.items():
        made[f"table {name}"] = (
            f"{table.num_rows} rows, sha256 {hashlib.sha256(encode_table(table, False)).hexdigest()[:16]}"
        )
    return made


def _essence(query: Query) -> Query:
    """The query without what may change between two starts: places, lateness, idle, bad rows, budget, what to do on overload."""
    declarations = tuple(
        replace(d, location=None, lateness_us=0, idle_us=None, bad_rows=BadRows()) for d in query.declarations
    )
    return replace(query, budget=None, overload=Overload(), into=None, late=None, declarations=declarations)


def check_names(bound: BoundQuery, late: bool) -> None:
    """No column may have a name that pack or cells use for their own."""
    own = (ALIVE, SHOWN, AGAIN, ERROR, NUMBER, EFFECTIVE, METRICS)
    for source in bound.sources:
        for name in source.schema.names:
            if name in own:
                raise QueryError(
                    f"stream '{source.stream}' has a column '{name}'", hint="this name is taken: rename it"
                )
    for name, _ in bound.outputs:
        if name in own or (late and name in LATE_COLUMNS):
            raise QueryError(f"SELECT has a column '{name}'", hint="with late=True this name is taken: use AS")
