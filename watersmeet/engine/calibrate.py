"""Calibrate: what a probe, a match, an insert and a delete cost in this engine on this machine.

Runs of known shape are timed (CPU time of the thread, the whole way of a row: intake, kernel, gathering of results), what the engine
counted in each is read off, and four prices are fitted to them:

    seconds(run) ≈ part · (probe · probes + match · matches + insert · inserts + delete · expiries)

with part = 1 for trees, and one `together` for plans of one node. Rows go in groups through both (kernel/group.py).

The runs differ in what they do most: two streams with few or many matches (insert and probe; match), chains as one node (probe and
match), chains as trees (insert into inner states), and windows from some that fit a core's cache to some that do not. Windows are full
before the clock starts. In a steady state as many leave as enter, so *delete* is measured apart: all windows run empty at once, and
states are swept. The fit of the other three, to trees, minimises the sum of squared *relative* errors, with prices of at least zero; then
`together` is the middle of what plans of one node took of that. A run is
repeated, in turn with all others, and its least time counts, so that other work on the machine disturbs little.

rows: of each stream in each run. repeats: of each run. seed: of the rows.

Source: static-optimization 3.3.2 (C_P, C_I, C_V) and qualified-plans 4.1.4, Table 3 (C_j, C_i, C_d), which give such prices without
saying how they were measured. A price is an average: the first insert of a row (reading it, too) and one into an inner state have the same
price here, and so have a match within a pipeline and one that becomes a result.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.batches import Batches
from watersmeet.lang import parse
from watersmeet.model.plan import Leaf, Plan
from watersmeet.model.statistics import Costs

ROWS = 40_000
REPEATS = 5
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Shape:
    """One run: a plan over a chain of streams, the tuples of each window, and the matches of each probe."""

    plan: str
    window: int
    fan_out: float

    @property
    def streams(self) -> int:
        return len(Plan.parse(self.plan).root.streams)

    @property
    def one_node(self) -> bool:
        return all(isinstance(i, Leaf) for i in Plan.parse(self.plan).root.inputs)


@dataclass(frozen=True)
class Timed:
    """A shape with the seconds that it took and what was counted."""

    shape: Shape
    seconds: float
    probes: int
    matches: int
    inserts: int
    deletes: int
    leaving: int  # what then left at once
    leaving_seconds: float

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.probes, self.matches, self.inserts, self.deletes


@dataclass(frozen=True)
class Calibration:
    """Prices, the runs behind them, and how far off the fit is: fitted / measured − 1 for each run."""

    costs: Costs
    runs: tuple[Timed, ...]
    errors: tuple[float, ...]

    @property
    def typical_error(self) -> float:
        """Half of the runs are further off than this."""
        return float(np.median(np.abs(self.errors)))


PLANS = (
    "(S0 S1)", "(S0 S1 S2) orders {S2: S1 S0}", "((S0 S1) S2)", "((S0 S1) S2 S3) orders {S3: S2 (S0 S1)}",
    "(S0 S1 S2 S3) orders {S2: S1 S0 S3; S3: S2 S1 S0}", "((S0 S1) (S2 S3))", "(((S0 S1) S2) S3)",
)  # fmt: skip
SHAPES = (
    *(Shape(plan, window, fan) for plan in PLANS for window in (100, 1000, 10_000) for fan in (0.2, 1.0, 2.5)),
    *(Shape("(S0 S1)", window, fan) for window in (100, 1000) for fan in (8.0, 30.0)),
)


def calibrate(
    rows: int = ROWS,
    repeats: int = REPEATS,
    seed: int = 0,
    shapes: tuple[Shape, ...] = SHAPES,
    source: str = "measured",
) -> Calibration:
    """Measure the prices; `source` says in `explain` where they come from."""
    _timed(shapes[0], rows, seed)  # compiles the kernel, and warms up
    best: dict[Shape, Timed] = {}
    for _ in range(repeats):
        for shape in shapes:
            run = _timed(shape, rows, seed)
            if shape not in best or run.seconds < best[shape].seconds:
                best[shape] = run
    runs = tuple(best.values())
    costs, errors = fit(runs)
    return Calibration(replace(costs, source=source), runs, errors)


def fit(runs: tuple[Timed, ...]) -> tuple[Costs, tuple[float, ...]]:
    """Prices and relative errors: delete as measured apart, the others of least squared relative error over trees; then `together`."""
    from scipy.optimize import nnls

    most = max(r.leaving for r in runs)  # where few leave, what a call costs would be taken for the price
    delete = float(np.median([r.leaving_seconds / r.leaving for r in runs if r.leaving >= most / 10]))
    counts = np.array([r.counts for r in runs], float)
    seconds = np.array([r.seconds for r in runs])
    one_node = np.array([r.shape.one_node for r in runs])
    left = (1 - counts[:, 3] * delete / seconds)[~one_node]
    relative = (counts[:, :3] / seconds[:, None])[~one_node]
    scale = relative.max(axis=0)
    found, _ = nnls(relative / scale, left)
    probe, match, insert = (float(p) for p in found / scale)
    apart = counts @ np.array([probe, match, insert, delete])
    together = min(1.0, float(np.median((seconds / apart)[one_node]))) if one_node.any() else 1.0
    errors = np.where(one_node, together, 1.0) * apart / seconds - 1
    return Costs(probe, match, insert, delete, together=together), tuple(float(e) for e in errors)


def _timed(shape: Shape, rows: int, seed: int) -> Timed:
    """One run: windows are filled first, then the rest is timed; then everything expires, and that is timed apart."""
    text, tables = workload(shape, rows, seed)
    batches = Batches(parse(text), tables)
    engine = Engine(batches.bound, Plan.parse(shape.plan))
    given = next(batches.released()).rows
    warm = min(rows // 2, shape.window * 3 // 2)
    _drain(engine, {name: table.slice(0, warm) for name, table in given.items()})
    engine.sweep()
    before = _counted(engine)
    began = time.thread_time()
    _drain(engine, {name: table.slice(warm) for name, table in given.items()})
    seconds = time.thread_time() - began
    probes, matches, inserts, deletes = (after - was for after, was in zip(_counted(engine), before, strict=True))
    last = {"S0": _much_later(given["S0"])}
    began = time.thread_time()
    _drain(engine, last)
    engine.sweep()
    leaving = time.thread_time() - began
    left = _counted(engine)[3] - before[3] - deletes
    return Timed(shape, seconds, probes, matches, inserts, deletes, left, leaving)


def _drain(engine: Engine, tables: dict[str, pa.Table]) -> None:
    for _ in engine.feed(tables):
        pass


def _counted(engine: Engine) -> tuple[int, int, int, int]:
    counted = engine.metrics()
    return counted["probes"], counted["matches"], counted["inserts"], counted["expiries"]


def _much_later(table: pa.Table) -> pa.Table:
    """One row, an hour after all others."""
    row = table.slice(table.num_rows - 1)
    at = pa.array([row.column("ts")[0].value + 3600 * SECOND_US]).cast(row.column("ts").type)
    return row.set_column(row.column_names.index("ts"), "ts", at)


def workload(shape: Shape, rows: int, seed: int) -> tuple[str, dict[str, pa.Table]]:
    """The query of a shape and its rows: one row of each stream in a millisecond, keys spread evenly."""
    rng = np.random.default_rng(seed)
    n, us = shape.streams, SECOND_US // 1000
    domain = max(1, round(shape.window / shape.fan_out))
    window = f"[RANGE {shape.window * us} MICROSECONDS]"
    names = [f"S{i}" for i in range(n)]
    tables = {}
    for i, name in enumerate(names):
        keys = {column: rng.integers(0, domain, rows) for column in _columns(i, n)}
        times = np.sort(rng.integers(0, rows * us, rows))
        tables[name] = pa.table({**keys, "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC"))})
    where = " AND ".join(f"{names[i]}.k{i} = {names[i + 1]}.k{i}" for i in range(n - 1))
    chosen = ", ".join(f"{name}.ts AS t{i}" for i, name in enumerate(names))
    return f"SELECT {chosen} FROM {', '.join(f'{x} {window}' for x in names)} WHERE {where}", tables


def _columns(i: int, n: int) -> Iterator[str]:
    if i > 0:
        yield f"k{i - 1}"
    if i < n - 1:
        yield f"k{i}"
