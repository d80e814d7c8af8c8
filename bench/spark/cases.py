"""The cases: what is run with what, as lines of the result. Rates are of the steady state: the first batch is left out for all."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from bench.engine.workload import Workload, chain, common
from bench.spark.contest import Contest, Report, Run, flink_is_there

OWN = ("hdfs", "rocksdb")
CASES = ("common", "large", "sizes", "growth", "ways")
COLD_ROWS = 14_000_000


@dataclass(frozen=True)
class Line:
    """One measured thing: the median over the repeats and their range (over batches where there was one run)."""

    case: str
    contestant: str
    measure: str
    value: float
    low: float
    high: float
    unit: str
    repeats: int
    rows: int
    note: str = ""


@dataclass(frozen=True)
class Scale:
    """How much of everything. Batches in rows; `peer_seconds`: how long the slow peers run after their first batch."""

    repeats: int
    batch: int
    batches: int
    large: int
    large_batches: int
    peer_seconds: float
    sizes: tuple[int, ...]
    own_sizes: tuple[int, ...]
    windows: tuple[int, ...]
    window_batches: int
    ways: tuple[int, ...]
    way_batches: int


FULL = Scale(
    3,
    350_000,
    10,
    1_400_000,
    20,
    50,
    (175_000, 700_000, 2_800_000),
    (87_500, 700_000),
    (1, 10, 100),
    10,
    (2, 3, 4, 5),
    6,
)
QUICK = Scale(1, 70_000, 4, 350_000, 3, 5, (140_000,), (), (1, 10), 6, (2, 5), 3)


def prefixed(report: Report, prefix: str) -> Report:
    return lambda text: report(f"{prefix}: {text}")


def rate_lines(case: str, runs: list[Run]) -> Iterator[Line]:
    """The rate of one contestant, over its repeats."""
    rates = [r.rate for r in runs]
    spread = rates if len(runs) > 1 else runs[0].batch_rates
    note = "" if len(runs) > 1 else f"one run; range over {len(spread)} batches"
    if len(runs[0].batches) == 1:
        note = "one portion only: the start is included"
    name, rows = runs[0].contestant, runs[0].rows
    yield Line(case, name, "rate", statistics.median(rates), min(spread), max(spread), "rows/s", len(runs), rows, note)


def time_line(case: str, measure: str, runs: list[Run], values: list[float], note: str = "") -> Line:
    return Line(
        case, runs[0].contestant, measure, statistics.median(values), min(values), max(values), "s", len(runs), runs[0].rows, note
    )  # fmt: skip


def common_lines(scale: Scale, report: Report) -> Iterator[Line]:
    """All contestants on the common workload, at the same batch size."""
    case = f"{scale.batch:,} rows a batch"
    with Contest(common(scale.batch * scale.batches // 7), scale.batches) as contest:
        quick = ("noop", "trivial", "watersmeet")
        runs: dict[str, list[Run]] = {name: [] for name in quick}
        for repeat in range(scale.repeats):
            for name in quick:
                runs[name].append(contest.run(name, prefixed(report, f"{case}, run {repeat + 1}")))
        slow = [*OWN, *(("flink", "flink read") if flink_is_there() else ())]
        for name in slow:
            runs[name] = [contest.run(name, prefixed(report, case), scale.peer_seconds)]
    for name, made in runs.items():
        if name != "trivial":
            yield from rate_lines(case, made)
        yield time_line(case, "first batch", made, [r.first_batch_seconds for r in made])
        if name in ("hdfs", "rocksdb", "flink"):
            values = [r.cold_seconds(COLD_ROWS) for r in made]
            note = f"extrapolated from {made[0].rows:,} rows: first batch, then the steady rate"
            yield time_line(f"cold start to the end of {COLD_ROWS:,} rows", "time", made, values, note)


def large_lines(scale: Scale, report: Report) -> Iterator[Line]:
    """Large batches, from a cold start to the end; and what of that is Spark's: the read with the same settings, and all but the join."""
    case = f"{scale.large:,} rows a batch"
    runs: dict[str, list[Run]] = {"noop": [], "tuned noop": [], "hollow": [], "watersmeet": []}
    with Contest(common(scale.large * scale.large_batches // 7), scale.large_batches) as contest:
        for repeat in range(scale.repeats):
            for name, made in runs.items():
                made.append(contest.run(name, prefixed(report, f"{case}, run {repeat + 1}")))
    for made in runs.values():
        yield from rate_lines(case, made)
    mine = runs["watersmeet"]
    yield time_line(case, "first batch", mine, [r.first_batch_seconds for r in mine])
    whole = mine[0].rows >= COLD_ROWS
    values = [r.cold_seconds(COLD_ROWS) for r in mine]
    note = "measured" if whole else f"extrapolated from {mine[0].rows:,} rows: first batch, then the steady rate"
    yield time_line(f"cold start to the end of {COLD_ROWS:,} rows", "time", mine, values, note)


def size_lines(scale: Scale, report: Report) -> Iterator[Line]:
    """Other batch sizes, to find the best of each."""
    for size in scale.sizes:
        batches = max(4, min(8, 4_200_000 // size))
        with Contest(common(size * batches // 7), batches) as contest:
            run = contest.run("watersmeet", prefixed(report, f"{size:,} rows a batch"))
        yield from rate_lines(f"{size:,} rows a batch", [run])
    for size in scale.own_sizes:
        with Contest(common(size * 3 // 7), 3) as contest:
            run = contest.run("hdfs", prefixed(report, f"{size:,} rows a batch"))
        yield from rate_lines(f"{size:,} rows a batch", [run])


def growth_lines(scale: Scale, report: Report) -> Iterator[Line]:
    """Windows and key domain larger together: the same rate of results. Measured in the second half, when all windows are full; in turns,
    since the machine's speed changes from one minute to the next."""
    last = scale.window_batches // 2
    rows = scale.batch * scale.window_batches
    contests: dict[str, Contest] = {}
    with ExitStack() as stack:
        for times in (0, *scale.windows):
            grown = common(rows // 7, scale=times) if times else empty(rows // 7)
            batch_us = int(max(ts[-1] for ts, _ in grown.streams.values())) // scale.window_batches
            assert grown.window_us + batch_us <= batch_us * (scale.window_batches - last), "windows would not be full"
            case = f"windows x{times}" if times else "windows of no length"
            contests[case] = stack.enter_context(Contest(grown, scale.window_batches))
        runs: dict[str, list[Run]] = {case: [] for case in contests}
        for repeat in range(scale.repeats):
            for case, contest in contests.items():
                told = prefixed(report, f"{case}, run {repeat + 1}")
                runs[case].append(contest.run("watersmeet", told, memory=True))
    for case, made in runs.items():
        note = f"the last {last} batches, windows full"
        yield time_line(case, "batch", made, [r.batch_seconds(last) for r in made], note)
        yield from state_lines(case, made, last)


def empty(n: int) -> Workload:
    """The common workload with windows of one microsecond: the same way for every row, and no state."""
    made = common(n)
    return replace(made, text=made.text.replace(f"RANGE {made.window_us} ", "RANGE 1 "), window_us=1)


def state_lines(case: str, runs: list[Run], last: int) -> Iterator[Line]:
    """Results, rows in windows and memory of the last batches."""

    def line(measure: str, values: list[float], unit: str, note: str = "") -> Line:
        return Line(
            case, "watersmeet", measure, statistics.median(values), min(values), max(values), unit, len(runs), runs[0].rows, note
        )  # fmt: skip

    def observed(run: Run, *names: str) -> float:
        return statistics.mean(sum(b["observed"].get(n) or 0 for n in names) for b in run.batches[-last:])

    yield line("results a batch", [observed(r, "results") for r in runs], "rows")
    yield line("rows in windows", [observed(r, "window_rows") for r in runs], "rows", "copies in several cells counted")
    yield line("state", [observed(r, "memory_bytes", "waiting_bytes") for r in runs], "bytes", "as the cells say")
    peaks = [max(r.memory, key=lambda m: m.total) for r in runs]
    yield line(
        "workers' memory", [m.total for m in peaks], "bytes", "peak; PSS of daemon and workers, shared memory once"
    )
    yield line("of it shared memory", [m.shared for m in peaks], "bytes")
    yield line("worker processes", [m.processes for m in peaks], "processes", "daemon included")


def way_lines(scale: Scale, report: Report) -> Iterator[Line]:
    """Chains of 2 to 5 streams, as many rows a batch in each."""
    for ways in scale.ways:
        case = f"{ways} streams"
        with Contest(chain(ways, scale.batch * scale.way_batches // ways), scale.way_batches) as contest:
            for name in ("noop", "watersmeet") if scale is FULL else ("watersmeet",):
                yield from rate_lines(case, [contest.run(name, prefixed(report, case))])


LINES = dict(zip(CASES, (common_lines, large_lines, size_lines, growth_lines, way_lines), strict=True))
