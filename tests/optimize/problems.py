"""Problems for the tests of the optimizer: the papers' own, and seeded random ones."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from watersmeet.model.bind import BoundQuery
from watersmeet.model.graph import JoinGraph
from watersmeet.model.statistics import Costs, Statistics
from watersmeet.optimize.cost import Limits
from watersmeet.optimize.pareto import Candidate
from watersmeet.optimize.problem import Problem, Share

QP_COSTS = Costs(probe=0.0, match=2.2e-6, insert=2e-7, delete=2e-7)  # Table 3 of qualified-plans, ms -> s


def example_1(seconds: float, f_bc: float = 0.2) -> Problem:
    """static-optimization, Example 1: a join takes so many seconds for each input tuple."""
    costs = Costs(probe=seconds, match=0.0, insert=0.0, delete=0.0)
    return Problem.of({"A": 10.0, "B": 20.0, "C": 70.0}, 10.0, {("A", "B"): 0.5, ("B", "C"): f_bc}, costs)


def qualified_set(number: int, window_s: float | None = None) -> Problem:
    """qualified-plans, Table 2; W in seconds."""
    rates = {1: (20, 20, 20), 2: (20, 20, 50), 3: (10, 10, 10, 10), 4: (20, 20, 20, 20)}[number]
    sels = {1: (0.05, 0.5), 2: (0.02, 0.5), 3: (0.1, 0.15, 0.1), 4: (0.02, 0.2, 0.05)}[number]
    seconds = window_s or {1: 5, 2: 15, 3: 15, 4: 50}[number]
    names = "ABCD"[: len(rates)]
    rate = dict(zip(names, map(float, rates), strict=True))
    pairs = list(pairwise(names))
    return Problem.of(rate, {n: r * seconds for n, r in rate.items()}, dict(zip(pairs, sels, strict=True)), QP_COSTS)


KINDS = ("chain", "star", "cycle", "sparse", "clique")


def edges(kind: str, n: int, rng: random.Random) -> list[tuple[int, int]]:
    if kind == "chain":
        return [(i, i + 1) for i in range(n - 1)]
    if kind == "star":
        return [(0, i) for i in range(1, n)]
    if kind == "cycle":
        return [(i, i + 1) for i in range(n - 1)] + ([(0, n - 1)] if n > 2 else [])
    if kind == "clique":
        return [(i, j) for i in range(n) for j in range(i + 1, n)]
    tree = [(rng.randrange(i), i) for i in range(1, n)]  # sparse: a random tree and n / 4 edges more
    more = [(i, j) for i in range(n) for j in range(i + 1, n) if (i, j) not in tree]
    return tree + rng.sample(more, min(len(more), n // 4))


def random_problem(kind: str, n: int, seed: int, regime: str = "even", costs: Costs | None = None) -> Problem:
    """A seeded problem. Rates are 1 to 100 per second, windows 0.3 to 30 s, prices 0.1 to 1 µs. Regimes:

    even: a probe meets 0.1 to 8 tuples, so that results are of the order of the input. wide: the same with windows of
    0.1 to 100 s and prices of 0.01 to 10 µs. narrow: 0.05 to 5 tuples for each window of the larger side: most states
    are small. paper: selectivities uniform in (0, 1) as in qualified-plans 6.1, its prices, windows of 5 s: results
    drown all else.
    """
    rng = random.Random(f"{kind} {n} {seed} {regime}")
    names = [f"S{i}" for i in range(n)]
    rate = {s: rng.uniform(1, 100) for s in names}
    shortest, longest = {"paper": (0.7, 0.7), "wide": (-1.0, 2.0)}.get(regime, (-0.5, 1.5))
    window = {s: r * 10 ** rng.uniform(shortest, longest) for s, r in rate.items()}
    sel = {}
    for i, j in edges(kind, n, rng):
        a, b = window[names[i]], window[names[j]]
        if regime in ("even", "wide"):
            f = 10 ** rng.uniform(-1.0, 0.9) / (a * b) ** 0.5
        elif regime == "narrow":
            f = 10 ** rng.uniform(-1.3, 0.7) / max(a, b)
        else:
            f = rng.uniform(0.0, 1.0)
        sel[names[i], names[j]] = min(1.0, f)
    if costs is None:
        cheap, dear = (-8.0, -5.0) if regime == "wide" else (-7.0, -6.0)
        costs = QP_COSTS if regime == "paper" else random_costs(rng, cheap, dear)
    return Problem.of(rate, window, sel, costs)


def random_costs(rng: random.Random, cheap: float, dear: float) -> Costs:
    """Four prices between 10^cheap and 10^dear seconds."""
    probe, match, insert, delete = (10 ** rng.uniform(cheap, dear) for _ in range(4))
    return Costs(probe, match, insert, delete)


def binding_limits(
    front: list[Candidate], mjoin: Candidate, binary: Candidate, rng: random.Random, count: int
) -> list[Limits]:
    """Random limits that some plan keeps but neither the mjoin nor the binary tree does.

    Uniform between the least CPU and the mjoin's, and between the least memory and the binary tree's.
    """
    least_cpu, least_memory = min(p.cpu for p in front), min(p.memory for p in front)
    made: list[Limits] = []
    for _ in range(50 * count):
        cpu = rng.uniform(least_cpu, max(mjoin.cpu, least_cpu))
        limits = Limits(cpu, rng.uniform(least_memory, max(binary.memory, least_memory)))
        if binds(limits, mjoin, binary) and any(limits.allow(p.cpu, p.memory) for p in front):
            made.append(limits)
            if len(made) == count:
                break
    return made


def binds(limits: Limits, mjoin: Candidate, binary: Candidate) -> bool:
    return not limits.allow(mjoin.cpu, mjoin.memory) and not limits.allow(binary.cpu, binary.memory)


def mixed_problem(n: int, seed: int) -> Problem:
    """All that a problem can have: a class of three, a comparison, a table, an asymmetric selectivity, cells."""
    rng = random.Random(f"mixed {n} {seed}")
    names = [f"S{i}" for i in range(n)]
    rate = {s: rng.uniform(1, 100) for s in names[:-1]}
    window = {s: rng.uniform(2, 50) for s in names[:-1]}
    sel: dict[tuple[str, str], float] = {}
    for i in range(n):
        for j in range(i + 1, n):
            if j == i + 1 or rng.random() < 0.3 or {i, j} <= {0, 1, 2}:
                sel[names[i], names[j]] = rng.uniform(0.01, 0.6)
    if rng.random() < 0.5:
        sel[names[1], names[0]] = rng.uniform(0.01, 0.6)
    compared = [p for p in sel if names[n - 1] in p][:1] if rng.random() < 0.5 else []
    costs = random_costs(rng, -7.0, -6.0)
    classes = [names[:3]] if n > 3 else []
    made = Problem.of(
        rate, window, sel, costs, tables={names[-1]: rng.randint(5, 50)}, comparisons=compared, classes=classes
    )
    if rng.random() < 0.5:
        group = made.predicates[0]
        made = replace(made, shares=(Share("class", group.mask, 3), Share("row", 1 << (n - 2), 2)))
    return replace(made, inner_passes=rng.choice((1, 2)))


def random_statistics(bound: BoundQuery, rng: random.Random) -> Statistics:
    """Anything goes: whatever the numbers, a plan must give the same results."""
    streams = [s.alias for s in bound.sources if not s.static]
    return Statistics(
        rate={s: 10 ** rng.uniform(-1, 3) for s in streams},
        selectivity={edge: rng.random() for edge in JoinGraph.of(bound).edges if rng.random() < 0.7},
        table_rows={s.alias: rng.randint(1, 1000) for s in bound.sources if s.static},
        window_tuples={s: rng.uniform(1, 1000) for s in streams},
    )
