"""Watersmeet: continuous multi-way window joins within a CPU and a memory budget, on Spark."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watersmeet.api import Result, explain, optimize, run
    from watersmeet.errors import (
        BudgetWarning,
        DataError,
        NoQualifiedPlan,
        PlanError,
        QueryError,
        QueryWarning,
        StateError,
        WatersmeetError,
    )  # fmt: skip
    from watersmeet.lang import parse
    from watersmeet.model.budget import Budget
    from watersmeet.model.plan import Plan
    from watersmeet.model.query import Query
    from watersmeet.model.statistics import Costs, Statistics
    from watersmeet.oracle import oracle
    from watersmeet.spark.control import flush
    from watersmeet.spark.learn import learn
    from watersmeet.spark.listener import metrics
    from watersmeet.spark.plain_errors import explain_error
    from watersmeet.spark.stream import stream

__version__ = "0.1.0"

# Heavy parts (numba, pyarrow, pyspark) load only when a name that needs them is used, so that import stays quick.
_HOME = {
    "parse": "lang", "oracle": "oracle", "run": "api", "explain": "api", "optimize": "api", "Result": "api",
    "Budget": "model.budget", "Plan": "model.plan", "Query": "model.query", "Costs": "model.statistics",
    "Statistics": "model.statistics", "DataError": "errors", "NoQualifiedPlan": "errors", "PlanError": "errors",
    "QueryError": "errors", "StateError": "errors", "WatersmeetError": "errors", "stream": "spark.stream",
    "flush": "spark.control", "learn": "spark.learn", "BudgetWarning": "errors", "QueryWarning": "errors",
    "metrics": "spark.listener", "explain_error": "spark.plain_errors",
}  # fmt: skip
__all__ = [
    "Budget", "BudgetWarning", "Costs", "DataError", "NoQualifiedPlan", "Plan", "PlanError", "Query", "QueryError",
    "QueryWarning", "Result", "StateError", "Statistics", "WatersmeetError", "explain", "explain_error", "flush",
    "learn", "metrics", "optimize", "oracle", "parse", "run", "stream",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'watersmeet' has no attribute {name!r}")
    module = import_module(f"watersmeet.{_HOME[name]}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


class _Package(ModuleType):
    """`wm.oracle` and `wm.optimize` are functions, though modules of these names lie below: importing those, which binds
    them as attributes here, must not hide the functions."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
