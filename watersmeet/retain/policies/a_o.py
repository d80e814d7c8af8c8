"""A_o: discards the tuple that is least likely to be used by the very next tuple of the stream.

Optimal where the order of values by their probability does not change (stationary and "almost stationary"
references): 7.2. The framework leads to it with L = fixed(1).

Source: heeb, Sections 2 and 7.2, which cite Aho et al. for it.
"""

from __future__ import annotations

from typing import ClassVar

from watersmeet.retain.benefit import benefit
from watersmeet.retain.lifetime import fixed
from watersmeet.retain.lookup import lookups
from watersmeet.retain.policies.heeb import look_observe, look_score
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem


class Ao(Scored):
    name: ClassVar[str] = "a_o"
    about: ClassVar[str] = "keeps what is most likely to be used next"
    needs: ClassVar[frozenset[str]] = frozenset({"models"})
    observe, score = look_observe, look_score

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        return lookups(problem.models, [[benefit(m, fixed(1))] if m else [] for m in problem.models])


POLICY = Ao
