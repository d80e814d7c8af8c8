"""`watersmeet run`: a job file from its inputs to its output, in this process."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watersmeet.cli import output, show
from watersmeet.cli.job import Job, named_inputs
from watersmeet.model.query import Location

if TYPE_CHECKING:
    import pyarrow as pa

    from watersmeet.data import Writer
    from watersmeet.engine.control import Event


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
    aside: tuple[tuple[str, str], ...] = ()
    into: Location | None = None
    events: tuple[Event, ...] = ()


def run_job(
    path: Path, *, into: str | None, overwrite: bool, inputs: list[str], plan: str, rows: int, as_json: bool = False
) -> None:
    """Run, show the first results, and say what happened."""
    job = Job.load(path)
    given = named_inputs(inputs, job)
    if into == output.STDOUT:
        with output.printed(job.query) as place:
            outcome = execute(job, place, overwrite=overwrite, inputs=given, plan=plan, rows=0)
        show.facts(summary(replace(outcome, files=(Path(f"stdout as {place.format}"),))), to=show.err)
        return
    outcome = execute(
        job, output.output_place(job.query, into), overwrite=overwrite, inputs=given, plan=plan, rows=rows
    )
    if rows and outcome.first.num_rows:
        show.rows_table(outcome.first, total=outcome.metrics["results"])
    show.facts(summary(outcome))
    if as_json:
        output.report(_report(job, outcome))


def _report(job: Job, outcome: Outcome) -> dict[str, Any]:
    """All that is known of the run, for --json."""
    return {
        "job": str(job.path), "engine": "process", "plan": outcome.plan, "metrics": outcome.metrics,
        "events": [json.loads(event.json()) for event in outcome.events],
        "seconds": {"read": outcome.read_seconds, "load": outcome.start_seconds, "run": outcome.run_seconds},
        "written": [str(file) for file in outcome.files], "size_bytes": outcome.size_bytes,
    }  # fmt: skip


def execute(
    job: Job, into: Location | None, *, overwrite: bool, inputs: dict[str, str], plan: str = "auto", rows: int = 10
) -> Outcome:
    """Read the inputs, run the query, keep the first rows, and write all of them if `into` says where."""
    import pyarrow as pa

    from watersmeet import api
    from watersmeet.data import open_output
    from watersmeet.data.paced import read_inputs

    chosen = _plan(plan)
    schema = job.output_schema()
    job.check_apart(into, inputs)
    with ExitStack() as stack:
        # Writers come first: an output that can't be written is known before any work is done.
        writer = stack.enter_context(open_output(into, schema, overwrite=overwrite)) if into else None
        aside = _Aside(job, stack, overwrite)
        began = time.perf_counter()
        with show.busy("reading"):
            tables = read_inputs(job.sources(), inputs, aside.rejects)
        read = time.perf_counter()
        start_engine()
        started = time.perf_counter()
        sink = _Sink(rows, writer)
        bar = stack.enter_context(show.progress())
        task = bar.add_task("joining", total=None)
        result = api.run(
            job.query, tables, plan=chosen, sink=sink,
            progress=lambda done, total: bar.update(task, completed=done, total=total), late=aside.late,
        )  # fmt: skip
        aside.write_bad()
        ran = time.perf_counter()
    files = tuple(writer.files) if writer else ()
    first = pa.Table.from_batches(sink.first, schema=schema)
    size_bytes = writer.size_bytes if writer else 0
    seconds = (started - read, read - began, ran - started)
    metrics = result.metrics | {"bad": sum(r.count for r in aside.rejects.values())}
    return Outcome(
        first, metrics, str(result.plan.bare), *seconds, files, size_bytes, aside.told(), into, result.events
    )


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

    def __init__(self, keep: int, writer: Writer | None) -> None:
        self.left, self.writer = keep, writer
        self.first: list[pa.RecordBatch] = []

    def __call__(self, batch: pa.RecordBatch) -> None:
        if self.left > 0:
            self.first.append(batch.slice(0, self.left))
            self.left -= self.first[-1].num_rows
        if self.writer is not None:
            self.writer.write(batch)


class _Aside:
    """Bad and late rows: counted, and written where the job says."""

    def __init__(self, job: Job, stack: ExitStack, overwrite: bool) -> None:
        from watersmeet.data import Rejects, TableWriter
        from watersmeet.data.bad_rows import BAD_ROW_SCHEMA
        from watersmeet.data.late_rows import LATE_SCHEMA

        self.job = job
        self.rejects = {d.name: Rejects(d.bad_rows) for d in job.sources()}
        self.late_rows: dict[str, int] = {}
        places = {(l.path, l.format): l for l in job.bad_row_places().values()}
        self.bad = {
            key: stack.enter_context(TableWriter(place, BAD_ROW_SCHEMA, overwrite=overwrite))
            for key, place in places.items()
        }
        where = job.query.late
        self.written = stack.enter_context(TableWriter(where, LATE_SCHEMA, overwrite=overwrite)) if where else None

    def late(self, name: str, rows: pa.Table) -> None:
        from watersmeet.data.late_rows import late_table

        self.late_rows[name] = self.late_rows.get(name, 0) + rows.num_rows
        if self.written is not None:
            self.written.write(late_table(name, rows, self.job.timestamp(name)))

    def write_bad(self) -> None:
        for name, place in self.job.bad_row_places().items():
            self.bad[place.path, place.format].write(self.rejects[name].table())

    def told(self) -> tuple[tuple[str, str], ...]:
        return tuple(told_aside(self.job, {n: r.count for n, r in self.rejects.items()}, self.late_rows))


def told_aside(job: Job, bad: Mapping[str, int], late: Mapping[str, int]) -> list[tuple[str, str]]:
    """What the summary says of bad and of late rows, by stream, and what can be done about them."""
    made = []
    names = [d.name for d in job.sources()]
    if counts := ", ".join(f"{show.count(bad[name])} of {name}" for name in names if bad.get(name)):
        places = ", ".join(dict.fromkeys(place.path for place in job.bad_row_places().values()))
        made.append(("bad rows", f"{counts}, left out" + (f"; written to {places}" if places else "")))
    if counts := ", ".join(f"{show.count(late[name])} of {name}" for name in names if late.get(name)):
        where = f"; written to {job.query.late.path}" if job.query.late else "; LATE INTO 'path' would keep them"
        of_these = " and ".join(name for name in names if late.get(name))
        made.append(("late rows", f"{counts}, left out{where}"))
        made.append(("", f"to wait longer for such rows, give {of_these} a larger LATENESS"))
    return made


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
    lost = [f"{show.count(metrics[n])} {n}" for n in ("shed", "evicted", "unprobed") if metrics.get(n)]
    if lost:
        made.append(("given up", ", ".join(lost)))
    made += outcome.aside
    if outcome.files:
        where = outcome.files[0] if len(outcome.files) == 1 else outcome.files[0].parent
        parts = f" in {len(outcome.files)} files" if len(outcome.files) > 1 else ""
        made.append(("written to", f"{where} ({show.size(outcome.size_bytes)}{parts})"))
    elif outcome.into:
        made.append(("written to", f"{outcome.into.path} ({outcome.into.format})"))
    else:
        made.append(("written to", "nowhere: the job names no INTO (or give --into PATH)"))
    return made


def _plan(text: str) -> Any:
    from watersmeet.model.plan import Plan

    return text if text in ("auto", "mjoin", "xjoin") else Plan.parse(text)
