"""python -m bench.spark run [--quick] [CASE...]: contestants one after the other, each in a process of its own, on the same files.

Cases: common (350,000 rows a batch), large (1.4 million), growth (windows x1, x10, x100), ways (2 to 5 streams), sizes (rows a batch).
Rates are of the steady state, the first batch left out for all; ratios are within one run. Results: bench/results/spark.csv.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.engine.workload import Workload, chain, common
from bench.spark.data import write

RESULTS = Path(__file__).parent.parent / "results" / "spark.csv"
BAND = 0.15  # a change below this is no change
PLAN = "(R S T) orders {T: S R}"
PEER_ROWS = 1_050_000  # Spark's own join is so slow that it gets the first batches only


@dataclass(frozen=True)
class Line:
    """One contestant in one case. ratio: to the no-op read of the same files in this run."""

    case: str
    contestant: str
    rows: int
    rows_per_second: float
    batch_seconds: float
    first_batch_seconds: float
    total_seconds: float
    ratio_to_noop: float | None = None


def contest(
    case: str, workload: Workload, batches: int, names: list[str], plan: str = "", cells: int = 2
) -> Iterator[Line]:
    with tempfile.TemporaryDirectory(prefix="watersmeet-bench-") as scratch:
        folder = Path(scratch)
        write(workload, folder / "in", batches)
        job = {
            "folder": str(folder), "text": workload.text, "streams": list(workload.streams), "cells": cells, "plan": plan,
            "window": f"{workload.window_us // 1_000_000} seconds",
        }  # fmt: skip
        (folder / "job.json").write_text(json.dumps(job))
        limit = None
        for name in names:
            line = _run(case, name, folder)
            if name == "noop":
                limit = line.rows_per_second
            ratio = line.rows_per_second / limit if limit else None
            yield Line(**(asdict(line) | {"ratio_to_noop": ratio}))


def _run(case: str, name: str, folder: Path) -> Line:
    command = [sys.executable, "-m", "bench.spark.contestant", name, str(folder / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case}, {name}: {done.stderr[-3000:]}")
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    batches = [t for t in told if t.get("rows")]
    steady = batches[1:] or batches
    rows, seconds = sum(b["rows"] for b in steady), sum(b["seconds"] for b in steady)
    return Line(
        case,
        name,
        sum(b["rows"] for b in batches),
        rows / seconds,
        seconds / len(steady),
        batches[0]["seconds"],
        told[-1]["total"],
    )


def lines(cases: list[str], quick: bool) -> Iterator[Line]:
    small = quick
    if "common" in cases:
        n = 150_000 if small else 500_000
        yield from contest("350,000 rows a batch", common(n), n // 50_000, ["noop", "watersmeet"], PLAN)
        few = common(PEER_ROWS // 7 if not small else 100_000)
        yield from contest(
            "Spark's own join",
            few,
            3 if not small else 2,
            ["noop", "watersmeet", "hdfs", *([] if small else ["rocksdb"])],
            PLAN,
        )
    if "large" in cases:
        n = 600_000 if small else 2_000_000
        yield from contest("1,400,000 rows a batch", common(n), n // 200_000, ["noop", "watersmeet"], PLAN)
    if "growth" in cases:
        for scale in (1, 10) if small else (1, 10, 100):
            grown = common(200_000 if small else 500_000, scale=scale)
            yield from contest(f"windows x{scale}", grown, 4 if small else 10, ["watersmeet"], PLAN)
    if "ways" in cases:
        for k in (2, 3, 4, 5):
            yield from contest(
                f"{k} streams", chain(k, 100_000 if small else 300_000), 3 if small else 6, ["noop", "watersmeet"]
            )
    if "sizes" in cases:
        for batches in (40, 20, 10, 5) if not small else (8, 2):
            yield from contest(
                f"{batches} batches", common(400_000 if not small else 100_000), batches, ["watersmeet"], PLAN
            )


def main() -> None:
    words = sys.argv[1:]
    if words[:1] != ["run"]:
        raise SystemExit(__doc__)
    quick = "--quick" in words
    cases = [w for w in words[1:] if not w.startswith("--")] or ["common", "large", "growth", "ways", "sizes"]
    made = []
    for line in lines(cases, quick):
        made.append(line)
        ratio = (
            f"{line.ratio_to_noop:6.1%} of the no-op read" if line.ratio_to_noop and line.contestant != "noop" else ""
        )
        print(
            f"{line.case:<24} {line.contestant:<11} {line.rows_per_second:>11,.0f} rows/s   batch {line.batch_seconds:6.2f} s"
            f"   first {line.first_batch_seconds:6.2f} s   {ratio}",
            flush=True,
        )
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(Line.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(map(asdict, made))


if __name__ == "__main__":
    main()
