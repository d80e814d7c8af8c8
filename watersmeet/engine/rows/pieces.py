"""Pieces: rows of all streams, cut at the same moments and laid side by side for the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from watersmeet.engine.program import layout as L
from watersmeet.engine.program.tables import Given
from watersmeet.engine.rows.intake import Rows


def cuts(times: list[Any], counts: list[int], size: int) -> Iterator[list[tuple[int, int]]]:
    """Cut all streams at the same moments, so that a piece has about `size` rows; static tables (no times) come whole, first."""
    sample = min(1 << 10, size)
    found = [t[::sample] for t in times if t is not None and len(t)]
    marks = np.unique(np.sort(np.concatenate(found))[:: max(size // sample, 1)][1:]) if found else np.zeros(0, np.int64)
    done = [0] * len(times)
    for mark in [*marks.tolist(), None]:
        made = []
        for k, (t, count) in enumerate(zip(times, counts, strict=True)):
            high = count if t is None or mark is None else int(np.searchsorted(t, mark, side="left"))
            made.append((done[k], high))
            done[k] = high
        if any(high > low for low, high in made):
            yield made


def laid_out(rows: list[Rows | None], first_rows: list[int]) -> Given:
    """All rows as one flat array, with a table that says where each stream's columns lie in it. first_rows: number of each first row."""
    streams = np.zeros((len(rows), L.INPUT_WIDTH), np.int64)
    parts: list[Any] = []
    flags: list[Any] = []
    at = flags_at = 0
    for k, given in enumerate(rows):
        if given is None:
            continue
        n = given.count
        streams[k, L.ROWS_IN], streams[k, L.ROW0] = n, first_rows[k]
        streams[k, L.TS_IN], streams[k, L.COLS_IN] = at, at + n
        parts += [given.ts, *given.columns]
        at += n * (1 + len(given.columns))
        streams[k, L.PART_IN], streams[k, L.ALIVE_IN] = -1, -1
        if given.partition:
            streams[k, L.PART_IN] = at
            parts += given.partition
            at += 2 * n
        if given.alive is not None:
            streams[k, L.ALIVE_IN] = flags_at
            flags.append(given.alive)
            flags_at += n
    values = np.concatenate(parts) if parts else np.zeros(1, np.int64)
    return Given(streams, values, np.concatenate(flags) if flags else np.zeros(1, np.uint8))
