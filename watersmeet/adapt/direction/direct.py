"""Direct: which probes to make when there is not CPU for all; what ON OVERLOAD DIRECT asks.

A policy divides the capacity, with the states taken for full or not. Whatever it expects, `output_rate` is what the
coupled model gives for its answer, which is what the engine does; `forecast` is what the policy itself expects.

>>> from watersmeet.model.statistics import Costs
>>> problem = Problem.of({"A": 100, "B": 100, "C": 50}, 100, {("A", "B"): 0.01, ("B", "C"): 0.1}, Costs(0.002, 0, 0, 0))
>>> plan = Plan.parse("((A B) C)")
>>> print(direct(problem, plan, 0.1, "grepp"))
grepp: A → B 0, A → C 1, B → A 0, B → C 1, C → (A B) 1: 0 of 2500 results/s (forecast 500), 0.1 of 0.9 CPU
>>> print(direct(problem, plan, 0.1))
coupled: A → B 0.25, A → C 1, B → A 0, B → C 1, C → (A B) 0: 250 of 2500 results/s (forecast 250), 0.1 of 0.9 CPU

Source: jaqpot 4.1 and Appendix B for the paper's policies; coupled.py for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from watersmeet.adapt.direction.assignment import Assignment
from watersmeet.adapt.direction.coupled import Coupled
from watersmeet.adapt.direction.grepp import grepp
from watersmeet.adapt.direction.half_joins import JoinTree, join_tree
from watersmeet.adapt.direction.heuristics import best_hjp, ebest_hjp, equal_hj, global_hjpr, sbest_hjp
from watersmeet.adapt.direction.paths import paths
from watersmeet.errors import QueryError, nearest_name
from watersmeet.model.plan import Plan
from watersmeet.optimize.problem import Problem


def _grepp(tree: JoinTree, resources: float) -> Assignment:
    return grepp(paths(tree), resources)


PAPERS: Mapping[str, Callable[[JoinTree, float], Assignment]] = MappingProxyType(
    {
        "grepp": _grepp,
        "equal_hj": equal_hj,
        "global_hjpr": global_hjpr,
        "ebest_hjp": ebest_hjp,
        "sbest_hjp": sbest_hjp,
        "best_hjp": best_hjp,
    }
)
POLICIES = ("coupled", *PAPERS)


@dataclass(frozen=True)
class Direction:
    """Which probes are made.

    allowances: (stream whose pipeline it is, store probed, part of the probes made) for every probe of the plan.
    output_rate: results per second to expect; forecast: as the policy has it; of: with all probes.
    cpu: CPU seconds per second in use; cpu_of: with all probes. Windows are kept whatever is probed; where that alone is
    above the capacity, no probes are made and cpu is above it too (fits is False).
    """

    policy: str
    allowances: tuple[tuple[str, str, float], ...]
    output_rate: float
    forecast: float
    of: float
    cpu: float
    cpu_of: float
    fits: bool = True

    def __str__(self) -> str:
        inside = ", ".join(f"{stream} → {target} {part:.4g}" for stream, target, part in self.allowances)
        rates = f"{self.output_rate:.6g} of {self.of:.6g} results/s (forecast {self.forecast:.6g})"
        return f"{self.policy}: {inside}: {rates}, {self.cpu:.4g} of {self.cpu_of:.4g} CPU"


def direct(problem: Problem, plan: Plan, capacity: float, policy: str = "coupled") -> Direction:
    """The best probes to make in a plan, by a policy. capacity: CPU seconds per second at the problem's prices."""
    if policy not in POLICIES:
        raise QueryError(f"there is no policy '{policy}' for DIRECT", hint=nearest_name(policy, POLICIES))
    tree = join_tree(problem, plan)
    model = Coupled(tree)
    ones = np.ones(model.count)
    whole, spare = model.at(ones), capacity - tree.fixed
    if whole.cpu <= capacity:
        x, forecast = ones, whole.output_rate
    elif spare <= 0:
        x, forecast = np.zeros(model.count), 0.0
    elif policy == "coupled":
        x = model.best(capacity, [model.vector(p(tree, spare)) for p in PAPERS.values()])
        forecast = model.at(x).output_rate
    else:
        given = PAPERS[policy](tree, spare)
        x, forecast = model.vector(given), given.output_rate
    value = model.at(x)
    part = dict(zip(model.places, (float(p) for p in model.tidied(x)), strict=True))
    allowances = tuple(
        (w.stream, step.target, part[w.stream, half.input] if step is half.steps[0] else 1.0)
        for w in tree.windows
        if w.rate
        for half in tree.path(w.stream)
        for step in half.steps
    )
    return Direction(
        policy, allowances, value.output_rate, forecast, whole.output_rate, value.cpu, whole.cpu, tree.fixed <= capacity
    )
