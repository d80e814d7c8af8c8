"""Which caches a plan's orders allow: the examples of "Adaptive Caching for Continuous Queries", and what is refused and why."""

from __future__ import annotations

import pytest

from watersmeet.errors import PlanError
from watersmeet.lang import parse
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.cache_places import conflict, place, places
from watersmeet.model.plan import Cache, Plan
from watersmeet.optimize.cache_candidates import candidates

# Figure 5(a), rebuilt
SIX = """(R1 R2 R3 R4 R5 R6) orders {R1: R2 R3 R4 R5 R6; R2: R1 R3 R4 R5 R6; R3: R2 R1 R4 R5 R6;
    R4: R5 R1 R2 R3 R6; R5: R4 R1 R3 R2 R6; R6: R1 R2 R4 R5 R3}"""


def joined(where: str, *columns: str, tables: tuple[str, ...] = ()) -> BoundQuery:
    """A query over streams given as `name(column column)`."""
    text, names = "", []
    for given in columns:
        name, _, inside = given.rstrip(")").partition("(")
        names.append(name)
        fields = ", ".join(f"{c} BIGINT" for c in inside.split())
        if name in tables:
            text += f"CREATE TABLE {name} ({fields}) FROM '{name}' FORMAT csv; "
        else:
            text += f"CREATE STREAM {name} ({fields}, ts TIMESTAMP) FROM '{name}' FORMAT csv; "
    sources = ", ".join(n if n in tables else f"{n} [ROWS 5]" for n in names)
    return bind(
        parse(
            f"{text} SELECT {names[0]}.{columns[0].split('(')[1].rstrip(')').split()[0]} FROM {sources} WHERE {where}"
        )
    )


def six() -> BoundQuery:
    where = " AND ".join(f"R{k}.A = R{k + 1}.A" for k in range(1, 6))
    return joined(where, *(f"R{k}(A)" for k in range(1, 7)))


def chain(**more: tuple[str, ...]) -> BoundQuery:
    return joined("R.a = S.a AND S.b = T.b", "R(a)", "S(a b)", "T(b)", **more)


def test_paper_example_4_1_candidates_of_the_six_way_join() -> None:
    found = candidates(six(), Plan.parse(SIX))
    by_pipeline: dict[str, list[str]] = {}
    for cache in found:
        by_pipeline.setdefault(cache.pipeline, []).append(" ".join(sorted(cache.segment)))
    assert by_pipeline == {
        "R1": ["R4 R5"], "R2": ["R4 R5"],
        "R3": ["R1 R2", "R4 R5"],
        "R4": ["R1 R2", "R1 R2 R3"],  # Figure 5(b)
        "R5": ["R1 R2 R3"],
        "R6": ["R1 R2", "R1 R2 R3 R4 R5", "R4 R5"],  # Figure 5(c)
    }  # fmt: skip


def test_paper_example_4_2_shared_caches_have_one_content() -> None:
    bound, plan = six(), Plan.parse(SIX)
    shared: dict[object, list[str]] = {}
    for cache in candidates(bound, plan):
        found = place(bound, plan, cache)
        assert [c.name for c in found.key] == ["R1.A"]
        shared.setdefault(found.content, []).append(cache.pipeline)
    groups = {" ".join(sorted(content[0])): pipelines for content, pipelines in shared.items()}  # type: ignore[index]
    assert groups["R1 R2"] == ["R3", "R4", "R6"]
    assert groups["R1 R2 R3"] == ["R4", "R5"]


def test_paper_example_6_1_a_globally_consistent_cache_takes_r1_as_witness() -> None:
    bound = six()
    plan = Plan.parse(SIX.replace("R6: R1 R2 R4 R5 R3", "R6: R2 R3 R4 R5 R1"))
    with pytest.raises(PlanError, match="R2's pipeline does not join R2, R3 before all else"):
        place(bound, plan, Cache("R6", ("R2", "R3")))
    found = place(bound, plan, Cache("R6", ("R2", "R3"), ("R1",)))
    assert found.tellers == {"R1", "R2", "R3"} and not found.guard
    assert Cache("R6", ("R2", "R3"), ("R1",)) in candidates(bound, plan, quota=100)


def test_paper_section_6_quota_takes_segments_of_all_but_one_stream_first() -> None:
    bound, plan = six(), Plan.parse(SIX)
    prefix = candidates(bound, plan)
    found = candidates(bound, plan, quota=len(prefix) + 8)
    assert found[: len(prefix)] == prefix and len(found) == len(prefix) + 8
    sizes = [len(c.segment) for c in found[len(prefix) :]]
    assert sizes == sorted(sizes, reverse=True) and sizes[:5] == [5] * 5
    assert all(c.witnesses for c in found[len(prefix) :])
    assert candidates(bound, plan, quota=3) == prefix


def test_paper_candidates_of_one_pipeline_are_nested_or_apart() -> None:
    for pipeline in ("R4", "R6"):
        segments = [set(c.segment) for c in candidates(six(), Plan.parse(SIX)) if c.pipeline == pipeline]
        assert all(a <= b or b <= a or not a & b for a in segments for b in segments)


def test_a_table_need_not_join_the_segment_first() -> None:
    plan = Plan.parse("(R S T) orders {S: T R; T: R S}")
    assert candidates(chain(), plan) == ()
    assert [str(c) for c in candidates(chain(tables=("T",)), plan)] == ["R: S T"]


def test_inputs_of_a_tree_are_cached_as_a_whole() -> None:
    bound = joined("A.k = B.k AND B.k = C.k AND C.k = D.k", "A(k)", "B(k)", "C(k)", "D(k)")
    plan = Plan.parse("((A B) C D) orders {(A B): D C; D: (A B) C; C: D (A B)}")
    assert [str(c) for c in candidates(bound, plan)] == ["C: D (A B)"]
    found = place(bound, plan, Cache("C", ("D", "(A B)")))
    assert found.segment == {"A", "B", "D"} and found.prefix == {"C"}


def test_a_witness_that_looks_up_must_meet_others_by_the_key_alone() -> None:
    orders = "(R S T) orders {R: S T; S: R T; T: S R}"
    assert place(chain(), Plan.parse(orders), Cache("R", ("S", "T"), ("R",))).guard == {"R"}
    theta = joined("R.a = S.a AND S.b = T.b AND R.a < T.b", "R(a)", "S(a b)", "T(b)")
    with pytest.raises(PlanError, match="does not decide alone who meets whom in R"):
        place(theta, Plan.parse(orders), Cache("R", ("S", "T"), ("R",)))
    with pytest.raises(PlanError, match="T's pipeline meets R before it knows the key"):
        place(chain(), Plan.parse("(R S T) orders {R: S T; S: R T; T: R S}"), Cache("R", ("S", "T"), ("R",)))


def test_caches_that_hide_updates_from_each_other_are_refused() -> None:
    bound = joined("L.k = T.k AND T.k = A.k AND A.k = M.k", "L(k)", "T(k)", "A(k)", "M(k)", tables=("T",))
    plan = Plan.parse("(L T A M) orders {L: T A M; A: T L M; M: T L A}")
    one, other = place(bound, plan, Cache("L", ("T", "A"))), place(bound, plan, Cache("M", ("T", "L")))
    assert conflict(bound, plan, one, other) == (
        "the cache of T A in L's pipeline would hide from the cache of T L in M's pipeline what L's pipeline must tell it"
    )
    overlapping = Plan.parse("(R S T) orders {S: T R; T: S R} caches {R: S T; R: S}")
    with pytest.raises(PlanError, match="overlaps"):
        places(chain(), overlapping)
