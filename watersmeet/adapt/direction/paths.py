"""Input paths: what a stream's tuples go through from leaf to root, and how resources are divided along them.

    φ_j = ρ_1 · … · ρ_j                              combinations for each tuple let in, after j half-way joins      (5)
    X   = X_1 · (c_1 + φ_1 c_2 + … + φ_{n−1} c_n)    resources of a path whose leaf lets X_1 tuples in               (6)
    X_j = X_1 · φ_{j−1}                              probe allowance of the j-th half-way join                       (7)

X_j is what the half-way join before it produces: the *producer-consumer match*. Nothing is made that is not used.

>>> tree = JoinTree.of("((A B) C)", {"A": 500, "B": 700, "C": 500}, {"A": 0.5, "B": 5, "(A B)": 5, "C": 1})
>>> b = paths(tree)[1]
>>> print(b)
B ⋈ A ⋈ C: productivity 4.16667
>>> b.division(600)
(100.0, 500.0)

Source: jaqpot 4.1, Definition 3, equations 5 to 7.
Departs from the paper in: a probe costs c instead of 1. What φ means here; the freshness predicates that the paper
also calls φ are `tolerance` (lemmas.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul

from watersmeet.adapt.direction.half_joins import HalfJoin, JoinTree


@dataclass(frozen=True)
class Path:
    """The half-way joins of one stream's tuples. rate: λ, tuples per second that arrive."""

    stream: str
    rate: float
    halves: tuple[HalfJoin, ...]
    residual: float = 1.0

    @cached_property
    def cardinalities(self) -> tuple[float, ...]:
        """φ_0 = 1, φ_1, …, φ_n (equation 5)."""
        return tuple(accumulate((h.productivity for h in self.halves), mul, initial=1.0))

    @cached_property
    def cost(self) -> float:
        """Resources for each tuple let in at the leaf: X / X_1 (equation 6)."""
        return sum(phi * h.cost for phi, h in zip(self.cardinalities, self.halves, strict=False))

    @cached_property
    def gain(self) -> float:
        """Results for each tuple let in at the leaf: φ_n."""
        return self.cardinalities[-1] * self.residual

    @property
    def productivity(self) -> float:
        """ρ_p: results for each unit of resources (Definition 4, equation 8)."""
        return self.gain / self.cost if self.cost else 0.0

    def division(self, resources: float) -> tuple[float, ...]:
        """The probe allowances X_1, …, X_n, in tuples per second, of a path that is given these resources (equation 7)."""
        let_in = resources / self.cost if self.cost else 0.0
        return tuple(let_in * phi for phi in self.cardinalities[:-1])

    def __str__(self) -> str:
        chain = " ⋈ ".join(s.target for h in self.halves for s in h.steps)
        return f"{self.stream} ⋈ {chain}: productivity {self.productivity:g}"


def paths(tree: JoinTree) -> tuple[Path, ...]:
    """The input paths of a plan, a table's apart: it has no tuples that arrive."""
    return tuple(Path(w.stream, w.rate, tree.path(w.stream), tree.residual) for w in tree.windows if w.rate)
