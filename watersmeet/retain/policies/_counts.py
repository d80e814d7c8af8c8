"""Counts: how often each value has come in a stream so far, in a policy's own numbers. The range of values is that of
the problem."""

from __future__ import annotations

from watersmeet.retain.compiled import Floats, Words, compiled
from watersmeet.retain.lookup import OWN, OWN_NUMBERS, lookups
from watersmeet.retain.policies._ends import ends
from watersmeet.retain.policy import State
from watersmeet.retain.problem import Problem

LEAST, RANGE, KNOWS_ENDS, COUNT_WORDS = range(4)


def counting(problem: Problem, per_value: int = 1, more_words: int = 0) -> State:
    """A state with `per_value` numbers for each value and stream, and the streams' ends where they are known."""
    least, most = int(problem.value.min()), int(problem.value.max())
    tables = ends(problem)
    state = lookups(problem.models, tables, words=COUNT_WORDS + more_words, numbers=2 * per_value * (most - least + 1))
    own = state.words[OWN]
    state.words[own : own + COUNT_WORDS] = (least, most - least + 1, int(any(tables)))
    return state


@compiled()
def count_place(words: Words, side: int, value: int) -> int:
    """Where the number of a value of a stream is."""
    own = words[OWN]
    place: int = words[OWN_NUMBERS] + side * words[own + RANGE] + value - words[own + LEAST]
    return place


@compiled()
def count_one(numbers: Floats, words: Words, side: int, value: int) -> None:
    numbers[count_place(words, side, value)] += 1.0


@compiled()
def count_of(numbers: Floats, words: Words, side: int, value: int) -> float:
    return float(numbers[count_place(words, side, value)])


__all__ = ["KNOWS_ENDS", "count_of", "count_one", "count_place", "counting"]
