"""python -m bench.engine run [--quick] [--repeat N] | compare OLD.csv NEW.csv"""

from __future__ import annotations

import csv
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.engine import measure
from bench.engine.figure import draw
from bench.engine.workload import Workload, chain, common
from watersmeet.model.plan import Plan

RESULTS = Path(__file__).parent.parent / "results"
BAND = 0.15  # a change below this is no change
MJOIN, XJOIN = Plan.parse("(R S T) orders {T: S R}"), Plan.parse("((R S) T)")


@dataclass(frozen=True)
class Line:
    """One measured case: median over the repeats, and their range (of growth: the middle half)."""

    case: str
    what: str
    value: float
    low: float
    high: float
    unit: str
    limit: float | None = None  # the same measure of the hand-written loop, or of the peer, in this run

    @property
    def ratio(self) -> float | None:
        return self.value / self.limit if self.limit else None


def rates(
    case: str, workload: Workload, runs: dict[str, Callable[[], measure.Run]], repeat: int, limit: str | None
) -> Iterator[Line]:
    """Rows per second of each, taken in turns so that all meet the same disturbances; every answer must have the same size."""
    for run in runs.values():
        run()  # compiles, warms up
    taken: dict[str, list[float]] = {name: [] for name in runs}
    results = set()
    for _ in range(repeat):
        for name, run in runs.items():
            made = run()
            results.add(made.results)
            taken[name].append((made.rows or workload.rows) / made.seconds)
    if len(results) != 1:
        raise SystemExit(f"{case}: the answers differ: {results}")
    middle = {name: statistics.median(values) for name, values in taken.items()}
    for name, values in taken.items():
        peer = middle[limit] if limit and name != limit else None
        yield Line(case, name, middle[name], min(values), max(values), "rows/s", peer)


