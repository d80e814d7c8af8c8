"""How rows arrive, and in which order streams are named, changes nothing."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import TIMESTAMP, Run, check, run_switching
from watersmeet.data import schema_of
from watersmeet.engine.intake import timestamps
from watersmeet.model.bind import bind
from watersmeet.model.evaluate import DAY_US
from watersmeet.model.query import Query
from watersmeet.testing import Case, random_case, random_plan, random_query, random_streams, same_rows
from watersmeet.testing.values import START_DAY

BASE_US = START_DAY * DAY_US
SIZES = (1, 2, 7, 49, 50, 51, None)


def in_time_order(case: Case, size: int | None) -> list[dict[str, pa.Table]]:
    """All rows in order of time, cut into batches of so many (None: one batch); tables come with the first."""
    declared = {s.stream: s for s in bind(case.query, _schemas(case)).sources}
    events = []
    for name, table in case.streams.items():
        if name in declared and not declared[name].static:
            events += [(int(ts), name, i) for i, ts in enumerate(timestamps(table, declared[name].timestamp))]
    events.sort(key=lambda event: event[0])
    size = size or max(len(events), 1)
    made: list[dict[str, pa.Table]] = [{n: t for n, t in case.streams.items() if declared[n].static or not t.num_rows}]
    for begin in range(0, len(events), size):
        batch: dict[str, list[int]] = {}
        for _, name, i in events[begin : begin + size]:
            batch.setdefault(name, []).append(i)
        made.append({name: case.streams[name].take(pa.array(rows)) for name, rows in batch.items()})
    made[:2] = [{**made[0], **made[1]}] if len(made) > 1 else made[:1]
    return made


def _schemas(case: Case) -> Any:
    return {name: schema_of(table.schema, name) for name, table in case.streams.items()}


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
            rows, switcher = run_switching(Random(seed), case.query, in_time_order(case, size), case.plan)
            check(case, rows)
            assert switcher.switches > 0 or sum(t.num_rows for t in case.streams.values()) < 20


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
        batches = in_time_order(case, 20)
        cut = rng.randint(1, len(batches))
        first = Run.of(query, batches, case.plan)
        released = list(first.batches.released())
        made: list[pa.RecordBatch] = []
        rows_so_far: dict[str, pa.Table] = {}
        for number, step in enumerate(released):
            sources = first.batches.bound.sources
            given = {
                s.alias: first.engine.intakes[i].in_order(step.rows[s.stream])
                for i, s in enumerate(sources)
                if s.stream in step.rows
            }
            if number == cut:
                first = Run.of(query, batches, random_plan(rng, query))
                first.engine.restore(_live(first, rows_so_far, released[number - 1].clock))
                went_on += 1
            for alias, table in given.items():
                rows_so_far[alias] = pa.concat_tables([*([rows_so_far[alias]] if alias in rows_so_far else []), table])
            made += list(first.engine.feed(given, step.clock))
        check(case, pa.Table.from_batches(made, first.engine.gather.output))
    assert went_on > 30


def _live(run: Run, rows: dict[str, pa.Table], clock: int) -> dict[str, pa.Table]:
    """The rows that are still in RANGE windows, and all rows of others (which drop what they have no room for)."""
    made = {}
    for source in run.batches.bound.sources:
        if source.static:
            continue
        table = rows.get(source.alias)
        if table is not None and source.window is not None and source.window.kind == "RANGE":
            live = timestamps(table, source.timestamp) >= clock - source.window.size
            table = table.filter(pa.array(live))
        if table is not None:
            made[source.alias] = table
    return made
