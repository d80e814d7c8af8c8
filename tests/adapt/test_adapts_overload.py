"""Overload: SHED, DIRECT and WAIT under loads of two, five and twenty times what the budget takes, and after the load has fallen.

No clock: capacity is a budget in the prices of the cost model, and what a run takes is counted in them.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import watersmeet as wm
from watersmeet.adapt.replan import Replan
from watersmeet.errors import BudgetWarning
from watersmeet.testing import same_rows

TEXT = """
    CREATE STREAM A (k BIGINT, ts TIMESTAMP); CREATE STREAM B (k BIGINT, ts TIMESTAMP); CREATE STREAM C (k BIGINT, ts TIMESTAMP);
    SELECT A.k FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND] WHERE A.k = B.k AND B.k = C.k
"""
CALM = 1_000.0
BATCH = 5_000  # rows of each stream
COSTS = wm.Costs(probe=1e-6, match=1e-6, insert=2e-7, delete=2e-7)
STATS = wm.Statistics(
    rate=dict.fromkeys("ABC", CALM), selectivity={("A", "B"): 1 / 8000, ("B", "C"): 1 / 8000}, costs=COSTS
)


def multiset(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


def phases(load: float, seed: int = 1) -> dict[str, pa.Table]:
    """Calm, then `load` times as many rows a second, then calm again."""
    rng = np.random.default_rng(seed)
    times, begin = [], 0.0
    for rate, rows in ((CALM, 25_000), (load * CALM, 60_000), (CALM, 40_000)):
        times.append(begin + np.arange(rows) / rate)
        begin = float(times[-1][-1]) + 1 / rate
    ts = pa.array((np.concatenate(times) * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))
    return {s: pa.table({"k": rng.integers(0, 8000, len(ts)), "ts": ts}) for s in "ABC"}


def budget() -> wm.Budget:
    """Half as much again as the calm phases take."""
    need = wm.optimize(TEXT, STATS).cpu
    assert need is not None
    return wm.Budget(cpu=1.5 * need)


@pytest.mark.parametrize("load", [2.0, 5.0, 20.0])
@pytest.mark.parametrize("way", ["SHED", "DIRECT"])
def test_adapts_gives_up_under_load_and_is_exact_after_it(way: str, load: float) -> None:
    tables = phases(load)
    batches = [{s: t.slice(k, BATCH) for s, t in tables.items()} for k in range(0, tables["A"].num_rows, BATCH)]
    made = wm.run(f"{TEXT} ON OVERLOAD {way}", batches, stats=STATS, budget=budget())
    exact = wm.run(TEXT, tables, plan="mjoin")
    lost = made.metrics["unprobed" if way == "DIRECT" else "shed"]
    assert lost > 0 and not multiset(made.rows) - multiset(exact.rows)
    assert not made.plan.limited and not made.plan.keep, made.events
    turns = [e for e in made.events if "ON OVERLOAD" in e.reason or "again" in e.reason]
    assert 2 <= len(turns) <= 8, "\n".join(f"{e.arrivals} {e.now} {e.reason}" for e in made.events)
    since = made.metrics["exact_since_us"]
    end = int(tables["A"].column("ts").cast(pa.int64())[84_999].as_py())
    looked = 2 * (Replan.MOST + BATCH) / (3 * CALM) * 1e6  # until the rates of a span without load are seen
    assert since < end + 1_000_001 + looked
    after = pa.scalar(since, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    late = [t.filter(pc.greater_equal(t.column("result_ts"), after)) for t in (made.rows, exact.rows)]
    assert late[1].num_rows > 200 and same_rows(*late) is None


def test_a_query_that_waits_never_loses_a_row() -> None:
    tables = phases(5.0)
    made = wm.run(TEXT, tables, stats=STATS, budget=budget())
    assert same_rows(made.rows, wm.run(TEXT, tables, plan="mjoin").rows) is None
    assert made.metrics["shed"] == made.metrics["unprobed"] == 0


def test_direct_starts_with_allowances_when_nothing_fits_and_says_so() -> None:
    tables = {s: t.slice(0, 6_000) for s, t in phases(1.0).items()}
    need = wm.optimize(TEXT, STATS).cpu
    assert need is not None
    with pytest.warns(BudgetWarning, match=r"ON OVERLOAD DIRECT makes these probes only: .*of the results"):
        made = wm.run(f"{TEXT} ON OVERLOAD DIRECT", tables, stats=STATS, budget=wm.Budget(cpu=need / 2))
    exact = wm.run(TEXT, tables, plan="mjoin")
    assert made.metrics["unprobed"] > 0 and 0 < made.rows.num_rows < exact.rows.num_rows
    assert not multiset(made.rows) - multiset(exact.rows)


def test_direct_does_not_touch_a_query_with_changes_or_unmatched_rows() -> None:
    tables = {s: t.slice(0, 2_000) for s, t in phases(1.0).items()}
    text = f"{TEXT} EMIT CHANGES ON OVERLOAD DIRECT"
    with pytest.warns(BudgetWarning, match="EMIT CHANGES no probe can be left out"):
        made = wm.run(text, tables, stats=STATS, budget=wm.Budget(cpu=1e-4))
    assert made.metrics["unprobed"] == 0
