"""Cells across what changes between batches and starts: late starters, plans, static tables, lateness, order of arrival."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import watersmeet as wm
from tests.spark.local_cells import DictStore, LocalCells
from watersmeet.oracle import results_and_late
from watersmeet.testing import random_case, random_plan, same_rows

UTC = pa.timestamp("us", tz="UTC")
QUERY = """
CREATE STREAM R (a BIGINT, ts TIMESTAMP) LATENESS {0} SECONDS;
CREATE STREAM S (a BIGINT, b BIGINT, ts TIMESTAMP);
CREATE STREAM T (b BIGINT, ts TIMESTAMP) {1};
SELECT R.a, S.b, R.ts AS r, S.ts AS s, T.ts AS t FROM R [RANGE 20 SECONDS], S [{2}], T [RANGE 9 SECONDS]
WHERE R.a = S.a AND S.b = T.b
"""


def _rows(rng: Random, columns: str, low: int, high: int, count: int) -> pa.Table:
    times = [rng.randint(low, high) * 1_000_000 for _ in range(count)]
    data = {c: pa.array([rng.randint(0, 3) for _ in times], pa.int64()) for c in columns}
    return pa.table(data | {"ts": pa.array(times, UTC)})


def _batches(rng: Random, first_of_t: int, behind: int) -> list[dict[str, pa.Table]]:
    """Of T no row comes before batch `first_of_t`, and its rows then lie so many seconds behind. One batch is empty."""
    made: list[dict[str, pa.Table]] = []
    for batch in range(9):
        at = 10 * batch
        made.append({"R": _rows(rng, "a", at - 3, at + 9, 9), "S": _rows(rng, "ab", at, at + 9, 9)})
        if batch >= first_of_t:
            made[-1]["T"] = _rows(rng, "b", at - behind, at + 9 - behind, 9)
    made.insert(4, {n: t.slice(0, 0) for n, t in made[3].items()})
    return made


@pytest.mark.parametrize("idle", ["", "IDLE 15 SECONDS"])
@pytest.mark.parametrize("behind", [0, 25, 200])
@pytest.mark.parametrize("window", ["RANGE 12 SECONDS", "ROWS 6", "PARTITION BY b ROWS 2"])
def test_oracle_a_stream_that_starts_later(window: str, behind: int, idle: str) -> None:
    for seed in range(3):
        rng = Random(seed)
        query, batches = wm.parse(QUERY.format(4, idle, window)), _batches(rng, 4, behind)
        expected, late = results_and_late(query, batches)
        for plan in ("(R S T)", "((R S) T)"):
            local = LocalCells(query, wm.Plan.parse(plan), 3, rng, 0.3, None, {"late": True})
            made = local.run(batches)
            kinds = Counter(made.column("kind").to_pylist())
            results = made.filter(pc.equal(made["kind"], "result")).select(expected.column_names)
            assert (wrong := same_rows(results, expected)) is None, f"seed {seed}: {wrong}"
            assert kinds["late"] == len(late) and sum(m["late"] for m in local.metrics) == len(late)


@pytest.mark.parametrize("seed", range(300, 330))
def test_oracle_the_plan_may_change_between_two_starts(seed: int, tmp_path: Path) -> None:
    case, rng = random_case(seed), Random(seed)
    half = len(case.batches) // 2
    made: list[pa.Table] = []
    stores: list[DictStore] = []
    for part, end in ((case.batches[:half], False), (case.batches[half:], True)):
        static = {
            n: t for n, t in case.streams.items() if not any(n == s.stream and s.window for s in case.query.sources)
        }
        local = LocalCells(case.query, random_plan(rng, case.query), 2, rng, 0.2, tmp_path if seed % 2 else None)
        local.stores = stores
        made.append(local.run([{**static, **b} for b in part] or [static], end=end))
        stores = local.stores
    assert (wrong := same_rows(pa.concat_tables(made), case.expected)) is None, f"{wrong}\n{case}"


@pytest.mark.parametrize("plan", ["(R S i)", "((R S) i)", "((S i) R)", "((R i) S)"])
def test_oracle_a_table_that_is_refreshed_counts_from_then_on(plan: str) -> None:
    text = "SELECT R.a, i.name, R.ts AS r, S.ts AS s FROM R [RANGE 9 SECONDS], S [ROWS 5], items AS i WHERE R.a = S.a AND S.a = i.a"
    rng = Random(7)
    batches = [
        {"R": _rows(rng, "a", 10 * b, 10 * b + 9, 12), "S": _rows(rng, "a", 10 * b, 10 * b + 9, 12)} for b in range(6)
    ]
    whole = {n: pa.concat_tables([b[n] for b in batches]) for n in "RS"}
    before = pa.table({"a": [0, 1, 2], "name": ["zero", "one", "two"]})
    after = pa.table({"a": [1, 2, 2, 3], "name": ["uno", "due", "two", "tre"]})
    local = LocalCells(wm.parse(text), wm.Plan.parse(plan), 2, rng, 0.3)
    made = [local.run([{**b, "items": before} for b in batches[:3]], end=False)]
    changed = LocalCells(wm.parse(text), wm.Plan.parse(plan), 2, rng, 0.3, None)
    changed.stores = [s.copy() for s in local.stores]
    with pytest.raises(wm.StateError, match=r"table items: was 3 rows(.|\n)*refresh_tables=True"):
        changed.run([{**b, "items": after} for b in batches[3:]])
    changed.options, changed.stores = {"refresh_tables": True}, [s.copy() for s in local.stores]
    made.append(changed.run([{**b, "items": after} for b in batches[3:]]))
    moment = pa.scalar(local.metrics[-1]["watermark_us"], pa.int64()).cast(UTC)
    old, new = (wm.oracle(text, {**whole, "items": t}) for t in (before, after))
    expected = pa.concat_tables(
        [old.filter(pc.less(old["result_ts"], moment)), new.filter(pc.greater_equal(new["result_ts"], moment))]
    )
    assert (wrong := same_rows(pa.concat_tables(made), expected)) is None, wrong
    assert all(t.num_rows for t in made)


@pytest.mark.parametrize("window", ["RANGE 12 SECONDS", "ROWS 6", "PARTITION BY a ROWS 2", "UNBOUNDED"])
@pytest.mark.parametrize("parked", [False, True])
def test_oracle_order_of_arrival_is_what_it_says(window: str, parked: bool, tmp_path: Path) -> None:
    """A row counts as having come just after the highest time of the batches before, if its own is lower: the oracle, told so, agrees,
    through restarts and mishaps."""
    text = (
        "CREATE STREAM R (a BIGINT, said TIMESTAMP, ts TIMESTAMP); CREATE STREAM S (a BIGINT, said TIMESTAMP, ts TIMESTAMP);"
        f"SELECT R.a, R.said AS r, S.said AS s FROM R [RANGE 7 SECONDS], S [{window}] WHERE R.a = S.a"
    )
    for seed in range(4):
        rng, batches, counted, after = Random(seed), [], [], -(1 << 60)
        for b in range(8):
            rows = {n: _rows(rng, "a", 10 * b - 30, 10 * b + 9, rng.choice([0, 3, 12])) for n in "RS"}
            times = {n: t["ts"].cast(pa.int64()).to_pylist() for n, t in rows.items()}
            batches.append({n: t.add_column(1, "said", t["ts"]) for n, t in rows.items()})
            late = {n: pa.array([max(t, after) for t in ts], pa.int64()).cast(UTC) for n, ts in times.items()}
            counted.append({n: t.set_column(2, "ts", late[n]) for n, t in batches[-1].items()})
            if any(times.values()):
                after = max([after, *times["R"], *times["S"]]) + 1
        query = wm.parse(text)
        made: list[pa.Table] = []
        stores: list[DictStore] = []
        for part in (batches[:3], batches[3:]):
            parks = tmp_path / f"{seed}" if parked else None
            if parks:
                parks.mkdir(exist_ok=True)
            local = LocalCells(query, wm.Plan.parse("(R S)"), 2, rng, 0.2, parks, {"order": "arrival"})
            local.stores = stores
            made.append(local.run(part, end=False))
            stores = local.stores
        whole = {n: pa.concat_tables([c[n] for c in counted]) for n in "RS"}
        expected = wm.oracle(query, whole)
        assert (wrong := same_rows(pa.concat_tables(made), expected)) is None, f"seed {seed}: {wrong}"
        assert expected.num_rows > 10


def test_oracle_lateness_may_change_between_two_starts() -> None:
    """What was released stays released; from then on the new lateness counts. Rows in order: no row is late, before or after."""
    rng = Random(3)
    batches = [
        {n: _rows(rng, c, 10 * b, 10 * b + 9, 9).sort_by("ts") for n, c in (("R", "a"), ("S", "ab"), ("T", "b"))}
        for b in range(6)
    ]
    for first, second in ((0, 25), (25, 0)):
        made: list[pa.Table] = []
        stores: list[DictStore] = []
        for lateness, part, end in ((first, batches[:3], False), (second, batches[3:], True)):
            query = wm.parse(QUERY.format(lateness, "", "ROWS 6"))
            local = LocalCells(query, wm.Plan.parse("(R S T)"), 2, rng, 0.3)
            local.stores = stores
            made.append(local.run(part, end=end))
            stores = local.stores
            assert sum(m["late"] for m in local.metrics) == 0
        expected = wm.oracle(query, {n: pa.concat_tables([b[n] for b in batches]) for n in "RST"})
        assert (wrong := same_rows(pa.concat_tables(made), expected)) is None, wrong
