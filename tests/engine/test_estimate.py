"""Statistics from the rows at hand: what windows hold, where a memory budget rests on it; and rows without a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import stream
from watersmeet.errors import BudgetWarning

TEXT = "SELECT R.k FROM R [{}], S [ROWS 5] WHERE R.k = S.k"


def rows(n: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(1)
    return stream(
        np.sort(rng.integers(0, 10**9, n)), k=rng.integers(0, 300, n), p=rng.integers(0, 40, n),
        f=rng.choice([0.0, -0.0, np.nan, 1.5], n), w=pa.array([f"w{v}" for v in rng.integers(0, 50, n)]),
    )  # fmt: skip


@pytest.mark.parametrize(
    "budget", [wm.Budget(memory="64 MB"), wm.Budget(memory_tuples=100_000)], ids=["bytes", "tuples"]
)
@pytest.mark.parametrize(
    "window", ["PARTITION BY p ROWS 3", "PARTITION BY w, p ROWS 2", "PARTITION BY f ROWS 7", "UNBOUNDED"]
)
def test_a_memory_budget_is_held_against_what_windows_were_seen_to_hold(window: str, budget: wm.Budget) -> None:
    made = wm.run(TEXT.format(window), {"R": rows(), "S": rows()}, budget=budget)
    held = wm.run(TEXT.format(window), {"R": rows(), "S": rows()}, plan=wm.Plan.parse("(R S)")).metrics[
        "peak_state_tuples"
    ]
    if budget.memory_tuples is not None:
        assert made.plan.memory_tuples == held
    with pytest.warns(BudgetWarning):
        wm.run(TEXT.format(window), {"R": rows(), "S": rows()}, budget=wm.Budget(memory_tuples=held - 1))


def test_a_memory_budget_is_explained_from_data() -> None:
    text = f"{TEXT.format('PARTITION BY p ROWS 3')} BUDGET (MEMORY 64 MB)"
    assert "(R S)" in wm.explain(text, analyze={"R": rows(), "S": rows()})


def test_what_an_unbounded_window_will_hold_is_not_known_from_a_first_batch() -> None:
    with pytest.raises(wm.QueryError, match="a memory budget needs a size of the unbounded window"):
        wm.run(TEXT.format("UNBOUNDED"), [{"R": rows(), "S": rows()}], budget=wm.Budget(memory_tuples=100_000))


@pytest.mark.parametrize("plan", ["auto", "mjoin", "xjoin", wm.Plan.parse("(R S)")], ids=str)
@pytest.mark.parametrize("batch", [None, 0, 1])
def test_a_row_without_a_time_is_refused_whatever_the_plan(plan: Any, batch: int | None) -> None:
    good, bad = stream([1, 2], k=[1, 2]), stream([1, None], k=[1, 2])
    given: Any = {"R": bad, "S": good}
    if batch is not None:
        given = [{"R": bad if i == batch else good, "S": good} for i in range(2)]
    with pytest.raises(
        wm.DataError, match=r"R, row 2, column 'ts': NULL, but every row of a stream needs its timestamp"
    ):
        wm.run(TEXT.format("ROWS 5"), given, plan=plan)
