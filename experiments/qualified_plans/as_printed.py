"""Algorithms 1 and 3 as they are printed, run to see what they do. The repaired ones are in `watersmeet/optimize`.

What the text leaves open is read kindly, so that what goes wrong is what is printed: nodes get their best probe orders, CPU and memory of
a plan are those of the full model, an edge of E whose ends have become one vertex is passed over, and one end of an edge stands for
the vertex that it has been merged into. Control flow, and the weight λλσ of an edge, are the printed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import inf

from experiments.experiment import Config, Part, Row, Setting, one_by_one
from experiments.qualified_plans.sets import prices
from experiments.qualified_plans.settings import random_problem
from watersmeet.model.statistics import Costs
from watersmeet.optimize.binary_tree import best_binary_tree
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.node_costs import NodeCosts
from watersmeet.optimize.pareto import Candidate, pareto_front
from watersmeet.optimize.problem import Problem
from watersmeet.optimize.shape import Shape, partitions, streams

NONE = "-1"
ENDLESS = "never ends"
PLAN = "a qualified plan"
WRONG = "a plan that is not qualified"


def algorithm_1(costs: NodeCosts, limits: Limits, mended: bool = False) -> list[Candidate] | str:
    """JTree-Finder. `mended`: line 14 is not tested for the last size, where line 11 and not line 13 keeps the plans."""
    n = len(costs.problem.streams)
    # 1, 2: SubPlans[1] = the input streams
    sub_plans: dict[tuple[int, ...], list[Candidate]] = {
        (s,): [Candidate(costs.upkeep(1 << s), costs.holding(1 << s), s)] for s in range(n)
    }
    of_size: dict[int, int] = {1: n}
    qualified: list[Candidate] = []
    for size in range(2, n + 1):  # 3
        of_size[size] = 0
        for chosen in combinations(range(n), size):  # 4
            sub_plans[chosen] = []
            for parts in partitions(chosen):  # 5, 6
                if len(parts) == 1:
                    continue
                for plan in _generate(costs, parts, sub_plans, size < n):  # 7, 8
                    if not limits.allow(plan.cpu, plan.memory):  # 9
                        continue
                    if size == n:  # 10, 11
                        qualified.append(plan)
                    else:  # 13
                        sub_plans[chosen].append(plan)
                        of_size[size] += 1
        if of_size[size] == 0 and not (mended and size == n):  # 14
            return NONE
    return qualified  # 15


def _generate(
    costs: NodeCosts, parts: tuple[tuple[int, ...], ...], sub_plans: dict[tuple[int, ...], list[Candidate]], kept: bool
) -> Iterator[Candidate]:
    blocks = tuple(sum(1 << s for s in part) for part in parts)
    work, own = costs.node_cpu(blocks), costs.holding(sum(blocks)) if kept else 0.0
    for below in product(*(sub_plans[tuple(sorted(part))] for part in parts)):
        yield Candidate(
            work + sum(c.cpu for c in below), own + sum(c.memory for c in below), tuple(c.shape for c in below)
        )


def algorithm_3(costs: NodeCosts, limits: Limits, without_17: bool = False) -> Candidate | str:
    """State-selection. `without_17`: line 17, which ends the search as soon as all edges have been tried, is left out."""
    vertices: list[Shape] = list(range(len(costs.problem.streams)))  # 1: P = P_mjoin
    plan = _plan(costs, vertices)  # 2
    memory = plan.memory  # Mem_r: set here and never again
    while plan.cpu > limits.cpu and memory < limits.memory:  # 3
        before = list(vertices)
        for x, y in _edges(costs, vertices):  # 4, 5, 6, 7, 16: each E_i once, by falling frequency / weight
            ends = [next(v for v in vertices if streams(v) >> s & 1) for s in (x, y)]
            if ends[0] == ends[1]:
                continue
            merged = [v for v in vertices if v not in ends] + [(ends[0], ends[1])]  # 8, 9
            new = _plan(costs, merged)  # 10, 11
            if new.cpu < plan.cpu:  # 12
                vertices, plan = merged, new  # 13
                if plan.memory > limits.memory:  # 14
                    return NONE  # 15
        if not without_17:  # 17: E is empty here, always
            return NONE
        if vertices == before:
            return ENDLESS  # nothing has changed, so nothing ever will
    return plan  # 18


def _plan(costs: NodeCosts, vertices: list[Shape]) -> Candidate:
    shape = vertices[0] if len(vertices) == 1 else tuple(vertices)
    return Candidate(costs.cpu(shape), costs.memory(shape), shape)


def _edges(costs: NodeCosts, vertices: list[Shape]) -> list[tuple[int, int]]:
    """The edges of the join graph between vertices, by falling frequency / (λ_x λ_y σ_xy)."""
    blocks = tuple(map(streams, vertices))
    if len(blocks) < 2:
        return []
    ordering = costs.node(blocks)
    worth: dict[tuple[int, int], float] = {}
    for predicate in costs.problem.predicates:
        for x, y, f, _ in predicate.pairs:
            weight = costs.problem.streams[x].rate * costs.problem.streams[y].rate * f
            frequency = 0
            for start, order in enumerate(ordering.orders):
                bound = ordering.blocks[start]
                for j in order:
                    now = ordering.blocks[j]
                    frequency += bool((bound >> x & 1 and now >> y & 1) or (bound >> y & 1 and now >> x & 1))
                    bound |= now
            worth[x, y] = frequency / weight if weight else inf
    return sorted(worth, key=lambda e: (-worth[e], e))


def bushy_case(costs: Costs) -> tuple[NodeCosts, Limits]:
    """A cycle of four streams with a qualified plan, ((A C) (B D)), none of whose sub-plans has three streams."""
    cycle = {("A", "C"): 0.001, ("B", "D"): 0.001, ("A", "B"): 0.3, ("C", "D"): 0.3}
    problem = Problem.of(dict.fromkeys("ABCD", 20.0), 100.0, cycle, costs)
    return NodeCosts(problem), Limits(cpu=2e-4)


def settings(config: Config) -> Iterator[Setting]:
    for n in config["as_printed"]["streams"]:
        for seed in config["seeds"]:
            for number in range(config["as_printed"]["settings"]):
                yield {"streams": n, "seed": seed, "number": number}


def all_of_them(config: Config, setting: Setting) -> list[Row]:
    """Both algorithms on one setting: with no limits, and with a budget that neither mjoin nor binary tree keeps."""
    problem, rng = random_problem(config["random"], prices(config), setting)
    costs = NodeCosts(problem)
    every, tree = tuple(range(setting["streams"])), best_binary_tree(costs)
    low, high = sorted((costs.cpu(every), costs.cpu(tree)))
    binding = Limits(rng.uniform(low, high), rng.uniform(costs.memory(every), costs.memory(tree)))
    made: list[Row] = []
    for name, limits in (("ample", Limits()), ("binding", binding)):
        exists = any(limits.allow(p.cpu, p.memory) for p in pareto_front(costs, limits))
        found: dict[str, list[Candidate] | Candidate | str] = {
            "algorithm_1": algorithm_1(costs, limits), "algorithm_1_mended": algorithm_1(costs, limits, mended=True),
            "algorithm_3": algorithm_3(costs, limits), "algorithm_3_without_17": algorithm_3(costs, limits, without_17=True),
        }  # fmt: skip
        made.append({"budget": name, "exists": int(exists), **{k: outcome(v, limits) for k, v in found.items()}})
    return made


def outcome(found: list[Candidate] | Candidate | str, limits: Limits) -> str:
    """What an algorithm returned, in words."""
    if isinstance(found, str):
        return found
    plans = found if isinstance(found, list) else [found]
    if not plans:
        return NONE
    return PLAN if all(limits.allow(p.cpu, p.memory) for p in plans) else WRONG


AS_PRINTED = Part("as_printed", settings, one_by_one(all_of_them))
