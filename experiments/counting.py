"""Counting: a query run in the engine, with what was done and how long it took.

Two measures of CPU: what the engine counted (probes, matches, inserts, deletes) at a paper's prices, and CPU time of the thread.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from experiments.streams import between
from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.batches import Batches
from watersmeet.lang import parse
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Costs

COUNTED = ("probes", "matches", "inserts", "expiries", "results")


class Counting(Engine):
    """The engine without gathering: results are counted and left, so that sixteen million a second can be run."""

    def gathered(self, candidates: Any) -> None:
        return None


@dataclass(frozen=True)
class Done:
    """What happened in a span of event time; `tuples` are held at its end, `cpu_s` is CPU time of the thread."""

    at: float
    probes: int
    matches: int
    inserts: int
    expiries: int
    results: int
    tuples: int
    cpu_s: float

    def work(self, costs: Costs) -> float:
        """CPU seconds at given prices."""
        done = costs.probe * self.probes + costs.match * self.matches
        return done + costs.insert * self.inserts + costs.delete * self.expiries


def steady(
    text: str, tables: Mapping[str, pa.Table], plan: Plan, warm_s: float, seconds: float, gather: bool = True
) -> Done:
    """One step after a warm-up in which windows fill; `gather`: results are made, as a user has them."""
    bound = Batches(parse(text), dict(tables)).bound
    engine = Engine(bound, plan) if gather else Counting(bound, plan)
    _step(engine, between(tables, 0, warm_s), warm_s)
    return _step(engine, between(tables, warm_s, warm_s + seconds), warm_s + seconds)


def _step(engine: Engine, given: dict[str, pa.Table], at: float) -> Done:
    before: dict[str, Any] = engine.metrics()
    began = time.thread_time()
    for _ in engine.feed(given):
        pass
    took = time.thread_time() - began
    engine.sweep()
    now: dict[str, Any] = engine.metrics()
    probes, matches, inserts, expiries, results = (int(now[n] - before[n]) for n in COUNTED)
    return Done(at, probes, matches, inserts, expiries, results, int(now["state_tuples"]), took)
