"""`watersmeet demo`: data, query, plan, a run on local Spark, the results, and what to try next. All of it stays in one folder."""

from __future__ import annotations

import dataclasses
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from watersmeet.cli import show
from watersmeet.cli.board import Board
from watersmeet.cli.java import java_problem
from watersmeet.cli.job import Job
from watersmeet.cli.run import execute, start_engine, summary
from watersmeet.errors import DataError
from watersmeet.model.query import Location

if TYPE_CHECKING:
    import pyarrow as pa

_JOB: Final = """\
-- Orders that left the house although they were not paid in full.
CREATE STREAM orders (id BIGINT, item BIGINT, price DOUBLE, ts TIMESTAMP) FROM '{folder}/data/orders' FORMAT parquet;
CREATE STREAM payments (order_id BIGINT, amount DOUBLE, ts TIMESTAMP) FROM '{folder}/data/payments' FORMAT parquet;
CREATE STREAM shipments (order_id BIGINT, depot STRING, ts TIMESTAMP) FROM '{folder}/data/shipments' FORMAT parquet;
CREATE TABLE items (item BIGINT, name STRING) FROM '{folder}/data/items.csv' FORMAT csv;

SELECT o.id, i.name, o.price, p.amount, s.depot
FROM orders [RANGE 2 HOURS] AS o, payments [RANGE 1 HOUR] AS p, shipments [RANGE 30 MINUTES] AS s, items AS i
WHERE o.id = p.order_id AND o.id = s.order_id AND o.item = i.item AND p.amount < o.price
EMIT ISTREAM INTO '{folder}/results/' FORMAT parquet;
"""
_MASTER: Final = "local[2]"
# What a run on Spark leaves in these folders; anything else there is not the demo's, and is not removed.
_OURS: Final = {
    "results": ("part-", ".part-", "_spark_metadata"),
    "checkpoint": ("metadata", ".metadata", "offsets", "commits", "sources", "state", "control"),
}


def run_demo(folder: Path, orders: int, seed: int) -> None:
    """The demo from start to end."""
    from watersmeet.cli.demo_data import make_data
    from watersmeet.cli.explain import sampled
    from watersmeet.optimize.explain import explain_plan

    path = folder / "demo.sql"
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        _clear(folder)
        text = _JOB.format(folder=str(folder).replace("\\", "\\\\").replace("'", "''"))
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise DataError(
            f"can't write to the folder '{folder}': {e.strerror}\n  give another with --out FOLDER"
        ) from None
    show.heading("1. The streams: a day of a web shop, in parts as it came in")
    made = make_data(folder / "data", orders, seed)
    show.facts((name, f"{show.count(rows)} rows") for name, rows in made.items())
    job = Job.load(path)
    show.heading("2. The query: which orders left although they were not paid in full?")
    show.query(text)
    stats = sampled(job)
    show.heading("3. The plan, by statistics from the first rows")
    show.plain(explain_plan(job.bound, stats))
    rows = sum(n for name, n in made.items() if name != "items")
    without = _why_not_spark()
    if without is None:
        show.heading("4. The run on Spark: two cells, a batch for each part of the day")
        found = _on_spark(job, folder, stats, rows)
        show.heading("5. The first results")
        show.rows_table(found.slice(0, 8), total=found.num_rows)
        show.heading("6. The same query in this process, without Spark")
        outcome = execute(job, None, overwrite=False, inputs={}, rows=found.num_rows + 1)
        show.facts(summary(outcome)[:-1])
        same = _multiset(outcome.first) == _multiset(found)
        show.plain("The same results." if same else "The results differ: this is a fault, please report it.")
    else:
        show.err.print(f"{without}; so the demo runs in this process", style="yellow", markup=False, soft_wrap=True)
        show.heading("4. The run")
        outcome = execute(job, job.query.into, overwrite=True, inputs={}, rows=8)
        show.facts(summary(outcome))
        show.heading("5. The first results")
        show.rows_table(outcome.first, total=outcome.metrics["results"])
    show.heading("7. Next" if without is None else "6. Next")
    _say_what_next(folder, path)


def _why_not_spark() -> str | None:
    """Why Spark can't be used here, with what to do; None if it can."""
    problem = java_problem()
    if problem is not None:
        return f"Spark can't be started: {problem} (make setup says how to get one)"
    try:
        import watersmeet.spark.run  # noqa: F401
    except ImportError as e:
        return f"Spark can't be started: {e.name} is not installed (pip install 'watersmeet[spark]')"
    return None


def _on_spark(job: Job, folder: Path, stats: Any, rows: int) -> pa.Table:
    """Run the job with one file of each stream a batch; returns all results, in order of time."""
    import pyarrow.parquet as pq

    from watersmeet.spark.run import SparkJob, open_session

    start_engine()  # compiled here, where it can be seen that something is going on
    place = folder.absolute()  # Spark may have been started in another directory
    work = SparkJob(
        _one_file_a_batch(job, place / "data"), Location(str(place / "results"), "parquet"), str(place / "checkpoint"),
        stats=stats, cells=2,
    )  # fmt: skip
    began = time.perf_counter()
    with ExitStack() as stack:
        with show.busy("starting Spark"):
            quiet = {"spark.log.level": "OFF", "spark.ui.enabled": "false"}
            spark = stack.enter_context(open_session(_MASTER, "watersmeet demo", quiet))
        started = time.perf_counter()
        board = stack.enter_context(Board(rows))
        work.run(spark, board.batch)
    ended = time.perf_counter()
    read = pq.read_table(folder / "results").cast(job.output_schema())
    found = read.sort_by([("result_ts", "ascending"), ("id", "ascending")])
    show.facts(
        (
            ("rows in", show.count(board.rows)),
            ("results", f"{show.count(found.num_rows)}, each once, whatever fails meanwhile"),
            ("time", f"{ended - started:.1f} s after {started - began:.1f} s to start Spark; its first batch warms up"),
            ("throughput", f"{show.rate(board.steady)} after the first batch"),
            ("state", f"{show.count(board.window_rows)} rows in windows at the most, kept in Spark's state store"),
        )
    )
    return found


def _one_file_a_batch(job: Job, data: Path) -> Any:
    """The query with its streams read file by file, from this folder."""
    declarations = tuple(
        d if d.static else dataclasses.replace(
            d, location=Location(str(data / d.name), "parquet", (("maxFilesPerTrigger", "1"),))
        )
        for d in job.query.declarations
    )  # fmt: skip
    return dataclasses.replace(job.query, declarations=declarations, into=None)


def _multiset(table: pa.Table) -> list[Any]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def _clear(folder: Path) -> None:
    """Remove what an earlier run of the demo left, and only that."""
    places = {folder / name: ours for name, ours in _OURS.items() if (folder / name).is_dir()}
    for place, ours in places.items():
        foreign = [p.name for p in place.iterdir() if not p.name.startswith(ours)]
        if foreign:
            raise DataError(
                f"'{place}' holds '{foreign[0]}', which is not the demo's\n  give another folder with --out FOLDER"
            )
    for place in places:
        shutil.rmtree(place)


def _say_what_next(folder: Path, path: Path) -> None:
    again = f"watersmeet run {path}"
    show.facts(
        (
            ("all results", f"{folder / 'results'}/"),
            ("the job file", str(path)),
            ("change it, and run it in one process", f"{again} --into other/"),
            ("by another plan", f"{again} --into xjoin/ --plan xjoin"),
            ("on Spark", f"{again} --into spark/ --master 'local[2]'"),
            ("see what it means", f"watersmeet explain --sample {path}"),
        )
    )
