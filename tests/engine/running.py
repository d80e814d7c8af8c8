"""Ways to run a query in a test, and the comparison with the oracle that says all about a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

import watersmeet as wm
from watersmeet.data import schema_of, timestamps
from watersmeet.engine.executor import Engine
from watersmeet.engine.program import layout as L
from watersmeet.engine.rows.batches import Batches
from watersmeet.engine.rows.release import Released
from watersmeet.lang import parse
from watersmeet.model.bind import bind
from watersmeet.model.plan import Plan, nodes
from watersmeet.model.query import Query
from watersmeet.testing import Case, random_plan, same_rows

TIMESTAMP = pa.timestamp("us", tz="UTC")


def stream(ts: Any, **columns: Any) -> pa.Table:
    """A stream: timestamps in microseconds, and columns."""
    return pa.table({**columns, "ts": pa.array(ts, pa.int64()).cast(TIMESTAMP)})


def check(case: Case, rows: pa.Table | None) -> None:
    """The rows are the oracle's; otherwise fail with the case and the symmetric difference."""
    assert rows is not None
    difference = same_rows(rows, case.expected)
    assert difference is None, f"{case}\n{difference}"


def agrees(text: str | Query, inputs: Any, *plans: str) -> pa.Table:
    """The oracle's answer, after seeing that all these plans (else an MJoin and a binary tree) give it."""
    query = parse(text) if isinstance(text, str) else text
    expected = wm.oracle(query, inputs)
    for plan in plans or ("mjoin", "xjoin"):
        chosen = wm.Plan.parse(plan) if plan.startswith("(") else plan
        difference = same_rows(wm.run(query, inputs, plan=chosen).rows, expected)
        assert difference is None, f"{query}\nplan {plan}\n{difference}"
    return expected


def in_time_order(case: Case, size: int | None) -> list[dict[str, pa.Table]]:
    """All rows in order of time, cut into batches of so many (None: one batch); tables come with the first."""
    schemas = {name: schema_of(table.schema, name) for name, table in case.streams.items()}
    sources = {s.stream: s for s in bind(case.query, schemas).sources}
    events = [
        (int(ts), name, i)
        for name, table in case.streams.items()
        if not sources[name].static
        for i, ts in enumerate(timestamps(table, sources[name].timestamp))
    ]
    events.sort(key=lambda event: event[0])
    made: list[dict[str, pa.Table]] = []
    for begin in range(0, max(len(events), 1), size or max(len(events), 1)):
        batch: dict[str, list[int]] = {}
        for _, name, i in events[begin : begin + (size or len(events))]:
            batch.setdefault(name, []).append(i)
        made.append({name: case.streams[name].take(pa.array(rows)) for name, rows in batch.items()})
    made[0] |= {name: table for name, table in case.streams.items() if sources[name].static or not table.num_rows}
    return made


@dataclass
class Run:
    """An engine and its inputs, driven by hand, so that a test can look inside and change plans."""

    engine: Engine
    batches: Batches

    @classmethod
    def of(
        cls,
        query: str | Query,
        inputs: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        plan: str | Plan,
        pause: Callable[[Engine], None] | None = None,
        every: int = 1 << 20,
    ) -> Run:
        batches = Batches(parse(query) if isinstance(query, str) else query, inputs)
        engine = Engine(batches.bound, Plan.parse(plan) if isinstance(plan, str) else plan, pause, every)
        engine.load_tables({s.alias: batches.tables[s.stream] for s in batches.bound.sources if s.static})
        return cls(engine, batches)

    def in_order(self, released: Released) -> dict[str, pa.Table]:
        """What was released, by alias, in the order of each stream."""
        return {
            s.alias: self.engine.intakes[i].in_order(released.rows[s.stream])
            for i, s in enumerate(self.batches.bound.sources)
            if s.stream in released.rows
        }

    def steps(self) -> Iterator[pa.Table]:
        """The results of each batch."""
        for released in self.batches.released():
            batches = list(self.engine.feed(self.in_order(released), released.clock))
            yield pa.Table.from_batches(batches, self.engine.gather.output)

    def rows(self) -> pa.Table:
        """All results."""
        return pa.concat_tables(self.steps())


class Switcher:
    """A pause that forces a plan switch after a random number of tuples: any tree, any orders, some inputs scanned."""

    def __init__(self, rng: Random, query: Query, steps: tuple[int, ...] = (1, 3, 10, 30)) -> None:
        self.rng, self.query, self.steps = rng, query, steps
        self.switches = self.with_output = 0

    def __call__(self, engine: Engine) -> None:
        self.with_output += int(engine.control[L.OUT_ROWS]) > 0
        engine.switch(self.plan())
        engine.every = self.rng.choice(self.steps)
        self.switches += 1

    def plan(self) -> Plan:
        plan = random_plan(self.rng, self.query)
        if self.rng.random() < 0.7:
            return plan
        inputs = [str(i) for node in nodes(plan.root) for i in node.inputs]
        return replace(plan, scan=tuple(i for i in inputs if self.rng.random() < 0.5))


def run_switching(
    rng: Random, query: Query, inputs: Any, plan: Plan, steps: tuple[int, ...] = (1, 3, 10, 30)
) -> tuple[pa.Table, Switcher]:
    """Run with plan switches forced at random tuples."""
    switcher = Switcher(rng, query, steps)
    return Run.of(query, inputs, plan, switcher, rng.choice(steps)).rows(), switcher
