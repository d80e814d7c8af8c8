"""Values as the kernel sees them, rows in the order of their stream, and payload: small parts with a plain model beside each."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watersmeet.data.plain_rows import plain_rows, plain_table
from watersmeet.engine.rows import payload as payload_module
from watersmeet.engine.rows.intake import Intake
from watersmeet.engine.rows.payload import Payload
from watersmeet.engine.rows.values import ROUTING, Key, add_column, encode, hash_strings
from watersmeet.model.bind import BoundSource
from watersmeet.model.evaluate import less, order_key
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema, Type
from watersmeet.model.window import Window
from watersmeet.testing.values import plain_value

KEYS: tuple[Key, ...] = (ROUTING, (0, 0), (-1, 1 << 62))
KINDS = (BIGINT, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP, Type("DECIMAL", 10, 2), Type("DECIMAL", 30, 2))


def column(kind: Type, seed: int, n: int = 60) -> pa.Array:
    rng = Random(seed)
    drawn = [None if rng.random() < 0.2 else plain_value(rng, kind, rng.randint(-4, 9)) for _ in range(n)]
    return plain_table(Schema((Field("v", kind),)), [drawn]).column("v").combine_chunks()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values_of_a_slice_are_the_slice_of_the_values(kind: Type) -> None:
    whole = column(kind, 1)
    for key in KEYS:
        values, valid = encode(whole, kind, key)
        assert valid is not None
        for begin, end in ((0, 60), (7, 23), (13, 13), (59, 60)):
            part, part_valid = encode(whole.slice(begin, end - begin), kind, key)
            there = valid[begin:end]
            assert part[there].tolist() == values[begin:end][there].tolist()
            assert there.all() if part_valid is None else part_valid.tolist() == there.tolist()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values_are_equal_and_in_order_as_integers_where_they_are(kind: Type) -> None:
    hashed = kind.name == "STRING" or kind.precision > 18
    array = column(kind, 2)
    values, _ = encode(array, kind)
    plain = [row["v"] for row in plain_rows(pa.table({"v": array}))]
    for a, x in zip(plain, values.tolist(), strict=True):
        for b, y in zip(plain, values.tolist(), strict=True):
            if a is not None and b is not None:
                assert (order_key(a) == order_key(b)) == (x == y)
                assert hashed or less(a, b) == (x < y)


@given(st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=20), st.sampled_from(KEYS))
def test_values_hash_strings_by_their_bytes(texts: list[str | None], key: Key) -> None:
    made = hash_strings(pa.array(texts, pa.string()), key)
    again = hash_strings(pa.array([None, "x", *texts], pa.string()).slice(2), key)
    for text, a, b in zip(texts, made.tolist(), again.tolist(), strict=True):
        if text is not None:
            assert a == b == hash_strings(pa.array([text]), key)[0]


def test_values_hashes_of_many_strings_and_of_several_columns_are_all_different() -> None:
    texts = pa.array([f"{a}{'x' * b}" for a in range(5_000) for b in range(4)])
    for key in KEYS:
        assert len(set(hash_strings(texts, key).tolist())) == len(texts)
    grid = np.arange(40_000)
    total = np.zeros((2, len(grid)), np.int64)
    add_column(pa.array(grid // 200), BIGINT, ROUTING, total)
    add_column(pa.array(grid % 200), BIGINT, ROUTING, total)
    assert len(set(total[0].tolist())) == len(set(total[1].tolist())) == len(grid)


def test_values_hashes_are_what_they_have_always_been() -> None:
    """Cells of a running job rest on these numbers, on every machine."""
    assert hash_strings(pa.array(["", "a", "watersmeet", "\uff5e" * 9])).tolist() == [
        6538539058370579926, -7018217422054087939, -6388310709772214576, -5943681510908202486,
    ]  # fmt: skip
    total = np.zeros((2, 3), np.int64)
    add_column(pa.array([0, 7, None]), BIGINT, ROUTING, total)
    assert total.tolist() == [
        [736790115338694881, 6871542944616558742, 517220062683279270],
        [6715868243382761951, -5457895647918388726, -2845234855748473272],
    ]


@pytest.mark.parametrize("seed", range(20))
def test_order_of_a_stream_whose_rows_are_counted_is_time_then_all_columns(seed: int) -> None:
    rng = Random(seed)
    fields = [Field(f"c{i}", kind) for i, kind in enumerate(KINDS)]
    rng.shuffle(fields)
    fields.insert(rng.randrange(len(fields)), Field("ts", TIMESTAMP))
    schema = Schema(tuple(fields))
    rows: list[list[Any]] = []
    for _ in range(80):
        row = [None if rng.random() < 0.1 else plain_value(rng, f.type, rng.randint(0, 1)) for f in fields]
        row[schema.names.index("ts")] = rng.randint(0, 3)
        rows.append(row)
    table = plain_table(schema, list(zip(*rows, strict=True)))
    source = BoundSource("R", "R", Window.rows(5), schema, "ts")
    found = plain_rows(Intake(source, (), (), []).in_order(table))
    expected = sorted(plain_rows(table), key=lambda row: (row["ts"], [order_key(v) for v in row.values()]))
    assert [_keys(row) for row in found] == [_keys(row) for row in expected]


def _keys(row: Any) -> list[Any]:
    return [order_key(value) for value in row.values()]


@given(
    st.lists(st.one_of(st.integers(0, 9), st.tuples(st.just("forget"), st.floats(0, 1)), st.just("keep")), max_size=25)
)
def test_payload_gives_the_rows_it_was_given(steps: list[Any]) -> None:
    """Appending, forgetting the oldest and keeping some, in any order, beside a dictionary of row number to value."""
    schema = pa.schema([("v", pa.int64())])
    made, fresh, rng = Payload(schema), 0, Random(0)
    model: dict[int, int] = {}
    for step in steps:
        if isinstance(step, int):
            model |= {made.next + i: fresh + i for i in range(step)}
            made.append(pa.table({"v": pa.array(range(fresh, fresh + step), pa.int64())}))
            fresh += step
        elif step == "keep":
            rows = sorted(rng.sample(list(model), len(model) // 2))
            numbers = made.keep(np.array(rows, np.int64))
            model = {int(n): model[row] for n, row in zip(numbers, rows, strict=True)}
        else:
            below = made.first + int(step[1] * made.rows)
            made.forget(below)
            model = {row: value for row, value in model.items() if row >= below}
        asked = np.array(rng.choices(list(model), k=5) if model else [], np.int64)
        assert made.take(asked).column("v").to_pylist() == [model[int(row)] for row in asked]


def test_payload_keeps_few_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_module, "SMALL", 1 << 12)
    made = Payload(pa.schema([("v", pa.int64())]))
    for i in range(5_000):
        made.append(pa.table({"v": [i]}))
    assert len(made.pieces) < 20
    assert made.take(np.array([4_999, 0, 777])).column("v").to_pylist() == [4_999, 0, 777]


def test_values_of_decimals_keep_their_sign_and_scale() -> None:
    kind = Type("DECIMAL", 18, 2)
    array = pa.array([Decimal("-0.01"), Decimal("9999999999999999.99"), Decimal(0)], pa.decimal128(18, 2))
    assert encode(array, kind)[0].tolist() == [-1, 999_999_999_999_999_999, 0]
