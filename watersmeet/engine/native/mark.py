"""What compiled functions are written with: their types, and how they are marked.

`compiled` functions can be called from Python: they are machine code, kept on disk (load.py). `inlined` ones become part of those
that call them. numba makes the code, in a process of its own (build.py), and takes the types from the annotations: `Words`, `Halves`,
`Bytes`, `Table`, int, bool, and named tuples of arrays, which cost nothing: compiled code gets their arrays one by one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from watersmeet.engine.native.load import Arrays, Native

F = TypeVar("F", bound=Callable[..., Any])


class Words(Protocol):
    """A numpy array of int64 in one dimension, without gaps, as compiled code sees it."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, at: int, /) -> int: ...
    def __setitem__(self, at: int, value: int, /) -> None: ...


class Halves(Words, Protocol):
    """The same of int32."""


class Bytes(Words, Protocol):
    """The same of uint8, or of bool."""


class Table(Protocol):
    """A numpy array of int64 in two dimensions, without gaps."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, at: tuple[int, int], /) -> int: ...
    def __setitem__(self, at: tuple[int, int], value: int, /) -> None: ...


ARRAYS = {
    Words: Arrays("int64", 1, ("<i8",)),
    Halves: Arrays("int32", 1, ("<i4",)),
    Bytes: Arrays("uint8", 1, ("|u1", "|b1")),
    Table: Arrays("int64", 2, ("<i8",)),
}


def _native(function: Callable[..., Any], inline: bool) -> Any:
    return Native(function, ARRAYS)


make: Callable[[Callable[..., Any], bool], Any] = (
    _native  # what becomes of a marked function; build.py has numba compile it
)


def compiled(function: F) -> F:
    """Compile a function that Python calls."""
    made: F = make(function, False)
    return made


def inlined(function: F) -> F:
    """Compile a function that only compiled ones call, into each of them: a call would pass every array by value."""
    made: F = make(function, True)
    return made


# Where code is made, build.py puts instructions in the place of these.


def prefetch(array: Words, at: int) -> None:
    """Ask for the cache line of `array[at]`."""


def prefetch_at(address: int) -> None:
    """Ask for the cache line at an address."""


def word_at(address: int) -> int:
    """The int64 at an address."""
    return ctypes.c_int64.from_address(address).value


def put_word(address: int, value: int) -> None:
    """Put an int64 at an address."""
    ctypes.c_int64.from_address(address).value = value
