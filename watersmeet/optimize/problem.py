"""Problem: what the search algorithms see of a query: rates, windows, selectivities and prices. No columns, no text.

Streams are numbered in FROM order; a set of streams is an `int` with bit i set for stream i. `statistics_problem`
(from_query.py) makes a Problem from a query and its Statistics; tests and the papers' examples make one with
`Problem.of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, prod
from typing import TYPE_CHECKING

from watersmeet.errors import QueryError, nearest_name
from watersmeet.model.plan import Leaf, Node
from watersmeet.model.statistics import Costs
from watersmeet.optimize.widths import entry_bytes

if TYPE_CHECKING:
    from watersmeet.optimize.rates import Rates


@dataclass(frozen=True)
class Stream:
    """A stream or a static table.

    rate: λ, tuples per second that pass the selections of the stream; 0 for a table.
    window: W, tuples that take part at a moment (RANGE: λ·T, equation 2 of static-optimization for selections).
    expires: whether tuples leave (not those of a table or an UNBOUNDED window).
    row_bytes: what a tuple occupies in its window.
    """

    name: str
    rate: float
    window: float
    expires: bool = True
    row_bytes: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.rate) and self.rate >= 0):
            raise QueryError(f"the rate of '{self.name}' is {self.rate}; it must be above 0 (0 for a table)")
        if not (isfinite(self.window) and self.window >= 0):
            raise QueryError(f"the window of '{self.name}' holds {self.window} tuples; it must be zero or more")
        if self.rate > 0 and self.window == 0:
            raise QueryError(f"'{self.name}' has tuples, but its window holds none")

    @property
    def turnover(self) -> float:
        """ν = λ / W: how often per second the window is renewed."""
        return self.rate / self.window if self.window else 0.0

    @property
    def static(self) -> bool:
        return self.rate == 0 and not self.expires


@dataclass(frozen=True)
class Predicate:
    """A class of equal attributes (`hashed`), or a comparison between two streams.

    pairs: (i, j, f_ij, f_ji) for every two members: the fraction of tuples of j that a tuple of i probing j joins,
    and the other
        way round (static-optimization 5.2, issue 3: the two may differ).
    """

    pairs: tuple[tuple[int, int, float, float], ...]
    hashed: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        members = sorted({s for i, j, _, _ in self.pairs for s in (i, j)})
        wanted = {(i, j) for i in members for j in members if i < j}
        if {(min(i, j), max(i, j)) for i, j, _, _ in self.pairs} != wanted or len(self.pairs) != len(wanted):
            raise QueryError(f"predicate {self.name or self.pairs} needs one selectivity for every two of its streams")
        for _, _, f, g in self.pairs:
            if not (0 <= f <= 1 and 0 <= g <= 1):
                raise QueryError(
                    f"selectivity {f if not 0 <= f <= 1 else g} of {self.name or self.pairs} is not 0 to 1"
                )

    @cached_property
    def members(self) -> tuple[int, ...]:
        return tuple(sorted({s for i, j, _, _ in self.pairs for s in (i, j)}))

    @cached_property
    def mask(self) -> int:
        return sum(1 << s for s in self.members)


@dataclass(frozen=True)
class Share:
    """One dimension of the HyperCube: `count` hash values of a class of attributes (or of one stream's rows)."""

    name: str
    mask: int
    count: int


@dataclass(frozen=True)
class Problem:
    """Streams, predicates, prices.

    residual: the fraction of complete combinations that pass the predicates which are checked at the end only.
    shares: the cells (cells.py); every tuple is copied along the dimensions that it has no attribute of.
    inner_passes, root_passes: how many times the pipelines of inner nodes and of the root run for a tuple: once in
    ISTREAM,
        again for its deletion where expiries go through the pipelines (DSTREAM: 2, 1; CHANGES and a-caching: 2, 2).
    unit: what memory is counted in, "tuples" or "bytes".
    grouped: whether rows go in groups through a plan of one node (docs/internals/cost-model.md).

    >>> p = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2})
    >>> p.names, p.linked(0b001), p.components
    (('A', 'B', 'C'), 2, (7,))
    """

    streams: tuple[Stream, ...]
    predicates: tuple[Predicate, ...] = ()
    residual: float = 1.0
    costs: Costs = field(default_factory=Costs)
    shares: tuple[Share, ...] = ()
    inner_passes: int = 1
    root_passes: int = 1
    unit: str = "tuples"
    grouped: bool = False

    def __post_init__(self) -> None:
        if not self.streams:
            raise QueryError("there is no stream to plan for")
        if not any(s.rate for s in self.streams):
            raise QueryError("no stream has tuples: there is nothing to plan for")
        if not 0 <= self.residual <= 1:
            raise QueryError(f"selectivity {self.residual} of the predicates checked at the end is not 0 to 1")

    @classmethod
    def of(
        cls,
        rate: Mapping[str, float],
        window: float | Mapping[str, float],
        selectivity: Mapping[tuple[str, str], float],
        costs: Costs | None = None,
        *,
        tables: Mapping[str, float] | None = None,
        comparisons: Iterable[tuple[str, str]] = (),
        classes: Iterable[Iterable[str]] = (),
    ) -> Problem:
        """A problem from plain numbers. `window` is in tuples; `tables` are static, by their number of rows.

        Every pair in `selectivity` is an equality of its own, but for those in `comparisons`, and for those inside
        one of the `classes`: there all pairs together are one equality.
        """
        sizes = {n: window[n] if isinstance(window, Mapping) else window for n in rate}
        streams = [Stream(n, r, sizes[n]) for n, r in rate.items()]
        streams += [Stream(n, 0.0, rows, expires=False) for n, rows in (tables or {}).items()]
        number = {s.name: i for i, s in enumerate(streams)}
        for pair in selectivity:
            for name in pair:
                if name not in number:
                    raise QueryError(f"selectivity names '{name}'", hint=nearest_name(name, number))
        scanned = {frozenset(c) for c in comparisons}

        def entry(a: str, b: str) -> tuple[int, int, float, float]:
            f = selectivity.get((a, b), selectivity.get((b, a), 1.0))
            return number[a], number[b], f, selectivity.get((b, a), f)

        predicates, taken = [], set()
        for group in classes:
            members = list(group)
            pairs = [(a, b) for i, a in enumerate(members) for b in members[i + 1 :]]
            taken |= {frozenset(p) for p in pairs}
            predicates.append(Predicate(tuple(entry(a, b) for a, b in pairs), name=" = ".join(members)))
        for a, b in selectivity:
            if frozenset((a, b)) not in taken:
                taken.add(frozenset((a, b)))
                predicates.append(Predicate((entry(a, b),), frozenset((a, b)) not in scanned, f"{a}-{b}"))
        return cls(tuple(streams), tuple(predicates), costs=costs or Costs())

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.streams)

    @cached_property
    def all(self) -> int:
        return (1 << len(self.streams)) - 1

    @cached_property
    def rates(self) -> Rates:
        from watersmeet.optimize.rates import Rates

        return Rates(self)

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """For each stream the set of those it shares a predicate with."""
        found = [0] * len(self.streams)
        for p in self.predicates:
            for s in p.members:
                found[s] |= p.mask & ~(1 << s)
        return tuple(found)

    def linked(self, streams: int) -> int:
        """The streams outside the set that share a predicate with one inside."""
        found = 0
        for s in members(streams):
            found |= self.neighbours[s]
        return found & ~streams

    @cached_property
    def components(self) -> tuple[int, ...]:
        """The connected parts; more than one means that a Cartesian product is needed."""
        left, parts = self.all, []
        while left:
            part = left & -left
            while more := self.linked(part):
                part |= more
            parts.append(part)
            left &= ~part
        return tuple(parts)

    @cached_property
    def symmetric(self) -> bool:
        """Whether every selectivity is the same in both directions."""
        return all(f == g for p in self.predicates if p.hashed for _, _, f, g in p.pairs)

    @property
    def cells(self) -> int:
        return prod(s.count for s in self.shares)

    def weight(self, streams: int) -> float:
        """Memory of one tuple of the state over these streams, in `unit`."""
        if self.unit == "tuples":
            return 1.0
        if streams & (streams - 1):
            keys = sum(1 for p in self.predicates if p.mask & streams and p.mask & ~streams)
            return entry_bytes(streams.bit_count(), keys)
        return self.streams[streams.bit_length() - 1].row_bytes

    def prices(self, root: Node) -> Costs:
        """What a plan pays: less than one by one if rows go through it in groups."""
        if not self.grouped or not all(isinstance(i, Leaf) for i in root.inputs):
            return self.costs
        c, part = self.costs, self.costs.together
        return replace(c, probe=c.probe * part, match=c.match * part, insert=c.insert * part, delete=c.delete * part)

    def thinned(self, keep: Iterable[float]) -> Problem:
        """The problem behind drop boxes that keep these fractions: both rates and windows shrink (docs/internals/papers.md, clash 1)."""
        streams = tuple(
            s if x == 1 else replace(s, rate=s.rate * x, window=s.window * x)
            for s, x in zip(self.streams, keep, strict=True)
        )
        return replace(self, streams=streams)


def members(streams: int) -> Iterator[int]:
    """The numbers of the streams in a set, ascending.

    >>> list(members(0b1101))
    [0, 2, 3]
    """
    while streams:
        low = streams & -streams
        yield low.bit_length() - 1
        streams ^= low


def dilated(costs: Costs, cpu_share: float) -> Costs:
    """The prices of an operator that gets only a share of the processor (static-optimization 3.3.3).

    >>> round(dilated(Costs(probe=0.001), 0.1).probe, 9)
    0.01
    """
    if not 0 < cpu_share <= 1:
        raise QueryError(f"a share of the processor is above 0 and at most 1, not {cpu_share}")
    k = 1 / cpu_share
    return Costs(costs.probe * k, costs.match * k, costs.insert * k, costs.delete * k, costs.source, costs.together)
