"""Ways to run a query in a test, and the comparison with the oracle that says all about a failure."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

import watersmeet as wm
from watersmeet.data import schema_of, timestamps
from watersmeet.engine.control import Change, Controller, Observed
from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.batches import Batches
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
        controller: Controller | None = None,
        groups: bool = True,
    ) -> Run:
        batches = Batches(parse(query) if isinstance(query, str) else query, inputs)
        chosen = Plan.parse(plan) if isinstance(plan, str) else plan
        engine = Engine(batches.bound, chosen, controller, groups=groups)
        engine.load_tables({s.alias: batches.tables[s.stream] for s in batches.bound.sources if s.static})
        return cls(engine, batches)

    def steps(self) -> Iterator[pa.Table]:
        """The results of each batch."""
        for released in self.batches.released():
            batches = list(self.engine.feed(released.rows, released.clock, ended=released.ended))
            yield pa.Table.from_batches(batches, self.engine.output)

    def rows(self) -> pa.Table:
        """All results."""
        return pa.concat_tables(self.steps())


class Scripted:
    """A controller that does what a function says, after each `every` arrivals and at the end of each feed."""

    def __init__(self, step: Callable[[Observed], Change | Plan | str | None], every: int) -> None:
        self.decide, self.every = step, every
        self.steps = 0

    def step(self, seen: Observed) -> Change | None:
        self.steps += 1
        made = self.decide(seen)
        if isinstance(made, str):
            made = Plan.parse(made)
        return Change("the test says so", plan=made) if isinstance(made, Plan) else made

    def memory(self) -> bytes:
        return b""

    def recall(self, memory: bytes) -> None:
        pass


class RandomChanges:
    """A controller that applies a random legal change after a random number of tuples: any tree, any orders, some inputs scanned.

    Its memory is the state of its random numbers and its counts, so that it goes on as if nothing had been in between.
    """

    def __init__(self, rng: Random, query: Query, steps: tuple[int, ...] = (1, 3, 10, 30)) -> None:
        self.rng, self.query, self.lengths = rng, query, steps
        self.every = rng.choice(steps)
        self.changes = 0
        self.watch: Callable[[], object] = lambda: None  # is called before each change

    def step(self, seen: Observed) -> Change | None:
        self.watch()
        self.every = self.rng.choice(self.lengths)
        self.changes += 1
        return Change(f"random change {self.changes} after {seen.arrivals} arrivals", plan=self.plan())

    def plan(self) -> Plan:
        plan = random_plan(self.rng, self.query)
        if self.rng.random() < 0.7:
            return plan
        inputs = [str(i) for node in nodes(plan.root) for i in node.inputs]
        return replace(plan, scan=tuple(i for i in inputs if self.rng.random() < 0.5))

    def memory(self) -> bytes:
        return pickle.dumps((self.rng.getstate(), self.every, self.changes))

    def recall(self, memory: bytes) -> None:
        state, self.every, self.changes = pickle.loads(memory)
        self.rng.setstate(state)


def run_switching(
    rng: Random, query: Query, inputs: Any, plan: Plan, steps: tuple[int, ...] = (1, 3, 10, 30)
) -> tuple[pa.Table, list[int]]:
    """Run with changes forced at random tuples: all of them have happened, and are in the log. Also gives, for each of them, how many
    candidates had not been handed over yet."""
    changes = RandomChanges(rng, query, steps)
    run = Run.of(query, inputs, plan, changes)
    pending: list[int] = []
    changes.watch = lambda: pending.append(run.engine.inspect().pending)
    rows = run.rows()
    events = run.engine.events.take()
    assert len(events) == changes.changes == run.engine.metrics()["plan_switches"] == len(pending) > 0
    return rows, pending
