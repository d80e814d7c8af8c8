"""Replan: watches a join and moves it to another plan when the streams have changed enough to make one cheaper.

The idea: what a pipeline does is counted anyway: how many tuples reach each probe, how many it finds, how fast each stream is. While these
stay as they were, nothing is decided. When one of them has drifted by more than p, key columns are sampled from the windows, statistics
made of them, and the optimizer asked again, over probe orders, MJoins, mixed and binary trees alike. A plan that is cheaper by more
than `gain`, and whose states pay back within one window, is moved to.

    p      0.2   drift of a rate or of what a probe finds, below which nothing is decided
    gain   0.1   least part of the CPU that a move must save; both keep it from flapping
    every        arrivals between two looks: doubled while nothing drifts, back to the least when something does

>>> Replan.LEAST, Replan.MOST
(16384, 65536)

Source: a-caching 4.5 (interval I; rule (c): decide only if a statistic has changed by p = 20 %). The plans it chooses from are those of
static-optimization and qualified-plans.
Departs from the paper in: the interval adapts by itself. Orders are those of the optimizer's search instead of A-Greedy's,
and trees are in the same choice, since a state is a complete cache. Statistics are of the newest tuples of windows, not of tuples that
are followed through their pipelines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from watersmeet.adapt.overload import probe_less, shed
from watersmeet.adapt.recent import drifted
from watersmeet.engine.control import Change, Observed
from watersmeet.engine.estimate import observe_windows
from watersmeet.engine.program.compile import undirected
from watersmeet.model.bind import BoundQuery
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Plan, nodes
from watersmeet.model.statistics import Costs, Statistics
from watersmeet.optimize.choose import HEAD_ROOM, decide_problem
from watersmeet.optimize.cost import Limits, price
from watersmeet.optimize.from_query import state_problem
from watersmeet.optimize.problem import Problem

P: Final = 0.2
GAIN: Final = 0.1
ENOUGH: Final = 200  # tuples at a probe, and matches, below which what it finds is not judged


@dataclass
class Replan:
    """costs: prices of the machine. budget: plans must fit it."""

    bound: BoundQuery
    costs: Costs | None = None
    budget: Budget | None = None
    every: int = 1 << 14
    before: dict[str, float] = field(default_factory=dict)  # the facts that the last decision was made on
    saved: float = 0.0  # seconds that caches save for each row that arrives, with the plan in use

    LEAST: ClassVar[int] = 1 << 14
    MOST: ClassVar[int] = 1 << 16  # a look takes some 0.1 ms: below 1 % of the time of so many arrivals

    def step(self, seen: Observed) -> Change | None:
        if not seen.rates:
            return None
        facts = _facts(seen)
        moved = [n for n, v in facts.items() if n in self.before and drifted(self.before[n], v, P)]
        if self.before and not moved:
            self.every = min(2 * self.every, self.MOST)
            return None
        self.every = self.LEAST
        why = _told(moved[0], self.before[moved[0]], facts[moved[0]]) if moved else "the first look"
        self.before = facts
        return self._better(seen, observe_windows(self.bound, seen.sample(), seen.rates, self.costs), why)

    def _better(self, seen: Observed, stats: Statistics, why: str) -> Change | None:
        problem = state_problem(
            replace(self.bound, query=replace(self.bound.query, budget=None)), stats, self.budget
        ).problem
        roomy, giving_up = Limits.of(self.budget, HEAD_ROOM), bool(seen.plan.keep) or seen.plan.limited
        # What was given up comes back only when a plan fits with room to spare: at the very limit it would come and go.
        decision = decide_problem(problem, roomy if giving_up else Limits.of(self.budget), budget=self.budget)
        if decision.plan is None:
            return self._give_up(problem, roomy, seen.plan, why)
        found = decision.plan
        if giving_up:
            self.before = {}
            lost, made = ("probes", "made") if seen.plan.limited else ("rows", "kept")
            said = f"{why}; all {lost} are {made} again: {found.root} fits the budget"
            return Change(
                said, plan=replace(found.bare, cells=seen.plan.cells), allowances=() if seen.plan.limited else None
            )
        if found.root == seen.plan.root:
            return None
        now, then = price(problem, seen.plan.root).cpu, price(problem, found.root).cpu
        now -= self.saved * sum(seen.rates.values())
        if then > (1 - GAIN) * now or not self._pays_back(problem, seen.plan, found, now - then):
            return None
        self.before = {}  # facts of other pipelines: the next look sets them
        reason = f"{why}; by what the windows hold now {seen.plan.bare} takes {now:.3g} of a core and {found.bare} {then:.3g}"
        return Change(reason, plan=replace(found.bare, cells=seen.plan.cells))

    def _give_up(self, problem: Problem, limits: Limits, now: Plan, why: str) -> Change | None:
        """No plan fits: give up what the query allows, more or less than now."""
        allowed = replace(self.bound.query.overload, evict=False, using=None)
        change = None
        if allowed.shed and self.bound.preserved is None:
            decision = decide_problem(problem, limits, overload=allowed, budget=self.budget)
            change = shed(decision, now, Limits.of(self.budget).cpu, why)
        elif allowed.direct and not undirected(self.bound):
            cheapest = decide_problem(problem, limits, overload=allowed, budget=self.budget).plan
            change = probe_less(problem, now, cheapest or now, limits.cpu, why)
        if change is not None:
            self.before = {}  # facts of other pipelines: the next look sets them
        return change

    def _pays_back(self, problem: Problem, was: Plan, plan: Plan, saved: float) -> bool:
        """Whether filling the states that are new takes less than is saved within the longest window."""
        kept = {n.streams for n in nodes(was.root)}
        fresh = [p for p in price(problem, plan.root).parts if p.tree.streams not in kept and p.state]
        filling = sum(p.state for p in fresh) * (problem.costs.insert + problem.costs.match)
        longest = max((1 / t for t in problem.rates.turnover if t > 0), default=0.0)
        return filling <= saved * longest

    def memory(self) -> bytes:
        return json.dumps([self.every, self.before]).encode()

    def recall(self, memory: bytes) -> None:
        if memory:
            self.every, self.before = json.loads(memory)


def _facts(seen: Observed) -> dict[str, float]:
    """What a decision rests on and what is counted anyway: rates, and what each probe finds."""
    facts = {f"rate of {alias}": rate for alias, rate in seen.rates.items()}
    for op in seen.operators:
        if op.tuples_in >= ENOUGH and (op.matches >= ENOUGH or op.tuples_in >= 100 * ENOUGH):
            facts[f"matches of {op.pipeline} in {op.step}"] = op.matches / op.tuples_in
    return facts


def _told(name: str, was: float, now: float) -> str:
    return f"{name} went from {was:.3g} to {now:.3g}"
