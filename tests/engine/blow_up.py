"""One key in all rows, so that the last row completes as many results as asked for; prints what that took, as JSON.

Run in a process of its own: `python blow_up.py 20000000`.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from typing import Any

import numpy as np
import pyarrow as pa

import watersmeet as wm

TEXT = "SELECT R.id AS r, S.id AS s FROM R [UNBOUNDED], S [UNBOUNDED], T [UNBOUNDED] WHERE R.k = S.k AND S.k = T.k"


def streams(r: int, s: int) -> dict[str, pa.Table]:
    """r rows of R, s of S, then one of T."""
    made, ts = {}, 0
    for name, rows in (("R", r), ("S", s), ("T", 1)):
        at = pa.array(np.arange(ts, ts + rows)).cast(pa.timestamp("us", tz="UTC"))
        made[name] = pa.table({"id": np.arange(rows), "k": np.ones(rows, np.int64), "ts": at})
        ts += rows
    return made


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(results: int) -> dict[str, Any]:
    """Results, their checksum, the largest batch, and the peak memory before and after."""
    seen = {"results": 0, "sum": 0, "largest": 0}

    def sink(batch: pa.RecordBatch) -> None:
        r, s = (batch.column(c).to_numpy() for c in ("r", "s"))
        seen["results"] += batch.num_rows
        seen["sum"] += int((r * 1_000_003 + s).sum())
        seen["largest"] = max(seen["largest"], batch.num_rows)

    wm.run(TEXT, streams(10, 10), plan="mjoin", sink=sink)
    seen.update(results=0, sum=0, largest=0)
    before, side = peak_bytes(), math.isqrt(results)
    assert side * side == results
    wm.run(TEXT, streams(side, side), plan="mjoin", sink=sink)
    return {**seen, "peak_before": before, "peak_after": peak_bytes()}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