def growth(n: int, scales: tuple[int, ...], what: str, plan: Plan, repeat: int, gather: bool = False) -> Iterator[Line]:
    """What a row costs once windows are full, for windows of several sizes, taken in turns, and then how many times
    as much as with the smallest windows, turn by turn, since the machine's speed changes from one turn to the next."""
    loads = {scale: common(n * max(1, scale // 30), scale=scale) for scale in scales}
    taken: dict[int, list[float]] = {scale: [] for scale in scales}
    for turn in range(repeat + 1):
        for scale, load in loads.items():
            made = measure.engine(load, plan, gather, filled=True)
            if turn:  # the first compiles, warms up
                taken[scale].append(made.seconds / (made.rows or load.rows))
    for scale, seconds in taken.items():
        speeds = [1 / s for s in seconds]
        yield Line(f"windows x{scale}, once full", what, statistics.median(speeds), min(speeds), max(speeds), "rows/s")
    for scale in scales[1:]:
        times = [large / small for large, small in zip(taken[scale], taken[scales[0]], strict=True)]
        low, _, high = statistics.quantiles(times, n=4)
        yield Line(f"windows x{scale}, cost of a row", what, statistics.median(times), low, high, "times that of x1")


def lines(repeat: int, quick: bool) -> Iterator[Line]:
    n = 50_000 if quick else 300_000
    three = common(n)
    both = {"mjoin": lambda: measure.engine(three, MJOIN), "xjoin": lambda: measure.engine(three, XJOIN)}
    yield from rates(
        "2,000 keys, row ids", three, {"by hand": lambda: measure.by_hand(three, None), **both}, repeat, "by hand"
    )
    wide = common(n, domain=1_000_000)
    yield from rates(
        "1,000,000 keys, row ids", wide,
        {"by hand": lambda: measure.by_hand(wide, 14), "mjoin": lambda: measure.engine(wide, MJOIN),
         "xjoin": lambda: measure.engine(wide, XJOIN)}, repeat, "by hand",
    )  # fmt: skip
    yield from rates(
        "2,000 keys, gathered", three, {"mjoin": lambda: measure.engine(three, MJOIN, gather=True)}, repeat, None
    )
    small = common(min(n, 100_000))
    yield from rates(
        "as a batch", small,
        {"duckdb": lambda: measure.duckdb(small), "mjoin": lambda: measure.engine(small, MJOIN)}, min(repeat, 3), "duckdb",
    )  # fmt: skip
    for scale in (1, 10) if quick else (1, 10, 100):
        grown = common(n * max(1, scale // 30), scale=scale)
        bits = {1: 12, 10: 15, 100: 18}[scale]
        yield from rates(
            f"windows x{scale}, same matches", grown,
            {"by hand": lambda w=grown, b=bits: measure.by_hand(w, b), "mjoin": lambda w=grown: measure.engine(w, MJOIN),
             "xjoin": lambda w=grown: measure.engine(w, XJOIN)}, repeat, "by hand",
        )  # fmt: skip
    for plan, tree in (("mjoin", MJOIN), ("xjoin", XJOIN)):
        yield from growth(n, (1, 10) if quick else (1, 10, 100), plan, tree, 3 * repeat)
    yield from growth(n, (1, 10) if quick else (1, 100), "mjoin, gathered", MJOIN, repeat, gather=True)
    for skew in (0.5, 0.9):
        bent = common(n // 3, skew=skew)
        yield from rates(
            f"skew {skew}", bent,
            {"by hand": lambda w=bent: measure.by_hand(w, None), "mjoin": lambda w=bent: measure.engine(w, MJOIN),
             "xjoin": lambda w=bent: measure.engine(w, XJOIN)}, min(repeat, 3), "by hand",
        )  # fmt: skip
    for k in range(3, 8):
        long = chain(k, n // 2)
        names = list(long.streams)
        orders = "; ".join(f"{x}: {' '.join(near(names, i))}" for i, x in enumerate(names))
        plans = {"mjoin": Plan.parse(f"({' '.join(names)}) orders {{{orders}}}"), "xjoin": Plan.left_deep(names)}
        yield from rates(
            f"{k} streams",
            long,
            {p: lambda w=long, q=q: measure.engine(w, q) for p, q in plans.items()},
            min(repeat, 3),
            None,
        )
    state = measure.engine(common(n), MJOIN)
    yield Line("state", "bytes a tuple", state.state_bytes / state.state_tuples, 0, 0, "bytes")
    with tempfile.TemporaryDirectory() as cache:
        cold = measure.first_call(cache)
        warm = [measure.first_call(cache) for _ in range(repeat)]
    yield Line("first call", "cold kernel cache", cold, cold, cold, "s")
    yield Line("first call", "warm kernel cache", statistics.median(warm), min(warm), max(warm), "s")
    for size in (1, 8, 48):
        yield Line("one cache miss", f"{size} MB", measure.latency_ns(size), 0, 0, "ns")


def near(names: list[str], i: int) -> list[str]:
    """The other streams of a chain, nearest first, so that each joins one that is bound already."""
    return sorted((n for n in names if n != names[i]), key=lambda n: (abs(names.index(n) - i), names.index(n)))


def run(repeat: int, quick: bool) -> None:
    made = []
    print(f"{'case':<32}{'':<20}{'median':>14}{'range':>26}   of the limit")
    for line in lines(repeat, quick):
        made.append(line)
        shown = f"{line.value:,.0f}" if line.value >= 100 else f"{line.value:.2f}"
        spread = (
            f"{line.low:,.0f} .. {line.high:,.0f}"
            if line.high >= 100
            else f"{line.low:.2f} .. {line.high:.2f}"
            if line.high
            else ""
        )
        ratio = f"   {line.ratio:.2f} x" if line.ratio else ""
        print(f"{line.case:<32}{line.what:<20}{shown:>14}{spread:>26} {line.unit}{ratio}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "engine.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*asdict(made[0]), "ratio"], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**asdict(line), "ratio": line.ratio} for line in made)
    draw(RESULTS / "engine.csv", RESULTS / "engine.png")
    print(f"written: {RESULTS.name}/engine.csv, {RESULTS.name}/engine.png")


def compare(before: str, after: str) -> None:
    """Cases of two runs side by side; ratios, since machines differ."""
    old, new = (
        {(r["case"], r["what"]): r for r in csv.DictReader(Path(p).read_text().splitlines())} for p in (before, after)
    )
    for key in [k for k in new if k in old]:
        a, b = (float(x[key]["ratio"] or x[key]["value"]) for x in (old, new))
        change = b / a - 1 if a else 0.0
        verdict = "no change" if abs(change) < BAND else f"{change:+.0%}"
        print(f"{key[0]:<32}{key[1]:<20}{a:>12.3g}{b:>12.3g}   {verdict}")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["compare"] and len(arguments) == 3:
        compare(*arguments[1:])
    elif arguments[:1] in ([], ["run"]):
        repeat = int(arguments[arguments.index("--repeat") + 1]) if "--repeat" in arguments else 5
        run(repeat, "--quick" in arguments)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
