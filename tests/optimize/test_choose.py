"""From query text, statistics and a budget to a plan: what is chosen, what is refused, and what is said about it."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from tests.optimize.problems import KINDS, random_problem
from watersmeet.errors import NoQualifiedPlan, PlanError, QueryError
from watersmeet.lang import parse
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Costs, Statistics
from watersmeet.optimize import Asked, decide, explain_decision, explain_plan, optimize
from watersmeet.optimize.choose import decide_problem
from watersmeet.optimize.cost import Limits, price
from watersmeet.optimize.from_query import state_problem
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.policy import POLICIES
from watersmeet.optimize.sketch import planned

QP = Costs(probe=0.0, match=2.2e-6, insert=2e-7, delete=2e-7, source="Table 3")
CHAIN = """SELECT A.a FROM A [RANGE {s} SECONDS], B [RANGE {s} SECONDS], C [RANGE {s} SECONDS], D [RANGE {s} SECONDS]
           WHERE A.a = B.a AND B.b = C.b AND C.c = D.c {more}"""
SET_4 = Statistics(
    rate=dict.fromkeys("ABCD", 20.0), selectivity={("A", "B"): 0.02, ("B", "C"): 0.2, ("C", "D"): 0.05}, costs=QP
)


def chain(seconds: int = 50, more: str = "") -> str:
    return CHAIN.format(s=seconds, more=more)


def test_paper_example_1_from_its_text() -> None:
    """static-optimization, Example 1, as a query: ROWS windows, and the plan that 4 ms leaves."""
    query = parse("SELECT A.a, B.b, C.c FROM A [ROWS 10], B [ROWS 10], C [ROWS 10] WHERE A.a = B.a AND B.b = C.b")
    stats = Statistics(
        rate={"A": 10.0, "B": 20.0, "C": 70.0}, selectivity={("A", "B"): 0.5, ("B", "C"): 0.2},
        costs=Costs(probe=0.004, match=0.0, insert=0.0, delete=0.0),
    )  # fmt: skip
    plan = optimize(query, stats, Budget(cpu=1))
    assert str(plan.root) == "((A B) C)"
    assert plan.kind == "bjtree"
    assert plan.cpu == pytest.approx(1.0)
    assert plan.memory_tuples == pytest.approx(80)
    assert plan.output_rate == pytest.approx(1000)


def test_paper_set_4_from_its_text() -> None:
    plan = optimize(parse(chain()), SET_4, Budget(cpu=35.9, memory_tuples=50_000))
    assert plan.kind == "jtree"
    assert str(plan.root) == "((A B) C D)"
    assert plan.cpu == pytest.approx(35.5585, rel=2e-6)
    assert plan.memory_tuples == pytest.approx(24_000)
    assert Plan.parse(str(plan)) == plan


@pytest.mark.parametrize(
    ("policy", "root"),
    [
        ("any", "(A B C D)"),
        ("least_cpu", "((A B) (C D))"),
        ("least_memory", "(A B C D)"),
        ("non_dominated", "((A B) C D)"),
    ],
)
def test_policies(policy: str, root: str) -> None:
    plan = optimize(parse(chain()), SET_4, Budget(cpu=40, memory_tuples=80_000), Asked(policy))
    assert str(plan.root) == root


@pytest.mark.parametrize("search", ["auto", "pareto", "two_layer"])
@pytest.mark.parametrize("policy", POLICIES)
def test_conform_every_search_and_policy_keeps_the_limits(search: str, policy: str) -> None:
    for kind in ("chain", "star", "cycle"):
        for n in (3, 6, 9):
            problem = random_problem(kind, n, 1)
            free = decide_problem(problem, Limits(), Asked(policy, search))
            assert free.plan is not None and free.qualified
            bill = price(problem, free.plan.root)
            tight = Limits(bill.cpu * 1.01, bill.memory * 1.01)
            found = decide_problem(problem, tight, Asked(policy, search))
            assert found.plan is not None and found.qualified
            bill = price(problem, found.plan.root)
            assert tight.allow(bill.cpu, bill.memory)


def test_budget_of_the_query_and_bytes() -> None:
    text = chain(more="BUDGET (CPU 36, MEMORY 4 MB)")
    decision = decide(parse(text), SET_4)
    assert decision.limits == Limits(36.0, 4_000_000.0)
    assert decision.problem.unit == "bytes"
    assert decision.plan is not None
    assert any("bytes" in a for a in decision.assumptions)
    wide = Statistics(rate=SET_4.rate, selectivity=SET_4.selectivity, costs=QP, row_bytes=dict.fromkeys("ABCD", 1000.0))
    with pytest.raises(NoQualifiedPlan, match="proven"):
        optimize(parse(text), wide)
    assert decide(parse(text), SET_4, Budget(cpu=40)).limits == Limits(40.0, inf)  # the argument overrides the text
    assert decide(parse(text), SET_4, asked=Asked(head_room=0.5)).limits.cpu == 18.0


def test_no_qualified_plan_proven_by_bounds() -> None:
    with pytest.raises(NoQualifiedPlan) as caught:
        optimize(parse(chain()), SET_4, Budget(cpu=1, memory_tuples=50_000))
    e = caught.value
    assert e.proven
    assert e.cpu_bound == pytest.approx(35.2, rel=1e-3)
    assert e.memory_bound == pytest.approx(4000)
    assert e.nearest and all(isinstance(p, Plan) and p.cpu is not None and p.cpu > 1 for p in e.nearest)
    for said in ("no plan fits CPU 1", "proven", "35.2", "nearest", "SHED"):
        assert said in str(e)


def test_no_qualified_plan_proven_by_exhaustion_and_not_proven() -> None:
    tight = Budget(cpu=35.3, memory_tuples=20_000)  # above both bounds, below every plan
    with pytest.raises(NoQualifiedPlan, match="all plans were looked at") as caught:
        optimize(parse(chain()), SET_4, tight)
    assert caught.value.proven
    problem = random_problem("star", 12, 3)
    free = decide_problem(problem, Limits())
    assert free.chosen is not None
    least = free.bounds
    between = Limits((least.cpu + free.chosen.cpu) / 2, least.memory * 1.0000001)
    found = decide_problem(problem, between)
    assert found.plan is None
    assert not found.proven


def test_shed_finds_drop_boxes_and_keeps_the_budget() -> None:
    text = chain(more="ON OVERLOAD SHED (A WEIGHT 2 AT LEAST 10 PERCENT)")
    plan = optimize(parse(text), SET_4, Budget(cpu=10, memory_tuples=50_000))
    assert plan.keep and all(0 < x < 1 for _, x in plan.keep)
    assert plan.cpu is not None and plan.cpu <= 10 * (1 + 1e-9)
    assert plan.output_rate is not None and 0 < plan.output_rate < 16_000_000
    assert plan.drop.get("A", 1.0) >= 0.1
    floors = ", ".join(f"{s} AT LEAST 90 PERCENT" for s in "ABCD")
    with pytest.raises(NoQualifiedPlan, match="AT LEAST"):
        optimize(parse(chain(more=f"ON OVERLOAD SHED ({floors})")), SET_4, Budget(cpu=10))
    exact = optimize(parse(text), SET_4, Budget(cpu=40))
    assert exact.keep == ()  # nothing is given up where a plan fits


def test_evict_and_direct() -> None:
    evict = optimize(parse(chain(more="ON OVERLOAD EVICT USING prob")), SET_4, Budget(cpu=40, memory_tuples=2000))
    assert evict.kind == "mjoin"
    assert evict.retention is not None and evict.retention.policy == "prob"
    assert dict(evict.retention.tuples) == dict.fromkeys("ABCD", 500)
    with pytest.raises(NoQualifiedPlan):  # EVICT saves memory, not CPU
        optimize(parse(chain(more="ON OVERLOAD EVICT")), SET_4, Budget(cpu=1, memory_tuples=2000))
    direct = optimize(parse(chain(more="ON OVERLOAD DIRECT")), SET_4, Budget(cpu=1, memory_tuples=50_000))
    assert str(direct.root) == "((A B) C D)"  # least CPU of those within the memory
    both = optimize(parse(chain(more="ON OVERLOAD EVICT AND SHED")), SET_4, Budget(cpu=1, memory_tuples=1000))
    assert both.keep and both.retention is not None


def test_kinds_that_are_asked_for() -> None:
    for kind, root in (("mjoin", "(A B C D)"), ("xjoin", "((A B) (C D))")):
        assert str(optimize(parse(chain()), SET_4, Budget(cpu=1), Asked(kind=kind)).root) == root
    for bad in ({"kind": "bushy"}, {"search": "magic"}, {"policy": "best"}):
        with pytest.raises(PlanError, match="unknown"):
            Asked(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stats", "budget", "says"),
    [
        (lambda: Statistics(rate={"A": 0.0}), None, "rate of A is 0"),
        (lambda: Statistics(rate={"A": -1.0}), None, "above 0"),
        (lambda: Statistics(selectivity={("A", "B"): 1.5}), None, "0 to 1"),
        (lambda: Statistics(rate={"A": 1.0, "B": 1.0}), None, "no rate for C, D"),
        (lambda: Statistics(rate=dict.fromkeys("ABCX", 1.0)), None, "'X', which is not in FROM"),
        (
            lambda: Statistics(rate=dict.fromkeys("ABCD", 1.0), selectivity={("A", "D"): 0.1}),
            None,
            "no predicate joins",
        ),
        (lambda: Statistics(rate=dict.fromkeys("ABCD", 1.0), table_rows={"A": 5}), None, "which is a stream"),
        (
            lambda: Statistics(rate=dict.fromkeys("ABCD", 1.0), window_tuples={"A": 0.0}),
            None,
            "window_tuples of 'A' is 0",
        ),
        (lambda: None, Budget(cpu=1), "without knowing the rates"),
        (Statistics, Budget(memory_tuples=5), "without knowing the rates"),
    ],
)
def test_bad_statistics_are_refused(stats: object, budget: Budget | None, says: str) -> None:
    assert callable(stats)
    with pytest.raises(QueryError, match=says):
        optimize(parse(chain()), stats(), budget)


def test_what_is_not_known_is_said() -> None:
    decision = decide(parse(chain(more="AND A.x > 3")))
    said = "\n".join(decision.assumptions)
    assert "no rates are known" in said
    assert "selectivity of A.a = B.a: 0.1 (nothing known)" in said
    assert "all its tuples pass" in said
    known = Statistics(rate=dict.fromkeys("ABCD", 1.0), distinct={("A", "a"): 50.0, ("B", "a"): 200.0})
    assert "selectivity of A.a = B.a: 0.005 (from distinct values)" in decide(parse(chain()), known).assumptions


def test_disconnected_graph_is_explained() -> None:
    query = parse("SELECT A.a FROM A [ROWS 10], B [ROWS 10], C [ROWS 10] WHERE A.a = B.a")
    decision = decide(query, Statistics(rate=dict.fromkeys("ABC", 1.0), selectivity={("A", "B"): 0.1}))
    assert decision.plan is not None
    assert decision.plan.output_rate == pytest.approx(3 * 10 * 10 * 0.1)
    assert any("no join predicate connects A B with C" in a for a in decision.assumptions)


def test_one_class_over_three_streams_from_text() -> None:
    """Two of three pairs known: the third follows, and the three count as two factors."""
    query = parse("SELECT A.a FROM A [ROWS 10], B [ROWS 10], C [ROWS 10] WHERE A.a = B.a AND B.a = C.a")
    stats = Statistics(rate=dict.fromkeys("ABC", 1.0), selectivity={("A", "B"): 0.5, ("B", "C"): 0.02})
    stated = state_problem(planned(query), stats)
    assert len(stated.problem.predicates) == 1
    assert stated.problem.rates.size(0b101) == pytest.approx(100 * 0.02)
    assert stated.problem.rates.size(0b111) == pytest.approx(1000 * 0.5 * 0.02)
    assert "selectivity of A.a = C.a: 0.02 (from its class)" in stated.assumptions


def test_several_predicates_between_two_streams() -> None:
    """The pair's selectivity is that of all predicates together; the hash decides the equality alone."""
    query = parse("SELECT A.a FROM A [ROWS 100], B [ROWS 100] WHERE A.a = B.a AND A.x < B.x AND A.y + B.y > 3")
    stats = Statistics(rate={"A": 1.0, "B": 1.0}, selectivity={("A", "B"): 1 / 90})
    problem = state_problem(planned(query), stats).problem
    assert problem.rates.output == pytest.approx(2 * 100 / 90)
    assert problem.rates.candidates(1, 1, 2) == pytest.approx(10.0)
    assert problem.residual == pytest.approx(1 / 3)


