"""Streams of known rates and selectivities: rows at random moments, and for each edge of a join graph a key of its own.

A key column holds numbers whose chance of being equal in two tuples is exactly the selectivity σ of its edge: 1/σ values with the same
chance if that is a whole number; otherwise the next more, one of them with a larger chance p than the others, p² + (1 − p)²/(d − 1) = σ.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, sqrt
from typing import Any

import numpy as np
import pyarrow as pa

US = 1_000_000


def chances(selectivity: float) -> Any:
    """The chance of each value of a key.

    >>> [round(float(sum(chances(s) ** 2)), 12) for s in (0.05, 0.15, 0.5, 1.0)]
    [0.05, 0.15, 0.5, 1.0]
    """
    d = ceil(1 / selectivity - 1e-9)
    if d == 1:
        return np.ones(1)
    p = (1 + sqrt(max(0.0, 1 - d * (1 - selectivity * (d - 1))))) / d
    return np.array([p] + [(1 - p) / (d - 1)] * (d - 1))


def keys(rng: Any, selectivity: float, count: int) -> Any:
    return np.searchsorted(np.cumsum(chances(selectivity))[:-1], rng.random(count), side="right")


def query(
    names: list[str], windows: Mapping[str, str], edges: list[tuple[str, str]], conditions: list[str] | None = None
) -> str:
    """`SELECT` the timestamps of all streams; windows by stream, such as `[ROWS 10]`."""
    where = [f"{a}.{a}_{b} = {b}.{a}_{b}" for a, b in edges] + (conditions or [])
    columns = ", ".join(f"{x}.ts AS t{x}" for x in names)
    return f"SELECT {columns} FROM {', '.join(f'{x} {windows[x]}' for x in names)} WHERE {' AND '.join(where)}"


def streams(
    rates: Mapping[str, float], selectivity: Mapping[tuple[str, str], float], seconds: float, seed: int
) -> dict[str, pa.Table]:
    """Rows of all streams for so many seconds, in order."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, rate in rates.items():
        count = max(1, round(rate * seconds))
        columns = {f"{a}_{b}": keys(rng, s, count) for (a, b), s in selectivity.items() if name in (a, b)}
        times = np.sort(rng.integers(0, round(seconds * US), count))
        made[name] = pa.table({**columns, "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC"))})
    return made


def between(tables: Mapping[str, pa.Table], begin_s: float, end_s: float) -> dict[str, pa.Table]:
    """The rows of a span of time."""
    made = {}
    for name, table in tables.items():
        times = table.column("ts").cast(pa.int64()).to_numpy()
        low, high = np.searchsorted(times, [round(begin_s * US), round(end_s * US)])
        made[name] = table.slice(int(low), int(high - low))
    return made
