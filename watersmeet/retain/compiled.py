"""Compiled parts of policies: their signatures, and how they are compiled and kept.

A policy keeps what it knows in two flat arrays, numbers (`Floats`) and words (`Words`), and brings up to four
functions with the signatures below. Compiled code calls them by address, so the simulator is compiled once, whatever
the policy, and a call costs some 3 ns.

Machine code lies in numba's cache. Functions of one file become part of those of another, so the cache is stamped
with all sources of this package, not with one file's time as numba does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.core import types

Floats: TypeAlias = npt.NDArray[np.float64]
Words: TypeAlias = npt.NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

FLOATS = types.Array(types.float64, 1, "C")
WORDS = types.Array(types.int64, 1, "C")
_F, _W, _I, _X = FLOATS, WORDS, types.int64, types.float64

OBSERVE = types.void(_F, _W, _I, _I, _I)  # numbers, words, now, side, value: this arrived
ENTER = types.float64(_F, _W, _I, _I, _I)  # the same, of a candidate -> its mark, kept with it
SCORE = types.float64(_F, _W, _I, _I, _I, _I, _X)  # ..., now, side, value, arrived, mark -> the least leave
LEFT = types.void(_F, _W, _I, _I, _I, _I, _X, _I)  # ..., now, side, value, arrived, mark, hits: this left


@cache
def _stamp() -> str:
    made = sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        made.update(path.read_bytes())
    return made.hexdigest()


def compiled(signature: Any = None) -> Callable[[Function], Function]:
    """Compile for a signature now, or without one when it is first called from compiled code."""

    def make(function: Function) -> Function:
        made: Any = numba.njit(nogil=True, error_model="numpy")(function)
        if signature is not None:
            made.enable_caching()
            made._cache._cache_file._source_stamp = _stamp()
            made.compile(signature)
            made.disable_compile()
        return cast(Function, made)

    return make


def as_argument(signature: Any) -> Any:
    """The type of a function that is handed to compiled code."""
    return types.FunctionType(signature)


@compiled(OBSERVE)
def no_observe(numbers: Floats, words: Words, now: int, side: int, value: int) -> None:
    return


@compiled(ENTER)
def no_mark(numbers: Floats, words: Words, now: int, side: int, value: int) -> float:
    return 0.0


@compiled(LEFT)
def not_told(
    numbers: Floats, words: Words, now: int, side: int, value: int, arrived: int, mark: float, hits: int
) -> None:
    return
