"""python -m bench.spark run [--quick] [CASE...] | compare OLD.csv NEW.csv

Contestants one after the other, each in a process of its own, on the same rows, two cores. CASE: common (350,000 rows a batch, all
contestants), large (20 batches of 1.4 million rows, and from a cold start to the end of 14 million), sizes (other batch sizes), growth
(windows x1, x10, x100, and memory), ways (2 to 5 streams); all if none is named. Results: bench/results/spark.csv and spark.png; of some
cases only spark-part, with --quick (smaller, less exact) spark-quick or spark-part-quick.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench.spark.cases import CASES, FULL, LINES, QUICK, Line
from bench.spark.contest import flink_is_there
from bench.spark.figure import draw
from bench.spark.goals import goals

RESULTS = Path(__file__).parent.parent / "results"
BAND = 0.15  # a change below this is no change


def run(cases: list[str], quick: bool) -> None:
    scale = QUICK if quick else FULL
    name = "spark" + ("" if len(cases) == len(CASES) else "-part") + ("-quick" if quick else "")
    console = Console(highlight=False, soft_wrap=True)
    if "common" in cases and not flink_is_there():
        console.print("Flink SQL is left out: there is no .venv-flink; `make bench-peers` makes it", style="yellow")
    _compile_kernel()
    made: list[Line] = []
    console.print(f"[bold]{'case':<46}{'contestant':<12}{'measure':<22}{'median':>14}{'range':>27}[/]")
    for case in cases:
        with console.status(case) as status:
            for line in LINES[case](scale, lambda text: status.update(escape(text))):
                made.append(line)
                console.print(shown(line), markup=False)
                _write(made, RESULTS / f"{name}.csv")
    console.print("\n[bold]Goals[/]")
    for goal in goals(made, scale.batch, scale.large):
        line = goal.line(judged=not quick)
        made.append(line)
        console.print(f"  {line.measure:<86} {goal.value:8.2f} {goal.unit:<2} {line.note}", markup=False)
    _write(made, RESULTS / f"{name}.csv")
    draw(RESULTS / f"{name}.csv", RESULTS / f"{name}.png")
    console.print(f"\nwritten: bench/results/{name}.csv, bench/results/{name}.png")


def shown(line: Line) -> str:
    def number(value: float) -> str:
        return f"{value / 1e6:,.1f} MB" if line.unit == "bytes" else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

    unit = "" if line.unit == "bytes" else line.unit
    spread = f"{number(line.low)} .. {number(line.high)}" if line.low != line.high else ""
    return f"{line.case:<46}{line.contestant:<12}{line.measure:<22}{number(line.value):>14}{spread:>27} {unit:<8} {line.note}"


def _compile_kernel() -> None:
    """So that the first contestant finds the compiled kernel in its cache, as all others do."""
    import datetime as dt

    import watersmeet as wm

    now = dt.datetime.fromtimestamp(0, dt.UTC)
    wm.run("SELECT a.ts FROM a [ROWS 1], a [ROWS 1] AS b WHERE a.ts = b.ts", {"a": {"ts": [now]}})


def _write(lines: list[Line], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(Line.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, lines))


def compare(before: str, after: str) -> None:
    """Two runs side by side; of different machines only the goals, which are ratios, mean anything."""
    old, new = (
        {
            (r["case"], r["contestant"], r["measure"]): float(r["value"])
            for r in csv.DictReader(Path(p).read_text().splitlines())
        }
        for p in (before, after)
    )
    for key in [k for k in new if k in old]:
        change = new[key] / old[key] - 1 if old[key] else 0.0
        verdict = "no change" if abs(change) < BAND else f"{change:+.0%}"
        print(f"{key[0]:<46}{key[1]:<12}{key[2]:<40}{old[key]:>14.4g}{new[key]:>14.4g}   {verdict}")


def main(words: list[str]) -> None:
    if words[:1] == ["compare"] and len(words) == 3:
        compare(*words[1:])
        return
    cases = [w for w in words if w not in ("run", "--quick")]
    unknown = [c for c in cases if c not in CASES]
    if unknown:
        raise SystemExit(f"there is no case '{unknown[0]}'; cases: {', '.join(CASES)}\n\n{__doc__}")
    run(cases or list(CASES), "--quick" in words)


if __name__ == "__main__":
    main(sys.argv[1:])
