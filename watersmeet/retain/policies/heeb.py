"""HEEB: discards the tuple with the least H, its expected benefit weighed by how likely it is to be still there to earn
it.

    H = sum over d of Pr{the stream it joins has its value d steps from now} L(d)

H is read from a table (`watersmeet/retain/benefit.py`): one lookup a tuple. Where ECBs can be compared, HEEB decides
as an optimal policy does (Theorem 2).

lifetime: L; by default exp with alpha as in the paper's case studies: for bounded trends the mean life is taken to be
half the sum of the bounds, else alpha is k. surface: how the table of an AR(1) is kept
(`watersmeet/retain/surface.py`); None: whole.

>>> import numpy as np
>>> from watersmeet.retain.models.model import Noise
>>> from watersmeet.retain.models.trend import Trend
>>> rng = np.random.default_rng(1)
>>> models = (Trend(1, -1, Noise.normal(1, 10)), Trend(1, 0, Noise.normal(2, 15)))
>>> p = Problem.sampled(models, (1000, 1000), rng)
>>> p.count(), p.count(Heeb().keep(p, k=4)), p.count(Heeb(fixed(1)).keep(p, k=4))
(843, 714, 621)

Source: heeb, Sections 5.3, 6.1, 7.
Departs from the paper in: windows and unequal rates, which the paper leaves to its full version.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

from watersmeet.retain.benefit import Table, benefit
from watersmeet.retain.compiled import OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.lifetime import Lifetime, alpha_of, exp, fixed
from watersmeet.retain.lookup import follow, look, lookups
from watersmeet.retain.models.trend import Trend
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem
from watersmeet.retain.surface import approximated


@compiled(OBSERVE)
def look_observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    follow(numbers, words, side, value)


@compiled(SCORE)
def look_score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    return look(numbers, words, side, value, now - arrived)


@dataclass(frozen=True)
class Heeb(Scored):
    name: ClassVar[str] = "heeb"
    about: ClassVar[str] = "keeps the highest expected benefit under a known model"
    needs: ClassVar[frozenset[str]] = frozenset({"models"})
    observe, score = look_observe, look_score
    lifetime: Lifetime | None = None
    surface: int | None = None

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        lifetime = self.lifetime or exp(usual_alpha(problem, k))
        return lookups(problem.models, tables(problem, [lifetime], self.surface), problem.window)


def tables(problem: Problem, lifetimes: list[Lifetime], surface: int | None = None) -> list[list[Table]]:
    """For each stream a table for each L, for the tuples that join it; made once for a problem."""
    key = (tuple(x.name for x in lifetimes), surface)
    if key not in problem._known:
        problem._known[key] = [
            [_table(problem, j, lifetime, surface) for lifetime in lifetimes] if model is not None else []
            for j, model in enumerate(problem.models)
        ]
    made: list[list[Table]] = problem._known[key]
    return made


_MADE: dict[tuple[Any, ...], Table] = {}  # by everything that a table depends on, so that runs of one model share it
_MOST = 1 << 26  # bytes


def _table(problem: Problem, stream: int, lifetime: Lifetime, surface: int | None) -> Table:
    model = problem.models[stream]
    assert model is not None
    key = (pickle.dumps(model), lifetime.name, problem.is_caching, problem.window, problem.pace[stream], surface)
    if key not in _MADE:
        whole = benefit(model, lifetime, problem.is_caching, problem.window, problem.pace[stream])
        if sum(t.values.nbytes for t in _MADE.values()) > _MOST:
            _MADE.clear()
        _MADE[key] = approximated(whole, surface) if surface else whole
    return _MADE[key]


def usual_alpha(problem: Problem, k: int) -> float:
    """The paper's choice: 7.3 for bounded trends, 7.5 for all else."""
    bounds = [m.noise.high for m in problem.models if isinstance(m, Trend)]
    if len(bounds) == len(problem.models):
        return alpha_of(max(sum(bounds) / 2, 1.5))
    return float(max(k, 1))


POLICY = Heeb
__all__ = ["POLICY", "Heeb", "fixed", "look_observe", "look_score", "tables", "usual_alpha"]
