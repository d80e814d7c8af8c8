"""Queries with very many conditions, and plans with very many joins in each other: work that grows in step, or a plain refusal."""

from __future__ import annotations

import cProfile

import pytest

import watersmeet as wm
from tests.engine.running import stream
from watersmeet.engine.estimate import observe
from watersmeet.engine.program.compile import compile_plan
from watersmeet.model.bind import bind
from watersmeet.model.query import MAX_SOURCES


def query(kind: str, n: int) -> str:
    columns = ", ".join(f"c{i} BIGINT" for i in range(n if kind == "equalities" else 1))
    conditions = {
        "equalities": (f"R.c{i} = S.c{i}" for i in range(n)),
        "comparisons": (f"R.c0 + {i} <= S.c0 + {2 * i + 1}" for i in range(n)),
        "one class": (
            f"R.c0 + {i} = S.c0 + {i}" if i % 2 == 0 else f"R.c0 + {i + 1} = S.c0 + {i - 1}" for i in range(n)
        ),
    }[kind]
    declared = " ".join(f"CREATE STREAM {s} ({columns}, ts TIMESTAMP);" for s in "RS")
    return f"{declared} SELECT R.c0 FROM R [ROWS 5], S [ROWS 5] WHERE {' AND '.join(conditions)}"


@pytest.mark.parametrize("kind", ["equalities", "comparisons"])
def test_a_thousand_conditions_run(kind: str) -> None:
    n = 1_000
    rows = stream(range(3), **{f"c{i}": [1, 2, 3] for i in range(n if kind == "equalities" else 1)})
    made = wm.run(query(kind, n), {"R": rows, "S": rows})
    assert made.rows.num_rows == (3 if kind == "equalities" else 8)


@pytest.mark.parametrize("kind", ["equalities", "comparisons", "one class"])
def test_work_before_the_first_row_grows_in_step_with_conditions(kind: str) -> None:
    """Counted in calls of functions: four times as many conditions take about four times as many (16 times if it were quadratic)."""
    calls = []
    for n in (100, 400):
        parsed = wm.parse(query(kind, n))
        rows = stream(range(3), **{f"c{i}": [1, 2, 3] for i in range(n if kind == "equalities" else 1)})
        profile = cProfile.Profile(builtins=False)
        with profile:
            bound = bind(parsed)
            observe(bound, {"R": rows, "S": rows})
            compile_plan(bound, wm.Plan.parse("(R S)"))
            wm.optimize(parsed, wm.Statistics(rate={"R": 1.0, "S": 1.0}))
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 5 * calls[0]


def nested(streams: int) -> str:
    text = "A0"
    for i in range(1, streams):
        text = f"({text} A{i})"
    return text


def test_a_plan_of_too_many_joins_within_each_other_is_refused() -> None:
    deepest = nested(MAX_SOURCES)
    assert str(wm.Plan.parse(deepest)) == deepest
    for text in (nested(2_000), "(" * 5_000, "(" * 3_000 + "A B" + ")" * 3_000, f"(A B) scan {{{nested(2_000)}}}"):
        with pytest.raises(wm.PlanError, match="at most 32 joins within each other"):
            wm.Plan.parse(text)
