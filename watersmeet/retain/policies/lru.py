"""LRU: discards what has not been used for longest. In the reduced problem a tuple that is referenced arrives again, so
its arrival is its last use.

For joins it is first in, first out.

Source: heeb, Sections 2 and 8.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import SCORE, Floats, Words, compiled
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    return float(arrived)


class Lru(Scored):
    name: ClassVar[str] = "lru"
    about: ClassVar[str] = "keeps what was used last"
    score = _score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        return State(np.zeros(1), np.zeros(1, np.int64))


POLICY = Lru
