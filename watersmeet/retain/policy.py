"""Policy: decides which tuples stay when there is room for k.

A policy is a module of `watersmeet/retain/policies` with a `POLICY`; its name is the module's. It joins the
experiments and the `conform_` tests by existing. A bound is the same in `watersmeet/retain/bounds`: it knows the
future.

`Scored` policies are those an engine can use: a score for each tuple, and the least leave. Scores are compiled and
are computed for many tuples at once (`scores`), which `watersmeet/retain/victims.py` makes use of: victims without a
scan for each arrival.

>>> names()[:4], bounds()
(['a_o', 'flowexpect', 'heeb', 'heeb_adaptive'], ['lfd', 'opt_offline'])
>>> policy("lru").about
'keeps what was used last'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numba.core import types

from watersmeet.errors import WatersmeetError, nearest_name
from watersmeet.retain.compiled import (
    ENTER,
    FLOATS,
    LEFT,
    OBSERVE,
    SCORE,
    WORDS,
    Floats,
    Words,
    as_argument,
    compiled,
    no_mark,
    no_observe,
    not_told,
)
from watersmeet.retain.problem import FOREVER, Problem

JOINING, CACHING = "joining", "caching"
BOTH = frozenset({JOINING, CACHING})


@runtime_checkable
class Policy(Protocol):
    """What is kept of a problem's tuples: for each the last step at which it is there."""

    name: str
    about: str
    problems: frozenset[str]
    needs: frozenset[
        str
    ]  # of: models, future, ends (streams whose values are bounded, so that tuples have an end), solver

    def keep(self, problem: Problem, k: int, seed: int = 0) -> Words: ...


@dataclass
class State:
    """What a scored policy knows, as compiled code sees it."""

    numbers: Floats
    words: Words


@dataclass(frozen=True)
class Scored:
    """A policy by scores. `period`: steps between two reviews of the state by the policy itself (0: none)."""

    name: ClassVar[str]
    about: ClassVar[str]
    problems: ClassVar[frozenset[str]] = BOTH
    needs: ClassVar[frozenset[str]] = frozenset()
    period: ClassVar[int] = 0

    score: ClassVar[Callable[..., float]]
    observe: ClassVar[Callable[..., None]] = no_observe
    enter: ClassVar[Callable[..., float]] = no_mark
    left: ClassVar[Callable[..., None]] = not_told

    def prepare(self, problem: Problem, k: int, seed: int) -> State:
        raise NotImplementedError

    def review(self, state: State, problem: Problem, k: int, now: int) -> None:
        """Change the state in the light of what has arrived up to now."""

    def keep(self, problem: Problem, k: int, seed: int = 0) -> Words:
        from watersmeet.retain.simulate import simulate

        return simulate(self, problem, k, seed)


def scores(policy: Scored, state: State, now: int, side: Words, value: Words, arrived: Words, marks: Floats) -> Floats:
    """The scores of many tuples at once."""
    out = np.empty(len(value))
    of: Any = type(policy)
    _scores(of.score, state.numbers, state.words, now, side, value, arrived, marks, out)
    return out


_I = types.int64


@compiled(types.void(as_argument(SCORE), FLOATS, WORDS, _I, WORDS, WORDS, WORDS, FLOATS, FLOATS))
def _scores(
    score: Any, numbers: Floats, words: Words, now: int, side: Words, value: Words, arrived: Words, marks: Floats, out: Floats
) -> None:  # fmt: skip
    for i in range(len(out)):
        out[i] = score(numbers, words, now, side[i], value[i], arrived[i], marks[i])


def names() -> list[str]:
    """The policies there are."""
    return _modules("policies")


def bounds() -> list[str]:
    return _modules("bounds")


def _modules(folder: str) -> list[str]:
    return sorted(p.stem for p in (Path(__file__).parent / folder).glob("*.py") if not p.stem.startswith("_"))


def policy(name: str, **options: Any) -> Policy:
    """A policy or bound by its name; options are its own parameters."""
    folder = next((f for f in ("policies", "bounds") if name in _modules(f)), None)
    if folder is None:
        raise WatersmeetError(f"there is no policy '{name}'\n  {nearest_name(name, names())}")
    made: Policy = import_module(f"watersmeet.retain.{folder}.{name}").POLICY(**options)
    return made


__all__ = ["BOTH", "CACHING", "ENTER", "FOREVER", "JOINING", "LEFT", "OBSERVE", "SCORE", "Policy", "Scored", "State"]
