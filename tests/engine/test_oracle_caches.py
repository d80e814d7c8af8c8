"""Caches change no answer: random queries with random legal caches, audited while they run, and forced to change at random steps."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.caching import Auditor, CacheChanges, audited, cached_plan, counted, with_some
from tests.engine.running import Run, Scripted, check, in_time_order, stream
from watersmeet.engine.control import CacheCount, Change, Observed
from watersmeet.engine.executor import Engine
from watersmeet.engine.program import layout as L
from watersmeet.engine.rows.batches import Batches
from watersmeet.engine.store import arena as arena_module
from watersmeet.engine.store.cache import COUNT
from watersmeet.model.plan import Cache, Plan
from watersmeet.optimize.cache_candidates import candidates
from watersmeet.testing import Case, random_plan, random_query, random_streams, same_rows

CASES, BLOCK = 160, 20


def cached_case(seed: int) -> Case | None:
    """A query over 3 to 6 streams and a plan with caches, if there are any."""
    rng = Random(seed)
    query = random_query(rng, streams=rng.choice((3, 3, 4, 4, 5, 6)))
    streams = random_streams(rng, query, rows=rng.choice((None, 30, 60)))
    plan = cached_plan(rng, query, Batches(query, streams).bound)
    return Case(seed, query, streams, plan, []) if plan.caches else None


def cases(first: int, count: int) -> list[Case]:
    return [case for seed in range(first, first + count) if (case := cached_case(seed)) is not None]


@pytest.mark.parametrize("first", range(0, CASES, BLOCK))
def test_oracle_random_cases_with_random_caches(first: int) -> None:
    done, entries = Counter[str](), 0
    for case in cases(first, BLOCK):
        run, auditor = audited(case.query, case.streams, case.plan, 7)
        check(case, run.rows())
        counted(run.engine, done)
        entries += auditor.entries
    assert done["cache_hits"] > 500 and done["cache_updates"] > 100 and done["cache_evictions"] > 50 and entries > 500


@pytest.mark.parametrize("first", range(CASES, 2 * CASES, BLOCK))
def test_switch_random_cases_with_caches_forced_on_off_resized_and_dropped(first: int) -> None:
    done, kept, switches = Counter[str](), 0, 0
    for case in cases(first, BLOCK):
        changes = CacheChanges(Random(case.seed), case.query)
        run, _ = audited(case.query, case.streams, case.plan, changes)
        check(case, run.rows())
        counted(run.engine, done)
        kept += changes.kept
        switches += changes.changes
        assert {e.kind for e in run.engine.events.take()} <= {"plan", "caches"}
    assert done["cache_hits"] > 100 and done["cache_updates"] > 20
    assert switches > 100 and kept > 100


@pytest.mark.parametrize("first", [0, 40])
def test_oracle_random_globally_consistent_caches(first: int) -> None:
    """Any orders; most caches have the stream that looks up among their witnesses, so that entries must be dropped."""
    done, guarded, dropped = Counter[str](), 0, 0
    for seed in range(first, first + 40):
        rng = Random(seed)
        shape = rng.choice(("one key", "one key", "chain", "star"))
        query = random_query(rng, streams=rng.choice((3, 4, 5)), shape=shape)
        streams = random_streams(rng, query, rows=60)
        bound = Batches(query, streams).bound
        plan = random_plan(rng, query, "mjoin")
        wide = [c for c in candidates(bound, plan, quota=50, shortest=rng.choice((1, 2))) if c.witnesses]
        plan = with_some(rng, bound, plan, rng.sample(wide, min(4, len(wide))))
        case = Case(seed, query, streams, plan, [])
        run, _ = audited(query, streams, plan, 3)
        check(case, run.rows())
        counted(run.engine, done)
        guarded += sum(c.pipeline in c.witnesses for c in plan.caches)
        dropped += sum(c.dropped for c in run.engine.caches())
    assert guarded > 20 and dropped > 50 and done["cache_hits"] > 500 and done["cache_updates"] > 100


def test_meta_batches_do_not_matter_to_caches() -> None:
    done = Counter[str]()
    for case in cases(3_000, 12):
        for size in (1, 7, 50):
            run, _ = audited(case.query, in_time_order(case, size), case.plan, 11)
            check(case, run.rows())
            counted(run.engine, done)
    assert done["cache_hits"] > 500 and done["cache_updates"] > 100


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 15_000, 500))
def test_oracle_many_random_cases_with_caches(first: int) -> None:
    for case in cases(first, 500):
        control = Auditor(3) if case.seed % 2 else CacheChanges(Random(case.seed), case.query)
        check(case, audited(case.query, case.streams, case.plan, control)[0].rows())


def dead_ends(n: int, keys: int, fan: int, seed: int = 0) -> dict[str, pa.Table]:
    """T(b) finds `fan` tuples of S(a, b), whose a is in R for few b."""
    rng = np.random.default_rng(seed)
    s_b = rng.integers(0, keys, n)
    return {
        "R": stream(np.sort(rng.integers(0, n, n // 4)), a=rng.integers(0, keys // 8 + 1, n // 4)),
        "S": stream(np.sort(rng.integers(0, n, n)), a=s_b + rng.integers(0, fan, n), b=s_b),
        "T": stream(np.sort(rng.integers(0, n, 2 * n)), b=rng.integers(0, keys, 2 * n)),
    }


CHAIN = "SELECT R.a AS a, S.b AS b FROM R [{0}], S [{0}], T [{0}] WHERE R.a = S.a AND S.b = T.b {1}"
CACHED = "(R S T) orders {{R: S T; S: R T; T: S R}} caches {{T: S R / {0}}}"


def agree(text: str, tables: dict[str, pa.Table], plan: str, every: int = 50) -> Engine:
    run, _ = audited(text, tables, plan, every)
    difference = same_rows(run.rows(), wm.oracle(text, tables))
    assert difference is None, f"{text}\n{plan}\n{difference}"
    return run.engine


@pytest.mark.parametrize("window", ["RANGE 40 MICROSECONDS", "ROWS 30", "UNBOUNDED", "PARTITION BY {k} ROWS 2"])
@pytest.mark.parametrize("emit", ["ISTREAM", "DSTREAM"])
def test_oracle_windows_of_all_kinds_in_a_cached_segment(window: str, emit: str) -> None:
    text = CHAIN.format(window, f"EMIT {emit}")
    for k in ("a", "b", "b"):
        text = text.replace("{k}", k, 1)
    engine = agree(text, dead_ends(150, 24, 3), CACHED.format("4 KiB"))
    cache = engine.caches()[0]
    if emit == "ISTREAM" or window != "UNBOUNDED":  # nothing leaves
        assert cache.hits > 100 and cache.updates > 10


@pytest.mark.parametrize("op", ["<", "<=", "<>", ">", ">="])
def test_oracle_comparisons_between_prefix_and_segment_are_checked_on_each_hit(op: str) -> None:
    text = CHAIN.format("ROWS 30", f"AND T.b {op} R.a")
    engine = agree(text, dead_ends(150, 24, 3), CACHED.format("4 KiB"))
    assert engine.caches()[0].hits > 100


def test_oracle_values_grow_through_all_extents_and_beyond() -> None:
    """One key for all: values of hundreds of references, which at last have no room."""
    n = 60
    tables = {name: stream(np.arange(n), **{c: np.zeros(n, int) for c in columns}) for name, columns in
              (("R", "a"), ("S", "ab"), ("T", "b"))}  # fmt: skip
    for size in ("256 B", "4 KiB", "1 MiB"):
        cache = agree(CHAIN.format("ROWS 40", ""), tables, CACHED.format(size), every=5).caches()[0]
        assert (cache.crowded > 0 or cache.uncached > 0) and cache.used_bytes <= cache.bytes
    assert cache.hits > 10 and cache.updates > 500


def test_oracle_the_budget_is_never_exceeded_and_collisions_replace() -> None:
    for size, words in (("256 B", 32), ("1000 B", 120), ("10 KB", 1248)):
        engine = agree(CHAIN.format("ROWS 30", ""), dead_ends(200, 200, 3), CACHED.format(size))
        cache = engine.caches()[0]
        assert cache.bytes == 8 * words and cache.used_bytes <= cache.bytes
        assert cache.replaced > 0 and cache.entries <= words // 4


def test_oracle_ids_that_are_taken_down_clear_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "REBASE", 100)
    tables = dead_ends(300, 24, 3)
    case = Case(0, wm.parse(CHAIN.format("ROWS 30", "")), tables, Plan.parse(CACHED.format("4 KiB")), [])
    run, _ = audited(case.query, in_time_order(case, 40), case.plan, 10)
    check(case, run.rows())
    assert run.engine.caches()[0].hits > 100
    assert run.engine.arena.S[1, L.ROWBASE] > 0  # ids have been taken down


def test_switch_keeps_the_entries_of_a_cache_that_is_resized_and_all_of_one_that_stays() -> None:
    tables, kept = dead_ends(300, 24, 3), list[tuple[str, int, int]]()
    orders = "(R S T) orders {R: S T; S: R T; T: S R}"
    cache = Cache("T", ("S", "R"))
    sizes = {"as it is": 1 << 16, "larger": 1 << 17, "smaller": 512, "gone": 0}
    text = CHAIN.format("ROWS 40", "")

    def step(seen: Observed) -> None:
        if run.engine.feeding:
            name = list(sizes)[len(kept) % 4]
            before = run.engine.audit()
            run.engine.apply(Change(name, caches=((cache, sizes[name]),) if sizes[name] else ()))
            kept.append((name, before, run.engine.audit()))

    run = Run.of(text, tables, f"{orders} caches {{T: S R / 64 KiB}}", Scripted(step, 100))
    assert same_rows(run.rows(), wm.oracle(text, tables)) is None
    assert len(kept) > 8 and kept[0][1] > 10
    for name, before, after in kept:
        if name == "smaller":
            assert 0 < after <= 8
        else:
            assert after == (0 if name == "gone" else before)
    events = run.engine.events.take()
    assert (
        [e.kind for e in events] == ["caches"] * len(kept)
        and events[3].now == "none"
        and events[1].now == "T: S R / 128 KiB"
    )


def test_oracle_shared_cache_has_one_store_and_answers_in_two_pipelines() -> None:
    text = (
        """SELECT A.k FROM A [ROWS 9], B [ROWS 9], C [ROWS 9], D [ROWS 9] WHERE A.k = B.k AND B.k = C.k AND C.k = D.k"""
    )
    rng = np.random.default_rng(2)
    tables = {name: stream(np.sort(rng.integers(0, 200, 200)), k=rng.integers(0, 12, 200)) for name in "ABCD"}
    orders = "orders {A: B C D; B: A C D; C: A B D; D: B A C}"
    engine = agree(text, tables, f"(A B C D) {orders} caches {{C: A B / 2 KiB; D: B A / 2 KiB}}", every=5)
    (cache,) = engine.caches()
    assert set(cache.pipelines) == {"C", "D"} and all(hits > 20 for hits, _ in cache.pipelines.values())
    assert cache.bytes == 2048 and engine.metrics()["cache_bytes"] == 2048


def test_oracle_a_key_of_several_columns_and_strings() -> None:
    text = """SELECT S.x AS x FROM R [ROWS 20], S [ROWS 20], T [ROWS 20]
        WHERE R.x = S.x AND R.y = S.y AND S.z = T.z AND T.w = R.w"""
    rng = np.random.default_rng(4)
    words = np.array(["a", "b", None, "ccc"], object)

    def made(seed: int, **columns: int) -> pa.Table:
        return stream(np.sort(rng.integers(0, 200, 200)), **{
            name: pa.array(words[rng.integers(0, 4, 200)]) if name in "yw" else rng.integers(0, many, 200)
            for name, many in columns.items()
        })  # fmt: skip

    tables = {"R": made(1, x=3, y=0, w=0), "S": made(2, x=3, y=0, z=5), "T": made(3, z=5, w=0)}
    engine = agree(text, tables, "(R S T) orders {R: S T; S: T R; T: S R} caches {R: S T / 8 KiB}")
    assert engine.caches()[0].hits > 20 and engine.caches()[0].updates > 20


def test_oracle_metrics_of_a_run_count_hits_and_misses() -> None:
    tables = dead_ends(200, 24, 3)
    result = wm.run(CHAIN.format("ROWS 30", ""), tables, plan=Plan.parse(CACHED.format("4 KiB")))
    assert result.metrics["cache_hits"] + result.metrics["cache_misses"] == 400
    assert result.metrics["cache_hits"] > 200


def test_error_of_a_cache_that_is_too_small_or_not_kept_up() -> None:
    tables = dead_ends(10, 4, 2)
    for clause, said in (("T: S R / 100 B", "at least 256"), ("R: S T", "would not be kept up")):
        plan = Plan.parse(f"(R S T) orders {{R: S T; S: R T; T: S R}} caches {{{clause}}}")
        with pytest.raises(wm.PlanError, match=said):
            wm.run(CHAIN.format("ROWS 3", ""), tables, plan=plan)


def test_audit_finds_what_is_wrong() -> None:
    engine = agree(CHAIN.format("UNBOUNDED", ""), dead_ends(150, 24, 3), CACHED.format("64 KiB"))
    assert engine.audit() > 5
    row = engine.arena.S[engine.arena.caches[0]]
    metas = engine.arena.m[row[L.ROWS_AT] : row[L.BLOCKS_AT] : row[L.STRIDE]]
    metas[metas & COUNT > 1] -= 1  # one reference less
    with pytest.raises(AssertionError, match="lost"):
        engine.audit()


def test_a_controller_sees_what_caches_did_since_its_last_step() -> None:
    seen: list[tuple[CacheCount, ...]] = []
    text, tables = CHAIN.format("ROWS 30", ""), dead_ends(200, 24, 3)
    run = Run.of(text, tables, CACHED.format("4 KiB"), Scripted(lambda s: seen.append(s.caches), 50))
    run.rows()
    (whole,) = run.engine.caches()
    for name in ("hits", "misses", "created", "updates", "replaced"):
        assert sum(getattr(c, name) for (c,) in seen) == getattr(whole, name)
    assert whole.hits > 100 and len(seen) > 5
    assert seen[-1][0].entries == whole.entries


def test_meta_a_snapshot_carries_caches() -> None:
    text, tables = CHAIN.format("ROWS 30", ""), dead_ends(300, 24, 3)
    case = Case(0, wm.parse(text), tables, Plan.parse(CACHED.format("4 KiB")), [])
    run, made, misses = Run.of(case.query, in_time_order(case, 100), case.plan), [], list[int]()
    for released in run.batches.released():
        made += list(run.engine.feed(released.rows, released.clock))
        entries = run.engine.audit()
        run.engine = Engine.resume(run.batches.bound, run.engine.snapshot())
        assert run.engine.audit() == entries
        misses.append(run.engine.metrics()["cache_misses"])
    check(case, pa.Table.from_batches(made, run.engine.output))
    whole = Run.of(case.query, in_time_order(case, 100), case.plan)
    whole.rows()
    assert misses[-1] == whole.engine.metrics()["cache_misses"] > 0
