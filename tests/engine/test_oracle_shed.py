"""Shedding: what is left is part of the exact answer, what is given up is counted, and every engine gives up the same rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import watersmeet as wm
from tests.spark.local_cells import LocalCells
from watersmeet.errors import BudgetWarning
from watersmeet.model.plan import Plan
from watersmeet.testing import Case, random_case, same_rows

SEEDS = range(60)


def multiset(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


def shedding(case: Case) -> Plan:
    """The case's plan with a drop box on each of its streams."""
    aliases = [s.alias for s in case.query.sources if s.window is not None]
    return replace(case.plan, keep=tuple((a, (0.3, 0.6, 0.9)[k % 3]) for k, a in enumerate(aliases)))


def test_oracle_what_is_left_is_part_of_the_exact_answer_and_all_adds_up() -> None:
    left = lost = shed = 0
    for seed in SEEDS:
        case = random_case(seed)
        result = wm.run(case.query, case.streams, plan=shedding(case))
        whole = multiset(case.expected)
        assert not multiset(result.rows) - whole, case
        inside = wm.run(case.query, case.streams, plan=case.plan).metrics
        assert result.metrics["tuples_in"] == inside["tuples_in"]
        assert result.metrics["rejected"] <= inside["rejected"] <= result.metrics["rejected"] + result.metrics["shed"]
        assert (result.metrics["shed"] == 0) == (result.metrics["exact_since_us"] < -(1 << 62)), case
        left, lost = left + result.rows.num_rows, lost + case.expected.num_rows - result.rows.num_rows
        shed += result.metrics["shed"]
    assert left > 100 and lost > 100 and shed > 100


def test_meta_batches_and_plans_do_not_change_what_is_shed() -> None:
    for seed in SEEDS:
        case = random_case(seed)
        once = wm.run(case.query, case.streams, plan=shedding(case))
        again = wm.run(case.query, case.batches, plan=shedding(case))
        assert same_rows(once.rows, again.rows) is None, case
        assert once.metrics["shed"] == again.metrics["shed"]


def test_meta_cells_shed_the_rows_that_one_process_sheds_each_once() -> None:
    shed = 0
    for seed in SEEDS[::3]:
        case = random_case(seed)
        alone = wm.run(case.query, case.streams, plan=shedding(case))
        cells = LocalCells(case.query, shedding(case), 3, Random(seed))
        assert same_rows(cells.run(case.batches), alone.rows) is None, case
        assert max(m["totals"]["shed"] for m in cells.metrics) == alone.metrics["shed"], case
        shed += alone.metrics["shed"]
    assert shed > 100


TEXT = """
    CREATE STREAM A (k BIGINT, ts TIMESTAMP); CREATE STREAM B (k BIGINT, ts TIMESTAMP); CREATE STREAM C (k BIGINT, ts TIMESTAMP);
    SELECT A.k FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND] WHERE A.k = B.k AND B.k = C.k
"""


def streams(rows: int, rate: float, seed: int = 1, keys: int = 60) -> dict[str, pa.Table]:
    """`rate` rows of each stream per second."""
    rng = np.random.default_rng(seed)
    times = pa.array((np.arange(rows) / rate * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))
    return {s: pa.table({"k": rng.integers(0, keys, rows), "ts": times}) for s in "ABC"}


def test_a_query_that_allows_it_sheds_when_nothing_fits_and_says_what_it_keeps() -> None:
    tables = streams(6_000, 2_000.0, keys=600)
    stats = wm.Statistics(rate=dict.fromkeys("ABC", 2_000.0), selectivity={("A", "B"): 1 / 600, ("B", "C"): 1 / 600})
    need = wm.optimize(TEXT, stats).cpu
    assert need is not None
    budget = wm.Budget(cpu=need / 3)
    with pytest.warns(BudgetWarning, match=r"ON OVERLOAD SHED keeps \d+% of B.*of the results"):
        shed = wm.run(TEXT + "ON OVERLOAD SHED", tables, stats=stats, budget=budget)
    whole = wm.run(TEXT, tables)
    kept = dict(shed.plan.keep)
    assert kept and shed.metrics["shed"] > 0
    share = float(np.prod([kept.get(s, 1.0) for s in "ABC"]))
    assert shed.rows.num_rows == pytest.approx(share * whole.rows.num_rows, rel=0.15)
    assert not multiset(shed.rows) - multiset(whole.rows)
    with pytest.warns(BudgetWarning, match="may fall behind"):
        waiting = wm.run(TEXT, tables, stats=stats, budget=budget)
    assert same_rows(waiting.rows, whole.rows) is None and waiting.metrics["shed"] == 0


def test_adapts_sheds_more_when_the_load_rises_and_nothing_once_it_has_fallen() -> None:
    """Three phases: calm, five times the rate, calm. In between rows are shed; one window after the end all is exact again."""
    calm, load = 2_000.0, 10_000.0
    parts = [streams(60_000, calm, 1, 10_000), streams(100_000, load, 2, 10_000), streams(100_000, calm, 3, 10_000)]
    begin = 0
    tables: dict[str, list[pa.Table]] = {}
    for part in parts:
        for s, t in part.items():
            shifted = pa.array(np.asarray(t.column("ts").cast(pa.int64())) + begin, pa.timestamp("us", tz="UTC"))
            tables.setdefault(s, []).append(t.set_column(1, "ts", shifted))
        begin = max(int(p[-1].column("ts").cast(pa.int64())[-1].as_py()) for p in tables.values()) + 1000
    whole = {s: pa.concat_tables(ts) for s, ts in tables.items()}
    stats = wm.Statistics(rate=dict.fromkeys("ABC", calm), selectivity={("A", "B"): 1e-4, ("B", "C"): 1e-4})
    need = wm.optimize(TEXT, stats).cpu
    assert need is not None
    made = wm.run(TEXT + "ON OVERLOAD SHED", whole, stats=stats, budget=wm.Budget(cpu=2 * need))
    reasons = [e.reason for e in made.events]
    turns = ["shed" if "SHED keeps" in r else "whole" for r in reasons if "SHED keeps" in r or "kept again" in r]
    assert turns[0] == "shed" and turns[-1] == "whole" and turns.count("whole") <= 2 and len(turns) <= 8, reasons
    assert made.metrics["shed"] > 0 and not made.plan.keep
    exact = wm.run(TEXT, whole)
    since = pa.scalar(made.metrics["exact_since_us"], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    last = parts[2]["A"].num_rows
    assert not multiset(made.rows) - multiset(exact.rows)
    after = [t.filter(pc.greater_equal(t.column("result_ts"), since)) for t in (made.rows, exact.rows)]
    assert after[0].num_rows > last / 100 and same_rows(*after) is None
