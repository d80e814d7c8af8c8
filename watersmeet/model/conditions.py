"""The conditions of a bound query, evaluated on plain rows in the order that is promised (the oracle's part of evaluation)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from watersmeet.model.bind import BoundQuery, BoundSource
from watersmeet.model.evaluate import COMPARE, evaluator, order_key


@dataclass(slots=True, eq=False)
class Tuple:
    """A row of one entry of FROM with the values that conditions need of it.

    ts: its timestamp; a row of a static table is there before all time.
    partition: the values of PARTITION BY, as a key.
    selected: whether it passes the predicates on its stream alone.
    sides[k]: the value of its side of the k-th predicate between two streams, NULL where it has none.
    shown: whether it comes out although nothing joins it: it is of the preserved stream of a LEFT JOIN, and WHERE lets it through.
    leaves: the time at which its window lets it go, as far as that is known.
    """

    alias: str
    row: Mapping[str, Any]
    ts: float
    partition: tuple[Any, ...]
    selected: bool
    sides: list[Any]
    shown: bool = False
    leaves: float = inf


Combination: TypeAlias = Mapping[str, Tuple]
Check: TypeAlias = tuple[int, Callable[[Any, Any], bool], str]


class Conditions:
    """WHERE taken apart.

    Selections come first, in written order, each on the rows that passed those before. Then the sides of predicates between two
    streams, on the rows that passed. Then residuals, on combinations that satisfy all else, in written order.
    """

    def __init__(self, bound: BoundQuery) -> None:
        self.joins = (*bound.equalities, *bound.comparisons)
        self.selections = {a: [evaluator(e) for e in bound.selections[a]] for a in bound.aliases}
        self.sides = {
            a: [
                next((evaluator(s.expr) for s in (p.left, p.right) if s.stream == a), lambda c: None)
                for p in self.joins
            ]
            for a in bound.aliases
        }
        self.residuals = [evaluator(e) for e in bound.residuals]
        self.preserved, self.chosen = bound.preserved, [evaluator(e) for e in bound.chosen]

    def arrive(self, source: BoundSource, row: Mapping[str, Any]) -> Tuple:
        alias, alone, window = source.alias, {source.alias: row}, source.window
        ts = row[source.timestamp] if window else -inf
        columns = [found.name for c in (window.partition if window else ()) if (found := source.schema.find(c))]
        selected = all(selection(alone) is True for selection in self.selections[alias])
        sides = [side(alone) for side in self.sides[alias]] if selected else []
        shown = alias == self.preserved and all(choice(alone) is True for choice in self.chosen)
        return Tuple(alias, row, ts, tuple(order_key(row[c]) for c in columns), selected, sides, shown)

    def steps(self, first: str) -> list[tuple[str, Callable[[Tuple, Combination], bool]]]:
        """The other streams, joined ones first, each with what its tuple must satisfy with those of the streams before it."""
        made, done, rest = [], [first], [a for a in self.selections if a != first]
        while rest:
            alias = next((a for a in rest if self.checks(a, done)), rest[0])
            made.append((alias, _all(self.checks(alias, done))))
            done.append(alias)
            rest.remove(alias)
        return made

    def checks(self, alias: str, done: list[str]) -> list[Check]:
        """The predicates that a tuple of `alias` settles with those of the streams `done`."""
        seen = [(k, p.seen_from(alias)) for k, p in enumerate(self.joins) if alias in (p.left.stream, p.right.stream)]
        return [(k, COMPARE[p.op], p.right.stream) for k, p in seen if p.right.stream in done]

    def residual(self, combination: Combination) -> bool:
        rows = {alias: member.row for alias, member in combination.items()}
        return all(holds(rows) is True for holds in self.residuals)


def _all(checks: list[Check]) -> Callable[[Tuple, Combination], bool]:
    def satisfied(mine: Tuple, others: Combination) -> bool:
        for k, compare, other in checks:
            a, b = mine.sides[k], others[other].sides[k]
            if a is None or b is None or not compare(a, b):
                return False
        return True

    return satisfied
