"""Any query, statistics, budget and permission: a plan that keeps the budget, or an honest refusal."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.optimize.problems import random_statistics
from watersmeet.errors import NoQualifiedPlan
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Plan
from watersmeet.model.query import Overload
from watersmeet.optimize import Asked, decide, explain_decision, optimize
from watersmeet.optimize.policy import POLICIES
from watersmeet.optimize.sketch import planned
from watersmeet.testing import random_query

OVERLOADS = (
    Overload(), Overload(shed=True), Overload(evict=True), Overload(evict=True, shed=True), Overload(direct=True),
)  # fmt: skip


def random_budget(rng: Random, cpu: float, tuples: float) -> Budget:
    some_cpu = max(cpu * 10 ** rng.uniform(-2, 1), 1e-12)
    return rng.choice([
        Budget(cpu=some_cpu),
        Budget(memory_tuples=max(1, int(tuples * rng.uniform(0.2, 2)))),
        Budget(cpu=some_cpu, memory=f"{rng.randint(1, 1000)} KB"),
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(80))
def test_conform_a_plan_within_the_budget_or_a_refusal(seed: int) -> None:
    rng = Random(seed)
    bound = planned(random_query(rng))
    bound = replace(bound, query=replace(bound.query, overload=rng.choice(OVERLOADS)))
    stats, cells = random_statistics(bound, rng), rng.choice((1, 1, 2, 6))
    free = decide(bound, stats, asked=Asked(cells=cells))
    assert free.plan is not None and free.plan.cpu is not None and free.plan.memory_tuples is not None
    budget = random_budget(rng, free.plan.cpu, free.plan.memory_tuples)
    policy = rng.choice(POLICIES)
    search = rng.choice(("auto", "pareto", "two_layer"))
    decision = decide(bound, stats, budget, Asked(policy, search, cells=cells))
    assert explain_decision(decision, steps=True)
    if decision.plan is None:
        with pytest.raises(NoQualifiedPlan) as caught:
            optimize(bound, stats, budget, Asked(policy, search, cells=cells))
        assert caught.value.nearest
        return
    plan, bill = decision.plan, decision.estimate
    assert bill is not None
    assert Plan.parse(str(plan)) == plan
    relieved = bound.query.overload
    assert decision.limits.allow(bill.cpu, 0.0) or relieved.direct
    assert decision.limits.allow(0.0, bill.memory) or relieved.evict
    if not plan.keep and plan.retention is None and not decision.relief:
        assert decision.qualified
    again = optimize(bound, stats, budget, Asked(policy, search, cells=cells))
    assert again == plan
