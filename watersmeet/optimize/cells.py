"""Cells: into how many parts a join is split, and along which attributes (HyperCube, also called Shares).

Each class of equal attributes is a dimension with a share p_c; the cells are the points of the grid, Π p_c of them. A
tuple goes to every cell that agrees with its hashed attributes, so stream i is copied Π p_c times over the classes
that it has no attribute of, and each result is made in exactly one cell. In the fullest cell arrive

    Σ_i λ_i · Π_{c ∋ i} max(1 / p_c, h_ci)

tuples per second, h_ci being the part of stream i that has its most frequent value of c. Without heavy values that is
total copies / cells, so the least of it is the least copying. Ties: less memory for copies, fewer dimensions, FROM
order.

All ways to split the cells into shares are tried if they are few; else the prime factors of their number are given
out one by one, largest first, each to the dimension where it helps most. With no class (theta joins, products) the
row hash of one stream is the dimension, and all others are copied along it. Every cell has static tables whole.

streams: rates and windows. dimensions: classes with their streams. cells: how many.

>>> from watersmeet.optimize.problem import Problem
>>> p = Problem.of({"R": 10, "S": 10, "T": 10}, 100, {("R", "S"): 0.1, ("S", "T"): 0.1})
>>> chain = [Dimension("R.a", 0b011), Dimension("S.b", 0b110)]
>>> [(s.name, s.count) for s in choose_shares(p, chain, 4)]
[('R.a', 2), ('S.b', 2)]
>>> one_key = [Dimension("R.a", 0b111)]
>>> [(s.name, s.count) for s in choose_shares(p, one_key, 6)], [(s.name, s.count) for s in choose_shares(p, [], 2)]
([('R.a', 6)], [('R', 2)])

Source: Afrati and Ullman (2010), from general knowledge; none of the five papers has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, prod

from watersmeet.errors import QueryError
from watersmeet.optimize.problem import Problem, Share

MAX_SPLITS = 3_000


@dataclass(frozen=True)
class Dimension:
    """A class of attributes that cells may be split by. `heavy`: per stream the part that has its most frequent value."""

    name: str
    mask: int
    heavy: tuple[tuple[int, float], ...] = ()


def choose_shares(problem: Problem, dimensions: Sequence[Dimension], cells: int) -> tuple[Share, ...]:
    """The shares whose fullest cell is least loaded; dimensions that are not split are left out."""
    if cells < 1:
        raise QueryError(f"the number of cells is 1 or more, not {cells}")
    usable = list(dimensions) or [Dimension(s.name, 1 << i) for i, s in enumerate(problem.streams) if not s.static]
    factors = prime_factors(cells)
    if _ways(factors, len(usable)) <= MAX_SPLITS:
        splits = list(_splits(cells, len(usable)))
    else:
        splits = [_greedy(problem, usable, factors)]
    best = min(splits, key=lambda split: _burden(problem, usable, split))
    return tuple(Share(d.name, d.mask, p) for d, p in zip(usable, best, strict=True) if p > 1)


def fullest_cell(problem: Problem, dimensions: Sequence[Dimension], split: Sequence[int]) -> float:
    """Tuples per second that arrive in the cell that gets most."""
    load = 0.0
    for i, stream in enumerate(problem.streams):
        part = stream.rate
        for d, p in zip(dimensions, split, strict=True):
            if d.mask >> i & 1:
                part *= max(1 / p, dict(d.heavy).get(i, 0.0))
        load += part
    return load


def copies(problem: Problem, shares: Sequence[Share]) -> dict[str, int]:
    """In how many cells each stream's tuples are.

    >>> p = Problem.of({"R": 10, "S": 10, "T": 10}, 100, {("R", "S"): 0.1, ("S", "T"): 0.1})
    >>> copies(p, [Share("R.a", 0b011, 2), Share("S.b", 0b110, 3)])
    {'R': 3, 'S': 1, 'T': 2}
    """
    return {n: prod(s.count for s in shares if not s.mask >> i & 1) for i, n in enumerate(problem.names)}


def _burden(problem: Problem, dimensions: Sequence[Dimension], split: tuple[int, ...]) -> tuple[object, ...]:
    memory = 0.0
    for i, stream in enumerate(problem.streams):
        memory += stream.window * prod(p for d, p in zip(dimensions, split, strict=True) if not d.mask >> i & 1)
    split_up = [-p for p in split]
    return round(fullest_cell(problem, dimensions, split), 9), round(memory, 6), sum(p > 1 for p in split), split_up


def _splits(cells: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    """All ways to write the number of cells as a product of so many factors, in order.

    >>> list(_splits(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    made: list[tuple[tuple[int, ...], int]] = [((), cells)]  # factors so far, and what is left
    for _ in range(dimensions - 1):
        made = [((*split, p), left // p) for split, left in made for p in range(1, left + 1) if left % p == 0]
    return ((*split, left) for split, left in made)


def _ways(factors: list[int], dimensions: int) -> int:
    """How many splits there are: each prime's factors are spread over the dimensions."""
    return prod(comb(factors.count(q) + dimensions - 1, dimensions - 1) for q in set(factors))


def _greedy(problem: Problem, dimensions: Sequence[Dimension], factors: list[int]) -> tuple[int, ...]:
    split: tuple[int, ...] = (1,) * len(dimensions)
    for q in sorted(factors, reverse=True):
        options = [(*split[:at], split[at] * q, *split[at + 1 :]) for at in range(len(split))]
        split = min(options, key=lambda option: _burden(problem, dimensions, option))
    return split


def prime_factors(number: int) -> list[int]:
    """
    >>> prime_factors(360)
    [2, 2, 2, 3, 3, 5]
    """
    found, q = [], 2
    while q * q <= number:
        while number % q == 0:
            found.append(q)
            number //= q
        q += 1
    return [*found, number] if number > 1 else found
