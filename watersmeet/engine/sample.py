"""Sample: what joins are made of, as it is now: the newest tuples of each window, their key columns as the kernel compares them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from watersmeet.engine.program import layout as L
from watersmeet.engine.store.arena import Arena
from watersmeet.model.expr import Expr

NEWEST = 1 << 12  # tuples of each window


@dataclass(frozen=True)
class WindowSample:
    """held: tuples in the window, also those that only count. joining: the fraction of them that can join. columns: of those, copied."""

    held: int
    joining: float
    exprs: tuple[Expr, ...]
    columns: tuple[Any, ...]

    def values(self, expr: Expr) -> Any:
        return self.columns[self.exprs.index(expr)]


Sampler = Callable[[], dict[str, WindowSample]]


def sample(arena: Arena, newest: int = NEWEST) -> dict[str, WindowSample]:
    """By alias."""
    made = {}
    for k, spec in enumerate(arena.program.stores[: arena.leaves]):
        row = arena.S[k]
        last, first = int(row[L.NEXT]), int(row[L.FLOOR]) if row[L.KIND] == L.RING else 0
        slots = np.arange(max(first, last - newest), last) & int(row[L.MASK])
        times = arena.m[int(row[L.TIMES_AT]) + slots]
        alive = slots[times != L.DEAD]
        records = arena.records(k)
        columns = tuple(records[alive, int(row[L.COL0]) + c].copy() for c in range(int(row[L.NCOLS])))
        joining = len(alive) / len(slots) if len(slots) and row[L.KIND] == L.RING else 1.0
        made[spec.name] = WindowSample(arena.live(k), joining, arena.program.columns[k], columns)
    return made
