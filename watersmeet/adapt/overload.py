"""Overload: what a query gives up when no plan fits its CPU: rows (SHED) or probes (DIRECT), as much as it takes and no more.

Both answers come with the plan that gives the most results within the limit. A change is made only where a share has moved by more than P:
small drifts of a rate do not make an engine flap.

>>> moved({"A": 0.5}, {"A": 0.55}), moved({"A": 0.5}, {"A": 0.7}), moved({}, {"A": 0.5}), moved({("A", "B"): 0.0}, {("A", "B"): 0.03})
(False, True, True, False)

Source: static-optimization 5 (SHED); jaqpot 4.1 and 4.4 (DIRECT; thresholds).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from watersmeet.adapt.direction import Direction, direct
from watersmeet.adapt.recent import drifted
from watersmeet.engine.control import Change
from watersmeet.model.plan import Plan
from watersmeet.model.types import quoted
from watersmeet.optimize.choose import Decision
from watersmeet.optimize.cost import price
from watersmeet.optimize.explain import shedding
from watersmeet.optimize.problem import Problem

P: Final = 0.2  # a share that moves by less stays as it is
LEAST: Final = 0.05  # and so does one that moves by less than this of all rows or probes
GAIN: Final = 0.1  # results that another plan must bring to move to it


def moved(was: Mapping[Any, float], now: Mapping[Any, float]) -> bool:
    """Whether a share differs by enough to change it. Shares that are not named are 1."""
    pairs = ((was.get(k, 1.0), now.get(k, 1.0)) for k in {*was, *now})
    return any(abs(a - b) >= LEAST and drifted(a, b, P) for a, b in pairs)


def shed(decision: Decision, now: Plan, limit: float, why: str) -> Change | None:
    """Give up more or fewer rows than now. limit: CPU; below it, head room or not, what is given up now may stay."""
    found = decision.plan
    if found is None or decision.kept is None or not moved(now.drop, found.drop):
        return None
    if now.keep:
        bill = price(decision.problem.thinned(now.drop.get(s, 1.0) for s in decision.problem.names), now.root)
        fits = bill.cpu <= limit and bill.memory <= decision.limits.memory
        if fits and (1 + GAIN) * bill.output_rate >= decision.kept.results:
            return None
    return Change(f"{why}; {shedding(decision)}", plan=replace(found.bare, cells=now.cells))


def directed(problem: Problem, plans: Iterable[Plan], cpu: float) -> tuple[Plan, Direction]:
    """Of these plans the one that gives the most results with this CPU, the first unless another gives GAIN more; and its probes."""
    made = [(plan, direct(problem, plan, cpu)) for plan in plans]
    best = max(made, key=lambda pair: pair[1].output_rate)
    plan, direction = made[0] if best[1].output_rate <= (1 + GAIN) * made[0][1].output_rate else best
    names = {*problem.names}
    texts = {name: quoted(name) for name in names}
    allow = tuple((texts[a], texts.get(b, b), x) for a, b, x in direction.allowances if x < 1)
    return replace(plan.bare, allow=allow, keep=(), caches=()), direction


def directing(direction: Direction) -> str:
    """What is probed, and what that leaves of the results."""
    probes = ", ".join(f"{x:.0%} of {a} in {b}" for a, b, x in direction.allowances if x < 1)
    part = f", about {direction.output_rate / direction.of:.0%} of the results" if direction.of else ""
    return f"ON OVERLOAD DIRECT makes these probes only: {probes}{part}"


def probe_less(problem: Problem, now: Plan, cheapest: Plan, cpu: float, why: str) -> Change | None:
    """Leave out more or fewer probes than now, perhaps with another plan."""
    plan, direction = directed(problem, (now, cheapest), cpu)
    same = plan.root == now.root
    if same and not moved(_by_probe(now), _by_probe(plan)):
        return None
    reason = f"{why}; {directing(direction)}"
    return Change(reason, plan=None if same else replace(plan, allow=(), cells=now.cells), allowances=plan.allow)


def _by_probe(plan: Plan) -> dict[tuple[str, str], float]:
    return {(a, b): x for a, b, x in plan.allow}
