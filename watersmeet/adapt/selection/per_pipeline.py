"""The best caches for pipelines that share nothing, in linear time: a cache, or the best of what lies inside it.

The idea: under the prefix invariant caches of a pipeline that overlap contain each other, so they form a forest. Bottom-up, the best for
a tree is its root, or the union of the best for its children, whichever saves more.

    best(C) = max(benefit(C) - upkeep(C), sum of best(children of C))

>>> from watersmeet.adapt.selection.problem import Candidate, Problem
>>> small, large = Candidate("T", 0, 1, "RS", 3.0), Candidate("T", 0, 2, "RSU", 2.0)
>>> problem = Problem({("T", j): 5.0 for j in range(3)}, (small, large), {"RS": 1.0, "RSU": 4.0})
>>> [str(c) for c in per_pipeline(problem)]
['T[0..2] of RSU']

Source: a-caching 4.4, Theorem 4.1 and its proof.
Departs from the paper in: nothing. Where groups are shared it counts each upkeep in full, so its answer is then only feasible, not optimal.
"""

from __future__ import annotations

from watersmeet.adapt.selection.problem import Candidate, Problem


def per_pipeline(problem: Problem) -> tuple[Candidate, ...]:
    chosen: list[Candidate] = []
    for pipeline in dict.fromkeys(c.pipeline for c in problem.candidates):
        best: dict[Candidate, tuple[float, tuple[Candidate, ...]]] = {}
        inner: set[Candidate] = set()
        for c, children in problem.forest(pipeline):
            inner.update(children)
            gained = sum(best[child][0] for child in children)
            below = tuple(cache for child in children for cache in best[child][1])
            alone = problem.benefit(c) - problem.upkeep[c.group]
            best[c] = (alone, (c,)) if alone > max(gained, 0.0) else (gained, below)
        for c, (_, caches) in best.items():
            if c not in inner:
                chosen.extend(caches)
    return tuple(sorted(chosen))
