"""Route: which cells a row goes to (HyperCube, "Shares").

Each class of equal attributes may get a share, a number of parts into which its values are hashed; the shares multiply to the number
of cells, and a cell is a point in this grid. A row goes to every cell that agrees with its hashed attributes: along the dimensions
that its stream has no attribute of, to all. The members of a result agree on every attribute, so they meet in exactly one cell.

    R(a), S(a, b), T(b), 4 cells as a: 2, b: 2:   R to 2 cells, S to 1, T to 2

Where there is no class (theta joins, Cartesian products), one stream is split by a hash of its whole rows. The shares are
those of the plan (chosen in optimize/cells.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from watersmeet.errors import PlanError, QueryError, nearest_name
from watersmeet.model.bind import BoundQuery
from watersmeet.model.expr import Column, Expr
from watersmeet.model.graph import JoinGraph

MOST_CELLS = 4096


@dataclass(frozen=True)
class Dimension:
    """A class that is split: `sides` has each stream's attribute of it; None stands for the whole row."""

    name: str
    share: int
    sides: tuple[tuple[str, Expr | None], ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.share}"


@dataclass(frozen=True)
class Lane:
    """How rows of one entry of FROM travel.

    dimensions: (expression or None, share, stride) of each dimension that its rows fix; their parts times strides add up to
        the row's *base* cell.
    offsets: the row goes to base + offset for each of these; the first is 0.
    everywhere: every cell gets every row, outside its own share only to be counted (ROWS windows).
    """

    dimensions: tuple[tuple[Expr | None, int, int], ...]
    offsets: tuple[int, ...]
    everywhere: bool

    @cached_property
    def bases(self) -> tuple[int, ...]:
        """All base cells that rows may have."""
        parts = [range(share) for _, share, _ in self.dimensions]
        strides = [stride for _, _, stride in self.dimensions]
        return tuple(sorted(sum(p * s for p, s in zip(at, strides, strict=True)) for at in product(*parts)))


@dataclass(frozen=True)
class Route:
    """Cells and shares of a query; `keys[i]` is the key by which Spark groups cell i."""

    cells: int
    dimensions: tuple[Dimension, ...]
    keys: tuple[int, ...]
    lanes: Mapping[str, Lane]

    @classmethod
    def of(cls, bound: BoundQuery, cells: int, shares: Sequence[tuple[str, int]] = ()) -> Route:
        """shares: those of the plan; none: what the query alone suggests."""
        if not 1 <= cells <= MOST_CELLS:
            raise QueryError(
                f"cells={cells}: from 1 to {MOST_CELLS} are possible", hint="one for each core is a good start"
            )
        dimensions = choose_dimensions(bound, cells, shares)
        lanes = {s.alias: _lane(bound, s.alias, dimensions) for s in bound.sources if not s.static}
        return cls(cells, dimensions, cell_keys(cells), lanes)

    def copies(self, alias: str) -> int:
        """How many cells a row of this stream goes to."""
        lane = self.lanes[alias]
        return self.cells if lane.everywhere else len(lane.offsets)

    def __str__(self) -> str:
        split = ", ".join(map(str, self.dimensions)) or "nothing is split"
        copies = ", ".join(f"{a} to {self.copies(a)}" for a in self.lanes)
        return f"{self.cells} cell{'s' if self.cells > 1 else ''} ({split}); each row of {copies}"


def choose_dimensions(bound: BoundQuery, cells: int, shares: Sequence[tuple[str, int]] = ()) -> tuple[Dimension, ...]:
    """The dimensions of a plan's shares, else those that `optimize.cells` finds with nothing known about the streams."""
    if not shares and cells > 1:
        from watersmeet.optimize.from_query import shares_of  # workers have no use for the optimizer

        shares = shares_of(bound, None, cells)
    if (found := prod(count for _, count in shares)) != cells:
        grid = ", ".join(f"{name}: {count}" for name, count in shares)
        raise PlanError(f"the plan is for {found} cells ({grid}), the query is to run in {cells}\n  pass cells={found}")
    streams = [s.alias for s in bound.sources if not s.static]
    sides: dict[str, tuple[tuple[str, Expr | None], ...]] = {}
    for group in JoinGraph.of(bound).classes:
        sides[group.name] = tuple((m.stream, m.expr) for m in group.members if m.stream in streams)
    made = []
    for name, count in shares:
        if not sides.get(name) and name not in streams:
            known = [*(n for n, split in sides.items() if split), *streams]
            raise PlanError(f"cells: nothing is called '{name}'\n  {nearest_name(name, known)}")
        if sides.get(name):
            made.append(Dimension(name, count, sides[name]))
        else:
            made.append(Dimension(f"rows of {name}", count, ((name, None),)))
    if bound.preserved and (apart := [d.name for d in made if bound.preserved not in dict(d.sides)]):
        raise PlanError(f"cells: a LEFT JOIN is split by what its first stream has, not by {apart[0]}")
    return tuple(made)


def _partition_fixes(bound: BoundQuery, alias: str, sides: list[Expr | None]) -> bool:
    """Whether rows of one partition always go to the same cells, so that no other cell needs to count them."""
    window = bound.source(alias).window
    if window is None or window.kind != "ROWS" or not sides:
        return not sides
    by = {f.name for c in window.partition if (f := bound.source(alias).schema.find(c))}
    return all(isinstance(side, Column) and side.name in by for side in sides)


def _lane(bound: BoundQuery, alias: str, dimensions: tuple[Dimension, ...]) -> Lane:
    strides = [prod(d.share for d in dimensions[i + 1 :]) for i in range(len(dimensions))]
    mine, offsets = [], [0]
    for dimension, stride in zip(dimensions, strides, strict=True):
        sides = dict(dimension.sides)
        if alias in sides:
            mine.append((sides[alias], dimension.share, stride))
        else:
            offsets = [o + part * stride for o in offsets for part in range(dimension.share)]
    window = bound.source(alias).window
    counted = window is not None and window.kind == "ROWS"
    everywhere = counted and bool(mine) and not _partition_fixes(bound, alias, [side for side, _, _ in mine])
    return Lane(tuple(mine), tuple(sorted(offsets)), everywhere)


def cell_keys(cells: int) -> tuple[int, ...]:
    """For each of so many shuffle partitions the least key that Spark's hash puts there: one cell a partition.

    >>> cell_keys(2)
    (2, 0)
    """
    found: dict[int, int] = {}
    key = 0
    while len(found) < cells:
        found.setdefault(partition_of(key, cells), key)
        key += 1
    return tuple(found[i] for i in range(cells))


def partition_of(key: int, partitions: int) -> int:
    """The shuffle partition of an INT key: pmod(murmur3(key, seed 42), partitions), as in Spark's HashPartitioning."""
    value = _murmur3(key, 42)
    return (value - (1 << 32) if value >= 1 << 31 else value) % partitions


def _murmur3(word: int, seed: int) -> int:
    mask = 0xFFFFFFFF

    def rotate(x: int, by: int) -> int:
        return (x << by | x >> (32 - by)) & mask

    k = rotate(word * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    h = (rotate(seed ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4  # the length of an INT
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16
