"""Payload: rows come back as they went in, from however many pieces, without copies of all of them."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from watersmeet.engine.rows import payload
from watersmeet.engine.rows.payload import Payload

KINDS = pa.schema([("n", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(22, 2)), ("b", pa.bool_())])


def _rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "s": pa.array([None if n % 7 == 0 else "x" * (n % 5) + str(n) for n in numbers], pa.string()),
            "d": pa.array([n % 11 for n in numbers], pa.int64()).cast(pa.decimal128(22, 2)),
            "b": pa.array([None if n % 3 == 0 else n % 2 == 0 for n in numbers], pa.bool_()),
        },
        schema=KINDS,
    )


@pytest.mark.parametrize("seed", range(40))
def test_rows_come_back_from_any_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    monkeypatch.setattr(payload, "SPREAD", rng.choice([0, 0, 1, 4]))
    held, first = (
        Payload(pa.schema([KINDS.field(name) for name in rng.sample(KINDS.names, 4)])),
        0,
    )  # pieces have an order of their own
    for _ in range(rng.randint(1, 30)):
        rows = _rows(held.next, rng.choice([0, 1, 3, 50, 900, 2500, 70_000]))
        cut = rng.choice([0, rng.randint(0, rows.num_rows)])
        held.append(rows if cut == 0 else pa.concat_tables([rows.slice(0, cut), rows.slice(cut)]))
        if rng.random() < 0.3:
            first = rng.randint(first, held.next)
            held.forget(first)
        if held.next > first:
            asked = np.array([rng.randrange(first, held.next) for _ in range(rng.choice([0, 1, 5, 400]))], np.int64)
            expected = pa.concat_tables([KINDS.empty_table(), *(_rows(int(n), 1) for n in asked)])
            assert held.take(asked).equals(expected.combine_chunks())
    assert held.rows == held.next - held.first


def test_a_few_rows_of_a_large_window_cost_little_memory() -> None:
    held = Payload(pa.schema([("n", pa.int64()), ("m", pa.int64())]))
    for k in range(20):
        held.append(pa.table({"n": np.arange(k * 100_000, (k + 1) * 100_000), "m": np.zeros(100_000, np.int64)}))
    asked = np.arange(0, held.rows, 1000)
    before, counting = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counting)
    try:
        taken = held.take(asked)["n"].to_pylist()  # none of its buffers must outlive the pool
    finally:
        pa.set_memory_pool(before)
    assert taken == asked.tolist()
    assert counting.max_memory() < held.bytes / 50
