"""The generator of random cases: repeatable, valid, of moderate size, and with everything in it that other tests rely on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from random import Random
from statistics import median

import pytest

import watersmeet as wm
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.expr import Arithmetic, Between, Cast, InList, IsNull, Like, Or, type_of, walk
from watersmeet.model.graph import JoinGraph
from watersmeet.model.query import Query
from watersmeet.oracle import results_and_late
from watersmeet.testing import SHAPES, random_batches, random_case, random_plan, random_query, random_streams

SEEDS = range(300)
QUERIES = [random_query(Random(seed)) for seed in SEEDS]


def test_generates_the_same_case_from_the_same_seed_and_another_from_another() -> None:
    assert str(random_case(5)) == str(random_case(5))
    assert random_case(5).batches == random_case(5).batches
    assert str(random_case(5)) != str(random_case(6))


def test_generates_queries_that_print_and_parse_to_themselves() -> None:
    for query in QUERIES:
        assert wm.parse(str(query)) == query


def test_generates_mostly_joins_with_results_and_not_too_many() -> None:
    results = [random_case(seed).expected.num_rows for seed in SEEDS]
    assert sum(n > 0 for n in results) >= 0.7 * len(results)
    assert sorted(results)[int(0.95 * len(results))] < 2_000


def features(query: Query) -> Iterator[str]:
    """What is in a query, by name."""
    bound = bind(query)
    yield f"{len(query.sources)} streams"
    yield query.emit
    for source in query.sources:
        window = source.window
        yield "table" if window is None else "PARTITION" if window.partition else window.kind
        if window and window.kind == "RANGE" and window.size == 0:
            yield "RANGE 0"
    if len({s.stream for s in query.sources}) < len(query.sources):
        yield "self-join"
    if len({s.window.kind if s.window else "" for s in query.sources}) > 1:
        yield "mixed windows"
    if len(JoinGraph.of(bound).components) > 1:
        yield "Cartesian product"
    yield from _predicates(bound)
    yield from (f"output {type_of(e)}" for _, e in bound.outputs)
    yield from ("lateness" for d in query.declarations if d.lateness_us)
    if any(o.expr is None for o in query.select):
        yield "star"


def _predicates(bound: BoundQuery) -> Iterator[str]:
    pairs = Counter(frozenset((e.left.stream, e.right.stream)) for e in bound.equalities)
    if any(n > 1 for n in pairs.values()):
        yield "key of several columns"
    yield from (f"key {type_of(e.left.expr).name}" for e in bound.equalities)
    yield from (
        "key that is computed" for e in bound.equalities if any(isinstance(n, Arithmetic) for n in walk(e.left.expr))
    )
    yield from (
        "key of two types" for e in bound.equalities if isinstance(e.left.expr, Cast) or isinstance(e.right.expr, Cast)
    )
    yield from (f"compare {c.op}" for c in bound.comparisons)
    yield from (f"compare {type_of(c.left.expr).name}" for c in bound.comparisons)
    yield from ("residual" for _ in bound.residuals)
    for selections in bound.selections.values():
        for selection in selections:
            names = {Or: "OR", InList: "IN", Like: "LIKE", IsNull: "IS NULL", Between: "BETWEEN"}
            yield from (names[type(node)] for node in walk(selection) if type(node) in names)


@pytest.mark.parametrize(
    "feature",
    [
        *(f"{n} streams" for n in (2, 3, 4, 5, 6)), "ISTREAM", "DSTREAM", "CHANGES", "table", "RANGE", "RANGE 0", "ROWS", "PARTITION",
        "UNBOUNDED", "self-join", "mixed windows", "Cartesian product", "key of several columns", "key that is computed",
        "key of two types", *(f"key {t}" for t in ("BIGINT", "STRING", "DOUBLE", "DATE", "TIMESTAMP", "DECIMAL", "BOOLEAN")),
        *(f"compare {op}" for op in ("<", "<=", ">", ">=", "<>", "BIGINT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "DECIMAL")),
        "residual", "OR", "IN", "LIKE", "IS NULL", "BETWEEN", "star", "lateness", "output INTERVAL", "output BOOLEAN",
        "output DOUBLE", "output STRING", "output TIMESTAMP",
    ],
)  # fmt: skip
def test_generates_queries_with(feature: str) -> None:
    assert _how_many_have()[feature] >= 3


@cache
def _how_many_have() -> Counter[str]:
    return Counter(feature for query in QUERIES for feature in set(features(query)))


@pytest.mark.parametrize("shape", SHAPES)
def test_generates_join_graphs_of_the_shape_asked_for(shape: str) -> None:
    for seed in range(20):
        query = random_query(Random(seed), streams=5, shape=shape)
        edges = JoinGraph.of(bind(query)).edges
        degrees = Counter(alias for edge in edges for alias in edge)
        match shape:
            case "clique":
                assert len(edges) == 10
            case "one key":
                assert any(len(c.members) == 5 for c in JoinGraph.of(bind(query)).classes)
            case "star":
                assert max(degrees.values()) == 4
            case "cycle":
                assert min(degrees.values()) >= 2
            case "chain":
                assert len(edges) >= 4


def test_generates_rows_with_nulls_ties_duplicates_hot_keys_and_empty_streams() -> None:
    found: Counter[str] = Counter()
    for seed, query in zip(SEEDS, QUERIES, strict=True):
        streams = random_streams(Random(seed), query)
        times: Counter[object] = Counter()
        for source in {s.stream: s for s in bind(query).sources}.values():
            rows = streams[source.stream].to_pylist()
            found["empty"] += not rows
            found["duplicate"] += len({str(r) for r in rows}) < len(rows)
            found["null"] += any(v is None for r in rows for v in r.values())
            found["nan"] += any(v != v for r in rows for v in r.values())
            if source.window:
                mine = Counter(r[source.timestamp] for r in rows)
                found["tie within a stream"] += any(n > 1 for n in mine.values())
                found["tie across streams"] += any(ts in times for ts in mine)
                times += mine
            for field in source.schema.fields:
                values = Counter(str(r[field.name]) for r in rows)
                found["hot key"] += len(values) > 3 and max(values.values()) > len(rows) * 0.5
    for what in ("empty", "duplicate", "null", "nan", "tie within a stream", "tie across streams", "hot key"):
        assert found[what] >= 3, what


def test_generates_streams_of_about_the_size_asked_for() -> None:
    largest = []
    for seed in range(20):
        query = random_query(Random(seed), streams=3)
        streams = random_streams(Random(seed), query, rows=400, results=500)
        largest.append(max(table.num_rows for table in streams.values()))
    assert max(largest) < 1_500
    assert median(largest) > 300


def test_generates_batches_with_all_rows_out_of_order_and_late_when_asked() -> None:
    late = out_of_order = 0
    for seed, query in zip(range(60), QUERIES, strict=False):
        rng = Random(seed)
        streams = random_streams(rng, query)
        batches = random_batches(rng, query, streams)
        for name, table in streams.items():
            parts = [batch[name] for batch in batches if name in batch]
            rows = [str(row) for part in parts for row in part.to_pylist()]
            assert sorted(rows) == sorted(map(str, table.to_pylist()))
            declared = query.declaration(name)
            if declared and not declared.static:
                times = [part.column(declared.timestamp).to_pylist() for part in parts]
                out_of_order += any(max(a) > min(b) for a, b in pairwise(times) if a and b)
        assert results_and_late(query, batches)[1] == []
        late += len(results_and_late(query, random_batches(rng, query, streams, late=True))[1])
    assert out_of_order > 5
    assert late > 20


def test_generates_no_errors_unless_asked_for() -> None:
    failed = 0
    for seed in range(60):
        rng = Random(seed)
        query = random_query(rng, streams=2, errors=True)
        try:
            wm.oracle(query, random_streams(rng, query))
        except wm.DataError:
            failed += 1
    assert failed > 10  # without `errors`, every test of this file would have met them


def test_generates_plans_of_every_kind_over_all_streams() -> None:
    kinds: Counter[str] = Counter()
    for seed, query in zip(SEEDS, QUERIES, strict=True):
        plan = random_plan(Random(seed), query)
        assert plan.streams == frozenset(query.aliases)
        assert wm.Plan.parse(str(plan)) == plan
        kinds[plan.kind] += 1
    assert min(kinds[kind] for kind in ("mjoin", "bjtree", "jtree")) > 10
    for kind in ("mjoin", "bjtree", "jtree"):
        four = random_query(Random(1), streams=4)
        assert {random_plan(Random(s), four, kind).kind for s in range(30)} >= {kind}


def test_generates_a_case_that_says_how_to_have_it_again() -> None:
    case = random_case(11)
    text = str(case)
    assert "random_case(11)" in text
    assert str(case.query) in text
    assert str(case.plan) in text
