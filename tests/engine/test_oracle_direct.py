"""Probe allowances: what is left is part of the exact answer, each probe left out is counted, and later the answer is exact again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import watersmeet as wm
from tests.engine.running import Run, Scripted, in_time_order
from watersmeet.engine.control import Change, Observed
from watersmeet.engine.program import layout as L
from watersmeet.engine.program.compile import undirected
from watersmeet.errors import PlanError
from watersmeet.model.bind import bind
from watersmeet.model.plan import Plan, nodes
from watersmeet.model.types import quoted
from watersmeet.testing import Case, random_case, same_rows

SEEDS = range(80)


def multiset(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


def half_way_joins(plan: Plan) -> list[tuple[str, str]]:
    """All (pipeline, target) of a plan: a stream, and an input that its tuples probe on their way."""
    found = []
    for node in nodes(plan.root):
        for target in node.inputs:
            beside = chain.from_iterable(i.streams for i in node.inputs if i is not target)
            found += [(quoted(stream), str(target)) for stream in sorted(beside)]
    return found


def some_allowances(plan: Plan, rng: Random) -> tuple[tuple[str, str, float], ...]:
    return tuple((a, b, rng.choice((0.0, 0.3, 0.5, 0.9, 1.0))) for a, b in half_way_joins(plan) if rng.random() < 0.7)


def directed(seed: int) -> Case | None:
    """A random case whose probes may be left out."""
    case = random_case(seed)
    run = Run.of(case.query, case.streams, case.plan)
    return None if undirected(run.engine.bound) else case


def test_oracle_what_is_left_is_part_of_the_exact_answer_and_each_probe_is_counted() -> None:
    left = lost = unprobed = 0
    for seed in SEEDS:
        case = directed(seed)
        if case is None:
            continue
        rng = Random(seed)
        plan = replace(case.plan, allow=some_allowances(case.plan, rng), newest=rng.random() < 0.3)
        run, whole = Run.of(case.query, case.streams, plan), Run.of(case.query, case.streams, case.plan)
        rows, exact = run.rows(), whole.rows()
        assert not multiset(rows) - multiset(case.expected), case
        offered: dict[str, int] = {}
        for op, full in zip(run.engine.operators(), whole.engine.operators(), strict=True):
            if op.pipeline not in offered:  # the first probe of a pipeline is offered what a full run is
                assert op.tuples_in + op.unprobed == full.tuples_in, case
            offered[op.pipeline] = op.matches
        metrics = run.engine.metrics()
        assert metrics["unprobed"] == sum(op.unprobed for op in run.engine.operators())
        assert (metrics["unprobed"] == 0) == (metrics["exact_since_us"] == L.DEAD), case
        left, lost = left + rows.num_rows, lost + exact.num_rows - rows.num_rows
        unprobed += metrics["unprobed"]
    assert left > 100 and lost > 100 and unprobed > 100, (left, lost, unprobed)


def test_switch_allowances_that_come_and_go_lose_only_what_metrics_say() -> None:
    """Random changes at random steps; in the end all probes are made again. From `exact_since_us` on nothing is missing."""
    changed = exact_again = 0
    for seed in SEEDS:
        case = directed(seed)
        if case is None:
            continue
        rng = Random(seed)
        steps = 0

        def decide(seen: Observed, rng: Random = rng) -> Change | None:
            nonlocal steps
            steps += 1
            if steps > 6:
                return Change("calm", allowances=()) if seen.plan.limited else None
            return Change("forced", allowances=some_allowances(seen.plan, rng)) if rng.random() < 0.6 else None

        run = Run.of(case.query, in_time_order(case, 12), case.plan, Scripted(decide, every=7))
        rows = run.rows()
        assert not multiset(rows) - multiset(case.expected), case
        changed += sum(event.kind == "allowances" for event in run.engine.events.take())
        since = run.engine.metrics()["exact_since_us"]
        if since < L.FAR:
            after = pa.scalar(since, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
            late = [t.filter(pc.greater_equal(t.column("result_ts"), after)) for t in (rows, case.expected)]
            assert same_rows(*late) is None, case
            exact_again += late[1].num_rows
    assert changed > 50 and exact_again > 100, (changed, exact_again)


TEXT = """
    CREATE STREAM A (k BIGINT, ts TIMESTAMP); CREATE STREAM B (k BIGINT, ts TIMESTAMP); CREATE STREAM C (k BIGINT, ts TIMESTAMP);
    SELECT A.k FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND] WHERE A.k = B.k AND B.k = C.k
