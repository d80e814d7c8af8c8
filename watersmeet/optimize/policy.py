"""Policies: which of several qualified plans to take (qualified-plans 3.3).

any: the first that was found. least_cpu, least_memory: least in one, then in the other. non_dominated: of those that
no other beats in both, the one that leaves most room: whose larger part of its limit, CPU or memory, is least.

>>> plans = [Candidate(3.0, 10.0, (0, 1)), Candidate(1.0, 90.0, (1, 0)), Candidate(2.0, 20.0, (0, 1)), Candidate(2.5, 40.0, (0, 1))]
>>> [pick(plans, name, Limits(cpu=4, memory=100)).cpu for name in POLICIES]
[3.0, 1.0, 3.0, 2.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from watersmeet.errors import PlanError, nearest_name
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.pareto import Candidate

POLICIES: Final = ("any", "least_cpu", "least_memory", "non_dominated")


def check_policy(name: str) -> None:
    if name not in POLICIES:
        raise PlanError(f"unknown policy '{name}'\n  {nearest_name(name, POLICIES)}")


def pick(plans: Sequence[Candidate], policy: str, limits: Limits) -> Candidate:
    """The plan to take of those given, all of them qualified."""
    check_policy(policy)
    if policy == "any":
        return plans[0]
    if policy == "least_cpu":
        return min(plans, key=lambda p: (p.cpu, p.memory))
    if policy == "least_memory":
        return min(plans, key=lambda p: (p.memory, p.cpu))
    cpu = limits.cpu if limits.cpu < inf else max(p.cpu for p in plans)
    memory = limits.memory if limits.memory < inf else max(p.memory for p in plans)
    front = non_dominated(plans)
    return min(front, key=lambda p: (max(p.cpu / (cpu or 1), p.memory / (memory or 1)), p.cpu))


def non_dominated(plans: Sequence[Candidate]) -> list[Candidate]:
    """Those that no other beats in both CPU and memory, rising CPU."""
    made: list[Candidate] = []
    for plan in sorted(plans, key=lambda p: (p.cpu, p.memory)):
        if not made or plan.memory < made[-1].memory:
            made.append(plan)
    return made
