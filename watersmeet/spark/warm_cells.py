"""Warm cells: where a task finds its cell as the batch before left it: in shared memory (shared_memory.py), else in this worker.

A cell is found again by query and number; whether it is equal to the stored state the cell itself checks. A query that is gone
leaves its cells behind; they are dropped when another query's come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from watersmeet.spark.cell import Cell
from watersmeet.spark.shared_memory import Park
from watersmeet.spark.spec import CellSpec

_cells: dict[tuple[str, int], Cell] = {}


@contextmanager
def cell(spec: CellSpec, number: int) -> Iterator[Cell]:
    """The cell, as it was left or new."""
    key = (query_id(), number)
    for other in [k for k in _cells if k[0] != key[0]]:
        del _cells[other]
    found = _cells.pop(key, None)
    if found is None or found.spec != spec:
        found = Cell(spec, number)
    park = Park.of(*key)
    found.park = park if park is not None and park.enter() else None
    try:
        yield found
    finally:
        if found.park is not None:
            found.park.leave()
            found.park = None
    if found.kept is not None:  # there was no room in shared memory
        _cells[key] = found


def query_id() -> str:
    """Which streaming query this task works for."""
    from pyspark import TaskContext

    context = TaskContext.get()
    found = context.getLocalProperty("sql.streaming.queryId") if context is not None else None
    return found or ""
