"""Choose: the optimizer as a tuple of small steps over one record of what is known so far.

    bounds -> layer one -> search -> policy -> approximation

`decide` runs them and returns all that `explain` tells; `optimize` returns the plan, or raises NoQualifiedPlan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import floor, inf, log10
from typing import Final

from watersmeet.errors import NoQualifiedPlan
from watersmeet.model.bind import BoundQuery
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Node, Plan, Retention
from watersmeet.model.query import Overload, Query
from watersmeet.model.statistics import Statistics
from watersmeet.optimize.asked import ANYTHING, Asked
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.bounds import LowerBounds, lower_bounds
from watersmeet.optimize.cells import choose_shares
from watersmeet.optimize.cost import Estimate, Limits, price
from watersmeet.optimize.from_query import state_problem
from watersmeet.optimize.group_selection import excess
from watersmeet.optimize.jtree_finder import jtree_finder
from watersmeet.optimize.kept import Kept
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import MAX_STREAMS, Candidate, pareto_front
from watersmeet.optimize.policy import pick
from watersmeet.optimize.problem import Problem, dilated
from watersmeet.optimize.sketch import planned
from watersmeet.optimize.two_layer import two_layer
from watersmeet.optimize.which_plan import best_approximation

EXACT_STREAMS: Final = 8  # up to here the exact search is quick enough to be the first choice
DEFAULT_RETENTION: Final = "heeb"
TINY: Final = 1e-300  # stands for a bound of 0, which nothing can be measured against


HEAD_ROOM: Final = 0.1  # of the CPU, left free where tuples are shed: a plan that fills all of it has an endless queue


@dataclass(frozen=True)
class Step:
    """What one step of the optimizer did, and the best plan known after it."""

    name: str
    text: str


@dataclass(frozen=True)
class Decision:
    """A plan and why: what it costs, what else was looked at, what was proven and what assumed."""

    problem: Problem
    limits: Limits
    budget: Budget | None
    policy: str
    overload: Overload
    bounds: LowerBounds
    costs: NodeCosts = field(compare=False, repr=False)
    search: str = ""
    exhaustive: bool = False
    seen: tuple[tuple[str, Candidate], ...] = ()
    chosen: Candidate | None = None
    root: Node | None = None
    kept: Kept | None = None
    retention: Retention | None = None
    relief: str = ""
    assumptions: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def qualified(self) -> bool:
        """Whether the plan is within the limits without giving anything up."""
        return self.chosen is not None and self.limits.allow(self.chosen.cpu, self.chosen.memory)

    @property
    def proven(self) -> bool:
        """Whether it is certain that no plan is within the limits."""
        return not self.qualified and (self.bounds.proves(self.limits) or self.exhaustive)

    @property
    def fitting(self) -> list[Candidate]:
        """The plans looked at that are within the limits, in the order in which they were found."""
        return [p for _, p in self.seen if self.limits.allow(p.cpu, p.memory)]

    @property
    def settled(self) -> bool:
        """Whether looking further is useless: no plan can fit, or any that fits will do and one was found."""
        return self.bounds.proves(self.limits) or (self.policy == "any" and bool(self.fitting))

    @property
    def nearest(self) -> tuple[Candidate, ...]:
        """The plans that miss the limits by least, nearest first."""
        misses = {p.shape: p for _, p in self.seen if not self.limits.allow(p.cpu, p.memory)}
        return tuple(sorted(misses.values(), key=lambda p: excess(self.limits, p))[:3])

    @property
    def thinned(self) -> Problem:
        """The problem behind the plan's drop boxes."""
        if self.kept is None:
            return self.problem
        fractions = dict(self.kept.keep)
        return self.problem.thinned(fractions[n] for n in self.problem.names)

    @property
    def estimate(self) -> Estimate | None:
        return None if self.root is None else price(self.thinned, self.root)

    @property
    def plan(self) -> Plan | None:
        """The plan with its estimates; None if nothing fits and nothing may be given up."""
        if self.root is None:
            return None
        return self._as_plan(self.root, self.kept, self.retention, self.thinned)

    def miss(self, candidate: Candidate) -> Plan:
        """A plan that was looked at, as a Plan."""
        return self._as_plan(self.costs.tree(candidate.shape), None, None, self.problem)

    def _as_plan(self, root: Node, kept: Kept | None, retention: Retention | None, problem: Problem) -> Plan:
        bill = price(problem, root)
        keep = () if kept is None else tuple((s, x) for s, x in kept.keep if x < 1)
        cells = tuple((s.name, s.count) for s in self.problem.shares)
        plan = Plan(root, keep=keep, retention=retention, cells=cells)
        return plan.with_estimates(bill.cpu, bill.memory_tuples, bill.output_rate)


