"""Random queries, streams and plans: the engine gives the oracle's rows, whole, in batches, and while plans are switched.

One oracle answer serves all ways of running a case, so the cases come in blocks that stay in one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

import watersmeet as wm
from tests.engine.running import check, run_switching
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.graph import JoinGraph
from watersmeet.testing import Case, random_case, random_query

CASES, BLOCK = 1_000, 50
LONG_CASES, LONG_BLOCK = 100_000, 1_000


@pytest.fixture(
    scope="module",
    params=[pytest.param(k, marks=pytest.mark.xdist_group(f"engine-{k}")) for k in range(0, CASES, BLOCK)],
)
def block(request: pytest.FixtureRequest) -> list[Case]:
    return [random_case(seed) for seed in range(request.param, request.param + BLOCK)]


def test_oracle_random_cases(block: list[Case]) -> None:
    for case in block:
        check(case, wm.run(case.query, case.streams, plan=case.plan).rows)
    assert sum(case.expected.num_rows > 0 for case in block) > 0.6 * BLOCK
    assert {case.plan.kind for case in block} == {"mjoin", "bjtree", "jtree"}
    assert {case.query.emit for case in block} == {"ISTREAM", "DSTREAM", "CHANGES"}


def test_oracle_random_cases_in_batches_within_lateness(block: list[Case]) -> None:
    for case in block:
        result = wm.run(case.query, case.batches, plan=case.plan)
        check(case, result.rows)
        assert result.metrics["late"] == 0, str(case)
    assert sum(len(case.batches) > 1 for case in block) > 0.5 * BLOCK


def test_oracle_random_cases_with_the_plan_left_to_the_optimizer(block: list[Case]) -> None:
    for case in block[::17]:
        for plan in ("auto", "mjoin", "xjoin"):
            check(case, wm.run(case.query, case.streams, plan=plan).rows)
        check(case, wm.run(case.query, case.batches).rows)


def test_switch_random_cases_at_random_tuples(block: list[Case]) -> None:
    switches = with_output = 0
    for case in block:
        rows, pending = run_switching(Random(case.seed), case.query, case.streams, case.plan)
        check(case, rows)
        switches += len(pending)
        with_output += sum(n > 0 for n in pending)
    assert switches > 3 * BLOCK
    assert with_output > 0.5 * BLOCK  # there were results that had not been handed over yet


@pytest.mark.long
@pytest.mark.parametrize("first", range(CASES, CASES + LONG_CASES, LONG_BLOCK))
def test_oracle_many_random_cases(first: int) -> None:
    filled = 0
    for seed in range(first, first + LONG_BLOCK):
        case = random_case(seed)
        check(case, wm.run(case.query, case.streams, plan=case.plan).rows)
        if seed % 2:
            check(case, wm.run(case.query, case.batches, plan=case.plan).rows)
        else:
            check(case, run_switching(Random(seed), case.query, case.streams, case.plan)[0])
        filled += case.expected.num_rows > 0
    assert filled > 0.7 * LONG_BLOCK


def test_oracle_random_cases_cover_windows_graphs_and_streams() -> None:
    found = Counter(
        feature for seed in range(CASES) for feature in set(_features(bind(random_query(Random(seed)))))
    )  # random_case draws its query first
    wanted = ["RANGE", "ROWS", "PARTITION", "UNBOUNDED", "table", *(f"{n} streams" for n in range(2, 7))]
    wanted += ["chain", "star", "cycle", "clique", "one key", "Cartesian product", "theta join"]
    assert {feature: found[feature] for feature in wanted if found[feature] < 0.02 * CASES} == {}


def _features(bound: BoundQuery) -> Iterator[str]:
    for source in bound.sources:
        window = source.window
        yield "table" if window is None else "PARTITION" if window.partition else window.kind
    graph, n = JoinGraph.of(bound), len(bound.sources)
    yield f"{n} streams"
    if any(not graph.shared(*edge) for edge in graph.edges):
        yield "theta join"
    if len(graph.components) > 1:
        yield "Cartesian product"
    elif any(len(c.members) == n for c in graph.classes):
        yield "one key"
    elif n > 3:
        degrees = sorted(len(graph.neighbours(stream)) for stream in graph.streams)
        shapes = {"chain": [1, 1] + [2] * (n - 2), "star": [1] * (n - 1) + [n - 1], "cycle": [2] * n}
        yield from (shape for shape, wanted in (shapes | {"clique": [n - 1] * n}).items() if degrees == wanted)
