"""Flow: a bound query as what runs on Spark: one pack for each stream, and the cells. No Spark in it yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from watersmeet.engine.control import Controller, unchanging
from watersmeet.model.bind import BoundQuery
from watersmeet.model.expr import Column, Expr, walk
from watersmeet.model.location import BadRows
from watersmeet.model.needs import counted, needed_schema
from watersmeet.model.plan import Plan
from watersmeet.spark.pack import Branch, Pack
from watersmeet.spark.route import Route
from watersmeet.spark.spec import CellSpec, check_names, sent_columns
from watersmeet.spark.waiting import WAITING_BYTES


@dataclass(frozen=True)
class Inlet:
    """One stream on its way in. masks: the columns of truth values that Spark computes, each from predicates that all must hold.
    columns: what pack reads besides."""

    stream: str
    pack: Pack
    masks: tuple[tuple[str, tuple[Expr, ...]], ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Flow:
    """What runs: the inlets of the streams, and the cells."""

    inlets: tuple[Inlet, ...]
    spec: CellSpec

    @classmethod
    def of(
        cls,
        bound: BoundQuery,
        plan: Plan,
        cells: int,
        tables: Mapping[str, pa.Table],
        *,
        in_spark: Callable[[Expr], bool] = lambda expr: False,
        late: bool = False,
        bad: bool = False,
        order: str = "event",
        refresh_tables: bool = False,
        waiting_bytes: int = WAITING_BYTES,
        controller: Callable[[BoundQuery], Controller] = unchanging,
    ) -> Flow:
        """tables: static tables by alias. in_spark: whether Spark can evaluate a predicate just as we do. late, bad: whether late and
        bad rows are given out besides results. controller: makes one for each cell."""
        check_names(bound, late or bad)
        route = Route.of(bound, cells, plan.cells)
        spec = CellSpec.of(
            bound, plan, route, tables, late=late, bad=bad, order=order, refresh_tables=refresh_tables,
            waiting_bytes=waiting_bytes, controller=controller,
        )  # fmt: skip
        streams = dict.fromkeys(s.stream for s in bound.sources if not s.static)
        return cls(tuple(_inlet(bound, plan, route, name, late, in_spark) for name in streams), spec)


def _inlet(
    bound: BoundQuery, plan: Plan, route: Route, stream: str, late: bool, in_spark: Callable[[Expr], bool]
) -> Inlet:
    branches, masks = [], []
    used: set[str] = set()
    for number, source in enumerate(bound.sources):
        if source.stream != stream or source.static:
            continue
        written = bound.selections[source.alias]
        # Each selection only sees rows that passed those before it, so Spark takes those at the front.
        # Of a preserved stream pack evaluates all, since rows that ON rejects are sent as well.
        preserved = source.alias == bound.preserved
        front = 0 if preserved else next((i for i, s in enumerate(written) if not in_spark(s)), len(written))
        mask = f"_wm_mask{number}" if front else None
        if mask:
            masks.append((mask, written[:front]))
        columns = sent_columns(bound, source.alias, late)
        used |= {source.timestamp, *columns}
        used |= {n.name for s in written[front:] for n in walk(s) if isinstance(n, Column)}
        lane = route.lanes[source.alias]
        used |= {n.name for side, _, _ in lane.dimensions if side for n in walk(side) if isinstance(n, Column)}
        chosen = bound.chosen if preserved else None
        sends_all = counted(source) or preserved
        keep, needed = plan.drop.get(source.alias, 1.0), needed_schema(bound, source.alias)
        used |= set(needed.names) if keep < 1 else set()
        branches.append(Branch(source, number, lane, columns, mask, written[front:], sends_all, keep, needed, chosen))
    schema = branches[0].source.schema
    used |= set(schema.names) if late else set()
    names = tuple(n for n in schema.names if n in used)
    types = tuple((f.name, f.type) for f in schema.fields if f.name in used)
    declared = bound.query.declaration(stream)
    bad_rows = declared.bad_rows if declared else BadRows()
    return Inlet(stream, Pack(tuple(branches), route.keys, types, bad_rows, late), tuple(masks), names)
