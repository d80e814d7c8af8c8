"""wm.learn: statistics of streams from their history, by a Spark batch job.

Rates from counts and the time they span. The selectivity of an equality from how often each key occurs on both sides,

    f(R, S) = Σ_k n_R(k) · n_S(k) / (N_R · N_S)

which takes one aggregation for each side and a join of the counts, never a cross product. Keys that are more than one in a hundred
rows are heavy. What Spark can't evaluate just as we do (arithmetic, comparisons) is measured on a sample of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from watersmeet.data import arrow_schema, as_table
from watersmeet.engine.estimate import SAMPLE, observe
from watersmeet.errors import DataError, QueryError
from watersmeet.lang import parse
from watersmeet.model.bind import BoundQuery, Side, bind
from watersmeet.model.expr import Column
from watersmeet.model.graph import JoinGraph
from watersmeet.model.query import Query
from watersmeet.model.statistics import Statistics
from watersmeet.model.types import Schema
from watersmeet.spark.columns import column, conform, is_streaming, schema_of
from watersmeet.spark.selection import in_spark, mask

HEAVY = 0.01  # a key that is at least this part of a stream's rows
SHOWN = 20  # heavy keys that are kept


def learn(
    text: str | Query, streams: Mapping[str, Any], progress: Callable[[int, int], None] | None = None
) -> Statistics:
    """Statistics for a query from the history of its streams.

    streams: {name: batch DataFrame} (static tables also as Arrow, pandas or a path). progress: is called with (steps done, steps in all).
    Save the result with `.save(path)`; `wm.Statistics.load(path)` reads it, and explain, run and stream take it.
    """
    query = parse(text) if isinstance(text, str) else text
    lessons = _Lessons(query, streams)
    steps = lessons.steps()
    for done, step in enumerate(steps):
        if progress:
            progress(done, len(steps))
        step()
    if progress:
        progress(len(steps), len(steps))
    return lessons.result()


class _Lessons:
    """What is known so far. Each step is one Spark job."""

    def __init__(self, query: Query, streams: Mapping[str, Any]) -> None:
        schemas: dict[str, Schema] = {d.name: d.schema for d in query.declarations}
        self.frames: dict[str, DataFrame] = {}
        self.plain: dict[str, pa.Table] = {}
        for name, given in streams.items():
            if is_streaming(given):
                raise DataError(f"'{name}' is a streaming DataFrame\n  wm.learn looks at history: use spark.read")
            if hasattr(given, "sparkSession"):
                schemas.setdefault(name, schema_of(given, name))
                self.frames[name] = conform(given, name, schemas[name])
            else:
                self.plain[name] = as_table(given, name, schemas.get(name))
        try:
            self.bound: BoundQuery = bind(query, schemas)
        except QueryError as e:
            raise e.at(str(query)) from None
        for source in self.bound.sources:
            if source.stream not in self.frames and source.stream not in self.plain:
                raise DataError(
                    f"no DataFrame given for '{source.stream}'\n  pass it by name: {{'{source.stream}': spark.read...}}"
                )
        self.graph = JoinGraph.of(self.bound)
        self.samples: dict[str, pa.Table] = {}
        self.rows: dict[str, int] = {}
        self.rate: dict[str, float] = {}
        self.selection: dict[str, float] = {}
        self.counts: dict[Side, DataFrame] = {}
        self.distinct: dict[tuple[str, str], float] = {}
        self.heavy: dict[tuple[str, str], tuple[tuple[str, float], ...]] = {}
        self.selectivity: dict[tuple[str, str], float] = {}
        self.window_tuples: dict[str, float] = {}

    def steps(self) -> list[Callable[[], None]]:
        sides = [m for c in self.graph.classes for m in c.members if self._counted(m)]
        pairs = [p for p in self.graph.edges if self._all_counted(*p)]
        made: list[Callable[[], None]] = [lambda a=a: self.look(a) for a in self.bound.aliases]  # type: ignore[misc]
        made += [lambda s=s: self.count(s) for s in sides]  # type: ignore[misc]
        made += [lambda p=p: self.meet(*p) for p in pairs]  # type: ignore[misc]
        made += [lambda a=s.alias: self.fill(a) for s in self.bound.sources if s.window and s.window.partition]  # type: ignore[misc]
        return made

    def _counted(self, side: Side) -> bool:
        """Whether Spark can count the keys of a side."""
        return isinstance(side.expr, Column) and self.bound.source(side.stream).stream in self.frames

    def _all_counted(self, left: str, right: str) -> bool:
        """Whether an edge is equalities on counted sides only, one of them: several would have to be counted together."""
        shared = self.graph.shared(left, right)
        sides = [s for c in shared for s in (c.of(left), c.of(right)) if s is not None]
        return len(shared) == 1 and not self.graph.between((left,), (right,)) and all(map(self._counted, sides))

    def _selected(self, alias: str) -> DataFrame:
        frame = self.frames[self.bound.source(alias).stream]
        predicates = tuple(p for p in self.bound.selections[alias] if in_spark(p))
        return frame.where(mask(predicates)) if predicates else frame

    def look(self, alias: str) -> None:
        """Rows, time, and a sample of one stream."""
        source = self.bound.source(alias)
        if source.stream in self.plain:
            self.samples[alias] = self.plain[source.stream]
            self.rows[alias] = self.samples[alias].num_rows
            return
        frame = self.frames[source.stream]
        predicates = tuple(p for p in self.bound.selections[alias] if in_spark(p))
        passed = F.count_if(mask(predicates)) if predicates else F.count(F.lit(1))
        wanted = [F.count(F.lit(1)).alias("n"), passed.alias("passed")]
        if not source.static:
            micros = F.unix_micros(column(source.timestamp))
            wanted += [F.min(micros).alias("low"), F.max(micros).alias("high")]
        found = frame.agg(*wanted).collect()[0]
        self.rows[alias] = int(found["n"])
        if found["n"] and len(predicates) == len(self.bound.selections[alias]):
            self.selection[alias] = found["passed"] / found["n"]
        if not source.static and found["n"]:
            self.rate[alias] = found["n"] / max((found["high"] - found["low"]) / 1e6, 1e-6)
        self.samples[alias] = frame.limit(SAMPLE).toArrow().cast(arrow_schema(source.schema))

    def count(self, side: Side) -> None:
        """How often each key occurs: how many there are, and which are heavy."""
        assert isinstance(side.expr, Column)
        key = column(side.expr.name)
        counts = (
            self._selected(side.stream).where(key.isNotNull()).groupBy(key.alias("k")).agg(F.count(F.lit(1)).alias("n"))
        )
        self.counts[side] = counts
        known = counts.agg(F.count(F.lit(1)).alias("keys"), F.sum("n").alias("rows")).collect()[0]
        name = (side.stream, side.expr.name)
        self.distinct[name] = float(max(known["keys"], 1))
        rows = known["rows"] or 1
        top = counts.where(F.col("n") >= HEAVY * rows).orderBy(F.desc("n"), "k").limit(SHOWN).collect()
        if top:
            self.heavy[name] = tuple((str(row["k"]), row["n"] / rows) for row in top)

    def meet(self, left: str, right: str) -> None:
        """The fraction of pairs that are equal."""
        group = self.graph.shared(left, right)[0]
        a, b = group.of(left), group.of(right)
        assert a is not None and b is not None
        mine = self.counts[a].select("k", F.col("n").cast("double").alias("x"))
        theirs = self.counts[b].select("k", F.col("n").cast("double").alias("y"))
        pairs = mine.join(theirs, "k").agg(F.sum(F.col("x") * F.col("y")).alias("s")).collect()[0]["s"] or 0.0
        both = [self.counts[s].agg(F.sum("n").cast("double").alias("n")).collect()[0]["n"] or 1.0 for s in (a, b)]
        self.selectivity[left, right] = min(max(pairs / (both[0] * both[1]), 1e-12), 1.0)

    def fill(self, alias: str) -> None:
        """How many rows a PARTITION BY window holds."""
        source = self.bound.source(alias)
        assert source.window is not None
        counts = (
            self.frames[source.stream].groupBy(*map(column, source.window.partition)).agg(F.count(F.lit(1)).alias("n"))
        )
        held = counts.agg(F.sum(F.least("n", F.lit(source.window.size))).alias("held")).collect()[0]["held"]
        self.window_tuples[alias] = float(held or 1)

    def result(self) -> Statistics:
        """All that was measured on whole histories, and from the samples what was not."""
        guess = observe(self.bound, self.samples)
        bytes_ = {a: t.nbytes / t.num_rows for a, t in self.samples.items() if t.num_rows}
        static = {a: n for a, n in self.rows.items() if self.bound.source(a).static}
        grown = {
            s.alias: float(max(self.rows[s.alias], 1))
            for s in self.bound.sources
            if s.window is not None and s.window.kind == "UNBOUNDED"
        }
        return Statistics(
            rate={**guess.rate, **self.rate}, selectivity={**guess.selectivity, **self.selectivity},
            distinct={**guess.distinct, **self.distinct}, selection={**guess.selection, **self.selection},
            table_rows=static, window_tuples=self.window_tuples | grown, row_bytes=bytes_, heavy=self.heavy, costs=guess.costs,
        )  # fmt: skip
