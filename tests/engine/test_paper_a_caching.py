"""Worked examples 3.1 to 3.5 and 6.1 of "Adaptive Caching for Continuous Queries", as executed queries.

    R1(A) joins R2(A, B) joins R3(B); R2 = {(1,2), (1,3), (2,3)}, R3 = {(2)} (Figure 2(b), rebuilt)
    pipelines (Figures 2(a) and 3)   dR1: R2, R3    dR2: R3, R1    dR3: R2, R1

The cache of Figure 3 holds R2 joined with R3 for R1's keys; complete and pinned, that is the state of the inner node of (R1 (R2 R3)).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import watersmeet as wm
from tests.engine.caching import audited
from tests.engine.running import Run, stream
from watersmeet.engine.executor import Engine
from watersmeet.testing import same_rows

TEXT = """SELECT R1.A AS r1_a, R2.A AS r2_a, R2.B AS r2_b, R3.B AS r3_b
    FROM R1 [UNBOUNDED], R2 [UNBOUNDED], R3 [UNBOUNDED] WHERE R1.A = R2.A AND R2.B = R3.B"""
MJOIN = "(R1 R2 R3) orders {R1: R2 R3; R2: R3 R1; R3: R2 R1}"
CACHED = f"{MJOIN} caches {{R1: R2 R3 / 4 KiB}}"
TREE = "(R1 (R2 R3))"


class Example:
    """The relations of Figure 2(b), into which tuples are inserted one at a time."""

    def __init__(self, plan: str) -> None:
        empty: Any = {
            "R1": stream([], A=pa.array([], pa.int64())),
            "R2": _r2([]),
            "R3": stream([], B=pa.array([], pa.int64())),
        }
        self.engine: Engine = Run.of(TEXT, empty, plan).engine
        self.time = 0
        self.rows: dict[str, list[tuple[int, ...]]] = {"R1": [], "R2": [], "R3": []}
        for row in ((1, 2), (1, 3), (2, 3)):
            self.insert("R2", row)
        self.insert("R3", (2,))
        self.before = self.counts()

    def insert(self, name: str, row: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Process one insertion; its results, as the paper writes them."""
        self.time += 1
        self.rows[name].append(row)
        rows = (
            _r2([row], self.time) if name == "R2" else stream([self.time], **{"A" if name == "R1" else "B": [row[0]]})
        )
        made = pa.Table.from_batches(list(self.engine.feed({name: rows})), self.engine.output)
        return sorted(tuple(r.values())[:4] for r in made.to_pylist())

    def counts(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Of each operator: (tuples in, tuples out)."""
        return {(op.pipeline, op.step): (op.tuples_in, op.matches) for op in self.engine.operators()}

    def since(self, pipeline: str, step: str) -> tuple[int, int]:
        """The same since the relations were as in Figure 2(b)."""
        now, before = self.counts()[pipeline, step], self.before[pipeline, step]
        return now[0] - before[0], now[1] - before[1]

    def state(self) -> list[tuple[int, ...]]:
        """The inner node's entries: (R2.A, R2.B, R3.B)."""
        entries = self.engine.inspect(entries=True).store("(R2 R3)").entries
        assert entries is not None
        return sorted((*self.rows["R2"][r2], *self.rows["R3"][r3]) for r2, r3 in entries)

    def cache(self) -> dict[int, list[tuple[int, ...]]]:
        """The cache's entries: for each key (R2.A, R2.B, R3.B)."""
        self.engine.audit()
        (found,) = self.engine.inspect(entries=True).cached.values()
        return {u: sorted((*self.rows["R2"][a], *self.rows["R3"][b]) for a, b in v) for (u,), v in found.items()}

    def looked_up(self) -> tuple[int, int]:
        """Hits and misses of R1's lookups."""
        return self.engine.caches()[0].pipelines["R1"]


def _r2(rows: list[tuple[int, ...]], ts: int = 0) -> pa.Table:
    return stream([ts] * len(rows), **{c: pa.array([row[i] for row in rows], pa.int64()) for i, c in enumerate("AB")})


def test_paper_example_3_1_an_insertion_runs_its_pipeline_and_enters_its_relation() -> None:
    example = Example(MJOIN)
    assert example.insert("R1", (1,)) == [(1, 1, 2, 2)]
    assert example.since("R1", "R2") == (1, 2)  # <1> gives <1,1,2> and <1,1,3>
    assert example.since("R1", "R3") == (2, 1)  # of which one joins R3
    assert {s.name: s.tuples for s in example.engine.stores()} == {"R1": 1, "R2": 3, "R3": 1}


def test_paper_example_3_2_the_same_insertion_again_does_the_same_work_again_where_there_is_no_cache() -> None:
    example = Example(MJOIN)
    assert example.insert("R1", (1,)) == example.insert("R1", (1,)) == [(1, 1, 2, 2)]
    assert example.since("R1", "R2") == (2, 4)
    assert example.since("R1", "R3") == (4, 2)


def test_paper_example_3_2_a_miss_creates_the_entry_and_the_next_tuple_hits() -> None:
    example = Example(CACHED)
    assert example.cache() == {}
    assert example.insert("R1", (1,)) == [(1, 1, 2, 2)]
    assert example.cache() == {1: [(1, 2, 2)]} and example.looked_up() == (0, 1)
    assert example.insert("R1", (1,)) == [(1, 1, 2, 2)]
    assert example.looked_up() == (1, 1)
    assert example.since("R1", "R2") == (1, 2)  # the join operators were asked once


def test_paper_example_3_2_a_result_that_is_empty_is_cached_too() -> None:
    example = Example(CACHED)
    assert example.insert("R1", (7,)) == example.insert("R1", (7,)) == []
    assert example.cache() == {7: []} and example.looked_up() == (1, 1)


def test_paper_example_3_2_a_complete_cache_answers_with_one_probe() -> None:
    example = Example(TREE)
    assert example.state() == [(1, 2, 2)]
    assert example.insert("R1", (1,)) == example.insert("R1", (1,)) == [(1, 1, 2, 2)]
    assert example.since("R1", "(R2 R3)") == (2, 2)


def test_paper_example_3_3_after_an_insertion_into_r3_a_new_tuple_gives_two_results() -> None:
    for plan in (MJOIN, CACHED, TREE):
        example = Example(plan)
        example.insert("R1", (1,))
        assert example.insert("R3", (3,)) == [(1, 1, 3, 3)]
        assert example.insert("R1", (1,)) == [(1, 1, 2, 2), (1, 1, 3, 3)]


def test_paper_example_3_4_the_pipelines_satisfy_the_prefix_invariant_for_r2_r3_and_not_for_r2_r1() -> None:
    engine = Example(MJOIN).engine
    steps: dict[str, list[str]] = {}
    for op in engine.operators():
        steps.setdefault(op.pipeline, []).append(op.step)
    assert steps == {"R1": ["R2", "R3"], "R2": ["R3", "R1"], "R3": ["R2", "R1"]}
    assert [steps[r][0] for r in ("R2", "R3")] == ["R3", "R2"]  # so R2 joined with R3 is computed first by both
    assert steps["R2"][0] != "R1"  # a cache of R2, R1 in dR3's pipeline would not be kept up by dR2's


def test_paper_example_3_5_intermediate_tuples_that_a_cache_would_be_told_of() -> None:
    example = Example(MJOIN)
    example.insert("R1", (1,))
    example.insert("R3", (3,))
    assert example.since("R3", "R2") == (1, 2)  # <1,3,3> and <2,3,3>
    assert example.since("R3", "R1") == (2, 1)  # of which <1,3,3> joins R1
    tree = Example(TREE)
    tree.insert("R3", (3,))
    assert tree.state() == [(1, 2, 2), (1, 3, 3), (2, 3, 3)]


def test_paper_example_3_5_the_cache_takes_what_has_its_key_and_ignores_the_rest() -> None:
    example = Example(CACHED)
    example.insert("R1", (1,))
    assert example.insert("R3", (3,)) == [(1, 1, 3, 3)]
    assert example.cache() == {1: [(1, 2, 2), (1, 3, 3)]}  # <2,3,3> has no entry
    assert example.engine.caches()[0].updates == 1
    assert example.insert("R1", (1,)) == [(1, 1, 2, 2), (1, 1, 3, 3)]
    assert example.looked_up() == (1, 1)


def test_paper_example_6_1_a_globally_consistent_cache_is_kept_up_by_r1_r2_and_r3() -> None:
    names = [f"R{k}" for k in range(1, 7)]
    where = " AND ".join(f"{a}.A = {b}.A" for a, b in pairwise(names))
    text = f"SELECT R1.A FROM {', '.join(f'{n} [ROWS 4]' for n in names)} WHERE {where}"
    orders = """orders {R1: R2 R3 R4 R5 R6; R2: R1 R3 R4 R5 R6; R3: R2 R1 R4 R5 R6; R4: R5 R1 R2 R3 R6;
        R5: R4 R1 R3 R2 R6; R6: R2 R3 R4 R5 R1}"""
    rng = np.random.default_rng(6)
    n = 120
    tables = {name: stream(np.sort(rng.integers(0, n, n)), A=rng.integers(0, 4, n)) for name in names}
    run, _ = audited(text, tables, f"(R1 R2 R3 R4 R5 R6) {orders} caches {{R6: R2 R3 | R1}}")
    difference = same_rows(run.rows(), wm.oracle(text, tables))
    assert difference is None, difference
    cache = run.engine.caches()[0]
    assert cache.hits > 50 and cache.updates > 20 and cache.dropped == 0


def test_paper_section_6_a_tuple_that_meets_no_witness_drops_the_entry_of_its_key() -> None:
    """(S T) with partners in R, cached in dR; read literally, the last R(1) would find (1, {}) and lose its result."""
    text = "SELECT R.a AS a, T.b AS b FROM R [RANGE 2 MICROSECONDS], S [RANGE 9 MICROSECONDS], T [RANGE 9 MICROSECONDS]"
    text += " WHERE R.a = S.a AND S.b = T.b"
    tables = {"T": stream([0], b=[2]), "R": stream([1, 5], a=[1, 1]), "S": stream([4], a=[1], b=[2])}
    run, _ = audited(text, tables, "(R S T) orders {R: S T; S: R T; T: S R} caches {R: S T | R}")
    assert [tuple(r.values())[:2] for r in run.rows().to_pylist()] == [(1, 2)]
    cache = run.engine.caches()[0]
    assert (cache.created, cache.dropped, cache.misses) == (2, 1, 2)
