"""Pipelines: the ops of a Program as one table of integers, those of one pipeline in a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from watersmeet.engine.program import layout as L
from watersmeet.model.program import Create, Drop, Emit, Keep, Lookup, Op, Probe, Program, Source, Update


@dataclass
class Pipelines:
    """All ops of a program in one table; for each pipeline its first op.

    lookups: how many there are.
    groups: whether rows may go through their pipelines together (kernel/group.py): all windows are first in, first out, nothing
        happens when a tuple leaves, and each probe or lookup has one key and nothing else to check; no caches beside states.
    """

    ops: Any
    checks: Any
    arrive: list[int]
    leave: list[int]
    fill: list[int]
    lookups: int
    groups: bool

    @classmethod
    def of(cls, program: Program, stores: Any) -> Pipelines:
        """`stores`: the table of stores, with the kind and the columns of each."""
        ops: list[list[int]] = []
        checks: list[list[int]] = []
        lookups: list[int] = []

        def add(pipeline: tuple[Op, ...]) -> int:
            if not pipeline:
                return -1
            first = len(ops)
            ops.extend(_op(op, stores, checks, _members(program, op)) for op in pipeline)
            lookups.extend(_pair(pipeline, ops, first, len(lookups)))
            for here, after in zip(ops[first:], ops[first + 1 :], strict=False):
                if here[L.SIMPLE] and after[L.CODE] == L.EMIT:
                    here[L.SIMPLE] += 1
            return first

        arrive = [add(p) for p in program.arrive]
        leave = [add(p) for p in program.leave]
        for pipes, starts in ((program.arrive, arrive), (program.leave, leave)):
            for leaf, (pipeline, first) in enumerate(zip(pipes, starts, strict=True)):
                for k, op in enumerate(pipeline):
                    if isinstance(op, Probe):
                        ops[first + k][L.ALLOWED] = allowed(program, leaf, op)
        fill = [add(p) for _, p in program.fill]
        return cls(
            np.array(ops, np.int64).reshape(-1, L.OP_WIDTH),
            np.array(checks, np.int64).reshape(-1, L.CHECK_WIDTH),
            arrive,
            leave,
            fill,
            len(lookups),
            may_group(program),
        )


def allowed(program: Program, leaf: int, op: Probe) -> int:
    """Of each ALL tuples in the pipeline of a leaf, how many may make this probe."""
    name = [store.name for store in program.stores]
    target = frozenset(name[k] for k in program.stores[op.store].leaves)
    return round(L.ALL * program.plan.allowance(name[leaf], target))


_CHECKS = {"=": L.EQ, "<>": L.NE, "<": L.LT, "<=": L.LE}


def _members(program: Program, op: Op) -> tuple[int, ...]:
    return program.stores[op.store].leaves if isinstance(op, Probe | Update) else ()


def _pair(pipeline: tuple[Op, ...], ops: list[list[int]], first: int, row: int) -> Iterator[int]:
    """Have each lookup of a pipeline and its creation know of each other, and each drop its probe; yields the rows of what is pending."""
    for k, op in enumerate(pipeline):
        if isinstance(op, Drop):
            ops[first + k][L.PAIR] = first + next(j for j in range(k, len(pipeline)) if isinstance(pipeline[j], Probe))
        if isinstance(op, Lookup):
            close = next(j for j in range(k, len(pipeline)) if isinstance(pipeline[j], Create))
            ops[first + k][L.PAIR], ops[first + close][L.PAIR] = first + close, first + k
            ops[first + k][L.PENDING] = ops[first + close][L.PENDING] = row
            yield row
            row += 1


def _op(op: Op, stores: Any, checks: list[list[int]], members: tuple[int, ...]) -> list[int]:
    def place(source: Source) -> list[int]:
        return [source[0], int(stores[source[0], L.COL0]) + source[1]]

    row = [0] * L.OP_WIDTH
    row[L.ALLOWED] = L.ALL
    row[L.OP_KEY0 : L.OP_KEY0 + 2 * L.MAX_KEYS] = [-1] * (2 * L.MAX_KEYS)
    if isinstance(op, Probe | Lookup | Update | Drop):
        row[L.TARGET], row[L.OP_NKEYS] = op.store, len(op.key)
        for k, source in enumerate(op.key):
            row[L.OP_KEY0 + 2 * k : L.OP_KEY0 + 2 * k + 2] = place(source)
    if isinstance(op, Probe | Lookup | Create):
        row[L.CHECK_FROM] = len(checks)
        checks.extend([_CHECKS[c.op], *place(c.left), *place(c.right)] for c in op.checks)
        row[L.CHECK_TO] = len(checks)
    if isinstance(op, Probe):
        row[L.CODE], row[L.INDEX] = L.PROBE, int(stores[op.store, L.INDEX_FROM]) + op.index
        if op.low:
            row[L.OP_KEY0 : L.OP_KEY0 + 2], row[L.LOW_STRICT] = place(op.low[0]), int(op.low[1])
        if op.high:
            row[L.OP_KEY0 + 2 : L.OP_KEY0 + 4], row[L.HIGH_STRICT] = place(op.high[0]), int(op.high[1])
        if len(op.key) == 1 and not op.checks:
            over_rings = bool((stores[list(members), L.KIND] == L.RING).all())
            row[L.SIMPLE] = 1 if stores[op.store, L.KIND] != L.STATE else 3 if over_rings else 0
    elif isinstance(op, Keep | Create):
        row[L.CODE], row[L.TARGET] = L.STORE if isinstance(op, Keep) else L.CREATE, op.store
    elif isinstance(op, Update):
        row[L.CODE] = L.UPDATE
        row[L.BY] = members.index(op.leaf) if op.leaf in members else -1
        row[L.AGAIN] = int(op.again) + int(op.again and row[L.BY] < 0)
    elif isinstance(op, Lookup | Drop):
        row[L.CODE] = L.LOOKUP if isinstance(op, Lookup) else L.DROP
    else:
        row[L.CODE] = L.EMIT if isinstance(op, Emit) else L.FILLED
        row[L.TARGET] = L.DELETE if isinstance(op, Emit) and op.change == "delete" else L.INSERT
    return row


def may_group(program: Program) -> bool:
    """Whether rows may go through these pipelines together; it depends on the plan and the query alone."""
    kinds = {store.kind for store in program.stores}
    ops = [op for p in (*program.arrive, *(p for _, p in program.fill)) for op in p]
    return (
        "pool" not in kinds
        and not any(program.leave)
        and all(len(index.columns) == 1 and not index.ordered for store in program.stores for index in store.indexes)
        and all(len(op.key) == 1 and not op.checks for op in ops if isinstance(op, Probe | Lookup))
        and not any(isinstance(op, Drop) or (isinstance(op, Update) and op.again) for op in ops)
        and not {"cache", "state"} <= kinds
    )
