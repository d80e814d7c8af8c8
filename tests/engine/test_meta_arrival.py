"""How rows arrive, and in which order streams are named, changes nothing."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import TIMESTAMP, Run, check, in_time_order, run_switching
from watersmeet.data import timestamps
from watersmeet.engine.executor import Engine
from watersmeet.model.bind import bind
from watersmeet.model.evaluate import DAY_US
from watersmeet.model.query import Query
from watersmeet.testing import Case, random_case, random_plan, random_query, random_streams, same_rows
from watersmeet.testing.values import START_DAY

BASE_US = START_DAY * DAY_US
SIZES = (1, 2, 7, 49, 50, 51, None)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_meta_batches_of_any_size_in_time_order(first: int) -> None:
    sizes = set()
    for seed in range(first, first + 10):
        case = random_case(seed, rows=40, results=150)
        for size in SIZES:
            batches = in_time_order(case, size)
            sizes.add(len(batches))
            result = wm.run(case.query, batches, plan=case.plan)
            check(case, result.rows)
            assert result.metrics["late"] == 0
    assert max(sizes) > 50


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_switch_between_and_within_batches_of_any_size(first: int) -> None:
    for seed in range(first, first + 10):
        case = random_case(seed, rows=40, results=150)
        for size in (1, 7, 50):
            batches = in_time_order(case, size)
            rows, pending = run_switching(Random(seed), case.query, batches, case.plan)
            check(case, rows)
            assert len(pending) >= len(batches)  # at the end of each at least


def test_meta_batches_of_no_rows_and_of_no_streams() -> None:
    for seed in range(40):
        case = random_case(seed)
        empty = {name: table.slice(0, 0) for name, table in case.streams.items()}
        batches = [b for batch in case.batches for b in (batch, {}, empty)]
        check(case, wm.run(case.query, batches, plan=case.plan).rows)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_meta_from_in_any_order_where_it_may_not_matter(first: int) -> None:
    counted = permuted = 0
    for seed in range(first, first + 50):
        rng = Random(seed)
        query = random_query(rng)
        if any(o.expr is None and o.star is None for o in query.select):
            continue  # the order of its columns is that of FROM
        streams = random_streams(rng, query)
        if not all(s.window is None or s.window.kind in ("RANGE", "UNBOUNDED") for s in query.sources):
            if len({s.stream for s in query.sources}) < len(query.sources):
                continue  # a stream joined with itself has ties with itself
            query, streams = _without_ties(query, streams)
            counted += 1
        sources = list(query.sources)
        rng.shuffle(sources)
        other = replace(query, sources=tuple(sources))
        permuted += other != query
        difference = same_rows(
            wm.run(other, streams, plan=random_plan(rng, other)).rows,
            wm.run(query, streams, plan=random_plan(rng, query)).rows,
        )
        assert difference is None, f"seed {seed}\n{query}\n{other}\n{difference}"
    assert min(counted, permuted) > 10


def _without_ties(query: Query, streams: dict[str, pa.Table]) -> tuple[Query, dict[str, pa.Table]]:
    """Time stretched eightfold, and each stream a microsecond beside the others: no two streams have rows at one time."""
    made = dict(streams)
    for k, source in enumerate(bind(query).sources):
        if not source.static:
            table = streams[source.stream]
            ts = timestamps(table, source.timestamp)
            apart = pa.array(8 * (ts - BASE_US) + BASE_US + k).cast(TIMESTAMP)
            at = table.column_names.index(source.timestamp)
            made[source.stream] = table.set_column(at, source.timestamp, apart)
    windows = [
        s.window and (replace(s.window, size=8 * s.window.size) if s.window.kind == "RANGE" else s.window)
        for s in query.sources
    ]
    return replace(
        query, sources=tuple(replace(s, window=w) for s, w in zip(query.sources, windows, strict=True))
    ), made


@pytest.mark.parametrize("emit", ["ISTREAM", "DSTREAM"])
def test_meta_stop_and_go_on_in_another_engine(emit: str) -> None:
    """`Engine.restore` with the rows of the windows takes up where another engine stopped."""
    went_on = 0
    for seed in range(60):
        rng = Random(seed)
        query = random_query(rng, emit=emit)
        case = Case(seed, query, random_streams(rng, query), random_plan(rng, query), [])
        run = Run.of(query, in_time_order(case, 20), case.plan)
        stop = rng.randint(1, 4)
        made: list[pa.RecordBatch] = []
        entered: dict[str, list[pa.Table]] = {alias: [] for alias in query.aliases}
        clock = 0
        for number, released in enumerate(run.batches.released()):
            if number == stop:
                run.engine = Engine(run.batches.bound, random_plan(rng, query))
                run.engine.restore(_windows(run, entered, clock))
                went_on += 1
            rows, clock = released.rows, released.clock
            for alias, table in rows.items():
                entered[alias].append(table)
            made += run.engine.feed(rows, clock)
        check(case, pa.Table.from_batches(made, run.engine.output))
    assert went_on > 30


def _windows(run: Run, entered: dict[str, list[pa.Table]], clock: int) -> dict[str, pa.Table]:
    """The rows that are in RANGE windows, all rows of others (which drop what they have no room for), and tables."""
    made = {}
    for source in run.batches.bound.sources:
        if source.window is None:
            made[source.alias] = run.batches.tables[source.stream]
        elif entered[source.alias]:
            table = pa.concat_tables(entered[source.alias])
            if source.window.kind == "RANGE":
                table = table.filter(pa.array(timestamps(table, source.timestamp) >= clock - source.window.size))
            made[source.alias] = table
    return made