def optimize(
    query: BoundQuery | Query, stats: Statistics | None = None, budget: Budget | None = None, asked: Asked = ANYTHING
) -> Plan:
    """The plan for a query under a budget (the query's own if none is given). Raises NoQualifiedPlan."""
    decision = decide(query, stats, budget, asked)
    plan = decision.plan
    if plan is not None:
        return plan
    from watersmeet.optimize.explain import refusal

    raise NoQualifiedPlan(
        refusal(decision), cpu_bound=decision.bounds.cpu, memory_bound=decision.bounds.memory,
        nearest=tuple(decision.miss(c) for c in decision.nearest), proven=decision.proven,
    )  # fmt: skip


def decide(
    query: BoundQuery | Query, stats: Statistics | None = None, budget: Budget | None = None, asked: Asked = ANYTHING
) -> Decision:
    """The plan, or none, with all reasons."""
    bound = planned(query)
    budget = budget if budget is not None else bound.query.budget
    stated = state_problem(bound, stats, budget)
    problem = replace(stated.problem, shares=choose_shares(stated.problem, stated.dimensions, asked.cells))
    limits = Limits.of(budget, asked.head_room)
    return decide_problem(problem, limits, asked, bound.query.overload, budget, stated.assumptions)


def decide_problem(
    problem: Problem,
    limits: Limits,
    asked: Asked = ANYTHING,
    overload: Overload | None = None,
    budget: Budget | None = None,
    assumptions: tuple[str, ...] = (),
) -> Decision:
    """The same from plain numbers."""
    if asked.cpu_share != 1:
        problem = replace(problem, costs=dilated(problem.costs, asked.cpu_share))
        assumptions = (
            *assumptions,
            f"the join gets {asked.cpu_share:.0%} of each processor: all prices are that much higher",
        )
    now = Decision(
        problem, limits, budget, asked.policy, overload or Overload(), lower_bounds(problem), NodeCosts(problem), asked.search,
        assumptions=assumptions,
    )  # fmt: skip
    steps = STEPS if asked.kind == "auto" else (mjoin_only if asked.kind == "mjoin" else xjoin_only, take_it)
    if len(problem.streams) == 1:
        steps = (only_plan, choose_exact, give_up_some) if asked.kind == "auto" else (only_plan, take_it)
    for step in steps:
        after = step(now)
        if after != now:
            name = step.__name__.replace("_", " ")
            now = replace(after, steps=(*after.steps, Step(name, _summary(after))))
    return now


def layer_one(d: Decision) -> Decision:
    """(A B C) and the best binary tree: the plan of least memory, and one of little CPU."""
    return xjoin_only(mjoin_only(d))


def only_plan(d: Decision) -> Decision:
    """(A): of one stream there is one plan."""
    return replace(mjoin_only(d), exhaustive=True)


def mjoin_only(d: Decision) -> Decision:
    return _looked_at(d, "mjoin", tuple(range(len(d.problem.streams))))


def xjoin_only(d: Decision) -> Decision:
    return _looked_at(d, "binary tree", best_binary_tree(d.costs))


def exact_search(d: Decision) -> Decision:
    """mjoin, binary tree -> all non-dominated plans within the limits. Up to EXACT_STREAMS streams, or as many as it can if asked for."""
    n = len(d.problem.streams)
    if d.search == "jtree_finder" and not d.settled:
        found = jtree_finder(d.costs, d.limits)
        return replace(d, exhaustive=True, seen=(*d.seen, *(("JTree-Finder", p) for p in found)))
    wanted = d.search == "pareto" or (d.search == "auto" and n <= EXACT_STREAMS)
    if not wanted or d.settled:
        return d
    return _with_front(d)


def two_layer_search(d: Decision) -> Decision:
    """mjoin, binary tree -> plans between them, by hill climbing. Where the exact search has not been."""
    if d.exhaustive or d.settled:
        return d
    aim = None
    if d.policy != "any":
        least_memory = d.policy == "least_memory"
        cpu, memory = max(d.bounds.cpu, TINY), max(d.bounds.memory, TINY)
        aim = Limits(d.limits.cpu, memory) if least_memory else Limits(cpu, d.limits.memory)
    found = two_layer(d.costs, d.limits, aim)
    if (
        aim is not None and not found.qualified
    ):  # the climb towards less than the limits may have passed by what is within them
        again = two_layer(d.costs, d.limits)
        return replace(d, seen=(*d.seen, *found.seen, *again.seen))
    return replace(d, seen=(*d.seen, *found.seen))


def exact_fall_back(d: Decision) -> Decision:
    """nothing found -> all non-dominated plans. Where hill climbing found none and the exact search can still be made."""
    if d.fitting or d.exhaustive or d.settled or len(d.problem.streams) > MAX_STREAMS:
        return d
    return _with_front(d)


