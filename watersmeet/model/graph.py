"""JoinGraph: which streams join which, and on what.

Attributes that must be equal form one class: `R.a = S.a AND S.a = T.a` is one class of three, so R joins T directly too. Two
attributes fall into one class only if they are compared in one type: equality of a BIGINT with a DOUBLE is not transitive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from watersmeet.model.bind import BoundQuery, Comparison, Side
from watersmeet.model.expr import Compare, Expr, streams_of


@dataclass(frozen=True)
class AttributeClass:
    """Expressions, at most one for each stream, that all must be equal."""

    members: tuple[Side, ...]

    def __str__(self) -> str:
        return " = ".join(map(str, self.members))

    @property
    def name(self) -> str:
        """The first member, which names the class in plans and shares."""
        return str(self.members[0])

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(m.stream for m in self.members)

    def of(self, stream: str) -> Side | None:
        return next((m for m in self.members if m.stream == stream), None)


@dataclass(frozen=True)
class JoinGraph:
    """Streams in FROM order, classes of equal attributes, comparisons between two streams, residual predicates.

    `implied`: for each stream the equalities among its own attributes that follow from the classes.
    """

    streams: tuple[str, ...]
    classes: tuple[AttributeClass, ...]
    comparisons: tuple[Comparison, ...]
    residuals: tuple[Expr, ...]
    implied: tuple[tuple[str, Expr], ...] = ()

    @classmethod
    def of(cls, bound: BoundQuery) -> JoinGraph:
        group_of: dict[Side, list[Side]] = {}
        for equality in bound.equalities:
            one, other = (group_of.setdefault(side, [side]) for side in (equality.left, equality.right))
            if one is not other:
                small, large = sorted((one, other), key=len)
                large += small
                group_of.update(dict.fromkeys(small, large))
        groups = {id(group): group for group in group_of.values()}.values()  # in the order of their first members
        order = {a: i for i, a in enumerate(bound.aliases)}
        classes, implied = [], []
        for group in groups:
            kept: dict[str, Side] = {}
            for side in sorted(group, key=lambda s: (order[s.stream], str(s.expr))):
                if side.stream in kept:
                    implied.append((side.stream, Compare("=", kept[side.stream].expr, side.expr)))
                else:
                    kept[side.stream] = side
            classes.append(AttributeClass(tuple(kept.values())))
        return cls(bound.aliases, tuple(classes), bound.comparisons, bound.residuals, tuple(implied))

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of streams, in FROM order, with an equality (given or implied) or a comparison between them."""
        found = []
        for i, left in enumerate(self.streams):
            for right in self.streams[i + 1 :]:
                if self.shared(left, right) or self.between((left,), (right,)):
                    found.append((left, right))
        return tuple(found)

    def shared(self, left: str, right: str) -> tuple[AttributeClass, ...]:
        """The classes that have an attribute of both streams."""
        return tuple(c for c in self.classes if left in c.streams and right in c.streams)

    def linking(self, left: Iterable[str], right: Iterable[str]) -> tuple[AttributeClass, ...]:
        """The classes that link a set of streams with another."""
        a, b = frozenset(left), frozenset(right)
        return tuple(c for c in self.classes if c.streams & a and c.streams & b)

    def between(self, left: Iterable[str], right: Iterable[str]) -> tuple[Comparison, ...]:
        """The comparisons that link a set of streams with another."""
        a, b = frozenset(left), frozenset(right)
        return tuple(
            c for c in self.comparisons
            if (c.left.stream in a and c.right.stream in b) or (c.left.stream in b and c.right.stream in a)
        )  # fmt: skip

    def neighbours(self, stream: str) -> frozenset[str]:
        return frozenset(b if a == stream else a for a, b in self.edges if stream in (a, b))

    @cached_property
    def components(self) -> tuple[frozenset[str], ...]:
        """Connected parts, residual predicates counting as links; more than one means a Cartesian product."""
        left, parts = list(self.streams), []
        while left:
            part, frontier = set(), [left[0]]
            while frontier:
                stream = frontier.pop()
                if stream in part:
                    continue
                part.add(stream)
                frontier += self.neighbours(stream)
                frontier += [s for r in self.residuals if stream in streams_of(r) for s in streams_of(r)]
            parts.append(frozenset(part))
            left = [s for s in left if s not in part]
        return tuple(parts)

    def connected(self, streams: Iterable[str]) -> bool:
        """Whether the streams hang together by edges among themselves alone."""
        wanted = set(streams)
        seen, frontier = set(), [next(iter(wanted))]
        while frontier:
            stream = frontier.pop()
            if stream not in seen:
                seen.add(stream)
                frontier += self.neighbours(stream) & wanted
        return seen == wanted
