"""Streams with a dead end: tuples of T find `fan` tuples of S, and R rejects nearly all of what that makes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.engine.running import stream

TEXT = """
    CREATE STREAM R (a BIGINT, ts TIMESTAMP); CREATE STREAM S (a BIGINT, b BIGINT, ts TIMESTAMP); CREATE STREAM T (b BIGINT, ts TIMESTAMP);
    SELECT R.a AS a, S.b AS b FROM R [ROWS 1000], S [ROWS 1000], T [ROWS 1000] WHERE R.a = S.a AND S.b = T.b
"""
ORDERS = "(R S T) orders {R: S T; S: R T; T: S R}"


def dead_end(rows: int, fan: int = 10, seed: int = 0, fresh: bool = False) -> dict[str, pa.Table]:
    """rows: of T; a tenth of it of R and of S. fresh: keys of T that nobody has asked for before, and that S does not have."""
    rng = np.random.default_rng(seed)
    keys, few = 1000 // fan, rows // 10
    times = [np.sort(rng.integers(0, 10 * rows, n)) for n in (few, few, rows)]
    b = np.arange(rows) + 10**7 if fresh else rng.integers(0, keys, rows)
    return {
        "R": stream(times[0], a=rng.integers(990, 2000, few)),
        "S": stream(times[1], a=rng.integers(0, 1000, few), b=rng.integers(0, keys, few)),
        "T": stream(times[2], b=b),
    }


def after(first: dict[str, pa.Table], second: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """One after the other, the second moved behind the first in time."""
    end = max(int(t["ts"].cast(pa.int64()).to_numpy().max()) for t in first.values()) + 1
    made = {}
    for name, table in second.items():
        ts = pa.array(table["ts"].cast(pa.int64()).to_numpy() + end, pa.int64()).cast(table["ts"].type)
        made[name] = pa.concat_tables([first[name], table.set_column(table.column_names.index("ts"), "ts", ts)])
    return made
