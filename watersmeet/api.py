"""The public face in process: run a query over tables or batches, explain it, choose its plan."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import warn

from watersmeet.errors import BudgetWarning, PlanError, QueryError
from watersmeet.lang import parse
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.budget import Budget
from watersmeet.model.cautions import cautions
from watersmeet.model.describe import describe
from watersmeet.model.plan import Plan
from watersmeet.model.prices import priced
from watersmeet.model.query import Overload, Query
from watersmeet.model.statistics import Statistics

if TYPE_CHECKING:
    import pyarrow as pa

    from watersmeet.engine.control import Controller, Event
    from watersmeet.optimize.choose import Decision

Inputs: TypeAlias = "Mapping[str, Any] | Iterable[Mapping[str, Any]]"
Sink: TypeAlias = "Callable[[pa.RecordBatch], None]"
Progress: TypeAlias = Callable[[int, int], None]
Late: TypeAlias = "Callable[[str, pa.Table], None]"
LONG = 5_000_000  # rows from which on a bar is shown


@dataclass(frozen=True)
class Result:
    """What a run gave: `rows` (selected columns and result_ts; none of them if they went to a sink), `metrics`, the last `plan`, and
    `events`: what was changed while it ran, and why."""

    rows: pa.Table
    metrics: dict[str, Any]
    plan: Plan
    events: tuple[Event, ...] = ()

    def event_log(self) -> str:
        """The events as JSON lines."""
        from watersmeet.engine.control import json_lines

        return json_lines(self.events)


def run(
    text: str | Query,
    inputs: Inputs | None = None,
    plan: str | Plan = "auto",
    stats: Statistics | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    sink: Sink | None = None,
    progress: Progress | None = None,
    controller: Controller | None = None,
    late: Late | None = None,
) -> Result:
    """Run a query in process, exactly unless it allows otherwise (ON OVERLOAD) and nothing else fits its budget.

    inputs: {stream name: Arrow table, pandas frame, rows or path}, or an iterable of such mappings (batches: then LATENESS has a
        meaning; static tables come with the first). Streams that the query declares with FROM '...' need not be given.
    plan: "auto" (chosen, and changed when the streams change), "mjoin", "xjoin" (a binary tree), or a Plan.
    seed: chooses the rows that ON OVERLOAD SHED gives up.
    sink: is called with each batch of results instead of collecting them.
    progress: is called with (rows done, rows in all) as the work goes on; by default long runs in a terminal show a bar.
    controller: watches the run and may change its plan (`watersmeet.engine.control`). By default "auto" adapts to the streams, and any
        other plan stays.
    late: is called with the name of a stream and rows of it that came too late.
    """
    import pyarrow as pa

    from watersmeet.engine.executor import Engine
    from watersmeet.engine.rows.batches import Batches

    began = time.perf_counter()
    query = parse(text) if isinstance(text, str) else text
    try:
        batches = Batches(query, {} if inputs is None else inputs)
    except QueryError as e:
        raise e.at(str(text)) from None
    bound = batches.bound
    limit = budget or query.budget
    chosen = choose(bound, plan, stats, limit, batches.sample(), batches.whole)
    engine = Engine(bound, chosen, controller or adaptive(plan, stats, limit)(bound), seed=seed)
    engine.load_tables({s.alias: batches.tables[s.stream] for s in bound.sources if s.static})
    made: list[pa.RecordBatch] = []
    give = made.append if sink is None else sink
    late_rows = 0
    for released in batches.released():
        late_rows += released.late_rows
        if late is not None:
            for name, behind in released.late.items():
                late(name, behind)
        with _shown(progress, sum(t.num_rows for t in released.rows.values())) as shown:
            for batch in engine.feed(released.rows, released.clock, shown, released.ended):
                give(batch)
    rows = pa.Table.from_batches(made, schema=engine.output)
    counted = {"late": late_rows, "bad": batches.bad_rows, "seconds": time.perf_counter() - began}
    return Result(rows, engine.metrics() | counted, engine.plan, engine.events.take())


@contextmanager
def _shown(progress: Progress | None, rows: int) -> Iterator[Progress | None]:
    """What tells of progress: the caller's function, or a bar on a terminal if there are so many rows that one would wonder."""
    if progress is not None or rows < LONG or not sys.stderr.isatty():
        yield progress
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("joining", total=rows)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def optimize(
    query: str | Query,
    stats: Statistics | None = None,
    budget: Budget | None = None,
    policy: str = "least_cpu",
    search: str = "auto",
    head_room: float = 0.0,
    cpu_share: float = 1.0,
    cells: int = 1,
) -> Plan:
    """The plan for a query under a budget (the query's own if none is given); raises NoQualifiedPlan.

    policy: among the plans that fit, "least_cpu", "least_memory", "non_dominated" or "any" (the first that is found).
    search: "auto", "pareto" (all non-dominated plans), "jtree_finder" (all plans) or "two_layer" (hill climbing).
    head_room: part of the CPU to leave free, 0 to below 1. cpu_share: part of each processor that the join gets, above 0.
    cells: into how many parts the join is split on Spark; copies count.
    """
    from watersmeet.optimize.asked import Asked
    from watersmeet.optimize.choose import optimize as chosen

    asked = Asked(policy, search, cells=cells, head_room=head_room, cpu_share=cpu_share)
    return chosen(parse(query) if isinstance(query, str) else query, priced(stats), budget, asked)


