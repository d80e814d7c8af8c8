"""Random streams for a query, and batches of them: sized so that the join finds something, but not too much."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from random import Random
from typing import Any, Final, TypeAlias

import pyarrow as pa

from watersmeet.data.plain_rows import plain_table
from watersmeet.model.bind import BoundQuery, BoundSource, Side, bind
from watersmeet.model.conditions import Conditions
from watersmeet.model.evaluate import DAY_US
from watersmeet.model.expr import Column, walk
from watersmeet.model.graph import JoinGraph
from watersmeet.model.query import Query
from watersmeet.model.types import Type
from watersmeet.testing.values import START_DAY, plain_value

Name: TypeAlias = tuple[str, str]  # stream, column
MOST_WORK: Final = 150_000.0


@dataclass
class _Domain:
    """Columns that are compared for equality draw their values from the same numbers: 0 to size - 1, one of them hot."""

    kinds: list[Type]
    size: int
    hot: float = 0.0
    null: float = 0.0

    def widest(self, rows: int) -> int:
        return 2 if any(kind.name == "BOOLEAN" for kind in self.kinds) else max(60, rows)

    def match(self, members: int = 2) -> float:
        """The chance that so many values are all equal."""
        other = (1 - self.hot) / self.size
        return ((self.hot + other) ** members + (self.size - 1) * other**members) * (1 - self.null) ** members

    def number(self, rng: Random) -> int:
        return min(1, self.size - 1) if rng.random() < self.hot else rng.randrange(self.size)


class _Sizes:
    """How many rows, over how long, with how many different values: set so that about `results` results are expected.

    `meetings` are times and numbers at which the first rows of all streams meet: many streams would hardly find each other.
    """

    def __init__(self, rng: Random, bound: BoundQuery, rows: int | None, results: float) -> None:
        self.rng, self.bound, self.graph, self.conditions = rng, bound, JoinGraph.of(bound), Conditions(bound)
        count = len(bound.sources)
        self.typical = typical = rows or rng.randint(8, max(14, 90 // count))
        self.rows = {s.stream: max(1, round(typical * rng.choice((0.4, 1, 1, 1.6)))) for s in bound.sources}
        ranges = [s.window.size for s in bound.sources if s.window and s.window.kind == "RANGE" and s.window.size]
        common = gcd(*ranges) if ranges else 1_000_000
        self.tick_us = common // rng.choice([n for n in (1, 2, 5, 10) if common % n == 0])
        self.ticks = max(4, round(typical * rng.choice((0.3, 0.6, 1, 2))))
        self.domains = self._domains()
        self._aim(results)
        if rng.random() < 0.03:
            self.rows[rng.choice(bound.sources).stream] = 0
        self.meetings = [(rng.randrange(self.ticks), rng.randrange(60)) for _ in range(rng.choice((0, 2, 4, 6)))]

    def _domains(self) -> dict[Name, _Domain]:
        """One domain for each set of columns that equalities tie together, and one for each other column."""
        rng, made = self.rng, {}
        for source in self.bound.sources:
            for field in source.schema.fields:
                null = rng.choice((0.0, 0.0, 0.05, 0.2))
                made[source.stream, field.name] = _Domain([field.type], rng.randint(3, 10), null=null)
        self.keys: list[list[Name]] = []
        for attribute in self.graph.classes:
            tied = [_name(self.bound, member) for member in attribute.members]
            self.keys.append(tied)
            kinds = [kind for name in tied for kind in made[name].kinds]
            hot = rng.choice((0.0, 0.0, 0.3, 0.6))
            shared = _Domain(kinds, rng.randint(2, 10), hot, rng.choice((0.0, 0.0, 0.03, 0.1)))
            shared.size = min(shared.size, shared.widest(self.typical))
            old = [made[name] for name in tied]
            made = {name: shared if any(d is o for o in old) else d for name, d in made.items()}
        return made

    def held(self, source: BoundSource) -> float:
        """About how many tuples a window holds."""
        rows, window = self.rows[source.stream], source.window
        if window is None:
            return rows
        if window.kind == "RANGE":
            return min(rows, rows * (window.size // self.tick_us + 1) / self.ticks)
        if window.kind == "UNBOUNDED":
            return rows / 2
        values = 1
        for name in window.partition:
            values *= self.domains[source.stream, name].size
        return min(rows, window.size * values)

    def expected(self) -> float:
        """About how many results there will be."""
        held = {s.alias: self.held(s) for s in self.bound.sources}
        total = 0.0
        for source in self.bound.sources:
            made = float(self.rows[source.stream]) if source.window else 0.0
            for other in self.bound.sources:
                made *= held[other.alias] if other is not source else 1
            total += made / sum(1 for s in self.bound.sources if s.window)
        for attribute, names in zip(self.graph.classes, self.keys, strict=True):
            total *= self.domains[names[0]].match(len(attribute.members))
        total *= 0.6 ** sum(1 for c in self.graph.comparisons if c.op != "<>")
        return total * 0.7 ** sum(map(len, self.bound.selections.values())) * 0.7 ** len(self.bound.residuals)

    def work(self) -> float:
        """About how many pairs of a partial combination and a tuple the oracle will look at."""
        held = {s.alias: self.held(s) for s in self.bound.sources}
        chance = [self.domains[_name(self.bound, p.left)].match() for p in self.bound.equalities]
        chance += [0.9 if p.op == "<>" else 0.6 for p in self.bound.comparisons]
        total = 0.0
        for source in self.bound.sources:
            made, done = float(self.rows[source.stream]) if source.window else 0.0, [source.alias]
            for alias, _ in self.conditions.steps(source.alias):
                made *= held[alias]
                total += made
                for k, _, _ in self.conditions.checks(alias, done):
                    made *= chance[k]
                done.append(alias)
        return total

    def _aim(self, results: float) -> None:
        """Turn the knobs until about the wanted number of results is expected, or they are at their ends."""
        timed = any(s.window and s.window.kind == "RANGE" for s in self.bound.sources)
        for _ in range(200):
            most_work = MOST_WORK * max(1.0, self.typical / 20)
            expected = max(self.expected(), self.work() * results / most_work)
            domains = [self.domains[names[0]] for names in self.keys]
            if expected > 1.3 * results:
                wider = [d for d in domains if d.size < d.widest(self.typical)]
                if wider and self.rng.random() < 0.8:
                    domain = self.rng.choice(wider)
                    domain.size = min(domain.widest(self.typical), domain.size + 1 + domain.size // 8)
                elif timed and self.ticks < 100 * self.typical and self.rng.random() < 0.7:
                    self.ticks += 1 + self.ticks // 4
                elif not wider:
                    self.rows = {name: max(1, n * 4 // 5) for name, n in self.rows.items()}
            elif expected < results / 1.3:
                narrower = [d for d in domains if d.size > 2]
                if narrower and self.rng.random() < 0.7:
                    self.rng.choice(narrower).size -= 1
                elif timed and self.ticks > max(4, self.typical // 6):
                    self.ticks -= 1 + self.ticks // 6
                elif max(self.rows.values()) < 2 * self.typical:
                    self.rows = {name: n + 1 for name, n in self.rows.items()}
                elif not narrower:
                    return
            else:
                return


def _name(bound: BoundQuery, side: Side) -> Name:
    """The column that a side of an equality is made of."""
    return bound.source(side.stream).stream, next(node.name for node in walk(side.expr) if isinstance(node, Column))


def random_streams(
    rng: Random, query: Query, *, rows: int | None = None, results: float | None = None
) -> dict[str, pa.Table]:
    """A table for each stream and table of a query that declares them: ties, NULLs, hot keys, duplicates, empty streams.

    rows: about how many for each, fewer where the join would have far too many results; by default few enough for the oracle.
    results: about how many the join should have.
    """
    bound = bind(query)
    sizes = _Sizes(rng, bound, rows, results or 10 ** rng.uniform(1.2, 2.5))
    return {s.stream: _table(rng, s, sizes) for s in {s.stream: s for s in bound.sources}.values()}


def _table(rng: Random, source: BoundSource, sizes: _Sizes) -> pa.Table:
    keys = {name for names in sizes.keys for name in names}
    made: list[list[Any]] = []
    for i in range(sizes.rows[source.stream]):
        if made and rng.random() < 0.04:
            made.append(list(rng.choice(made)))  # the same row again
            continue
        tick, number = sizes.meetings[i] if i < len(sizes.meetings) else (rng.randrange(sizes.ticks), None)
        ts = START_DAY * DAY_US + tick * sizes.tick_us
        if sizes.tick_us > 1 and rng.random() < 0.08:
            ts += rng.choice((-1, 1))  # one microsecond beside a window's edge
        row: list[Any] = []
        for field in source.schema.fields:
            name = source.stream, field.name
            domain = sizes.domains[name]
            if source.window and field.name == source.timestamp:
                row.append(ts)
            elif number is not None and name in keys:
                row.append(plain_value(rng, field.type, number % domain.size))
            elif rng.random() < domain.null:
                row.append(None)
            else:
                row.append(plain_value(rng, field.type, domain.number(rng)))
        made.append(row)
    rng.shuffle(made)
    return plain_table(source.schema, list(zip(*made, strict=True)) or [[] for _ in source.schema.fields])


def random_batches(
    rng: Random, query: Query, streams: dict[str, pa.Table], *, late: bool = False
) -> list[dict[str, pa.Table]]:
    """The streams cut into batches, out of order within each stream's lateness; `late`: some rows come later than that.

    Static tables and streams without rows come with the first batch. Some batches lack a stream, and some are empty.
    """
    bound = bind(query, None)
    events: list[tuple[int, float, str, int]] = []
    for source in {s.stream: s for s in bound.sources if s.window}.values():
        times = streams[source.stream].column(source.timestamp).cast(pa.int64()).to_pylist()
        furthest = max(times, default=0) - min(times, default=0)
        for i, ts in enumerate(times):
            delay = rng.randint(0, source.lateness_us)
            if late and rng.random() < 0.1:
                delay += rng.randint(0, furthest)
            events.append((ts + delay, rng.random(), source.stream, i))
    events.sort()
    cuts = sorted(rng.randint(0, len(events)) for _ in range(rng.choice((0, 1, 3, 7))))
    made: list[dict[str, pa.Table]] = []
    for begin, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        batch: dict[str, list[int]] = {}
        for _, _, name, i in events[begin:end]:
            batch.setdefault(name, []).append(i)
        made.append({name: streams[name].take(rng.sample(rows, len(rows))) for name, rows in batch.items()})
    for source in bound.sources:
        if source.static or not streams[source.stream].num_rows:
            made[0][source.stream] = streams[source.stream]
    return made
