"""Shape: a join tree as the searches build it: a stream's number, or a tuple of shapes; probe orders are found apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

Shape: TypeAlias = "int | tuple[Shape, ...]"


@lru_cache(maxsize=100_000)
def streams(shape: Shape) -> int:
    """The set of streams below.

    >>> bin(streams(((0, 2), 3)))
    '0b1101'
    """
    if isinstance(shape, int):
        return 1 << shape
    found = 0
    for s in shape:
        found |= streams(s)
    return found


def inner(shape: Shape) -> Iterator[tuple[Shape, ...]]:
    """The join nodes, children before parents."""
    if not isinstance(shape, int):
        for s in shape:
            yield from inner(s)
        yield shape


def normal(shape: Shape) -> Shape:
    """Inputs sorted by their lowest stream, so that equal trees are equal.

    >>> normal((3, (2, 0)))
    ((0, 2), 3)
    """
    if isinstance(shape, int):
        return shape
    return tuple(sorted(map(normal, shape), key=lambda s: streams(s) & -streams(s)))


def all_jtrees(shape_of: tuple[int, ...]) -> Iterator[Shape]:
    """Every join tree over the streams: 1, 4, 26, 236, 2752, 39208 for 2 to 7 of them.

    >>> sum(1 for _ in all_jtrees((0, 1, 2, 3)))
    26
    """
    if len(shape_of) == 1:
        yield shape_of[0]
        return
    for parts in partitions(shape_of):
        if len(parts) > 1:
            yield from _products(parts)


def _products(parts: tuple[tuple[int, ...], ...]) -> Iterator[tuple[Shape, ...]]:
    if not parts:
        yield ()
        return
    for first in all_jtrees(parts[0]):
        for rest in _products(parts[1:]):
            yield (first, *rest)


def partitions(items: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way to split the items into blocks (Bell's number of them).

    >>> list(partitions((0, 1)))
    [((0, 1),), ((0,), (1,))]
    """
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for parts in partitions(rest):
        for i, part in enumerate(parts):
            yield ((first, *part), *parts[:i], *parts[i + 1 :])
        yield ((first,), *parts)
