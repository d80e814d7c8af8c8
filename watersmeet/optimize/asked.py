"""Asked: what is wanted of the optimizer, besides that a plan keeps the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from watersmeet.errors import PlanError
from watersmeet.optimize.policy import check_policy

SEARCHES: Final = ("auto", "pareto", "jtree_finder", "two_layer")
KINDS: Final = ("auto", "mjoin", "xjoin")


@dataclass(frozen=True)
class Asked:
    """policy: any, least_cpu, least_memory or non_dominated, among plans that fit. search: one of SEARCHES.
    kind: auto, mjoin or xjoin (the best binary tree); one that is asked for is given whatever the budget. cells: into
    how many the join is split. head_room: part of the CPU to leave free. cpu_share: part of each processor that the
    join gets.

    >>> Asked(kind="tree")
    Traceback (most recent call last):
    watersmeet.errors.PlanError: unknown kind of plan 'tree'; known: auto, mjoin, xjoin
    """

    policy: str = "least_cpu"
    search: str = "auto"
    kind: str = "auto"
    cells: int = 1
    head_room: float = 0.0
    cpu_share: float = 1.0

    def __post_init__(self) -> None:
        check_policy(self.policy)
        for value, known, what in ((self.search, SEARCHES, "search"), (self.kind, KINDS, "kind of plan")):
            if value not in known:
                raise PlanError(f"unknown {what} '{value}'; known: {', '.join(known)}")


ANYTHING: Final = Asked()
