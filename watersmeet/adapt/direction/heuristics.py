"""Five heuristics on half-way join productivity, which the paper holds itself against.

    EqualHJ      μ equally among all half-way joins
    GlobalHJPR   in the ratio of their productivities ρ_h
    EBestHJP     equally among the join operators, then all to the most productive half-way join of each
    SBestHJP     in the ratio of the operators' selectivities, then likewise
    BestHJP      to the most productive half-way join of all, until its tuples are used up, then to the next

None sees what a half-way join's results are used for: a *producer-consumer mismatch* wastes allowances, or results.

>>> from watersmeet.adapt.direction.half_joins import JoinTree
>>> rate, rho = {"A": 500, "B": 700, "C": 500}, {"A": 0.5, "B": 5, "(A B)": 5, "C": 1}
>>> tree = JoinTree.of("((A B) C)", rate, rho, selectivity={"(A B)": 0.001, "((A B) C)": 0.005})
>>> for policy in (equal_hj, global_hjpr, ebest_hjp, sbest_hjp): print(policy(tree, 300))
A 75, B 75, (A B) 75, C 75: 450 results/s with 300
A 13.0435, B 130.435, (A B) 130.435, C 26.087: 678.261 results/s with 300
B 150, (A B) 150: 750 results/s with 300
B 50, (A B) 250: 1250 results/s with 300

Source: jaqpot, Appendix B, Table 4 (SBestHJP: the paper prints 150 and 750, its own numbers give 250 and 1250);
BestHJP: section 2, from Kang et al. for a single join.
Departs from the paper in: λ' ≤ λ is kept; resources a half-way join can't use go to nobody, but in the operators of
EBestHJP, SBestHJP and BestHJP they go to the next half-way join ("starting with the most productive until exhausted").
"""

from __future__ import annotations

from collections.abc import Iterable

from watersmeet.adapt.direction.assignment import Assignment, at_half_joins
from watersmeet.adapt.direction.half_joins import HalfJoin, JoinTree


def equal_hj(tree: JoinTree, resources: float) -> Assignment:
    return at_half_joins(tree, {h.input: resources / len(tree.halves) for h in tree.halves})


def global_hjpr(tree: JoinTree, resources: float) -> Assignment:
    total = sum(h.productivity for h in tree.halves)
    return at_half_joins(tree, {h.input: resources * h.productivity / total for h in tree.halves} if total else {})


def ebest_hjp(tree: JoinTree, resources: float) -> Assignment:
    each = resources / len(tree.operators)
    return at_half_joins(tree, {k: x for halves in tree.operators.values() for k, x in _best(halves, each)})


def sbest_hjp(tree: JoinTree, resources: float) -> Assignment:
    sigma = dict(tree.selectivity)
    total = sum(sigma[node] for node in tree.operators)
    given: dict[str, float] = {}
    for node, halves in tree.operators.items():
        given |= _best(halves, resources * sigma[node] / total if total else 0.0)
    return at_half_joins(tree, given)


def best_hjp(tree: JoinTree, resources: float) -> Assignment:
    return at_half_joins(tree, dict(_best(tree.halves, resources)))


def _best(halves: Iterable[HalfJoin], resources: float) -> Iterable[tuple[str, float]]:
    """BestHJP: all to the most productive half-way join, as far as it has tuples; then to the next."""
    for half in sorted(halves, key=lambda h: -h.productivity):
        mine = min(resources, half.rate * half.cost)
        resources -= mine
        yield half.input, mine