def explain(
    text: str | Query,
    stats: Statistics | None = None,
    budget: Budget | None = None,
    analyze: Mapping[str, Any] | None = None,
    steps: bool = False,
    plot: str | Path | None = None,
    policy: str = "least_cpu",
    search: str = "auto",
    head_room: float = 0.0,
    cpu_share: float = 1.0,
    cells: int = 1,
) -> str:
    """How a query is understood, and the plan that fits its budget, with reasons.

    analyze: inputs as for `run`: statistics are taken from them, the query is run, and what was measured is said as well. Without
        them the streams must be declared.
    steps: also what each step of the optimizer did.
    plot: a file (.png, .svg or .pdf) to draw the plan in, and where all plans lie between CPU and memory; needs statistics.
    policy, search, head_room, cpu_share, cells: as for `optimize`.
    """
    from watersmeet.optimize.along_graph import along_graph
    from watersmeet.optimize.asked import Asked
    from watersmeet.optimize.choose import decide
    from watersmeet.optimize.explain import explain_decision

    query = parse(text) if isinstance(text, str) else text
    budget = budget or query.budget
    asked = Asked(policy, search, cells=cells, head_room=head_room, cpu_share=cpu_share)
    if analyze is None:
        try:
            bound = bind(query)
        except QueryError as e:
            raise e.at(str(text)) from None
        if stats is None:
            if plot is not None:
                raise QueryError("a plot shows what plans cost", hint=f"{_WITHOUT} (--stats FILE, or --sample)")
            return f"{describe(bound)}\n\nPlan, with nothing known about the streams\n  {along_graph(bound)}\n  {_WITHOUT}\n"
        found = decide(bound, priced(stats), budget, asked)
        _draw(found, plot)
        return f"{describe(bound)}\n\n{explain_decision(found, steps)}"
    from watersmeet.engine.estimate import observe
    from watersmeet.engine.rows.batches import Batches

    batches = Batches(query, analyze)
    stats = stats or observe(batches.bound, batches.sample(), whole=batches.whole)
    result = run(query, analyze, stats=stats, budget=budget, sink=lambda batch: None)
    measured = "\n".join(f"  {name:<20} {value:.6g}" for name, value in result.metrics.items())
    found = decide(batches.bound, priced(stats), budget, asked)
    _draw(found, plot)
    return (
        f"{describe(batches.bound)}\n\n{explain_decision(found, steps)}\nMeasured, with {result.plan.root}\n{measured}"
    )


def _draw(found: Decision, plot: str | Path | None) -> None:
    if plot is not None:
        from watersmeet.optimize.plot import plot_decision

        plot_decision(found, plot)


_WITHOUT = "costs and a budget need statistics: rates and selectivities, or data to take them from"