def choose_exact(d: Decision) -> Decision:
    """plans within the limits -> the one that the policy prefers. Declines if there is none."""
    if not d.fitting:
        return d
    chosen = pick(d.fitting, d.policy, d.limits)
    return replace(d, chosen=chosen, root=d.costs.tree(chosen.shape))


def take_it(d: Decision) -> Decision:
    """one plan -> that plan, whatever it costs: its kind was asked for."""
    chosen = d.seen[-1][1]
    return replace(d, chosen=chosen, root=d.costs.tree(chosen.shape))


def near_misses(d: Decision) -> Decision:
    """plans looked at -> also the non-dominated plans without limits, for the explanation: what narrowly missed them. Declines without
    limits and beyond EXACT_STREAMS streams."""
    if not d.limits.bounded or not 1 < len(d.problem.streams) <= EXACT_STREAMS:
        return d
    return replace(d, seen=(*d.seen, *(("exact search", p) for p in pareto_front(d.costs))))


def give_up_some(d: Decision) -> Decision:
    """no plan fits -> a plan that gives up what the query allows: tuples (SHED), probes (DIRECT), state (EVICT)."""
    if d.root is not None or d.overload.exact:
        return d
    if d.overload.shed:
        return _shed(d)
    plans = [p for _, p in d.seen]
    if d.overload.evict:
        plans = [p for p in plans if d.overload.direct or p.cpu <= d.limits.cpu]
        plans.sort(key=lambda p: (p.memory, p.cpu))
        relief = "EVICT: windows keep what their policy values most"
    else:
        plans = [p for p in plans if d.limits.allow(0.0, p.memory)]
        plans.sort(key=lambda p: (p.cpu, p.memory))
        relief = ""
    if not plans:
        return d
    if d.overload.direct:
        relief = " and ".join(filter(None, (relief, "DIRECT: probes are skipped where they yield least")))
    chosen = plans[0]
    return replace(d, chosen=chosen, root=d.costs.tree(chosen.shape), retention=_retention(d, chosen), relief=relief)


STEPS: Final[tuple[Callable[[Decision], Decision], ...]] = (
    layer_one, exact_search, two_layer_search, exact_fall_back, choose_exact, near_misses, give_up_some,
)  # fmt: skip


def _looked_at(d: Decision, by: str, shape: object) -> Decision:
    assert isinstance(shape, tuple)
    plan = Candidate(d.costs.cpu(shape), d.costs.memory(shape), shape)
    return replace(d, seen=(*d.seen, (by, plan)))


def _with_front(d: Decision) -> Decision:
    front = pareto_front(d.costs, d.limits)
    return replace(d, exhaustive=True, seen=(*d.seen, *(("exact search", p) for p in front)))


def _shed(d: Decision) -> Decision:
    terms = d.overload.terms
    limits = replace(d.limits, memory=inf) if d.overload.evict else d.limits
    best = best_approximation(
        d.costs, limits, {t.stream: t.at_least for t in terms}, {t.stream: t.weight for t in terms}
    )
    if best is None:
        return replace(d, relief="SHED: the minimum rates (AT LEAST) do not fit with any plan that was tried")
    keep = tuple((s, _rounded(x)) for s, x in best.kept.keep)
    bill = price(d.problem.thinned(x for _, x in keep), best.root)
    kept = replace(best.kept, keep=keep, results=bill.output_rate, cpu=bill.cpu, memory=bill.memory)
    chosen = Candidate(d.costs.cpu(best.shape), d.costs.memory(best.shape), best.shape)
    after = replace(d, chosen=chosen, root=best.root, kept=kept, relief="SHED: tuples are dropped as they arrive")
    return replace(after, retention=_retention(d, replace(chosen, memory=bill.memory))) if d.overload.evict else after


def _retention(d: Decision, chosen: Candidate) -> Retention | None:
    """How many tuples each window may hold: the memory divided as the windows are."""
    if not d.overload.evict or chosen.memory <= d.limits.memory:
        return None
    part = d.limits.memory / d.bounds.memory
    tuples = tuple((s.name, max(1, int(s.window * part))) for s in d.problem.streams if not s.static)
    return Retention(d.overload.using or DEFAULT_RETENTION, tuples)


def _rounded(x: float) -> float:
    """Six digits, never more than x: rounding must not break a budget.

    >>> _rounded(0.70588235), _rounded(0.107028766), _rounded(0.29), _rounded(1.0)
    (0.705882, 0.107028, 0.29, 1.0)
    """
    if x >= 1:
        return 1.0
    scale = 10.0 ** (5 - floor(log10(x)))
    return floor(x * scale + 1e-6) / scale


def _summary(d: Decision) -> str:
    if d.root is not None:
        return str(d.plan)
    return f"{len(d.seen)} plans looked at, {len(d.fitting)} of them within the limits"
