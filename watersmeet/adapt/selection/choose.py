"""One interface over all ways to select caches; `auto` takes the exact way where it is cheap.

Source: a-caching 4.4: optimal where nothing is shared, exhaustive for few streams, else greedy. Appendix B for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from watersmeet.adapt.selection.exhaustive import exhaustive
from watersmeet.adapt.selection.greedy import greedy
from watersmeet.adapt.selection.per_pipeline import per_pipeline
from watersmeet.adapt.selection.problem import Candidate, Problem
from watersmeet.adapt.selection.program import integer, rounding

FEW: Final = 20  # candidates up to which exhaustive search takes milliseconds


def never(problem: Problem) -> tuple[Candidate, ...]:
    """No cache: the floor of the family."""
    return ()


def auto(problem: Problem) -> tuple[Candidate, ...]:
    if not problem.shared and problem.nested:
        return per_pipeline(problem)
    return exhaustive(problem) if len(problem.candidates) <= FEW else greedy(problem)


METHODS: Final[dict[str, Callable[[Problem], tuple[Candidate, ...]]]] = {
    "auto": auto,
    "exhaustive": exhaustive,
    "greedy": greedy,
    "integer": integer,
    "never": never,
    "per_pipeline": per_pipeline,
    "rounding": rounding,
}


def select(problem: Problem, method: str = "auto") -> tuple[Candidate, ...]:
    """The caches to use, none of them overlapping.

    >>> select(Problem({("T", 0): 1.0}, (), {}))
    ()
    """
    if method not in METHODS:
        raise ValueError(f"unknown method '{method}'\n  one of {', '.join(METHODS)}")
    return METHODS[method](problem)
