"""The public face in process: run a query over tables or batches, explain it, choose its plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from watersmeet.errors import PlanError, QueryError
from watersmeet.lang import parse
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.budget import Budget
from watersmeet.model.describe import describe
from watersmeet.model.graph import JoinGraph
from watersmeet.model.plan import Leaf, Node, Plan, Tree
from watersmeet.model.query import Query
from watersmeet.model.statistics import Statistics

if TYPE_CHECKING:
    import pyarrow as pa

Inputs: TypeAlias = "Mapping[str, Any] | Iterable[Mapping[str, Any]]"
Sink: TypeAlias = "Callable[[pa.RecordBatch], None]"
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class Result:
    """What a run gave: `rows` (selected columns and result_ts; None if they went to a sink), `metrics`, and the last `plan`."""

    rows: pa.Table | None
    metrics: dict[str, Any]
    plan: Plan


def run(
    text: str | Query,
    inputs: Inputs | None = None,
    plan: str | Plan = "auto",
    stats: Statistics | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    sink: Sink | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run a query in process and exactly.

    inputs: {stream name: Arrow table, pandas frame, rows or path}, or an iterable of such mappings (batches: then LATENESS has a
        meaning; static tables come with the first). Streams that the query declares with FROM '...' need not be given.
    plan: "auto", "mjoin", "xjoin" (a binary tree), or a Plan.
    sink: is called with each batch of results instead of collecting them.
    progress: is called with (rows done, rows in all) while whole tables are run.
    """
    import pyarrow as pa

    from watersmeet.engine.batches import Batches
    from watersmeet.engine.executor import Engine

    began = time.perf_counter()
    query = parse(text) if isinstance(text, str) else text
    batches = Batches(query, {} if inputs is None else inputs)
    bound = batches.bound
    engine = Engine(bound, choose(bound, plan, stats, budget or query.budget, batches.sample()))
    engine.load_tables({s.alias: batches.tables[s.stream] for s in bound.sources if s.static})
    made: list[pa.RecordBatch] = []
    give = made.append if sink is None else sink
    late = 0
    for released in batches.released():
        late += released.late_rows
        given = {
            s.alias: engine.intakes[i].in_order(released.rows[s.stream])
            for i, s in enumerate(bound.sources)
            if s.stream in released.rows
        }
        for batch in engine.feed(given, released.clock, progress):
            give(batch)
    rows_out = pa.Table.from_batches(made, schema=engine.gather.output) if sink is None else None
    # What only approximate answers, or caches, would make other than zero.
    none = dict.fromkeys(("cache_hits", "cache_misses", "evicted", "shed", "unprobed"), 0)
    measured = engine.metrics() | none | {"late": late, "seconds": time.perf_counter() - began}
    return Result(rows_out, measured, engine.plan)


def explain(
    text: str | Query,
    stats: Statistics | None = None,
    budget: Budget | None = None,
    analyze: Mapping[str, Any] | None = None,
) -> str:
    """How a query is understood, and the plan that `run` takes.

    analyze: inputs as for `run`: the query is run over them too, and what was measured is said as well. Without them the streams
        must be declared.
    """
    query = parse(text) if isinstance(text, str) else text
    if analyze is None:
        try:
            bound = bind(query)
        except QueryError as e:
            raise e.at(str(text)) from None
        return describe(bound, choose(bound, "auto", stats, budget or query.budget))
    from watersmeet.engine.batches import Batches

    result = run(query, analyze, stats=stats, budget=budget, sink=lambda batch: None)
    measured = "\n".join(f"  {name:<20} {value:.6g}" for name, value in result.metrics.items())
    return f"{describe(Batches(query, analyze).bound, result.plan)}\nMeasured\n{measured}"


def choose(
    bound: BoundQuery,
    plan: str | Plan,
    stats: Statistics | None = None,
    budget: Budget | None = None,
    sample: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan to run: the one given, or one of the kind asked for."""
    if isinstance(plan, Plan):
        return plan
    if plan in ("auto", "mjoin"):
        return _mjoin(bound)
    if plan == "xjoin":
        return _xjoin(bound)
    raise PlanError(
        f'unknown plan \'{plan}\'\n  "auto", "mjoin", "xjoin" or a Plan, for example Plan.parse(\'((A B) C)\')'
    )


def _mjoin(bound: BoundQuery) -> Plan:
    graph, aliases = JoinGraph.of(bound), list(bound.aliases)
    orders = tuple(tuple(aliases.index(s) for s in _connected(graph, [a])[1:]) for a in aliases)
    return Plan(Node(tuple(Leaf(a) for a in aliases), orders))


def _xjoin(bound: BoundQuery) -> Plan:
    order = _connected(JoinGraph.of(bound), [bound.aliases[0]])
    tree: Tree = Leaf(order[0])
    for stream in order[1:]:
        tree = Node((tree, Leaf(stream)))
    assert isinstance(tree, Node)
    return Plan(tree)


def _connected(graph: JoinGraph, start: list[str]) -> list[str]:
    """All streams, each after one that it joins where there is one."""
    order = list(start)
    while len(order) < len(graph.streams):
        left = [s for s in graph.streams if s not in order]
        near = [s for s in left if graph.neighbours(s) & set(order)]
        order.append((near or left)[0])
    return order


__all__ = ["Result", "choose", "explain", "run"]
