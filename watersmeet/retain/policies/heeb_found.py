"""HEEB on the model found online, HIST until one is found and wherever it does better.

Every 256 steps, then at growing distances, each stream's class and parameters are identified from its last values
(`watersmeet/retain/models/identify.py`), and the recent past is replayed under HIST and under HEEB with several
alphas. What would have made most results goes on. So alpha needs no choice, and a model that fits the values but not
the purpose is not used.

period: of the season that is looked for, in tuples.

Source: ours; the paper takes the form of a stream as given, and alpha as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from watersmeet.retain.compiled import ENTER, LEFT, OBSERVE, SCORE, Floats, Words, compiled
from watersmeet.retain.lifetime import exp
from watersmeet.retain.lookup import SEEN, STREAM, follow, look, lookups
from watersmeet.retain.models.identify import identify
from watersmeet.retain.models.model import Model
from watersmeet.retain.policies import hist
from watersmeet.retain.policies.heeb import Heeb, tables
from watersmeet.retain.policy import Scored, State
from watersmeet.retain.problem import Problem

NUMBERS = hist.FIRST + 4 * hist.HISTOGRAM  # HIST's own come first, those of lookups after them
MODE, WORDS = 7, 8
RECENT = 2000  # values that models are fitted to
REPLAYED = 1000  # steps
ALPHAS = (1 / 16, 1 / 4, 1.0, 4.0)  # times k


@compiled(OBSERVE)
def _observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    hist._observe(numbers, words, now, side, value)
    if words[MODE]:
        follow(numbers[NUMBERS:], words[WORDS:], side, value)


@compiled(ENTER)
def _enter(numbers: Floats, words: Words, now: int, side: int, value: int) -> float:
    return hist._enter(numbers, words, now, side, value)


@compiled(SCORE)
def _score(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float) -> float:
    if words[MODE]:
        return look(numbers[NUMBERS:], words[WORDS:], side, value, now - arrived)
    return hist._score(numbers, words, now, side, value, arrived, mark)


@compiled(LEFT)
def _left(numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float, hits: int) -> None:
    hist._left(numbers, words, now, side, value, arrived, mark, hits)


@dataclass(frozen=True)
class HeebFound(Scored):
    name: ClassVar[str] = "heeb_found"
    about: ClassVar[str] = "HEEB on the model that it finds, HIST where that is better"
    period: ClassVar[int] = 256
    observe, enter, score, left = _observe, _enter, _score, _left
    season: int = 365

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        state = hist.Hist(_forms(problem)).prepare(problem, k, seed)
        words = np.zeros(WORDS, np.int64)
        words[: len(state.words)] = state.words
        return State(state.numbers, words)

    def review(self, state: State, problem: Problem, k: int, now: int) -> None:
        times = now // self.period
        if times > 4 and times % 4:
            return
        trial = self._trial(problem, now)
        # powers of 4, so that different k share their tables
        alphas = sorted({4.0 ** round(np.log(max(a * k, 1.0)) / np.log(4.0)) for a in ALPHAS})
        policies: list[Scored] = [*(Heeb(exp(a)) for a in alphas), hist.Hist(_forms(problem))]
        made = [trial.count(p.keep(trial, k), after=trial.steps // 8) for p in policies]
        best = int(np.argmax(made))  # of equals the first: HEEB before HIST
        state.words[MODE] = int(best < len(alphas))
        if best < len(alphas):
            table = lookups(trial.models, tables(trial, [exp(alphas[best])]), problem.window)
            for side in (0, 1):
                table.words[STREAM * side + SEEN] = len(trial.stream(side))
            state.numbers = np.concatenate([state.numbers[:NUMBERS], table.numbers])
            state.words = np.concatenate([state.words[:WORDS], table.words])

    def _trial(self, problem: Problem, now: int) -> Problem:
        """The recent past as a problem, with the models that were found; the same for every k."""
        key = ("trial", self.season, now)
        if key not in problem._known:
            seen = problem.time < now
            recent = seen & (problem.time >= now - REPLAYED)
            models: list[Model] = []
            last = [problem.value[recent & (problem.side == side)] for side in (0, 1)]
            for side in (0,) if problem.is_caching else (0, 1):
                past = problem.value[seen & (problem.side == side)][-RECENT:]
                # the replay begins later than what the model was fitted to
                models.append(identify(past, self.season).begun(len(past) - len(last[side])))
            problem._known[key] = (
                Problem.caching(last[0], models[0])
                if problem.is_caching
                else Problem.joining(last[0], last[1], (models[0], models[1]), problem.window, problem.pace)
            )
        made: Problem = problem._known[key]
        return made


def _forms(problem: Problem) -> tuple[str, str]:
    return ("walk", "walk") if problem.is_caching else ("trend", "trend")


POLICY = HeebFound