def adaptive(
    plan: str | Plan, stats: Statistics | None = None, budget: Budget | None = None
) -> Callable[[BoundQuery], Controller]:
    """What watches a run of this plan: "auto" adapts to the streams, any other stays."""
    from watersmeet.adapt.reoptimizer import Reoptimizer
    from watersmeet.engine.control import unchanging

    if plan != "auto":
        return unchanging
    known = priced(stats or Statistics())
    return partial(Reoptimizer, costs=known.costs if known else None, budget=budget)


def choose(
    bound: BoundQuery,
    plan: str | Plan,
    stats: Statistics | None = None,
    budget: Budget | None = None,
    sample: Mapping[str, Any] | None = None,
    whole: bool = False,
    cells: int = 1,
) -> Plan:
    """The plan to run: the one given, or the best of the kind asked for, with shares for so many cells.

    Without statistics they are taken from the sample (whole: it is all that will come); without either it is an MJoin along the
    join graph. If nothing fits the budget, a warning says so, and what the query allows is given up; if it allows nothing, the
    cheapest plan is taken: it only takes longer.
    """
    from watersmeet.adapt.overload import directed, directing
    from watersmeet.engine.program.compile import undirected
    from watersmeet.optimize.along_graph import along_graph
    from watersmeet.optimize.asked import Asked
    from watersmeet.optimize.choose import HEAD_ROOM, decide
    from watersmeet.optimize.choose import optimize as search
    from watersmeet.optimize.cost import Limits
    from watersmeet.optimize.explain import refusal, shedding

    for caution in cautions(bound):
        warn(caution, stacklevel=3)
    if isinstance(plan, Plan):
        if cells == 1 or plan.cells or stats is None:
            return plan
        from watersmeet.optimize.from_query import shares_of

        return replace(plan, cells=shares_of(bound, stats, cells))
    if plan not in ("auto", "mjoin", "xjoin"):
        raise PlanError(
            f'unknown plan \'{plan}\'\n  "auto", "mjoin", "xjoin" or a Plan, for example Plan.parse(\'((A B) C)\')'
        )
    if stats is None and sample is None:
        if budget is not None:
            text = f"{budget} is not looked at: nothing is known about the streams\n  {_WITHOUT} (watersmeet learn; stats=)"
            warn(text, BudgetWarning, stacklevel=3)
        return along_graph(bound, plan)
    if stats is None and sample is not None:
        from watersmeet.engine.estimate import observe

        stats = observe(bound, sample, whole=whole)
    stats = priced(stats)
    found = decide(bound, stats, budget, Asked(kind=plan, cells=cells))
    if found.qualified or plan != "auto":
        assert found.plan is not None
        return found.plan
    if found.kept is not None:
        found = decide(bound, stats, budget, Asked(kind=plan, cells=cells, head_room=HEAD_ROOM))
    if found.kept is not None and found.retention is None and not found.overload.direct and bound.preserved is None:
        assert found.plan is not None
        warn(f"no exact plan fits the budget\n  {shedding(found)}", BudgetWarning, stacklevel=3)
        return found.plan
    done = ""
    if found.overload.direct and found.plan is not None and found.retention is None:
        done = f"\n  {undirected(bound)}"
        if not undirected(bound):
            directed_plan, direction = directed(found.problem, [found.plan], Limits.of(budget, HEAD_ROOM).cpu)
            warn(f"no exact plan fits the budget\n  {directing(direction)}", BudgetWarning, stacklevel=3)
            return directed_plan
    exact = replace(bound, query=replace(bound.query, overload=Overload(), budget=None))
    if found.overload.evict:
        done += "\n  ON OVERLOAD EVICT is not carried out yet"
    if found.kept is not None and bound.preserved is not None:
        done += "\n  with a LEFT JOIN nothing is shed: a row whose partner was given up would come out as unmatched"
    warn(
        f"{refusal(found)}{done}\n  it runs the cheapest plan, exactly, and may fall behind",
        BudgetWarning,
        stacklevel=3,
    )
    return search(exact, stats, asked=Asked(kind=plan, cells=cells))