def test_windows_tables_and_emission() -> None:
    declared = """CREATE STREAM o (id BIGINT, item BIGINT, ts TIMESTAMP); CREATE STREAM p (id BIGINT, ts TIMESTAMP);
      CREATE STREAM q (id BIGINT, k BIGINT, ts TIMESTAMP); CREATE TABLE items (item BIGINT, name STRING);
      SELECT o.id FROM o [RANGE 10 SECONDS], p [UNBOUNDED], q [PARTITION BY k ROWS 3], items
      WHERE o.id = p.id AND p.id = q.id AND o.item = items.item {emit}"""
    rate = {"o": 5.0, "p": 1.0, "q": 2.0}
    stats = Statistics(rate=rate, table_rows={"items": 400}, window_tuples={"p": 1000.0}, distinct={("q", "k"): 7.0})
    problem = state_problem(planned(parse(declared.format(emit=""))), stats, Budget(memory_tuples=10**6)).problem
    assert [s.window for s in problem.streams] == [50.0, 1000.0, 21.0, 400.0]
    assert [s.expires for s in problem.streams] == [True, False, True, False]
    assert problem.streams[3].static and problem.inner_passes == 1
    assert state_problem(planned(parse(declared.format(emit="EMIT DSTREAM"))), stats).problem.inner_passes == 2
    changes = state_problem(planned(parse(declared.format(emit="EMIT CHANGES"))), stats).problem
    assert (changes.inner_passes, changes.root_passes, changes.grouped) == (2, 2, False)
    for less, says in (
        (Statistics(rate=rate, window_tuples={"p": 1000.0}, distinct={("q", "k"): 7.0}), "rows of table 'items'"),
        (Statistics(rate=rate, table_rows={"items": 4}, distinct={("q", "k"): 7.0}), "unbounded window of 'p'"),
        (Statistics(rate=rate, table_rows={"items": 4}, window_tuples={"p": 9.0}), "partitions of 'q'"),
    ):
        with pytest.raises(QueryError, match=says):
            optimize(parse(declared.format(emit="")), less, Budget(memory_tuples=10**6))
        assert decide(parse(declared.format(emit="")), less).assumptions
    with pytest.raises(QueryError, match=r"distinct of q\.kk"):
        optimize(parse(declared.format(emit="")), Statistics(rate=rate, distinct={("q", "kk"): 7.0}))


