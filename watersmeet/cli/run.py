"""`watersmeet run`: a job file from its inputs to its output, in this process."""

from __future__ import annotations

import datetime as dt
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watersmeet.cli import show
from watersmeet.cli.job import Job, named_inputs
from watersmeet.errors import DataError
from watersmeet.model.query import Declaration, Location

if TYPE_CHECKING:
    import pyarrow as pa

    from watersmeet.data import TableWriter


@dataclass(frozen=True)
class Outcome:
    """What a job did: the first rows, what was measured, and where the rest went."""

    first: pa.Table
    metrics: dict[str, Any]
    plan: str
    start_seconds: float
    read_seconds: float
    run_seconds: float
    files: tuple[Path, ...]
    size_bytes: int


def run_job(path: Path, *, into: str | None, overwrite: bool, inputs: list[str], plan: str, rows: int) -> None:
    """Run, show the first results, and say what happened."""
    job = Job.load(path)
    location = _location(job, into)
    outcome = execute(job, location, overwrite=overwrite, inputs=named_inputs(inputs, job), plan=plan, rows=rows)
    if rows and outcome.first.num_rows:
        show.rows_table(outcome.first, total=outcome.metrics["results"])
    show.facts(summary(outcome))


def execute(
    job: Job, into: Location | None, *, overwrite: bool, inputs: dict[str, str], plan: str = "auto", rows: int = 10
) -> Outcome:
    """Read the inputs, run the query, keep the first rows, and write all of them if `into` says where."""
    import pyarrow as pa

    from watersmeet import api
    from watersmeet.data import TableWriter

    chosen = _plan(plan)
    schema = job.output_schema()
    with ExitStack() as stack:
        # The writer comes first: an output that can't be written is known before any work is done.
        writer = stack.enter_context(TableWriter(into, schema, overwrite=overwrite)) if into else None
        began = time.perf_counter()
        with show.busy("reading"):
            tables = {d.name: _read(d, inputs.get(d.name)) for d in job.sources()}
        read = time.perf_counter()
        start_engine()
        started = time.perf_counter()
        sink = _Sink(rows, writer)
        bar = stack.enter_context(show.progress())
        task = bar.add_task("joining", total=None)
        result = api.run(
            job.query, tables, plan=chosen, sink=sink,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
        ran = time.perf_counter()
    files = tuple(writer.files) if writer else ()
    first = pa.Table.from_batches(sink.first, schema=schema)
    size_bytes = writer.size_bytes if writer else 0
    seconds = (started - read, read - began, ran - started)
    return Outcome(first, result.metrics, str(result.plan.bare), *seconds, files, size_bytes)


def start_engine() -> None:
    """Load the compiled kernel (the first time on a machine: compile it) by a join of nothing, so that it is not timed."""
    from watersmeet import api

    with show.busy("loading the engine (the first time on this machine it is compiled, which takes a while)"):
        api.run(
            "SELECT a.ts FROM a [ROWS 1], a [ROWS 1] AS b WHERE a.ts = b.ts",
            {"a": {"ts": [dt.datetime.fromtimestamp(0, dt.UTC)]}},
        )


class _Sink:
    """Keeps the first rows and passes all of them on."""

    def __init__(self, keep: int, writer: TableWriter | None) -> None:
        self.left, self.writer = keep, writer
        self.first: list[pa.RecordBatch] = []

    def __call__(self, batch: pa.RecordBatch) -> None:
        if self.left > 0:
            self.first.append(batch.slice(0, self.left))
            self.left -= self.first[-1].num_rows
        if self.writer is not None:
            self.writer.write(batch)


def summary(outcome: Outcome) -> list[tuple[str, str]]:
    """What happened, as names and values."""
    metrics = outcome.metrics
    tuples = metrics["tuples_in"]
    made = [
        ("rows in", f"{show.count(tuples)}, read in {outcome.read_seconds:.2f} s"),
        ("results", show.count(metrics["results"])),
        ("time", f"{outcome.run_seconds:.2f} s after {outcome.start_seconds:.2f} s to load the engine"),
        ("throughput", show.rate(tuples / max(outcome.run_seconds, 1e-9))),
        ("state", f"{show.count(metrics['peak_state_tuples'])} tuples at its peak"),
        ("plan", outcome.plan),
    ]
    lost = [f"{show.count(metrics[n])} {n}" for n in ("shed", "evicted", "unprobed", "late") if metrics.get(n)]
    if lost:
        made.append(("given up", ", ".join(lost)))
    if outcome.files:
        where = outcome.files[0] if len(outcome.files) == 1 else outcome.files[0].parent
        parts = f" in {len(outcome.files)} files" if len(outcome.files) > 1 else ""
        made.append(("written to", f"{where} ({show.size(outcome.size_bytes)}{parts})"))
    else:
        made.append(("written to", "nowhere: the job names no INTO (or give --into PATH)"))
    return made


def _location(job: Job, into: str | None) -> Location | None:
    return Location(into, "") if into is not None else job.query.into


def _plan(text: str) -> Any:
    from watersmeet.model.plan import Plan

    return text if text in ("auto", "mjoin", "xjoin") else Plan.parse(text)


def _read(declaration: Declaration, path: str | None) -> pa.Table:
    from watersmeet.data import as_table, read_declared

    if path is not None:
        timestamp = None if declaration.static else declaration.timestamp
        return as_table(path, declaration.name, declaration.schema, timestamp=timestamp)
    if declaration.location is None:
        raise DataError(
            f"{declaration.name}: its declaration does not say where its rows are\n"
            f"  add FROM 'path' FORMAT parquet to it, or give --input {declaration.name}=PATH"
        )
    return read_declared(declaration)
