"""Writes the table of figures into README.md from bench/results, between two marks. `--check`: only say whether it is up to date."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- figures: scripts/readme_figures.py -->\n", "<!-- end of figures -->\n"


def read(name: str) -> list[dict[str, str]]:
    with (ROOT / "bench" / "results" / name).open() as file:
        return list(csv.DictReader(file))


def table() -> str:
    """The figures that a reader asks for first, as Markdown."""
    spark, engine = read("spark.csv"), read("engine.csv")

    def rate(case: str, contestant: str) -> float:
        return next(
            float(r["value"]) for r in spark if (r["case"], r["contestant"], r["measure"]) == (case, contestant, "rate")
        )

    def seconds(contestant: str) -> float:
        case = "cold start to the end of 14,000,000 rows"
        return next(float(r["value"]) for r in spark if (r["case"], r["contestant"]) == (case, contestant))

    def alone(case: str, what: str) -> float:
        return next(float(r["value"]) for r in engine if (r["case"], r["what"]) == (case, what))

    batch, large = "350,000 rows a batch", "1,400,000 rows a batch"
    rows = [
        ("Watersmeet on Spark", rate(batch, "watersmeet"), seconds("watersmeet")),
        ("the same, 1,400,000 rows a batch", rate(large, "watersmeet"), None),
        ("Flink SQL", rate(batch, "flink"), seconds("flink")),
        ("Spark's own join, HDFS state store", rate(batch, "hdfs"), seconds("hdfs")),
        ("Spark's own join, RocksDB state store", rate(batch, "rocksdb"), seconds("rocksdb")),
        ("Spark reading the rows into nothing (the limit)", rate(batch, "noop"), None),
        ("Watersmeet in process, one core", alone("2,000 keys, gathered", "mjoin"), None),
        ("a loop written by hand for this query, one core", alone("2,000 keys, row ids", "by hand"), None),
    ]
    lines = ["| three-way join, two cores | rows/s | 14 million rows from a cold start |", "|---|---:|---:|"]
    for name, value, time in rows:
        lines.append(f"| {name} | {rounded(value)} | {'' if time is None else f'{time:,.0f} s'} |")
    return "\n".join(lines) + "\n"


def rounded(value: float) -> str:
    """Three digits are more than runs agree on.

    >>> rounded(303457.0), rounded(16111336.0)
    ('303,000', '16,100,000')
    """
    digits = len(str(int(value))) - 3
    return f"{round(value, -digits):,.0f}"


def written(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def main() -> None:
    readme = ROOT / "README.md"
    text = readme.read_text()
    if not re.search(re.escape(BEGIN) + ".*" + re.escape(END), text, re.DOTALL):
        sys.exit(f"README.md lacks the marks {BEGIN.strip()} and {END.strip()}")
    if "--check" in sys.argv:
        sys.exit(
            None
            if written(text) == text
            else "README.md: the figures are not those of bench/results; run scripts/readme_figures.py"
        )
    readme.write_text(written(text))


if __name__ == "__main__":
    main()
