"""HEEB with alpha from observed lifetimes: the mean number of steps that tuples stay, so that L foretells what happens.

Tables are made for `STEPS` values of alpha on a logarithmic scale, and the one nearest to what is observed is read.
Lifetimes are averaged with a decay of 1/256 a tuple; tuples that leave at the step of their arrival were not kept,
and do not count.

Source: heeb, Sections 5.3 and 7.3 ("we plan to experiment with this technique as future work").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import LEFT, Floats, Words, compiled
from watersmeet.retain.lifetime import exp
from watersmeet.retain.lookup import CHOSEN, OWN_NUMBERS, STREAM, lookups
from watersmeet.retain.policies.heeb import look_observe, look_score, tables, usual_alpha
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem

STEPS = 12
DECAY = 1 / 256
LEAST, RATIO, MEAN = range(3)  # own numbers: the smallest alpha, log of the ratio between two, the mean life


@compiled(LEFT)
def _left(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float, hits: int) -> None:
    life = now - arrived
    if life == 0:
        return
    own = words[OWN_NUMBERS]
    numbers[own + MEAN] += DECAY * (life - numbers[own + MEAN])
    alpha = -1.0 / np.log(1.0 - 1.0 / max(numbers[own + MEAN], 1.01))
    chosen = int(np.floor(np.log(alpha / numbers[own + LEAST]) / numbers[own + RATIO] + 0.5))
    chosen = min(max(chosen, 0), STEPS - 1)
    words[CHOSEN] = chosen
    words[STREAM + CHOSEN] = chosen


@dataclass(frozen=True)
class HeebAdaptive(Scored):
    name: ClassVar[str] = "heeb_adaptive"
    about: ClassVar[str] = "HEEB, with the lifetime that it observes"
    needs: ClassVar[frozenset[str]] = frozenset({"models"})
    observe, score, left = look_observe, look_score, _left

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        start = usual_alpha(problem, k)
        alphas = np.geomspace(max(start / 8, 0.5), start * 4, STEPS)
        state = lookups(problem.models, tables(problem, [exp(float(a)) for a in alphas]), problem.window, numbers=3)
        own = state.words[OWN_NUMBERS]
        state.numbers[own : own + 3] = (alphas[0], np.log(alphas[1] / alphas[0]), 1 / (1 - np.exp(-1 / start)))
        state.words[[CHOSEN, STREAM + CHOSEN]] = int(np.argmin(np.abs(np.log(alphas / start))))
        return state


POLICY = HeebAdaptive
