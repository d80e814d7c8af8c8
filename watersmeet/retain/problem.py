"""Problems: joining two streams, or a stream with a relation (caching), with room for k tuples.

Tuples arrive in steps of time. At each step all that arrive first meet what is kept (a result for each kept tuple of
the other side with the same value), then become candidates themselves; what is more than k must leave for good. Side
0 is R, side 1 is S.

Caching is joining too (Section 3.1): each reference r of the stream R is followed by a supply tuple s of the
relation. The i-th occurrence of a value v is (v, i-1) in R and (v, i) in S, so a supply tuple joins just the next
reference of its value:

    R   a  b  a  c  a          R'  (a,0) (b,0) (a,1) (c,0) (a,2)
    S   a  b  a  c  a          S'  (a,1) (b,1) (a,2) (c,1) (a,3)

>>> p = Problem.caching([7, 8, 7, 9, 7])
>>> [p.keys[p.side == side].tolist() for side in (0, 1)]
[[0, 4, 1, 6, 2], [1, 5, 2, 7, 3]]
>>> Problem.joining([1, 2], [2, 1]).count()
2

Source: heeb, Section 3.
Departs from the paper in: streams may have any number of tuples a step (unequal rates), and a window may end a
tuple's life; two tuples that arrive at the same step do not count, since they meet whatever is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.core import types

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import WORDS, Words, compiled
from watersmeet.retain.models.model import Model

R, S = 0, 1
FOREVER = 1 << 60


@dataclass(frozen=True, eq=False)
class Problem:
    """The arrivals in the order of time, and what may be known of them. `window`: a tuple joins for so many steps (0: for ever).
    `pace`: steps between two tuples of a stream. `keys`: what must be equal; the values, or in caching the pairs above as numbers."""

    time: Words
    side: Words
    value: Words
    keys: Words
    models: tuple[Model | None, Model | None] = (None, None)
    window: int = 0
    pace: tuple[float, float] = (1.0, 1.0)
    is_caching: bool = False
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def joining(
        cls,
        r: Sequence[int] | Words,
        s: Sequence[int] | Words,
        models: tuple[Model | None, Model | None] = (None, None),
        window: int = 0,
        pace: tuple[float, float] = (1.0, 1.0),
    ) -> Problem:
        """Two streams; tuple i of a stream arrives at step floor(i * pace)."""
        values = [np.asarray(x, np.int64) for x in (r, s)]
        times = [np.floor(np.arange(len(x)) * p).astype(np.int64) for x, p in zip(values, pace, strict=True)]
        side = np.repeat(np.array([R, S]), [len(x) for x in values])
        order = np.lexsort((side, np.concatenate(times)))
        value = np.concatenate(values)[order]
        return cls(np.concatenate(times)[order], side[order], value, value, models, window, pace)

    @classmethod
    def sampled(
        cls,
        models: tuple[Model, Model],
        tuples: tuple[int, int],
        rng: np.random.Generator,
        window: int = 0,
        pace: tuple[float, float] = (1.0, 1.0),
    ) -> Problem:
        """Two streams that their models make."""
        r, s = (model.sample(n, rng) for model, n in zip(models, tuples, strict=True))
        return cls.joining(r, s, models, window, pace)

    @classmethod
    def caching(cls, references: Sequence[int] | Words, model: Model | None = None) -> Problem:
        """A stream of references to a relation, reduced to a join with the supply of what it refers to."""
        refs = np.asarray(references, np.int64)
        n = len(refs)
        _, place = np.unique(refs, return_inverse=True)
        order = np.argsort(place, kind="stable")
        first = np.searchsorted(place[order], place[order])
        occurrence = np.empty(n, np.int64)
        occurrence[order] = np.arange(n) - first
        # (v, i) as a number: values have room for all their occurrences and one more
        room = np.bincount(place, minlength=1) + 1
        start = np.concatenate([[0], np.cumsum(room)[:-1]])
        keys = np.empty(2 * n, np.int64)
        keys[0::2] = start[place] + occurrence
        keys[1::2] = start[place] + occurrence + 1
        return cls(
            np.repeat(np.arange(n), 2), np.tile(np.array([R, S]), n), np.repeat(refs, 2), keys, (model, None), is_caching=True
        )  # fmt: skip

    def __post_init__(self) -> None:
        if not len(self.time):
            raise WatersmeetError("a retention problem needs at least one tuple")

    @property
    def steps(self) -> int:
        return int(self.time[-1]) + 1

    def stream(self, side: int) -> Words:
        values: Words = self.value[self.side == side]
        return values

    def results(self, until: Words) -> Words:
        """What each arrival finds, if each tuple is kept from its own step until the given one (and there still joins)."""
        order = np.lexsort((self.time, self.keys))
        found: Words = _results(self.time, self.side, self.keys, order, until, self.window)
        return found

    def count(self, until: Words | None = None, after: int = 0) -> int:
        """Results in all; of arrivals at step `after` and later. Without `until`: the exact answer."""
        kept = np.full(len(self.time), FOREVER) if until is None else until
        return int(self.results(kept)[self.time >= after].sum())

    def held(self, until: Words) -> Words:
        """How many tuples are kept between a step and the next, for each step but the last."""
        change = np.zeros(self.steps + 1, np.int64)
        stays = until > self.time
        np.add.at(change, self.time[stays], 1)
        np.add.at(change, np.minimum(until[stays], self.steps), -1)
        held: Words = np.cumsum(change)[: self.steps - 1]
        return held


@compiled(types.Array(types.int64, 1, "C")(WORDS, WORDS, WORDS, WORDS, WORDS, types.int64))
def _results(time: Words, side: Words, keys: Words, order: Words, until: Words, window: int) -> Words:
    found = np.zeros(len(time), np.int64)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and keys[order[end]] == keys[order[begin]]:
            end += 1
        for i in range(begin, end):
            kept = order[i]
            for j in range(i + 1, end):
                came = order[j]
                if time[came] > until[kept] or (window > 0 and time[came] - time[kept] > window):
                    break
                if side[came] != side[kept] and time[came] > time[kept]:
                    found[came] += 1
        begin = end
    return found
