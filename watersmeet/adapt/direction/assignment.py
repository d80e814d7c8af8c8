"""Assignment: what each path or half-way join is given, the answer of every policy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from watersmeet.adapt.direction.half_joins import JoinTree
from watersmeet.adapt.direction.paths import Path


@dataclass(frozen=True)
class Assignment:
    """Tuples per second that each stream may send into each half-way join of its path.

    allowed: (stream, input of the half-way join, tuples per second). resources: in use, the fixed ones apart.
    output_rate: results per second that the policy's own model expects.
    for_freshness: of the resources, those spent on refreshing states. feasible: whether the tolerances are kept.
    """

    allowed: tuple[tuple[str, str, float], ...]
    resources: float
    output_rate: float
    for_freshness: float = 0.0
    feasible: bool = True

    @cached_property
    def by_half(self) -> dict[str, float]:
        """λ': tuples per second that each half-way join may let in, by its input."""
        found: dict[str, float] = {}
        for _, at, tuples in self.allowed:
            found[at] = found.get(at, 0.0) + tuples
        return found

    def __str__(self) -> str:
        inside = ", ".join(f"{at} {tuples:.6g}" for at, tuples in self.by_half.items() if tuples)
        fresh = f", {self.for_freshness:.6g} of them for freshness" if self.for_freshness else ""
        no = "" if self.feasible else "; the tolerances can't be kept"
        return f"{inside or 'nothing'}: {self.output_rate:.6g} results/s with {self.resources:.6g}{fresh}{no}"


def along_paths(every: tuple[Path, ...], given: dict[str, float]) -> Assignment:
    """The assignment that gives each path so many resources, divided with producer-consumer match."""
    allowed = tuple(
        (p.stream, h.input, tuples)
        for p in every
        for h, tuples in zip(p.halves, p.division(given.get(p.stream, 0.0)), strict=True)
    )
    return Assignment(allowed, sum(given.values()), sum(given.get(p.stream, 0.0) * p.productivity for p in every))


def at_half_joins(tree: JoinTree, resources: dict[str, float]) -> Assignment:
    """The assignment that gives each half-way join so many resources, whatever comes to it: λ' = μ_h / c.

    A half-way join can't let in more than comes (a producer-consumer mismatch wastes the rest); what comes is shared
    in proportion among the streams behind it.

    >>> tree = JoinTree.of("((A B) C)", {"A": 500, "B": 700, "C": 500}, {"A": 0.5, "B": 5, "(A B)": 5, "C": 1})
    >>> print(at_half_joins(tree, {"A": 75, "B": 75, "(A B)": 75, "C": 75}))
    A 75, B 75, (A B) 75, C 75: 450 results/s with 300
    """
    come = {(w.stream, w.stream): w.rate for w in tree.windows}
    allowed: list[tuple[str, str, float]] = []
    spent = output = 0.0
    for half in tree.halves:
        mine = {s: come.get((s, half.input), 0.0) for s in half.streams}
        total = sum(mine.values())
        let_in = min(resources.get(half.input, 0.0) / half.cost if half.cost else total, total)
        part = let_in / total if total else 0.0
        spent += let_in * half.cost
        if half.node == tree.root:
            output += let_in * half.productivity * tree.residual
        for stream, tuples in mine.items():
            if tuples:
                allowed.append((stream, half.input, tuples * part))
            come[stream, half.node] = tuples * part * half.productivity
    return Assignment(tuple(allowed), spent, output)
