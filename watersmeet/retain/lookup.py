"""Lookup: tables of benefits as compiled code reads them, and the place of each stream as it moves.

For each of the two streams: how its place follows from what arrived, and one or more tables for the tuples that join
it. `follow` is called with each arrival, `look` gives a tuple's entry.

Words (16 a stream): see the names below. Numbers: 16 parameters a stream, then the tables, then what the policy adds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from watersmeet.retain.benefit import Table
from watersmeet.retain.compiled import Floats, Words, compiled
from watersmeet.retain.models.model import COUNT, GRID, LAST, LEVEL, SEASON, Model
from watersmeet.retain.policy import State

# of a stream, from 16 * stream on
KIND, ROWS, LIVES, WIDTH, BASE, LOW, SHIFT, ROW, SEEN, CHOSEN = range(10)
STREAM = 16
OWN, OWN_NUMBERS = 2 * STREAM, 2 * STREAM + 1  # where the policy's own words and numbers begin
FIRST = 2 * STREAM + 2


def lookups(
    models: Sequence[Model | None], tables: Sequence[Sequence[Table]], window: int = 0, words: int = 0, numbers: int = 0
) -> State:
    """The state for `tables[j]`: of tuples that join stream j; several tables of a stream are alternatives. `words` and `numbers` are the
    policy's own."""
    head = np.zeros(FIRST + words, np.int64)
    parts: list[Floats] = [np.zeros(2 * STREAM)]
    at = 2 * STREAM
    for j, (model, given) in enumerate(zip(models, tables, strict=True)):
        if model is None or not given:
            head[STREAM * j + LIVES] = 1
            continue
        placing, rows = model.placing(), len(given[0].values)
        low = min(t.low for t in given)
        width = max(t.low + t.values.shape[1] for t in given) - low
        head[STREAM * j : STREAM * j + CHOSEN + 1] = (
            placing.kind, model.rows, rows // model.rows, width, at, low, 0, 0, 0, 0,
        )  # fmt: skip
        parts[0][STREAM * j : STREAM * j + len(placing.numbers)] = placing.numbers
        for table in given:
            whole = np.zeros((rows, width))
            whole[:, table.low - low : table.low - low + table.values.shape[1]] = table.values
            parts.append(whole.reshape(-1))
            at += whole.size
    head[OWN], head[OWN_NUMBERS] = FIRST, at
    return State(np.concatenate([*parts, np.zeros(numbers)]), head)


@compiled()
def follow(numbers: Floats, words: Words, side: int, value: int) -> None:
    """A tuple of a stream arrived: its place moves."""
    at = STREAM * side
    kind, i = words[at + KIND], words[at + SEEN]
    if kind == LEVEL:
        exact = numbers[at] * i + numbers[at + 1]
        shift = int(np.floor(exact + 0.5))
        words[at + SHIFT] = shift
        rows = words[at + ROWS]
        words[at + ROW] = min(int((exact - shift + 0.5) * rows), rows - 1)
    elif kind == LAST:
        words[at + SHIFT] = value
    elif kind == GRID:
        row = int(np.floor((value - numbers[at]) / numbers[at + 1]))
        words[at + ROW] = min(max(row, 0), words[at + ROWS] - 1)
    elif kind == COUNT:
        words[at + ROW] = min(i, words[at + ROWS] - 1)
    elif kind == SEASON:
        period, part, width, states = int(numbers[at]), int(numbers[at + 6]), numbers[at + 7], int(numbers[at + 8])
        turn = 2 * np.pi * i / period
        curve = (
            numbers[at + 1] + numbers[at + 2] * np.cos(turn) + numbers[at + 3] * np.sin(turn)
            + numbers[at + 4] * np.cos(2 * turn) + numbers[at + 5] * np.sin(2 * turn)
        )  # fmt: skip
        state = int(np.floor((value - curve) / width + states / 2))
        words[at + ROW] = (i % period) // part * states + min(max(state, 0), states - 1)
    words[at + SEEN] = i + 1


@compiled()
def look(numbers: Floats, words: Words, side: int, value: int, age: int) -> float:
    """The entry of a tuple of `side`, in the table of the stream it joins; 0 beyond the table."""
    at = STREAM * (1 - side)
    width = words[at + WIDTH]
    column = value - words[at + SHIFT] - words[at + LOW]
    if column < 0 or column >= width:
        return 0.0
    lives = words[at + LIVES]
    life = lives - 1 - age if lives > 1 else 0
    if life < 0:
        return 0.0
    row = (words[at + CHOSEN] * words[at + ROWS] + words[at + ROW]) * lives + life
    return float(numbers[words[at + BASE] + row * width + column])


@compiled()
def random_unit(words: Words, at: int) -> float:
    """The next number in [0, 1) of a generator whose state is the word at `at` (xorshift)."""
    x = words[at]
    x ^= x << 13
    x ^= (x >> 7) & 0x1FFFFFFFFFFFFFF
    x ^= x << 17
    words[at] = x
    return float((x & 0xFFFFFFFFFFFFF) / 4503599627370496.0)


def random_seed(seed: int) -> int:
    """A state for `random_unit`: never 0."""
    return int(np.random.default_rng(seed).integers(1, 1 << 62))
