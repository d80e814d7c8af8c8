"""One measurement each: rows per second of one core (CPU time of the thread, so that other processes disturb less)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.engine import hand_loop
from bench.engine.workload import Workload
from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.batches import Batches
from watersmeet.lang import parse
from watersmeet.model.plan import Plan


@dataclass(frozen=True)
class Run:
    """One run: how many results, how long, and what state was left; `rows`: how many were timed, if not all."""

    results: int
    seconds: float
    rows: int | None = None
    state_tuples: int = 0
    state_bytes: int = 0


class RowIds(Engine):
    """The engine without gathering: results stay row ids, as the hand-written loop gives them."""

    def gathered(self, candidates: Any) -> None:
        return None


def engine(workload: Workload, plan: Plan, gather: bool = False, filled: bool = False) -> Run:
    """Feed all rows; `gather`: results as Arrow batches of the selected columns, else as row ids.

    filled: windows are filled first, and only what comes then is timed.
    """
    batches = Batches(parse(workload.text), workload.tables())
    made = Engine(batches.bound, plan) if gather else RowIds(batches.bound, plan)
    rows = next(batches.released()).rows
    cuts = {
        name: int(np.searchsorted(ts, workload.window_us if filled else 0))
        for name, (ts, _) in workload.streams.items()
    }
    results = sum(batch.num_rows for batch in made.feed({name: t.slice(0, cuts[name]) for name, t in rows.items()}))
    rest = {name: t.slice(cuts[name]) for name, t in rows.items()}
    began = time.thread_time()
    results += sum(batch.num_rows for batch in made.feed(rest))
    took = time.thread_time() - began
    found = results if gather else made.metrics()["results"]
    timed = sum(t.num_rows for t in rest.values())
    left = made.metrics()
    return Run(found, took, timed, left["state_tuples"], left["state_bytes"])


def by_hand(workload: Workload, bits: int | None) -> Run:
    """The hand-written loop; `bits`: of its hash tables, None: keys address their chains directly."""
    (rts, r), (sts, s), (tts, t) = (workload.streams[name] for name in "RST")
    out = np.zeros((4, 1 << 16), np.int64)
    columns = (rts, r["a"], sts, s["a"], s["b"], tts, t["b"], workload.window_us)
    began = time.thread_time()
    if bits is None:
        domain = int(max(r["a"].max(), s["a"].max(), s["b"].max(), t["b"].max())) + 1
        results = hand_loop.direct(*columns, domain, out)
    else:
        results = hand_loop.hashed(*columns, bits, out)
    return Run(results, time.thread_time() - began)


def duckdb(workload: Workload) -> Run:
    """DuckDB, one thread, the same answer as a batch: all three within one window of each other."""
    import duckdb as db

    connection = db.connect(config={"threads": 1})
    for name, table in workload.tables().items():
        connection.register(name, table)
    near = [f"abs(epoch_us({x}.ts) - epoch_us({y}.ts)) <= {workload.window_us}" for x, y in ("RS", "ST", "RT")]
    began = time.process_time()
    text = f"SELECT count(*) FROM R, S, T WHERE R.a = S.a AND S.b = T.b AND {' AND '.join(near)}"
    found = connection.execute(text).fetchall()[0][0]
    return Run(found, time.process_time() - began)


FIRST_CALL = """
import time
import pyarrow as pa
rows = pa.table({"a": [1], "ts": pa.array([0], pa.timestamp("us", "UTC"))})
began = time.perf_counter()
import watersmeet as wm
text = "SELECT R.a FROM R [RANGE 10 SECONDS], S [RANGE 10 SECONDS] WHERE R.a = S.a"
assert wm.run(text, {"R": rows, "S": rows}).rows.num_rows == 1
print(time.perf_counter() - began)
"""


def first_call(cache: str) -> float:
    """Seconds from `import watersmeet` to the first results in a new process that has its rows at hand."""
    environment = {**os.environ, "WATERSMEET_CACHE": cache}
    made = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], env=environment, capture_output=True, text=True, check=True
    )
    return float(made.stdout)


def latency_ns(megabytes: int, steps: int = 1_000_000) -> float:
    """Time of one dependent random read in so much memory: what one cache miss costs here."""
    order = np.random.default_rng(0).permutation(megabytes << 17)
    chain = np.empty(len(order), np.int64)
    chain[order[:-1]], chain[order[-1]] = order[1:], order[0]
    hand_loop.chase(chain, 1000)
    began = time.thread_time()
    hand_loop.chase(chain, steps)
    return (time.thread_time() - began) / steps * 1e9
