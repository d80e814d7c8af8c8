"""Keys of several columns, of strings whose hashes collide, of decimals too wide for a word, and with NULLs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, agrees, check, stream
from watersmeet.engine.program import layout as L
from watersmeet.engine.rows import values
from watersmeet.engine.store.secret import factors
from watersmeet.model.bind import bind
from watersmeet.model.expr import type_of
from watersmeet.testing import random_case


def keyed(n: int, columns: int, domain: int, seed: int, nulls: float = 0.1) -> pa.Table:
    """Rows with an id and key columns k0, k1, ... of BIGINT, STRING and DOUBLE by turns, some NULL."""
    rng = np.random.default_rng(seed)
    made: dict[str, Any] = {"id": np.arange(n)}
    for c in range(columns):
        drawn = rng.integers(0, domain, n)
        drawn_values = [drawn.tolist(), [f"w{v}" for v in drawn], [float(v) for v in drawn]][c % 3]
        made[f"k{c}"] = pa.array(drawn_values, mask=rng.random(n) < nulls)
    return stream(np.sort(rng.integers(0, 3 * n, n)), **made)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 6])
def test_oracle_key_of_columns(columns: int) -> None:
    """The index takes four columns; what is beyond is checked on each match."""
    streams = {name: keyed(70, columns, 4 if columns == 1 else 2, seed, 0.03) for seed, name in enumerate("RST")}
    equal = " AND ".join(f"R.k{c} = S.k{c} AND S.k{c} = T.k{c}" for c in range(columns))
    text = f"""SELECT R.id AS r, S.id AS s, T.id AS t
        FROM R [RANGE 60 MICROSECONDS], S [ROWS 40], T [UNBOUNDED] WHERE {equal}"""
    made = agrees(text, streams, "(R S T)", "((R S) T)", "(T (R S))", "((R T) S) scan {S}")
    assert made.num_rows > 10
    probe = Run.of(text, streams, "(R S T)").engine.program.arrive[0][0]
    assert len(probe.key) == min(columns, L.MAX_KEYS)  # type: ignore[union-attr]


@pytest.mark.parametrize("spread", [1, 1_000, 1 << 20])
def test_oracle_key_of_two_columns_finds_buckets_of_its_own(spread: int) -> None:
    """Pairs of small, of equal and of neighbouring numbers do not crowd into few of 2^14 buckets."""
    draws = {
        "grid": [(a * spread, b * spread) for a in range(128) for b in range(128)],
        "equal": [(a * spread, a * spread) for a in range(1 << 14)],
        "sum": [(a * spread, (1 << 14) - a) for a in range(1 << 14)],
    }
    for name, pairs in draws.items():
        one, low, high, *_ = (int(f) for f in factors(np.array([3, 4]))[:3])
        hashes = {(one * (a + low * b + high * (b >> 32)) >> 50) & ((1 << 14) - 1) for a, b in pairs}
        assert len(hashes) > 0.55 * (1 << 14), name  # 0.63 if they were thrown at random


def constant_hash(array: pa.Array, *rest: Any) -> Any:
    return np.full(len(array), 7, np.int64)


@pytest.mark.parametrize("first", range(0, 120, 60))
def test_oracle_strings_whose_hashes_all_collide(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "hash_strings", constant_hash)
    tried = filtered = 0
    for seed in range(first, first + 60):
        case = random_case(seed, rows=12)
        bound = bind(case.query) if case.query.declarations else None
        if bound is None or not any(type_of(e.left.expr).name == "STRING" for e in bound.equalities):
            continue
        result = wm.run(case.query, case.streams, plan=case.plan)
        check(case, result.rows)
        tried += 1
        filtered += result.metrics["candidates"] > result.metrics["results"]
    assert tried > 5 and filtered > 3


def test_oracle_strings_that_collide_in_a_class_of_three_and_with_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "hash_strings", constant_hash)
    streams = {name: keyed(24, 3, 3, seed) for seed, name in enumerate("RST")}
    text = """SELECT R.id AS r, S.id AS s, T.id AS t FROM R [RANGE 40 MICROSECONDS], S [UNBOUNDED], T [ROWS 15]
        WHERE R.k1 = S.k1 AND S.k1 = T.k1 AND R.k0 <= T.k0 AND R.k1 || 'x' < T.k1 || 'y'"""
    for emit in ("ISTREAM", "DSTREAM"):
        assert agrees(f"{text} EMIT {emit}", streams, "(R S T)", "((S T) R)", "((R S) T)").num_rows > 20


def test_oracle_decimals_wider_than_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    kind = pa.decimal128(38, 4)

    def table(n: int) -> pa.Table:
        drawn = [Decimal(int(v)) * Decimal(10) ** 25 + Decimal("0.5") for v in rng.integers(-4, 4, n)]
        return stream(np.arange(n), id=np.arange(n), d=pa.array(drawn, kind, mask=rng.random(n) < 0.1))

    streams = {"R": table(40), "S": table(40)}
    equal = "SELECT R.id AS r, S.id AS s FROM R [ROWS 20], S [ROWS 20] WHERE R.d = S.d"
    assert agrees(equal, streams).num_rows > 50
    assert agrees(equal.replace("R.d = S.d", "R.d < S.d"), streams).num_rows > 50
    monkeypatch.setattr(values, "hash_fixed", constant_hash)
    assert agrees(equal, streams).num_rows > 50


def test_oracle_null_keys_join_nothing_but_count_towards_rows() -> None:
    r = stream([1, 2, 3], id=[1, 2, 3], k=pa.array([5, None, None]))
    s = stream([4, 5], id=[1, 2], k=pa.array([5, None]))
    text = "SELECT R.id AS r, S.id AS s FROM R [ROWS {}], S [UNBOUNDED] WHERE R.k = S.k"
    assert agrees(text.format(3), {"R": r, "S": s}).num_rows == 1
    assert agrees(text.format(2), {"R": r, "S": s}).num_rows == 0


def test_oracle_keys_of_every_number_and_sign() -> None:
    edge = [0, 1, -1, (1 << 63) - 1, -(1 << 63), (1 << 62), -(1 << 62), (1 << 53) + 1]
    doubles = [0.0, -0.0, 1.0, float("nan"), float("inf"), float("-inf"), 2.0**53, -(2.0**63)]
    streams = {name: stream(range(8), id=range(8), x=edge, f=doubles) for name in "RS"}
    for where in ("R.x = S.x", "R.f = S.f", "R.x = S.f", "R.x < S.x", "R.f <= S.f", "R.x >= S.f", "R.f <> S.f"):
        text = f"SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE {where}"
        assert agrees(text, streams).num_rows > 3
