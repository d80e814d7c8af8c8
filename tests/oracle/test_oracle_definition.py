"""The oracle against the definition read literally: look at every combination of rows, and ask of each what the text asks."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import inf, prod
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from watersmeet.data.plain_rows import plain_batches, plain_rows, plain_table
from watersmeet.model.bind import BoundSource
from watersmeet.model.evaluate import evaluator, order_key
from watersmeet.model.expr import Compare
from watersmeet.model.query import Query
from watersmeet.oracle import results_and_late
from watersmeet.testing import random_batches, random_case, random_query, random_streams, same_rows

EMITTED_BY = {"insert": "ISTREAM", "delete": "DSTREAM"}
Member = tuple[BoundSource, dict[str, Any], tuple[Any, ...]]  # entry of FROM, row, place in the global order


def literally(query: Query, streams: dict[str, pa.Table]) -> pa.Table:
    """Section "What a query means", sentence by sentence."""
    bound, tables, (batch,) = plain_batches(query, streams)
    members: list[list[Member]] = []
    for position, s in enumerate(bound.sources):
        rows = (tables | batch)[s.stream]
        ts = [row[s.timestamp] if s.window else -inf for row in rows]
        keys = [
            (t, position, [order_key(v) for v in row.values()], i)
            for i, (t, row) in enumerate(zip(ts, rows, strict=True))
        ]
        members.append([(s, row, key) for row, key in zip(rows, keys, strict=True)])
    end = max((m[2][0] for entry in members for m in entry), default=-inf)
    where = [c for selection in bound.selections.values() for c in selection] + list(bound.residuals)
    where += [Compare(c.op, c.left.expr, c.right.expr) for c in (*bound.equalities, *bound.comparisons)]
    conditions, outputs = [evaluator(c) for c in where], [evaluator(e) for _, e in bound.outputs]
    found: list[list[Any]] = []
    for combination in product(*members):
        at_hand = {s.alias: row for s, row, _ in combination}
        last = max(key for _, _, key in combination)
        pairs = list(zip(combination, members, strict=True))
        there = all(member[2] == last or _there(member, entry, last) for member, entry in pairs)
        if there and last[0] > -inf and all(holds(at_hand) is True for holds in conditions):
            life = {"insert": last[0], "delete": min(_leaves(member, entry) for member, entry in pairs)}
            for change, when in life.items():
                if when <= end and query.emit in (EMITTED_BY[change], "CHANGES"):
                    told = [change] if query.emit == "CHANGES" else []
                    found.append([*(value(at_hand) for value in outputs), when, *told])
    return plain_table(bound.results, list(zip(*found, strict=True)) or [[] for _ in bound.results.fields])


def _followers(member: Member, entry: list[Member]) -> list[tuple[Any, ...]]:
    """The places of the later tuples of the same stream and partition."""
    source, row, key = member
    by = [f.name for c in (source.window.partition if source.window else ()) if (f := source.schema.find(c))]
    mine = [order_key(row[c]) for c in by]
    return sorted(k for _, other, k in entry if k > key and [order_key(other[c]) for c in by] == mine)


def _there(member: Member, entry: list[Member], last: tuple[Any, ...]) -> bool:
    """Whether the tuple is in its window when the last one arrives."""
    window = member[0].window
    if window is None or window.kind == "UNBOUNDED":
        return True
    if window.kind == "RANGE":
        return bool(last[0] - window.size <= member[2][0] <= last[0])
    return sum(1 for key in _followers(member, entry) if key < last) < window.size


def _leaves(member: Member, entry: list[Member]) -> float:
    window = member[0].window
    if window is None or window.kind == "UNBOUNDED":
        return inf
    if window.kind == "RANGE":
        return float(member[2][0] + window.size + 1)
    followers = _followers(member, entry)
    return float(followers[window.size - 1][0]) if len(followers) >= window.size else inf


def _small(seed: int) -> tuple[Query, dict[str, pa.Table]]:
    rng = Random(seed)
    query = random_query(rng, streams=rng.choice((2, 2, 3, 3, 4)))
    return query, random_streams(rng, query, rows=rng.choice((4, 6, 9)), results=20)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_oracle_is_the_definition_read_literally(first: int) -> None:
    seen = 0
    for seed in range(first, first + 50):
        query, streams = _small(seed)
        if prod(streams[s.stream].num_rows for s in query.sources) > 5_000:
            continue
        expected = literally(query, streams)
        difference = same_rows(wm.oracle(query, streams), expected)
        assert difference is None, f"seed {seed}\n{query}\n{difference}"
        seen += expected.num_rows > 0
    assert seen > 20


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_meta_batches_within_lateness_do_not_change_the_answer(first: int) -> None:
    for seed in range(first, first + 50):
        case = random_case(seed)
        difference = same_rows(wm.oracle(case.query, case.batches), case.expected)
        assert difference is None, f"{case}\n{difference}"


def test_meta_late_rows_change_the_answer_to_that_without_them() -> None:
    dropped = 0
    for seed in range(100):
        rng = Random(seed)
        query = random_query(rng)
        streams = random_streams(rng, query)
        batches = random_batches(rng, query, streams, late=True)
        found, late = results_and_late(query, batches)
        dropped += len(late)
        kept = {
            name: _without(table, [row for stream, row in late if stream == name]) for name, table in streams.items()
        }
        difference = same_rows(found, wm.oracle(query, kept))
        assert difference is None, f"seed {seed}\n{query}\n{difference}"
    assert dropped > 50


def _without(table: pa.Table, gone: list[dict[str, Any]]) -> pa.Table:
    """The table less these rows, one for each."""
    left = Counter(str(row) for row in gone)
    kept = []
    for i, row in enumerate(plain_rows(table)):
        if left[str(row)]:
            left[str(row)] -= 1
        else:
            kept.append(i)
    return table.take(pa.array(kept, pa.int64()))
