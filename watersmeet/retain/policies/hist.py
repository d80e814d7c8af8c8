"""HIST: HEEB estimated from what kept tuples have earned, by their distance from where the other stream is.

Two histograms for each stream over dv = value - where the stream it joins is now: H_b, how many results tuples made
while kept, and H_l, the steps they stayed. A tuple is observed when it leaves, under the dv at which it entered. Its
score is H_b(dv) / H_l(dv) at its present dv. Only the form of a stream must be known: with a trend the distance is
from its running mean (a regression that forgets), with a walk from its last value, else from 0.

    mean, deviation   by recurrence, for each bucket
    decay             every 256 observations counts shrink by a tenth, so that what is old fades
    split and merge   then the bucket with the largest deviation is split if two neighbours have less together; these are merged

printed: H_l has one over the steps and H_b is multiplied by its mean, as the paper has it. Short stays then count for
too much.
forms: "trend", "walk" or "stationary" for each stream; by default as the problem's models have it, "trend" where
nothing is known.

>>> import numpy as np
>>> from watersmeet.retain.models.model import Noise
>>> from watersmeet.retain.models.trend import Trend
>>> from watersmeet.retain.policy import policy
>>> rng = np.random.default_rng(1)
>>> models = (Trend(1, 0, Noise.normal(1, 10)), Trend(1, 0, Noise.normal(1, 10)))
>>> p = Problem.sampled(models, (3000, 3000), rng)
>>> [p.count(policy(name).keep(p, k=4), after=200) for name in ("rand", "hist", "heeb")]
[1191, 1962, 1970]

Source: heeb, Section 6.2.
Departs from the paper in: the ratio of means (see `printed`); between the middles of buckets a straight line; squared
deviations are summed, not averaged, so that a bucket with few tuples is not split.
A tuple enters a cache at the very value that is referenced, so with a walk only dv = 0 is ever observed in caching, and
HIST is LRU there.
Unclear in the paper, settled as: the decay and its period; an arrival at a dv that nobody has tried is kept, so that
it is tried, and what drifts to such a dv is worth nothing; a tuple that leaves at once is no observation; first edges
come from the first 64 arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.errors import WatersmeetError
from watersmeet.retain.compiled import ENTER, LEFT, OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem

BUCKETS = 10
LEARNING = 64  # arrivals that set the first edges
PERIOD = 256  # observations between decays
FADING = 0.9
FORGET = 0.999  # of the regression, a tuple
UNTRIED = 1e9

# a histogram: edges, then count, mean and sum of squared deviations of each bucket
COUNTS, MEANS, SQUARES, HISTOGRAM = BUCKETS + 1, 2 * BUCKETS + 1, 3 * BUCKETS + 1, 4 * BUCKETS + 1
# numbers: for each stream a regression and its centre, least and most dv of tuples that join it; then histograms b and l of each side
S0, ST, STT, SX, STX, CENTRE, LEAST_DV, MOST_DV, STREAM = range(9)
FIRST = 2 * STREAM
FORM, CAME, OBSERVED, PRINTED = 0, 2, 4, 6  # words, one a stream; then a flag
FORMS = ("stationary", "trend", "walk")


@compiled()
def _histogram(side: int, which: int) -> int:
    return FIRST + (2 * side + which) * HISTOGRAM


@compiled()
def _bucket(numbers: Floats, at: int, dv: float) -> int:
    b = 0
    while b < BUCKETS - 1 and dv >= numbers[at + b + 1]:
        b += 1
    return b


@compiled()
def _read(numbers: Floats, at: int, dv: float) -> float:
    """The mean at dv, on a straight line between the middles of buckets; -1 where nobody has tried."""
    if dv < numbers[at] or dv > numbers[at + BUCKETS]:
        return -1.0
    b = _bucket(numbers, at, dv)
    if numbers[at + COUNTS + b] < 1.0:
        return -1.0
    middle = (numbers[at + b] + numbers[at + b + 1]) / 2
    other = b + 1 if dv > middle else b - 1
    if other < 0 or other >= BUCKETS or numbers[at + COUNTS + other] < 1.0:
        return float(numbers[at + MEANS + b])
    share = (dv - middle) / ((numbers[at + other] + numbers[at + other + 1]) / 2 - middle)
    return float(numbers[at + MEANS + b] + share * (numbers[at + MEANS + other] - numbers[at + MEANS + b]))


@compiled()
def _add(numbers: Floats, at: int, dv: float, x: float) -> None:
    """Mean and deviation by recurrence; the outer edges follow what comes."""
    b = _bucket(numbers, at, dv)
    numbers[at] = min(numbers[at], dv)
    numbers[at + BUCKETS] = max(numbers[at + BUCKETS], dv + 1)
    numbers[at + COUNTS + b] += 1.0
    away = x - numbers[at + MEANS + b]
    numbers[at + MEANS + b] += away / numbers[at + COUNTS + b]
    numbers[at + SQUARES + b] += away * (x - numbers[at + MEANS + b])


@compiled()
def _together(numbers: Floats, at: int, b: int) -> float:
    """The sum of squared deviations of a bucket and the next, taken as one."""
    n, m = numbers[at + COUNTS + b], numbers[at + COUNTS + b + 1]
    apart = numbers[at + MEANS + b] - numbers[at + MEANS + b + 1]
    both = numbers[at + SQUARES + b] + numbers[at + SQUARES + b + 1]
    return float(both + (apart * apart * n * m / (n + m) if n + m > 0 else 0.0))


@compiled()
def _reshape(numbers: Floats, at: int) -> None:
    """Split the bucket with the most deviation, merge the two neighbours with the least, if that is less."""
    split, most = -1, 0.0
    for b in range(BUCKETS):
        if numbers[at + SQUARES + b] > most and numbers[at + b + 1] - numbers[at + b] >= 2:
            split, most = b, numbers[at + SQUARES + b]
    merge, least = -1, most
    for b in range(BUCKETS - 1):
        if b != split and b + 1 != split and _together(numbers, at, b) < least:
            merge, least = b, _together(numbers, at, b)
    if split < 0 or merge < 0:
        return
    n, m = numbers[at + COUNTS + merge], numbers[at + COUNTS + merge + 1]
    squares = _together(numbers, at, merge)
    if n + m > 0:
        numbers[at + MEANS + merge] = (n * numbers[at + MEANS + merge] + m * numbers[at + MEANS + merge + 1]) / (n + m)
    numbers[at + COUNTS + merge], numbers[at + SQUARES + merge] = n + m, squares
    middle = np.floor((numbers[at + split] + numbers[at + split + 1]) / 2)
    # the bucket after `merge` goes; those between it and `split` move by one; `split` becomes two
    if split > merge:
        for b in range(merge + 1, split):
            for part in (COUNTS, MEANS, SQUARES):
                numbers[at + part + b] = numbers[at + part + b + 1]
            numbers[at + b] = numbers[at + b + 1]
        numbers[at + split] = middle
        low, high = split - 1, split
    else:
        for b in range(merge + 1, split + 1, -1):
            for part in (COUNTS, MEANS, SQUARES):
                numbers[at + part + b] = numbers[at + part + b - 1]
            numbers[at + b] = numbers[at + b - 1]
        numbers[at + split + 1] = middle
        low, high = split, split + 1
    source = low
    for part in (COUNTS, SQUARES):
        numbers[at + part + low] = numbers[at + part + high] = numbers[at + part + source] / 2
    numbers[at + MEANS + high] = numbers[at + MEANS + low]


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    at = STREAM * side
    if words[FORM + side] == 2:
        numbers[at + CENTRE] = float(value)
    elif words[FORM + side] == 1:
        # the regression with this tuple at time 0, those before it at -1, -2, ...
        numbers[at + STT] = FORGET * (numbers[at + STT] - 2 * numbers[at + ST] + numbers[at + S0])
        numbers[at + STX] = FORGET * (numbers[at + STX] - numbers[at + SX])
        numbers[at + ST] = FORGET * (numbers[at + ST] - numbers[at + S0])
        numbers[at + S0] = FORGET * numbers[at + S0] + 1.0
        numbers[at + SX] = FORGET * numbers[at + SX] + float(value)
        n, t, tt = numbers[at + S0], numbers[at + ST], numbers[at + STT]
        spread = n * tt - t * t
        if spread > 1e-9:
            numbers[at + CENTRE] = (tt * numbers[at + SX] - t * numbers[at + STX]) / spread
        else:
            numbers[at + CENTRE] = float(value)


@compiled(ENTER)
def _enter(numbers: Floats, words: Words, now: int, side: int, value: int) -> float:
    joined = STREAM * (1 - side)
    dv = value - numbers[joined + CENTRE]
    words[CAME + side] += 1
    if words[CAME + side] <= LEARNING:
        numbers[joined + LEAST_DV] = min(numbers[joined + LEAST_DV], dv)
        numbers[joined + MOST_DV] = max(numbers[joined + MOST_DV], dv + 1)
        if words[CAME + side] == LEARNING:
            for which in range(2):
                at = _histogram(side, which)
                low, high = numbers[joined + LEAST_DV], numbers[joined + MOST_DV]
                for b in range(BUCKETS + 1):
                    numbers[at + b] = low + (high - low) * b / BUCKETS
    return float(dv)


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    if words[CAME + side] < LEARNING:
        return float(arrived)
    dv = value - numbers[STREAM * (1 - side) + CENTRE]
    earned, short = _read(numbers, _histogram(side, 0), dv), _read(numbers, _histogram(side, 1), dv)
    if earned < 0 or short < 0:
        return UNTRIED if arrived == now else 0.0
    return earned * short if words[PRINTED] else earned / max(short, 1.0)


@compiled(LEFT)
def _left(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float, hits: int) -> None:
    life = now - arrived
    if life == 0 or words[CAME + side] < LEARNING:
        return
    _add(numbers, _histogram(side, 0), mark, float(hits))
    _add(numbers, _histogram(side, 1), mark, 1.0 / life if words[PRINTED] else float(life))
    words[OBSERVED + side] += 1
    if words[OBSERVED + side] % PERIOD == 0:
        for which in range(2):
            at = _histogram(side, which)
            for b in range(BUCKETS):
                numbers[at + COUNTS + b] *= FADING
                numbers[at + SQUARES + b] *= FADING
            _reshape(numbers, at)


@dataclass(frozen=True)
class Hist(Scored):
    name: ClassVar[str] = "hist"
    about: ClassVar[str] = "keeps what has earned most at the same distance from the stream"
    observe, enter, score, left = _observe, _enter, _score, _left
    forms: tuple[str, str] | None = None
    printed: bool = False

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        numbers, words = np.zeros(FIRST + 4 * HISTOGRAM), np.zeros(7, np.int64)
        for side in range(2):
            numbers[STREAM * side + LEAST_DV], numbers[STREAM * side + MOST_DV] = 1e18, -1e18
            words[FORM + side] = FORMS.index(self._form(problem, side))
        words[PRINTED] = int(self.printed)
        return State(numbers, words)

    def _form(self, problem: Problem, side: int) -> str:
        if self.forms is not None:
            if self.forms[side] not in FORMS:
                raise WatersmeetError(f"HIST knows no form '{self.forms[side]}'\n  known: {', '.join(FORMS)}")
            return self.forms[side]
        model = problem.models[side]
        known = {"ar1": "walk", "season": "walk", "offline": "stationary"}
        return known.get(model.name, model.name) if model is not None else "trend"


POLICY = Hist
