"""Random queries: join graphs of every shape over streams with every kind of window, key and predicate.

A random query declares its streams, so that `random_streams` can fill them. Its expressions give no arithmetic errors
unless they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Final

from watersmeet.model.expr import Column, Expr
from watersmeet.model.query import Declaration, Output, Query, Source
from watersmeet.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    Type,
)
from watersmeet.model.window import Window
from watersmeet.testing import predicates

SHAPES: Final = ("chain", "star", "cycle", "clique", "one key", "loose")
TICKS_US: Final = (1, 1_000, 1_000_000, 60_000_000)
_NAMES: Final = ("R", "S", "T", "U", "V", "W")
_ODD_NAMES: Final = ("select", "two words", "Ström")
PAYLOADS: Final = (BIGINT, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP, Type("DECIMAL", 10, 2))


@dataclass
class Stream:
    """A stream or table in the making: columns are added as predicates ask for them."""

    name: str
    static: bool = False
    timestamp: str = "ts"
    columns: dict[str, Type] = field(default_factory=dict)

    def add(self, kind: Type) -> str:
        name = next(n for n in _column_names() if n not in self.columns)
        self.columns[name] = kind
        return name


def _column_names() -> list[str]:
    return [f"{letter}{number or ''}" for number in range(9) for letter in "abcdexyz"]


@dataclass
class Draft:
    """One entry of FROM in the making."""

    alias: str
    stream: Stream

    def column(self, rng: Random, kind: Type, reuse: float) -> Column:
        """A column of that type: one that is there already, or another."""
        known = [n for n, t in self.stream.columns.items() if t == kind and n != self.stream.timestamp]
        name = rng.choice(known) if known and rng.random() < reuse else self.stream.add(kind)
        return Column(self.alias, name)

    @property
    def ts(self) -> Column:
        return Column(self.alias, self.stream.timestamp)


def random_query(
    rng: Random,
    *,
    streams: int | None = None,
    shape: str | None = None,
    emit: str | None = None,
    idle: bool = False,
    errors: bool = False,
) -> Query:
    """A query over 2 to 6 streams and tables, or so many as `streams` says (one is possible).

    shape: of the join graph, one of SHAPES; "one key": all streams joined on one attribute; "loose": parts not joined at all.
    idle: some streams have an IDLE time (batches may then drop rows of streams that lag).
    errors: one of the expressions may divide by zero or overflow.

    >>> query = random_query(Random(3), streams=4, shape="chain")
    >>> len(query.sources), query == random_query(Random(3), streams=4, shape="chain")
    (4, True)
    """
    count = streams or rng.choices((2, 3, 4, 5, 6), (25, 30, 20, 15, 10))[0]
    shape = shape or rng.choice(SHAPES)
    tick_us = rng.choice(TICKS_US)
    entries = _entries(rng, count)
    where = _joins(rng, entries, shape, tick_us)
    for _ in range(rng.choices((0, 1, 2), (70, 25, 5))[0] if count > 1 else 0):
        where.append(predicates.residual(rng, rng.sample(entries, min(count, rng.choice((2, 2, 3))))))
    for entry in entries:
        if rng.random() < 0.3:
            where.append(predicates.selection(rng, entry))
    if errors:
        where.append(predicates.fragile(rng, rng.choice(entries)))
    rng.shuffle(where)
    sources = tuple(
        Source(e.stream.name, None if e.stream.static else _window(rng, e, tick_us), e.alias) for e in entries
    )
    select = _select(rng, entries)
    declared = {e.stream.name: _declaration(rng, e.stream, tick_us, idle) for e in entries}
    return Query(
        select, sources, tuple(where), emit=emit or rng.choice(("ISTREAM", "CHANGES", "ISTREAM", "DSTREAM")),
        declarations=tuple(declared.values()),
    )  # fmt: skip


def _entries(rng: Random, count: int) -> list[Draft]:
    names = list(_NAMES[:count])
    if rng.random() < 0.05:
        names[rng.randrange(count)] = rng.choice(_ODD_NAMES)
    entries: list[Draft] = []
    for name in names:
        if entries and rng.random() < 0.08:  # a self-join
            entries.append(Draft(f"{name}2", rng.choice(entries).stream))
            continue
        static = bool(entries) and rng.random() < 0.08
        stream = Stream(name, static, rng.choice(("ts", "ts", "ts", "at")))
        entries.append(Draft(name.lower() * 2 if rng.random() < 0.1 else name, stream))
        if not static:
            stream.columns[stream.timestamp] = TIMESTAMP
    rng.shuffle(entries)
    return entries


def _pairs(rng: Random, count: int, shape: str) -> list[tuple[int, int]]:
    """The edges of the join graph, by position."""
    chain = [(i, i + 1) for i in range(count - 1)]
    match shape:
        case "star":
            return [(0, i) for i in range(1, count)]
        case "cycle":
            return [*chain, (count - 1, 0)] if count > 2 else chain
        case "clique":
            return list(combinations(range(count), 2))
        case "loose":
            return [pair for pair in chain if rng.random() < 0.6]
        case _:
            return chain


def _joins(rng: Random, entries: list[Draft], shape: str, tick_us: int) -> list[Expr]:
    if shape == "one key":
        kind = rng.choice((BIGINT, BIGINT, STRING, DATE))
        keys = [e.column(rng, kind, 0.0) for e in entries]
        pairs = [(keys[rng.randrange(i)], keys[i]) for i in range(1, len(keys))]
        return [predicates.equality(a, b) for a, b in pairs]
    made: list[Expr] = []
    for i, j in _pairs(rng, len(entries), shape):
        made += predicates.join(rng, entries[i], entries[j], tick_us)
    return made


def _window(rng: Random, entry: Draft, tick_us: int) -> Window:
    kind = rng.choices(("RANGE", "ROWS", "PARTITION", "UNBOUNDED"), (55, 20, 15, 10))[0]
    columns = [n for n in entry.stream.columns if n != entry.stream.timestamp]
    if kind == "RANGE":
        return Window.range_us(tick_us * rng.choice((0, 1, 2, 3, 5, 8, 13, 20)))
    if kind == "ROWS":
        return Window.rows(rng.choice((1, 2, 3, 5, 8)))
    if kind == "PARTITION" and columns:
        chosen = rng.sample(columns, 2 if len(columns) > 1 and rng.random() < 0.2 else 1)
        return Window.rows(rng.choice((1, 1, 2, 3)), tuple(chosen))
    return Window.unbounded()


def _select(rng: Random, entries: list[Draft]) -> tuple[Output, ...]:
    if rng.random() < 0.2:
        return (Output(None),)
    made = [Output(None, star=rng.choice(entries).alias)] if rng.random() < 0.15 else []
    for number in range(rng.randint(1, 4)):
        if rng.random() < 0.5:
            entry = rng.choice(entries)
            name = rng.choice(list(entry.stream.columns) or [entry.stream.add(BIGINT)])
            made.append(Output(Column(entry.alias, name), f"out{number}"))
        else:
            made.append(Output(predicates.output(rng, entries), f"out{number}"))
    return tuple(made)


def _declaration(rng: Random, stream: Stream, tick_us: int, idle: bool) -> Declaration:
    for _ in range(rng.randint(0 if stream.columns else 1, 2)):
        stream.add(rng.choice(PAYLOADS))
    fields = [Field(n, t) for n, t in stream.columns.items()]
    rng.shuffle(fields)
    if stream.static:
        return Declaration(stream.name, Schema(tuple(fields)), static=True)
    return Declaration(
        stream.name, Schema(tuple(fields)), timestamp=stream.timestamp,
        lateness_us=tick_us * rng.choice((0, 0, 1, 3, 10)),
        idle_us=tick_us * rng.choice((0, 2, 5, 20)) if idle and rng.random() < 0.5 else None,
    )  # fmt: skip