"""


def streams(rows: int, seed: int = 1, keys: int = 60) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    times = pa.array(np.arange(rows) * 1000, pa.timestamp("us", tz="UTC"))
    return {s: pa.table({"k": rng.integers(0, keys, rows), "ts": times}) for s in "ABC"}


@pytest.mark.parametrize("shape", ["(A B C)", "((A B) C)"])
def test_meta_groups_leave_out_as_many_as_one_by_one(shape: str) -> None:
    """The first probe of a pipeline: the very same tuples. Behind it: as many of each that come, but for one."""
    tables, plan = (
        streams(4_000),
        Plan.parse(f"{shape} allow {{A/B: 0.25; A/C: 0.5; C/{'B' if shape == '(A B C)' else '(A B)'}: 0.7}}"),
    )
    grouped, single = Run.of(TEXT, tables, plan), Run.of(TEXT, tables, plan, groups=False)
    rows = grouped.rows(), single.rows()
    assert grouped.engine.inspect().groups > 0 and single.engine.inspect().groups == 0
    for a, b in zip(grouped.engine.operators(), single.engine.operators(), strict=True):
        assert (a.pipeline, a.step) == (b.pipeline, b.step)
        share = plan.allowance(a.pipeline, Plan.parse(f"({a.step} _)").root.inputs[0].streams)
        for op in (a, b):
            assert abs(op.tuples_in - share * (op.tuples_in + op.unprobed)) <= 1
    whole = multiset(wm.run(TEXT, tables, plan="mjoin").rows)
    assert all(not multiset(r) - whole and 0 < r.num_rows < sum(whole.values()) for r in rows)


def test_newest_first_leaves_the_older_rows_of_a_piece_out() -> None:
    tables = streams(4_000)
    plan = Plan.parse("(A B C) allow newest {A/B: 0.25; B/A: 0.25; C/B: 0.25; C/A: 0.25}")
    run = Run.of(TEXT, tables, replace(plan, root=Plan.mjoin(["A", "B", "C"]).root))
    rows, whole = run.rows(), wm.run(TEXT, tables, plan="mjoin").rows
    start = pa.scalar(3_000_000, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    assert run.engine.metrics()["unprobed"] == 9_000 and rows.num_rows > 100
    assert same_rows(rows, whole.filter(pc.greater_equal(whole.column("result_ts"), start))) is None


def test_snapshots_carry_allowances_and_what_is_left_of_them() -> None:
    tables, plan = streams(600), Plan.parse("((A B) C) allow {A/B: 0.3; C/(A B): 0.7}")
    halves = [{s: t.slice(k, 150) for s, t in tables.items()} for k in range(0, 600, 150)]
    whole = Run.of(TEXT, halves, plan)
    expected = whole.rows()
    run = Run.of(TEXT, halves, plan)
    made = []
    for released in run.batches.released():
        made += list(run.engine.feed(released.rows, released.clock, ended=released.ended))
        run.engine = type(run.engine).resume(run.engine.bound, run.engine.snapshot())
    assert same_rows(pa.Table.from_batches(made, expected.schema), expected) is None
    assert run.engine.metrics()["unprobed"] == whole.engine.metrics()["unprobed"] > 0
    assert run.engine.metrics()["exact_since_us"] == whole.engine.metrics()["exact_since_us"]


def test_allowances_that_can_not_be_are_refused() -> None:
    joined = "A [RANGE 1 SECOND] LEFT JOIN (B [RANGE 1 SECOND] JOIN C [RANGE 1 SECOND] ON B.k = C.k) ON A.k = B.k"
    left = f"{TEXT[: TEXT.index('FROM')]} FROM {joined}"
    plan = Plan.parse("(A B C) allow {A/B: 0.5}")
    with pytest.raises(PlanError, match="LEFT JOIN"):
        wm.run(left, streams(10), plan=plan)
    with pytest.raises(PlanError, match="EMIT CHANGES"):
        wm.run(TEXT + "EMIT CHANGES", streams(10), plan=plan)
    with pytest.raises(PlanError, match="no such half-way join"):
        Plan.parse("((A B) C) allow {A/(A B): 0.5}")
    assert Plan.parse(str(plan)) == plan and not undirected(bind(wm.parse(TEXT)))
    change = Change("test", allowances=plan.allow)
    assert change.wanted(Plan.parse("(A B C) caches {A: B}")).caches == ()
