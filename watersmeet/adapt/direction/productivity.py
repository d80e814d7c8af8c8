"""The path productivity table: for every path what it uses at most, what it then gives, and results for each unit.

>>> from watersmeet.adapt.direction.half_joins import JoinTree
>>> from watersmeet.adapt.direction.paths import paths
>>> figure_4 = JoinTree.of("((A B) C)", {"A": 11, "B": 11, "C": 10}, {"A": 4 / 11, "B": 5 / 11, "(A B)": 1, "C": 0.1})
>>> for entry in table(paths(figure_4)): print(entry)
A: 4 results/s with 15, productivity 0.2667
B: 5 results/s with 16, productivity 0.3125
C: 1 results/s with 10, productivity 0.1

Source: jaqpot 4.1, Definition 4, equation 8, Table 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from watersmeet.adapt.direction.paths import Path


@dataclass(frozen=True)
class Entry:
    """A path that lets all its tuples in: X resources a second, r results a second."""

    stream: str
    resources: float
    output_rate: float

    @property
    def productivity(self) -> float:
        return self.output_rate / self.resources if self.resources else 0.0

    def __str__(self) -> str:
        return f"{self.stream}: {self.output_rate:g} results/s with {self.resources:g}, productivity {self.productivity:.4g}"


def table(every: tuple[Path, ...]) -> tuple[Entry, ...]:
    """Table 2: what each path uses and gives at the rate of its stream."""
    return tuple(Entry(p.stream, p.rate * p.cost, p.rate * p.gain) for p in every)
