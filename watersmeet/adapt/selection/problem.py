"""The cache selection problem: operators that must be processed, candidate caches that can stand in for runs of them.

An operator is a place in a pipeline, (pipeline, position). A candidate covers the operators from `first` to `last` of its pipeline. Chosen
caches may not overlap. What is not covered by a cache is covered by its operators, each a cache of length zero with upkeep 0.

    total cost = sum of proc(C) over what covers the operators + sum of upkeep(G) over the groups used

Candidates of one group are shared: they cache the same join by the same key, so their upkeep is paid once.

Source: a-caching 4.2, 4.4 (Definition 4.1) and Appendix B. Minimising total cost is maximising the net benefit: both differ by the cost of
using no cache at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

Operator = tuple[str, int]


@dataclass(frozen=True, order=True)
class Candidate:
    """A cache that could be used: the operators `first` to `last` (both included) of a pipeline.

    group: candidates of the same group are shared. proc: cost per unit time of using it, upkeep apart.
    """

    pipeline: str
    first: int
    last: int
    group: str
    proc: float = field(compare=False)

    @property
    def operators(self) -> frozenset[Operator]:
        return frozenset((self.pipeline, j) for j in range(self.first, self.last + 1))

    def overlaps(self, other: Candidate) -> bool:
        return self.pipeline == other.pipeline and self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"{self.pipeline}[{self.first}..{self.last}] of {self.group}"


@dataclass(frozen=True)
class Problem:
    """proc: cost per unit time of each operator without a cache. upkeep: cost per unit time of each group that is used.

    >>> problem = Problem({("T", 0): 5.0, ("T", 1): 5.0}, (Candidate("T", 0, 1, "RS", 3.0),), {"RS": 1.0})
    >>> problem.total([]), problem.total(problem.candidates)
    (10.0, 4.0)
    """

    proc: dict[Operator, float]
    candidates: tuple[Candidate, ...]
    upkeep: dict[str, float]

    def __post_init__(self) -> None:
        for c in self.candidates:
            missing = sorted(c.operators - self.proc.keys())
            if missing:
                raise ValueError(f"{c} covers {missing[0]}, which is not an operator")
            if c.group not in self.upkeep:
                raise ValueError(f"{c}: the group has no upkeep")

    def total(self, chosen: Collection[Candidate]) -> float:
        """Total cost per unit time with these caches in use; they must not overlap."""
        covered: set[Operator] = set()
        for c in chosen:
            if covered & c.operators:
                raise ValueError(f"{c} overlaps another cache")
            covered |= c.operators
        kept = sum(cost for operator, cost in self.proc.items() if operator not in covered)
        return kept + sum(c.proc for c in chosen) + sum(self.upkeep[g] for g in {c.group for c in chosen})

    def benefit(self, candidate: Candidate) -> float:
        """What using a cache saves per unit time, its upkeep not counted."""
        return sum(self.proc[operator] for operator in candidate.operators) - candidate.proc

    def groups(self) -> dict[str, list[Candidate]]:
        made: dict[str, list[Candidate]] = {}
        for c in self.candidates:
            made.setdefault(c.group, []).append(c)
        return made

    @property
    def shared(self) -> bool:
        """Whether any group has members in more than one pipeline, so that pipelines can't be solved one by one."""
        return any(len({c.pipeline for c in group}) > 1 for group in self.groups().values())

    @property
    def nested(self) -> bool:
        """Whether candidates that overlap contain each other, as the prefix invariant makes them (globally-consistent ones need not)."""
        pairs = ((a, b) for a in self.candidates for b in self.candidates if a.overlaps(b))
        return all(a.operators <= b.operators or b.operators <= a.operators for a, b in pairs)

    def forest(self, pipeline: str) -> Iterator[tuple[Candidate, list[Candidate]]]:
        """The candidates of a pipeline, each after those inside it, with its children: the largest ones inside it."""
        mine = sorted((c for c in self.candidates if c.pipeline == pipeline), key=lambda c: c.last - c.first)
        for k, c in enumerate(mine):
            inside = [o for o in mine[:k] if o.operators < c.operators]
            yield c, [o for o in inside if not any(o.operators < p.operators for p in inside)]

    def tidied(self, picked: Collection[Candidate]) -> tuple[Candidate, ...]:
        """Of caches that overlap the largest; without those that save nothing, and without groups that cost more than they save."""
        kept: list[Candidate] = []
        for c in sorted(picked, key=lambda c: (c.first - c.last, c)):
            if self.benefit(c) > 0 and not any(c.overlaps(other) for other in kept):
                kept.append(c)
        for group in {c.group for c in kept}:
            if sum(self.benefit(c) for c in kept if c.group == group) <= self.upkeep[group]:
                kept = [c for c in kept if c.group != group]
        return tuple(sorted(kept))
