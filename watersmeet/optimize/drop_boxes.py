"""Drop boxes for joins, faithful: windows count dropped tuples, so a result is kept only if all its members are.

Dropping keeps a fraction x_i of stream i before anything else sees it. RANGE windows (and ROWS windows that count
what was dropped, which the promise of a sub-multiset asks for) then hold x_i · W_i tuples, so

    output = λ_o · Π x_i                    every result needs one kept tuple of each stream
    CPU    = Σ_t c_t · Π_{i ∈ P_t} x_i      a probe, match, insert or delete of combinations over P_t
    memory = Σ_t m_t · Π_{i ∈ P_t} x_i

    max Π x_i^{w_i}    subject to  CPU ≤ capacity,  memory ≤ capacity,  l_i ≤ x_i ≤ 1

With y = log x the objective is linear and the constraints are convex (log of a sum of exponentials): any local
optimum is the optimum. Weights go into the exponents; as factors, as the paper has them, they would change nothing.
Tables are not dropped from.

problem, root: the plan. limits: CPU and memory. at_least: l by stream name. weights: w by stream name, 1 where not
given.

>>> from watersmeet.model.plan import Plan
>>> from watersmeet.model.statistics import Costs
>>> problem = Problem.of({"A": 10, "B": 20, "C": 70}, 10, {("A", "B"): 0.5, ("B", "C"): 0.2}, Costs(0.005, 0, 0, 0))
>>> print(drop_boxes(problem, Plan.parse("((A B) C)").root, Limits(cpu=1)))
keep A 1, B 0.705882, C 1: 705.882 of 1000 results/s
>>> print(drop_boxes(problem, Plan.parse("((A B) C)").root, Limits(cpu=1), at_least={"A": 1, "B": 0.9, "C": 1}))
not even the minimum rates fit: they need 1.165 CPU and 74 memory

Source: static-optimization 5.2, with the model of docs/internals/papers.md, clash 1 (the paper's own: knapsack.py). Observation
3 (drop at the inputs only) holds here too: a box further up saves less and loses as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from watersmeet.model.plan import Leaf, Node, Tree
from watersmeet.optimize.cost import TOLERANCE, Limits
from watersmeet.optimize.kept import Kept
from watersmeet.optimize.problem import Problem

LEAST = 1e-9  # a stream without a minimum rate keeps at least this fraction, so that logarithms exist


@dataclass(frozen=True)
class Posynomial:
    """Σ_t c_t · Π_{i ∈ P_t} x_i: what a plan uses when fractions x of its streams are kept."""

    coefficients: Any
    inside: Any  # [term, stream]: whether the stream is in P_t

    @classmethod
    def of(cls, terms: Mapping[int, float], streams: int) -> Posynomial:
        masks = [m for m, c in terms.items() if c > 0]
        inside = np.array([[m >> i & 1 for i in range(streams)] for m in masks], dtype=float).reshape(-1, streams)
        return cls(np.array([terms[m] for m in masks]), inside)

    def terms(self, y: Any) -> Any:
        """The terms at x = exp(y)."""
        return self.coefficients * np.exp(self.inside @ y)

    def value(self, y: Any) -> float:
        return float(self.terms(y).sum())

    def log_gradient(self, y: Any) -> Any:
        """Gradient of the logarithm: the share of each stream in the whole."""
        terms = self.terms(y)
        return (terms @ self.inside) / terms.sum()


def posynomials(problem: Problem, root: Node) -> tuple[Posynomial, Posynomial]:
    """CPU and memory of a plan as functions of the fractions kept."""
    rates, costs = problem.rates, problem.prices(root)
    number = {name: i for i, name in enumerate(problem.names)}
    cpu: dict[int, float] = {}
    memory: dict[int, float] = {}

    def add(terms: dict[int, float], mask: int, amount: float) -> None:
        terms[mask] = terms.get(mask, 0.0) + amount

    def visit(tree: Tree) -> int:
        if isinstance(tree, Leaf):
            mask = 1 << number[tree.stream]
        else:
            blocks = [visit(i) for i in tree.inputs]
            mask = sum(blocks)
            passes = problem.root_passes if tree is root else problem.inner_passes
            for i, order in enumerate(tree.orders):
                prefix = blocks[i]
                for j in order:
                    add(cpu, prefix, passes * costs.probe * rates.made(blocks[i], prefix))
                    found = rates.candidates(blocks[i], prefix, blocks[j])
                    prefix |= blocks[j]
                    add(cpu, prefix, passes * costs.match * found)
        if tree is not root:
            add(cpu, mask, costs.insert * rates.made(mask, mask) + costs.delete * rates.leaving(mask))
            add(memory, mask, rates.size(mask) * problem.weight(mask))
        return mask

    visit(root)
    n = len(number)
    return Posynomial.of(cpu, n), Posynomial.of(memory, n)


def drop_boxes(
    problem: Problem,
    root: Node,
    limits: Limits,
    at_least: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Kept:
    """The best drop boxes for a plan; not feasible if even the minimum rates exceed the limits."""
    cpu, memory = posynomials(problem, root)
    fixed = [s.static for s in problem.streams]
    least = [
        1.0 if f else max((at_least or {}).get(s.name, 0.0), LEAST) for f, s in zip(fixed, problem.streams, strict=True)
    ]
    weight = [0.0 if f else (weights or {}).get(s.name, 1.0) for f, s in zip(fixed, problem.streams, strict=True)]
    y = solve([(cpu, limits.cpu), (memory, limits.memory)], np.log(np.array(least)), np.array(weight, dtype=float))
    of = problem.rates.output
    if y is None:
        floor = np.log(np.array(least))
        return Kept((), 0.0, of, False, cpu.value(floor), memory.value(floor))
    keep = tuple(zip(problem.names, np.exp(y).tolist(), strict=True))
    return Kept(keep, of * float(np.exp(y.sum())), of, True, cpu.value(y), memory.value(y))


def solve(constraints: list[tuple[Posynomial, float]], floor: Any, weight: Any) -> Any:
    """y = log x of the best fractions; None if even the floor breaks a constraint."""
    from scipy.optimize import minimize

    bounded = [(p, limit) for p, limit in constraints if limit < np.inf and len(p.coefficients)]
    top = np.zeros(len(floor))
    if fits(bounded, top):
        return top
    if not fits(bounded, floor):
        return None
    start = _uniform(bounded, floor)
    active = [(p, limit) for p, limit in bounded if p.value(top) > limit]
    found = minimize(
        lambda y: -float(weight @ y), start, jac=lambda y: -weight, method="SLSQP",
        bounds=list(zip(floor, top, strict=True)), options={"ftol": 1e-13, "maxiter": 500},
        constraints=[
            {"type": "ineq", "fun": lambda y, p=p, m=m: np.log(m) - np.log(p.value(y)), "jac": lambda y, p=p: -p.log_gradient(y)}
            for p, m in active
        ],
    )  # fmt: skip
    best = _inside(bounded, np.clip(found.x, floor, top), floor)
    return best if weight @ best >= weight @ start else start


def fits(constraints: list[tuple[Posynomial, float]], y: Any) -> bool:
    return all(p.value(y) <= limit * (1 + TOLERANCE) for p, limit in constraints)


def _uniform(constraints: list[tuple[Posynomial, float]], floor: Any) -> Any:
    """The same fraction of every stream, not below its floor, as large as fits."""
    low, high = float(floor.min()), 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(constraints, np.maximum(floor, middle)) else (low, middle)
    return np.maximum(floor, low)


def _inside(constraints: list[tuple[Posynomial, float]], y: Any, floor: Any) -> Any:
    """The point, moved towards the floor until it is within the constraints."""
    if fits(constraints, y):
        return y
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(constraints, y + middle * (floor - y)) else (middle, high)
    return y + high * (floor - y)
