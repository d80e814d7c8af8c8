"""From freshness tolerances to refresh rates of states (paper mode: states bound by a count of tuples).

A state of n tuples that R tuples a second come into holds each of them n / R seconds. A tuple of stream I lives in its
own window, then, as part of combinations, in each inner state on its path:

    Lemma 1    tolerance_I ≥ S_I / λ_I + Σ_j S_j / R_j     over the inner states j on the path of I
    Lemma 2    a binary plan of k streams has k − 2 such *staleness-susceptible* states, whatever its shape

The paper does not say how a tolerance is divided among the states of a path. Here state j may hold a tuple for

    τ_j = min over the streams I in j of  (tolerance_I − S_I / λ_I) · √S_j / Σ_i √S_i,     R_j = S_j / τ_j

The root makes Σ R least for a path by itself. A tolerance at or below the window itself has no answer: R is infinite.

>>> from watersmeet.adapt.direction.half_joins import JoinTree
>>> rate, states = {"A": 500, "B": 500, "C": 500}, {"A": 1000, "B": 1000, "C": 1000, "(A B)": 400}
>>> tree = JoinTree.of("((A B) C)", rate, {"A": 1, "B": 1, "(A B)": 1, "C": 1}, states=states)
>>> refresh_rates(tree, tolerances(tree, 1.5))
{'(A B)': 400.0}
>>> refresh_rates(tree, tolerances(tree, 1.0))
{'(A B)': inf}

Source: jaqpot 4.2, Definition 5, Lemmas 1 and 2.
Departs from the paper in: the division above (docs/internals/papers.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt

from watersmeet.adapt.direction.half_joins import JoinTree


def susceptible(tree: JoinTree) -> tuple[str, ...]:
    """The states that go stale if too few probes feed them: those of the inner nodes (Lemma 2)."""
    return tuple(node for node, _ in tree.states)


def tolerances(tree: JoinTree, times: float) -> dict[str, float]:
    """Tolerances in seconds that are so many times the window of each stream."""
    return {w.stream: times * w.size / w.rate for w in tree.windows if w.rate}


def refresh_rates(tree: JoinTree, tolerance: Mapping[str, float]) -> dict[str, float]:
    """R: tuples per second that must come into each susceptible state. tolerance: seconds, by stream."""
    size = dict(tree.states)
    rates = dict.fromkeys(size, 0.0)
    for w in tree.windows:
        inner = [h.node for h in tree.path(w.stream) if h.node in size]
        if w.stream not in tolerance or not inner or not w.rate:
            continue
        slack = tolerance[w.stream] - w.size / w.rate
        for state in inner:
            allowed = slack * sqrt(size[state]) / sum(sqrt(size[j]) for j in inner)
            rates[state] = max(rates[state], size[state] / allowed if allowed > 0 else inf)
    return rates


def residence(tree: JoinTree, come: Mapping[str, float]) -> dict[str, float]:
    """Seconds after which tuples of each stream have left all states, with these tuples a second into each state (Lemma 1)."""
    size = dict(tree.states)
    found = {}
    for w in tree.windows:
        if w.rate:
            inner = [h.node for h in tree.path(w.stream) if h.node in size]
            found[w.stream] = w.size / w.rate + sum(size[j] / come[j] if come.get(j) else inf for j in inner)
    return found
