"""`watersmeet demo`: data, query, plan, run, results, and what to try next. All of it stays in one folder."""

from __future__ import annotations

from pathlib import Path

from watersmeet.cli import show
from watersmeet.cli.job import Job
from watersmeet.cli.run import execute, summary
from watersmeet.errors import DataError

_JOB = """\
-- Orders that left the house although they were not paid in full.
CREATE STREAM orders (id BIGINT, item BIGINT, price DOUBLE, ts TIMESTAMP) FROM '{folder}/data/orders.parquet' FORMAT parquet;
CREATE STREAM payments (order_id BIGINT, amount DOUBLE, ts TIMESTAMP) FROM '{folder}/data/payments.parquet' FORMAT parquet;
CREATE STREAM shipments (order_id BIGINT, depot STRING, ts TIMESTAMP) FROM '{folder}/data/shipments.parquet' FORMAT parquet;
CREATE TABLE items (item BIGINT, name STRING) FROM '{folder}/data/items.csv' FORMAT csv;

SELECT o.id, i.name, o.price, p.amount, s.depot
FROM orders [RANGE 2 HOURS] AS o, payments [RANGE 1 HOUR] AS p, shipments [RANGE 30 MINUTES] AS s, items AS i
WHERE o.id = p.order_id AND o.id = s.order_id AND o.item = i.item AND p.amount < o.price
EMIT ISTREAM INTO '{folder}/results/' FORMAT parquet;
"""


def run_demo(folder: Path, orders: int, seed: int) -> None:
    """The demo from start to end."""
    from watersmeet.cli.demo_data import make_data
    from watersmeet.cli.explain import sampled
    from watersmeet.optimize.explain import explain_plan

    path = folder / "demo.sql"
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        text = _JOB.format(folder=str(folder).replace("\\", "\\\\").replace("'", "''"))
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise DataError(
            f"can't write to the folder '{folder}': {e.strerror}\n  give another with --out FOLDER"
        ) from None
    show.heading("1. The streams: a day of a web shop")
    made = make_data(folder / "data", orders, seed)
    show.facts((name, f"{show.count(rows)} rows") for name, rows in made.items())
    job = Job.load(path)
    show.heading("2. The query: which orders left although they were not paid in full?")
    show.query(text)
    show.heading("3. The plan, by statistics from the first rows")
    show.plain(explain_plan(job.bound, sampled(job)))
    show.heading("4. The run")
    outcome = execute(job, job.query.into, overwrite=True, inputs={}, rows=8)
    show.facts(summary(outcome))
    show.heading("5. The first results")
    show.rows_table(outcome.first, total=outcome.metrics["results"])
    show.heading("6. Next")
    again = f"watersmeet run {path} --overwrite"
    show.facts(
        (
            ("all results", f"{folder / 'results'}/"),
            ("the job file", str(path)),
            ("change it, and run it", again),
            ("by another plan", f"{again} --plan xjoin"),
            ("see what it means", f"watersmeet explain --sample {path}"),
        )
    )