def test_columns_must_say_whose_they_are_where_nothing_is_declared() -> None:
    with pytest.raises(QueryError, match="can't tell whose column 'a' is"):
        optimize(parse("SELECT R.a FROM R [ROWS 5], S [ROWS 5] WHERE a = S.b"))


def test_explain_says_all_that_was_asked() -> None:
    text = explain_decision(decide(parse(chain()), SET_4, Budget(cpu=35.9, memory_tuples=50_000)), steps=True)
    for said in (
        "Plan ((A B) C D): a mixed tree", "35.56 cores of 35.9 cores (99%)", "24,000 tuples of 50,000 tuples (48%)",
        "16,000,000 results/s", "join (A B)", "out/s", "total", "nearest misses", "too much CPU", "too much memory",
        "(A B C D) needs 36.18 CPU and 4,000 tuples: 0.8% too much CPU [mjoin]",
        "((A B) (C D)) needs 35.21 CPU and 74,000 tuples: 48.0% too much memory [binary tree]",
        "Any plan needs at least 35.2 CPU", "Steps", "layer one", "exact search", "Assumptions", "prices (Table 3)",
    ):  # fmt: skip
        assert said in text, said
    shed = explain_plan(parse(chain(more="ON OVERLOAD SHED")), SET_4, Budget(cpu=10))
    for said in ("Given up", "drop boxes keep", "throughput kept", "of 16,000,000 results/s"):
        assert said in shed, said
    split = explain_plan(parse(chain()), SET_4, asked=Asked(cells=4))
    assert "4 cells" in split and "copies of each tuple" in split
    none = explain_plan(parse(chain()), SET_4, Budget(cpu=1))
    assert none.startswith("no plan fits CPU 1") and "proven" in none


