"""The optimizer's plans in the running engine: the same results as the plan as written, and the work that the model foretells."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from tests.optimize.problems import random_statistics
from watersmeet.api import run
from watersmeet.lang import parse
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Statistics
from watersmeet.optimize import Asked, optimize
from watersmeet.optimize.cost import price
from watersmeet.optimize.from_query import state_problem
from watersmeet.optimize.sketch import planned
from watersmeet.testing import random_case, same_rows


@pytest.mark.parametrize("seed", range(40))
def test_equiv_optimized_plans_give_what_the_query_means(seed: int) -> None:
    case = random_case(seed)
    rng = Random(seed)
    bound = planned(case.query)
    stats = random_statistics(bound, rng)
    written = Plan.left_deep(bound.aliases)
    for plan in (optimize(bound, stats), optimize(bound, stats, asked=Asked("least_memory")), optimize(bound), written):
        found = run(case.query, case.batches, plan=plan).rows
        assert found is not None
        difference = same_rows(found, case.expected)
        assert difference is None, f"seed {seed}, plan {plan}\n{difference}"


CHAIN = """SELECT A.a FROM A [RANGE 4 SECONDS], B [RANGE 3 SECONDS], C [ROWS 100], D [RANGE 4 SECONDS]
           WHERE A.a = B.a AND B.b = C.b AND C.c = D.c"""
SECONDS, RATE, VALUES = 200, {"A": 20, "B": 30, "C": 25, "D": 15}, {"a": 40, "b": 60, "c": 50}


def even_streams() -> dict[str, pa.Table]:
    rng = np.random.default_rng(1)
    made = {}
    for name, columns in (("A", "a"), ("B", "ab"), ("C", "bc"), ("D", "c")):
        count = RATE[name] * SECONDS
        times = np.sort(rng.integers(0, SECONDS * 1_000_000, count))
        keys = {c: rng.integers(0, VALUES[c], count) for c in columns}
        made[name] = pa.table({**keys, "ts": pa.array(times, pa.timestamp("us", tz="UTC"))})
    return made


@pytest.mark.parametrize(
    "text", ["(A B C D)", "((A B) C D)", "((A B) (C D))", "(((A B) C) D)", "((A B C) D) orders {B: C A}"]
)
def test_equiv_the_model_counts_what_the_engine_does(text: str) -> None:
    """Probes, matches, inserts and results of a run are those foretold, to within 3 %."""
    stats = Statistics(
        rate={s: float(r) for s, r in RATE.items()},
        selectivity={("A", "B"): 1 / 40, ("B", "C"): 1 / 60, ("C", "D"): 1 / 50},
    )
    plan = Plan.parse(text)
    bill = price(state_problem(planned(parse(CHAIN)), stats).problem, plan.root)
    metrics = run(CHAIN, even_streams(), plan=plan).metrics
    foretold = {
        "probes": sum(p.probes for p in bill.parts),
        "matches": sum(p.matches for p in bill.parts),
        "inserts": sum(p.inserts for p in bill.parts),
        "results": bill.output_rate,
    }
    for name, each_second in foretold.items():
        assert metrics[name] == pytest.approx(each_second * SECONDS, rel=0.03), name
