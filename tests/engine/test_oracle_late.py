"""Rows that come later than their stream's lateness, and streams that are idle: the oracle's results, and its late rows."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run
from watersmeet.data.plain_rows import plain_rows
from watersmeet.oracle import results_and_late
from watersmeet.testing import random_batches, random_plan, random_query, random_streams, same_rows

BLOCK = 40


@pytest.mark.parametrize("first", range(0, 400, BLOCK))
def test_oracle_late_rows_and_idle_streams(first: int) -> None:
    came_late = 0
    for seed in range(first, first + BLOCK):
        rng = Random(seed)
        query = random_query(rng, idle=rng.random() < 0.5)
        batches = random_batches(rng, query, random_streams(rng, query), late=True)
        plan = random_plan(rng, query)
        expected, late = results_and_late(query, batches)
        result = wm.run(query, batches, plan=plan)
        difference = same_rows(result.rows, expected)
        assert difference is None, f"seed {seed}\n{query}\nplan {plan}\n{difference}"
        assert result.metrics["late"] == len(late), f"seed {seed}\n{query}"
        came_late += len(late)
    assert came_late > 5


def test_oracle_late_rows_are_handed_out_as_they_came() -> None:
    seen = 0
    for seed in range(30):
        rng = Random(seed)
        query = random_query(rng)
        batches = random_batches(rng, query, random_streams(rng, query), late=True)
        run = Run.of(query, batches, random_plan(rng, query))
        late = [(name, row) for r in run.batches.released() for name, t in r.late.items() for row in _rows(t)]
        assert Counter(map(str, late)) == Counter(map(str, results_and_late(query, batches)[1])), f"seed {seed}"
        seen += len(late)
    assert seen > 10


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return [dict(row) for row in plain_rows(table)]
