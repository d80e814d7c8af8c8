"""Program: a plan for one query, as data. Compiled by compile.py, laid out in memory by engine/store/arena.py, run by the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from watersmeet.model.bind import BoundQuery
from watersmeet.model.expr import Expr
from watersmeet.model.plan import Plan

Source: TypeAlias = tuple[int, int]  # (leaf, column of it)
Change: TypeAlias = Literal["insert", "delete"]
StoreKind: TypeAlias = Literal["ring", "pool", "state", "cache"]


@dataclass(frozen=True)
class IndexSpec:
    """An index on columns of a store: hash chains, or ordered by its one column. No columns: a chain of all (a scan)."""

    columns: tuple[int, ...]
    ordered: bool = False


@dataclass(frozen=True)
class StoreSpec:
    """A window (one leaf), the state of an inner node (several), or a cache.

    kind: a ring is a window that is first in, first out; from a pool tuples leave in any order; a state is pinned and complete; a
        cache may be incomplete, and may be dropped at any time.
    sources: where each of a state's columns, or of a cache's key, comes from.
    witnesses: leaves in which what a cache holds need have partners, if it need not hold all.
    bytes: of a cache.
    """

    name: str
    kind: StoreKind
    leaves: tuple[int, ...]
    sources: tuple[Source, ...]
    indexes: tuple[IndexSpec, ...]
    witnesses: tuple[int, ...] = ()
    bytes: int = 0


@dataclass(frozen=True)
class Check:
    """`left op right` between columns of leaves; op is = <> < or <=."""

    op: str
    left: Source
    right: Source


@dataclass(frozen=True)
class Probe:
    """Look up matches in a store. `key`: a source for each column of the index; `low`, `high`: (source, strict) for an ordered one."""

    store: int
    index: int
    key: tuple[Source, ...] = ()
    low: tuple[Source, bool] | None = None
    high: tuple[Source, bool] | None = None
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Keep:
    """Store what has been joined so far into the state of an inner node."""

    store: int


@dataclass(frozen=True)
class Lookup:
    """Ask a cache for the key. A hit goes on behind the Create that closes the segment, a miss through the probes in between.

    checks: what must hold besides between what was bound before and what is found.
    """

    store: int
    key: tuple[Source, ...]
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Create:
    """The end of a cached segment: what comes here after a miss is, all together, the value of the new entry."""

    store: int
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Update:
    """Tell a cache of a new combination. `leaf`: whose tuple is new; `again`: whether the cache may have been told of it before."""

    store: int
    key: tuple[Source, ...]
    leaf: int
    again: bool = False


@dataclass(frozen=True)
class Drop:
    """Have a cache drop the entry of the key if the probe that follows finds nothing."""

    store: int
    key: tuple[Source, ...]


@dataclass(frozen=True)
class Emit:
    """A result is complete: it has come about (insert), or the first of its tuples leaves (delete)."""

    change: Change = "insert"


@dataclass(frozen=True)
class End:
    """Nothing more to do (a pipeline that only fills states)."""


Op: TypeAlias = Probe | Keep | Lookup | Create | Update | Drop | Emit | End


@dataclass(frozen=True)
class Program:
    """What the kernel runs.

    columns: for each leaf (FROM order) the expressions whose values the kernel sees, as int64; the same for every plan of a query.
    stores: windows of the leaves first, then states of inner nodes, children before parents, then caches.
    arrive, leave: for each leaf the pipeline of a tuple that comes, and of one that goes (DSTREAM, CHANGES); empty: none.
    fill: for each state the leaf that drives it and the pipeline that builds it from the windows.
    late: predicates that the kernel can't decide; candidates are filtered by them afterwards.
    """

    bound: BoundQuery
    plan: Plan
    columns: tuple[tuple[Expr, ...], ...]
    stores: tuple[StoreSpec, ...]
    arrive: tuple[tuple[Op, ...], ...]
    leave: tuple[tuple[Op, ...], ...]
    fill: tuple[tuple[int, tuple[Op, ...]], ...]
    late: tuple[Expr, ...]
