"""EMIT CHANGES by every plan: folded up to any time it is the join of the windows, and it comes in the order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, agrees, run_switching, stream
from watersmeet.data.plain_rows import plain_batches, plain_results, plain_rows
from watersmeet.model.conditions import Conditions, Tuple
from watersmeet.model.evaluate import order_key
from watersmeet.model.query import Query
from watersmeet.testing import random_plan, random_query, random_streams, same_rows


def _cases(first: int, count: int) -> Iterator[tuple[int, Query, dict[str, pa.Table]]]:
    for seed in range(first, first + count):
        rng = Random(seed)
        query = random_query(rng, emit="CHANGES")
        yield seed, query, random_streams(rng, query, results=60)


def _folded(rows: list[dict[str, Any]], until: float = float("inf")) -> Counter[str]:
    """What is there at a time: the insertions up to then, less the deletions."""
    found: Counter[str] = Counter()
    for row in rows:
        if row["result_ts"] <= until:
            found[_values(row)] += 1 if row["change"] == "insert" else -1
    return found


def _values(row: dict[str, Any]) -> str:
    return str([value for name, value in row.items() if name not in ("result_ts", "change")])


def _join_of_the_windows(query: Query, streams: dict[str, pa.Table], until: float) -> Counter[str]:
    """From what each window holds at a time, by its definition alone: nothing arrives, nothing leaves."""
    bound, tables, (batch,) = plain_batches(query, streams)
    conditions, held = Conditions(bound), dict[str, list[Tuple]]()
    for source in bound.sources:
        tied = sorted((tables | batch)[source.stream], key=lambda row: [order_key(value) for value in row.values()])
        came = sorted((conditions.arrive(source, row) for row in tied), key=lambda t: t.ts)
        came = [t for t in came if t.ts <= until]
        window = source.window
        if window and window.kind == "RANGE":
            came = [t for t in came if t.ts >= until - window.size]
        if window and window.kind == "ROWS":
            parts = {t.partition: [s for s in came if s.partition == t.partition] for t in came}
            came = [t for same in parts.values() for t in same[-window.size :]]
        held[source.alias] = [t for t in came if t.selected]
    made: list[dict[str, Tuple]] = [{bound.aliases[0]: t} for t in held[bound.aliases[0]]]
    for alias, joins in conditions.steps(bound.aliases[0]):
        made = [{**m, alias: t} for m in made for t in held[alias] if joins(t, m)]
    table = plain_results(bound, [(0, "insert", m) for m in made if conditions.residual(m)])
    return Counter(map(_values, plain_rows(table)))


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_meta_changes_folded_up_to_any_time_are_the_join_of_the_windows(first: int) -> None:
    looked = there = 0
    for seed, query, streams in _cases(first, 20):
        rows = plain_rows(wm.run(query, streams, plan=random_plan(Random(seed), query)).rows)
        times = sorted({row["result_ts"] for row in rows})
        for at in times[:: max(1, len(times) // 6)]:
            found, expected = _folded(rows, at), _join_of_the_windows(query, streams, at)
            assert found == expected, f"seed {seed}, at {at}: {found - expected}, {expected - found}\n{query}"
            looked, there = looked + 1, there + bool(expected)
    assert looked > 40 and there > 20


@pytest.mark.parametrize("first", range(100, 160, 20))
def test_meta_changes_are_what_istream_and_dstream_give(first: int) -> None:
    for seed, query, streams in _cases(first, 20):
        plan = random_plan(Random(seed), query)
        parts = []
        for emit, change in (("ISTREAM", "insert"), ("DSTREAM", "delete")):
            rows = wm.run(replace(query, emit=emit), streams, plan=plan).rows
            parts.append(rows.append_column("change", pa.repeat(pa.scalar(change), rows.num_rows)))
        found = wm.run(query, streams, plan=plan).rows
        assert (wrong := same_rows(found, pa.concat_tables(parts))) is None, f"seed {seed}\n{query}\n{wrong}"


@pytest.mark.parametrize("first", range(200, 260, 20))
def test_switch_changes_come_in_the_order_of_time_and_no_deletion_before_its_insertion(first: int) -> None:
    """Row by row, so that a reader who folds as rows come never has less than nothing; whatever plans are switched to."""
    switches = deletions = 0
    for seed, query, streams in _cases(first, 20):
        made, switched = run_switching(Random(seed), query, streams, random_plan(Random(seed), query))
        rows, there, before = plain_rows(made), Counter[str](), float("-inf")
        for row in rows:
            assert row["result_ts"] >= before, f"seed {seed}\n{query}"
            before = row["result_ts"]
            there[_values(row)] += 1 if row["change"] == "insert" else -1
            assert there[_values(row)] >= 0, f"seed {seed}: {row}\n{query}"
        assert there == _folded(rows)
        deletions += sum(row["change"] == "delete" for row in rows)
        switches += len(switched)
    assert switches > 60 and deletions > 50


QUERY = "SELECT R.id AS r, S.id AS s FROM R [{0}], S [{1}] WHERE R.k = S.k EMIT CHANGES"


def _told(query: str, rows: dict[str, pa.Table], plan: str = "(R S)") -> list[str]:
    made = Run.of(query, rows, plan).rows()
    return [f"{row['change']} {row['r']}{row['s']} {row['result_ts']}" for row in plain_rows(made)]


def test_meta_changes_at_one_timestamp_begin_with_what_a_range_lets_go() -> None:
    rows = {"R": stream([0, 11], k=[1, 1], id=["a", "b"]), "S": stream([5, 11], k=[1, 1], id=["x", "y"])}
    agrees(QUERY.format("RANGE 10 MICROSECONDS", "RANGE 50 MICROSECONDS"), rows)
    assert _told(QUERY.format("RANGE 10 MICROSECONDS", "RANGE 50 MICROSECONDS"), rows) == [
        "insert ax 5", "delete ax 11", "insert bx 11", "insert by 11",
    ]  # fmt: skip


def test_meta_changes_an_arrival_comes_after_the_deletions_of_what_it_pushes_out() -> None:
    rows = {"R": stream([0, 9, 9], k=[1, 1, 1], id=["a", "b", "c"]), "S": stream([5], k=[1], id=["x"])}
    agrees(QUERY.format("ROWS 1", "UNBOUNDED"), rows)
    # b lives for no time: its insertion precedes its deletion, and that the insertion of c, which pushes it out.
    assert _told(QUERY.format("ROWS 1", "UNBOUNDED"), rows) == [
        "insert ax 5", "delete ax 9", "insert bx 9", "delete bx 9", "insert cx 9",
    ]  # fmt: skip


def test_meta_changes_are_counted_in_both_pipelines() -> None:
    rows = {"R": stream([0, 1, 50], k=[1, 1, 1], id=["a", "b", "c"]), "S": stream([5, 60], k=[1, 1], id=["x", "y"])}
    run = Run.of(QUERY.format("RANGE 10 MICROSECONDS", "RANGE 10 MICROSECONDS"), rows, "(R S)")
    assert run.rows().num_rows == 5
    came = [(op.pipeline, op.step, op.tuples_in, op.matches) for op in run.engine.operators()]
    assert came == [("R", "S", 3, 0), ("S", "R", 2, 3), ("R", "S", 2, 2), ("S", "R", 1, 0)]
