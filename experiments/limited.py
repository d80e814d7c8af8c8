"""Limited: a query run in the engine with so much CPU per second of its streams, and so much memory, and no more.

The engine gets rows in the order of time, as long as it has CPU left; what it has not been given waits in the queues of its inputs. A
tick of stream time brings a tick's worth of CPU. The engine then takes rows, a slice of time at once, until nothing waits or the CPU is
used up; what the last slice took too much is missing from the next tick, and CPU that is not used in its tick is lost. Dead entries of
inner states are swept after each slice. A plan that then holds more tuples than it may stops for good.

CPU is one of two things, and a run says which:

    prices given   what the engine counted for the slice (probes, matches, inserts, deletes), at these prices: the same in every run
    none           CPU time of the thread for the slice, sweeping included: this engine on this machine
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
import pyarrow as pa

from experiments.counting import COUNTED, Counting
from experiments.streams import US
from watersmeet.engine.rows.batches import Batches
from watersmeet.lang import parse
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Costs
from watersmeet.optimize.cost import Limits

SLICES = 8  # of a tick: what the engine takes at once


@dataclass(frozen=True)
class Tick:
    """How a run stands at a moment of stream time: results so far, tuples waiting, tuples held, CPU used so far (as it is charged, and
    at `prices`), and when it ran out of memory (None: it did not)."""

    at: float
    results: int
    waiting: int
    tuples: int
    cpu_s: float
    priced_s: float
    stopped: float | None


class Queue:
    """The rows of all streams, in the order of time; those before `taken` have been given away."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables
        self.times = {name: table.column("ts").cast(pa.int64()).to_numpy() for name, table in tables.items()}
        self.taken = 0

    def take(self, until_us: int) -> dict[str, pa.Table]:
        """The rows up to a moment, which then wait no more."""
        given = {}
        for name, table in self.tables.items():
            low, high = np.searchsorted(self.times[name], [self.taken, until_us])
            given[name] = table.slice(int(low), int(high - low))
        self.taken = until_us
        return given

    def waiting(self, now_us: int) -> int:
        spans = (np.searchsorted(t, [self.taken, now_us]) for t in self.times.values())
        return sum(int(high - low) for low, high in spans)


def limited(
    text: str, tables: Mapping[str, pa.Table], plan: Plan, limits: Limits, seconds: float, tick_s: float,
    prices: Costs, by_prices: bool,
) -> Iterator[Tick]:  # fmt: skip
    """Run a plan for so many seconds of its streams, tick by tick; results are counted, not gathered."""
    engine = Counting(Batches(parse(text), dict(tables)).bound, plan)
    queue, tick_us = Queue(tables), round(tick_s * US)
    credit = spent = priced = 0.0
    tuples, stopped = 0, None
    counted = dict.fromkeys(COUNTED, 0)
    for now in range(tick_us, round(seconds * US) + 1, tick_us):
        credit = min(credit, 0.0) + limits.cpu * tick_s
        while credit > 0 and queue.taken < now and stopped is None:
            until = min(now, queue.taken + tick_us // SLICES)
            given = queue.take(until)
            began = time.thread_time()
            for _ in engine.feed(given):
                pass
            engine.sweep()
            took = time.thread_time() - began
            found = engine.metrics()
            done = {name: int(found[name]) - counted[name] for name in COUNTED}
            counted = {name: int(found[name]) for name in COUNTED}
            work = _at(prices, done)
            cost = work if by_prices else took
            credit, spent, priced = credit - cost, spent + cost, priced + work
            tuples = int(found["state_tuples"])
            if tuples > limits.memory:
                stopped = until / US
        yield Tick(now / US, counted["results"], queue.waiting(now), tuples, spent, priced, stopped)


def _at(prices: Costs, done: Mapping[str, int]) -> float:
    work = prices.probe * done["probes"] + prices.match * done["matches"]
    return work + prices.insert * done["inserts"] + prices.delete * done["expiries"]


def unlimited(
    text: str, tables: Mapping[str, pa.Table], plan: Plan, seconds: float, tick_s: float, prices: Costs
) -> tuple[float, float]:
    """CPU seconds per second that a plan takes with no limit, in the second half of a run: of the thread, and at `prices`."""
    run = list(limited(text, tables, plan, Limits(inf, inf), seconds, tick_s, prices, by_prices=False))
    half, end = run[len(run) // 2 - 1], run[-1]
    length = end.at - half.at
    return (end.cpu_s - half.cpu_s) / length, (end.priced_s - half.priced_s) / length
