"""Comparison and band joins: the ordered index on every kind of store, with duplicates, strict and not, bounded on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from tests.engine.running import Run, agrees, run_switching, stream
from watersmeet.engine.store import arena as arena_module
from watersmeet.lang import parse
from watersmeet.model.plan import Plan
from watersmeet.testing import same_rows

WINDOWS = ("[RANGE 25 MICROSECONDS]", "[ROWS 20]", "[PARTITION BY p ROWS 3]", "[UNBOUNDED]")
CONDITIONS = (
    "R.x < S.x", "R.x <= S.x", "R.x > S.x", "R.x >= S.x", "R.x <> S.x",
    "S.x > R.x AND S.x < R.y", "S.x >= R.x AND S.x <= R.y", "S.x > R.x AND S.x <= R.y", "S.x >= R.x AND S.x < R.y",
    "R.x BETWEEN S.x - 1 AND S.x + 1", "R.x < S.x AND R.y > S.y", "R.x < S.x AND R.y < S.x AND S.y <> R.y",
    "R.ts < S.ts AND S.ts <= R.ts + INTERVAL 7 MICROSECONDS", "R.f <= S.f", "R.x < S.x AND R.p = S.p",
)  # fmt: skip


def streams(seed: int, *names: str, n: int = 90) -> dict[str, pa.Table]:
    """Many equal values, some NULL, NaN among the doubles, timestamps with ties."""
    rng = np.random.default_rng(seed)
    made = {}
    for name in names:
        doubles = np.where(rng.random(n) < 0.1, np.nan, rng.integers(-3, 4, n).astype(float))
        made[name] = stream(
            np.sort(rng.integers(0, 2 * n, n)), id=np.arange(n), p=rng.integers(0, 5, n), f=pa.array(doubles),
            x=pa.array(rng.integers(-6, 6, n), mask=rng.random(n) < 0.05), y=rng.integers(-6, 6, n),
        )  # fmt: skip
    return made


def ordered_indexes(text: str, tables: dict[str, pa.Table], plan: str) -> Iterator[str]:
    for store in Run.of(text, tables, plan).engine.program.stores:
        yield from (store.name for index in store.indexes if index.ordered)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_oracle_comparison_on_every_kind_of_window(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "SMALLEST", 2)  # rings wrap, stores grow
    tables = streams(1, "R", "S")
    for (left, right), emit in product(zip(WINDOWS, WINDOWS[1:] + WINDOWS[:1], strict=True), ("ISTREAM", "DSTREAM")):
        text = f"SELECT R.id AS r, S.id AS s FROM R {left}, S {right} WHERE {condition} EMIT {emit}"
        made = agrees(text, tables, "(R S)", "(S R) scan {R}")
        assert made.num_rows > 20
    indexed = not ("<>" in condition and "AND" not in condition) and "R.p = S.p" not in condition
    assert sorted(ordered_indexes(text, tables, "(R S)")) == (["R", "S"] if indexed else [])


@pytest.mark.parametrize("window", WINDOWS)
def test_oracle_comparison_with_an_inner_state(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of (R S) is searched by order; its dead entries are passed over."""
    monkeypatch.setattr(arena_module, "SMALLEST", 2)
    tables = streams(2, "R", "S", "T", n=60)
    text = f"""SELECT R.id AS r, S.id AS s, T.id AS t FROM R {window}, S [RANGE 20 MICROSECONDS], T {window}
        WHERE R.p = S.p AND T.x > R.x AND T.x <= S.y AND T.y < R.y"""
    assert agrees(text, tables, "((R S) T)", "(T (S R))", "(R S T)", "((R T) S)").num_rows > 50
    assert "(R S)" in set(ordered_indexes(text, tables, "((R S) T)"))


def test_oracle_comparison_that_every_tuple_satisfies_or_none() -> None:
    tables = streams(3, "R", "S", n=40)
    for where, least, most in (
        ("R.x < S.x + 100", 900, 1600),
        ("R.x > S.x + 100", 0, 0),
        ("R.x < 5 + S.x - 5", 1, 1600),
    ):
        text = f"SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE {where}"
        assert least <= agrees(text, tables).num_rows <= most


def test_oracle_comparison_at_the_ends_of_int64() -> None:
    ends = [-(1 << 63), -(1 << 63) + 1, -1, 0, 1, (1 << 63) - 2, (1 << 63) - 1]
    tables = {name: stream(range(7), id=range(7), x=ends) for name in "RS"}
    for op, count in (("<", 21), ("<=", 28), (">", 21), (">=", 28)):
        text = f"SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED] WHERE R.x {op} S.x"
        assert agrees(text, tables).num_rows == count


def test_switch_between_plans_that_search_by_order_and_plans_that_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "SMALLEST", 2)
    tables = streams(4, "R", "S", "T", n=60)
    query = parse(
        f"""SELECT R.id AS r, S.id AS s, T.id AS t FROM R {WINDOWS[0]}, S {WINDOWS[2]}, T {WINDOWS[1]}
        WHERE R.x < S.x AND S.y BETWEEN T.y - 1 AND T.y + 1 AND R.p <> T.p"""
    )
    expected = Run.of(query, tables, "(R S T)").rows()
    assert expected.num_rows > 100
    agrees(query, tables, "(R S T)")
    for seed in range(5):
        rows, pending = run_switching(Random(seed), query, tables, Plan.parse("((R S) T)"), (1, 5, 20))
        difference = same_rows(rows, expected)
        assert difference is None, f"seed {seed}\n{difference}"
        assert len(pending) > 5
