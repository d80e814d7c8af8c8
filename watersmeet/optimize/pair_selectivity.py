"""Pair selectivities: from what is known of pairs of streams to what each predicate contributes.

Statistics give one selectivity for a pair of streams: the fraction of their pairs of tuples that satisfy *all*
predicates between the two. Where several predicates lie between them, each gets its estimate e_p, and the exponent γ
with Π e_p^γ = f makes the product right.

Estimates: an equality 1 / max(d_1, d_2) of the distinct values; if none is known, what the other pairs of its class
imply (R.a = S.a = T.a with two of the three given), else 1/10; <, <=, >, >= 1/3; <> 9/10; others 1/3. Comparisons
that the engine can only decide on complete combinations (strings, and predicates that mix columns of several streams)
are not part of any sub-result: they lower the output alone.

Source: the defaults are System R's (Selinger 1979); the papers assume that selectivities are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, prod
from typing import Final

from watersmeet.errors import QueryError
from watersmeet.model.bind import BoundQuery, Comparison, Side
from watersmeet.model.expr import Cast, Column, streams_of, type_of
from watersmeet.model.graph import JoinGraph
from watersmeet.model.statistics import Statistics
from watersmeet.optimize.problem import Predicate

EQUALITY: Final = 0.1
ORDER: Final = 1 / 3
UNEQUAL: Final = 0.9


@dataclass
class _Part:
    """One predicate between two streams: its class or comparison, the estimate, and where the share of the pair's f goes."""

    kind: str  # "class", "compare" or "late"
    at: int
    estimate: float
    known: bool
    text: str


def pair_selectivities(
    bound: BoundQuery, graph: JoinGraph, stats: Statistics, said: list[str]
) -> tuple[tuple[Predicate, ...], float]:
    """The predicates of the problem, and the selectivity of what is checked at the end only."""
    number = {a: i for i, a in enumerate(bound.aliases)}
    in_class: list[list[tuple[int, int, float, float]]] = [[] for _ in graph.classes]
    unknown: list[list[tuple[int, int, str]]] = [[] for _ in graph.classes]
    compared: list[Predicate] = []
    residual = 1.0
    for a, b in combinations(bound.aliases, 2):
        parts = _parts(graph, stats, a, b)
        forward, backward = stats.edge(a, b), stats.edge(b, a)
        if not parts:
            if forward is not None and forward != 1:
                raise QueryError(
                    f"statistics: selectivity of {a}-{b}, but no predicate joins the two",
                    hint="leave it out: it follows from the predicates along the way",
                )
            continue
        given = forward is not None and backward is not None
        if forward is None or backward is None:
            f = g = [p.estimate for p in parts]
        else:
            f, g = _shared(parts, forward), _shared(parts, backward)
        for p, x, y in zip(parts, f, g, strict=True):
            if p.kind == "class" and not given and not p.known:
                unknown[p.at].append((number[a], number[b], p.text))
                continue
            if not given:
                said.append(
                    f"selectivity of {p.text}: {x:.3g} ({'from distinct values' if p.known else 'nothing known'})"
                )
            if p.kind == "class":
                in_class[p.at].append((number[a], number[b], x, y))
            elif p.kind == "compare":
                compared.append(Predicate(((number[a], number[b], x, y),), hashed=False, name=p.text))
                if x != y:
                    said.append(f"{p.text}: the mean of its two selectivities")
            else:
                residual *= (x + y) / 2
    for pairs, open_pairs in zip(in_class, unknown, strict=True):
        known = list(pairs)
        for i, j, text in open_pairs:
            through = _through(known, i, j)
            estimate = EQUALITY if through is None else through
            said.append(
                f"selectivity of {text}: {estimate:.3g} ({'nothing known' if through is None else 'from its class'})"
            )
            pairs.append((i, j, estimate, estimate))
    wide = [r for r in graph.residuals if len(streams_of(r)) > 2]
    for predicate in wide:
        said.append(f"selectivity of {predicate}: {ORDER:.3g} (nothing known)")
        residual *= ORDER
    equal = [
        Predicate(tuple(pairs), name=str(group)) for group, pairs in zip(graph.classes, in_class, strict=True) if pairs
    ]
    return (*equal, *compared), residual


def _parts(graph: JoinGraph, stats: Statistics, a: str, b: str) -> list[_Part]:
    """The predicates between two streams."""
    made = []
    for at, group in enumerate(graph.classes):
        left, right = group.of(a), group.of(b)
        if left and right:
            distinct = [d for d in (_distinct(stats, left), _distinct(stats, right)) if d]
            estimate = min(1.0, 1 / max(distinct)) if distinct else EQUALITY
            made.append(_Part("class", at, estimate, bool(distinct), f"{left} = {right}"))
    for at, comparison in enumerate(graph.comparisons):
        if {comparison.left.stream, comparison.right.stream} == {a, b}:
            estimate = UNEQUAL if comparison.op == "<>" else ORDER
            made.append(_Part("late" if _late(comparison) else "compare", at, estimate, False, str(comparison)))
    for at, predicate in enumerate(graph.residuals):
        if streams_of(predicate) == {a, b}:
            made.append(_Part("late", at, ORDER, False, str(predicate)))
    return made


def _shared(parts: Sequence[_Part], f: float) -> list[float]:
    """The selectivity of a pair divided among its predicates.

    >>> eq, lt = _Part("class", 0, 0.1, False, ""), _Part("compare", 0, 1 / 3, False, "")
    >>> [round(x, 3) for x in _shared([eq, lt], 1 / 900)]
    [0.01, 0.111]
    """
    estimates = [p.estimate for p in parts]
    if f == 0:
        return [0.0, *estimates[1:]]
    whole = prod(estimates)
    if whole in (0.0, 1.0):
        return [f ** (1 / len(parts))] * len(parts)
    exponent = log(f) / log(whole)
    return [e**exponent for e in estimates]


def _through(known: Sequence[tuple[int, int, float, float]], i: int, j: int) -> float | None:
    """Selectivity of two members of a class that only others link: the least on the best way between them.

    With R.a = S.a = T.a and f = 1 / max(d, d') that is 1 / max(d_R, d_T), or less if S has most values.

    >>> _through([(0, 1, 0.5, 0.5), (1, 2, 0.02, 0.02)], 0, 2)
    0.02
    """
    best, left = {i: 1.0}, set(range(32))
    while reach := [m for m in best if m in left]:
        m = max(reach, key=lambda k: best[k])
        if m == j:
            return best[m]
        left.discard(m)
        for a, b, f, g in known:
            if m in (a, b):
                other = b if m == a else a
                best[other] = max(best.get(other, 0.0), min(best[m], (f + g) / 2))
    return None


def _late(comparison: Comparison) -> bool:
    """Whether the engine decides it on complete combinations only."""
    kind = type_of(comparison.left.expr)
    return kind.name == "STRING" or (kind.name == "DECIMAL" and kind.precision > 18)


def _distinct(stats: Statistics, side: Side) -> float | None:
    expr = side.expr
    while isinstance(expr, Cast):
        expr = expr.operand
    if not isinstance(expr, Column):
        return None
    if (side.stream, expr.name) in stats.distinct:
        return stats.distinct[side.stream, expr.name]
    name = expr.name.lower()
    return next((v for (a, c), v in stats.distinct.items() if a == side.stream and c.lower() == name), None)