def test_explain_totals_are_the_sum_of_the_parts() -> None:
    decision = decide(parse(chain()), SET_4, Budget(cpu=35.9, memory_tuples=50_000))
    bill, plan = decision.estimate, decision.plan
    assert bill is not None and plan is not None
    assert sum(p.cpu for p in bill.parts) == pytest.approx(plan.cpu)
    assert sum(p.state for p in bill.parts) == pytest.approx(plan.memory_tuples)


def test_effort_a_four_way_query_asks_for_few_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 26 trees of four streams have 36 different nodes; each step of the decision looks at a few of them."""
    asked: list[tuple[int, ...]] = []
    node_cpu = NodeCosts.node_cpu

    def asking(costs: NodeCosts, blocks: tuple[int, ...]) -> float:
        asked.append(blocks)
        return node_cpu(costs, blocks)

    monkeypatch.setattr(NodeCosts, "node_cpu", asking)
    optimize(parse(chain()), SET_4, Budget(cpu=35.9, memory_tuples=50_000))
    assert 0 < len(asked) <= 3 * 36


THREE = "SELECT R.a FROM R [{w}], S [RANGE 10 SECONDS], T [RANGE 10 SECONDS] WHERE {where}"
TREE = "R.a = S.a AND S.b = T.b"
RATES = Statistics(
    rate={"R": 167.0, "S": 167.0, "T": 833.0},
    selectivity={("R", "S"): 1 / 2000, ("S", "T"): 1 / 2000},
)


def grouped(together: float) -> Statistics:
    return replace(RATES, costs=replace(Costs(), together=together))


def three(window: str = "RANGE 10 SECONDS", where: str = TREE, end: str = "") -> str:
    return THREE.format(w=window, where=where) + end


@pytest.mark.parametrize("search", ["pareto", "two_layer"])
def test_groups_make_a_plan_of_one_node_the_cheaper_one(search: str) -> None:
    apart, together = (optimize(parse(three()), grouped(x), asked=Asked(search=search)) for x in (1.0, 0.6))
    assert str(apart.root) == "((R S) T)"
    assert together.kind == "mjoin"
    one_node = optimize(parse(three()), grouped(1.0), asked=Asked(kind="mjoin"))
    assert together.cpu is not None and apart.cpu is not None and one_node.cpu is not None
    assert together.cpu == pytest.approx(0.6 * one_node.cpu)
    assert together.cpu < apart.cpu
    assert optimize(parse(three()), grouped(0.6), asked=Asked(kind="xjoin")).cpu == pytest.approx(apart.cpu)


@pytest.mark.parametrize(
    "stated", [three(), three("ROWS 10"), three("UNBOUNDED"), three(where="R.a = S.a AND S.a = T.a")]
)
def test_groups_are_for_trees_of_equalities(stated: str) -> None:
    d = decide(parse(stated), grouped(0.6))
    assert d.problem.grouped
    assert d.bounds.cpu <= d.costs.cpu((0, 1, 2)) == pytest.approx(price(d.problem, d.costs.tree((0, 1, 2))).cpu)
    assert "where rows go in groups, 60% of that" in explain_plan(parse(stated), grouped(0.6))


@pytest.mark.parametrize(
    "stated",
    [
        three("PARTITION BY a ROWS 10"), three(end=" EMIT DSTREAM"), three(end=" EMIT CHANGES"),
        three(where=TREE + " AND R.c = T.c"), three(where="R.a = S.a"),
        three(where="R.a = S.a AND S.b < T.b"), three(where=TREE + " AND R.c < S.c"),
    ],
)  # fmt: skip
def test_groups_are_not_for_other_queries(stated: str) -> None:
    stats = replace(grouped(0.6), selectivity={("R", "S"): 1 / 2000})
    assert not decide(parse(stated), stats).problem.grouped
    assert decide(parse(stated), stats).costs.cpu((0, 1, 2)) == decide(
        parse(stated), replace(stats, costs=Costs())
    ).costs.cpu((0, 1, 2))


def test_groups_give_searches_one_bill() -> None:
    """What hill climbing adds up step by step is what the plan costs, and the exact search finds nothing dearer."""
    for seed in range(40):
        problem = replace(
            random_problem(KINDS[seed % len(KINDS)], 3 + seed % 4, seed),
            grouped=True,
            costs=replace(Costs(), together=0.5),
        )
        exact, climbed = (decide_problem(problem, Limits(), Asked(search=s)) for s in ("pareto", "two_layer"))
        for d in (exact, climbed):
            for _, found in d.seen:
                assert found.cpu == pytest.approx(d.costs.cpu(found.shape)), f"seed {seed}: {found}"
                assert found.cpu == pytest.approx(price(problem, d.costs.tree(found.shape)).cpu), (
                    f"seed {seed}: {found}"
                )
            assert d.chosen is not None
        assert exact.chosen is not None and climbed.chosen is not None
        assert exact.chosen.cpu <= climbed.chosen.cpu * (1 + 1e-9)
