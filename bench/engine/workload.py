"""The common workload and its relatives: R(a), S(a, b), T(b), rates 1:1:5, uniform keys, 10,000 R rows a minute, windows of 10 s.

`chain(k)` lengthens it to k streams; `scale` makes windows and key domain larger together, so that each tuple meets as many matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

DOMAIN, US_PER_R_ROW, WINDOW_US = 2000, 6000, 10_000_000


@dataclass(frozen=True)
class Workload:
    """A query with its rows: for each stream sorted timestamps (microseconds) and key columns."""

    text: str
    window_us: int
    streams: dict[str, tuple[Any, dict[str, Any]]]

    @property
    def rows(self) -> int:
        return sum(len(ts) for ts, _ in self.streams.values())

    def tables(self) -> dict[str, pa.Table]:
        kind = pa.timestamp("us", tz="UTC")
        return {
            name: pa.table({**columns, "ts": pa.array(ts).cast(kind)}) for name, (ts, columns) in self.streams.items()
        }


def common(
    n: int, domain: int = DOMAIN, scale: int = 1, skew: float = 0.0, seed: int = 0, select: str = ""
) -> Workload:
    """7n rows of the three-way workload. skew: exponent of a Zipf-like distribution of keys (0: uniform)."""
    window = WINDOW_US * scale
    shape = {"R": (1, ["a"]), "S": (1, ["a", "b"]), "T": (5, ["b"])}
    text = f"""SELECT {select or "R.a, S.b, R.ts AS r, S.ts AS s, T.ts AS t"}
        FROM R [RANGE {window} MICROSECONDS], S [RANGE {window} MICROSECONDS], T [RANGE {window} MICROSECONDS]
        WHERE R.a = S.a AND S.b = T.b"""
    return Workload(text, window, _streams(n, shape, domain * scale, skew, seed))


def chain(k: int, n: int, seed: int = 0) -> Workload:
    """k streams in a chain, one row each per 6 ms, with one match per probe on average."""
    names = [f"S{i}" for i in range(k)]
    shape: dict[str, tuple[int, list[str]]] = {}
    for i, name in enumerate(names):
        shape[name] = (1, [f"k{i - 1}"] * (i > 0) + [f"k{i}"] * (i < k - 1))
    where = " AND ".join(f"{names[i]}.k{i} = {names[i + 1]}.k{i}" for i in range(k - 1))
    text = f"""SELECT {", ".join(f"{x}.ts AS t{i}" for i, x in enumerate(names))}
        FROM {", ".join(f"{x} [RANGE {WINDOW_US} MICROSECONDS]" for x in names)} WHERE {where}"""
    return Workload(text, WINDOW_US, _streams(n, shape, DOMAIN, 0.0, seed))


def _streams(n: int, shape: dict[str, tuple[int, list[str]]], domain: int, skew: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    made = {}
    for name, (rate, columns) in shape.items():
        rows = n * rate
        ts = np.sort(rng.integers(0, US_PER_R_ROW // 1000 * n, rows)) * 1000
        made[name] = (ts, {c: _keys(rng, rows, domain, skew) for c in columns})
    return made


def _keys(rng: Any, rows: int, domain: int, skew: float) -> Any:
    if not skew:
        return rng.integers(0, domain, rows)
    weights = 1 / np.arange(1, domain + 1) ** skew
    return np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(rows)).clip(max=domain - 1)
