"""`watersmeet run --master ...`: a job file on Spark."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from watersmeet.cli import output, show
from watersmeet.cli.job import Job, named_inputs
from watersmeet.cli.run import told_aside
from watersmeet.errors import DataError
from watersmeet.model.plan import Plan
from watersmeet.model.statistics import Statistics


def run_on_spark(
    path: Path, *, master: str, into: str | None, inputs: list[str], plan: str, checkpoint: str | None, trigger: str | None,
    cells: int | None, stats: Path | None, conf: Sequence[str] = (), overwrite: bool = False,
    rows: int = 10, as_json: bool = False,
) -> None:  # fmt: skip
    """Run until the end of bounded inputs, or until Ctrl-C; each batch is told of as it is done."""
    job = Job.load(path)
    if overwrite:
        raise DataError(
            "--overwrite: on Spark a job goes on from its checkpoint\n  to start again remove its output and its checkpoint"
        )
    if into == output.STDOUT:
        raise DataError("--into -: Spark writes from many processes, none of which has this stdout\n  name a folder")
    where = output.output_place(job.query, into)
    if where is None:
        raise DataError(
            "the job names no INTO: where should Spark write the results?\n  add INTO 'folder' FORMAT parquet, or --into"
        )
    try:
        from watersmeet.spark.run import SparkJob, open_session
    except ImportError as e:
        raise DataError(f"{e.name} is not installed\n  pip install 'watersmeet[spark]'") from None
    work = SparkJob(
        dataclasses.replace(job.query, into=None), where, checkpoint or f"{where.path.rstrip('/')}.checkpoint", trigger,
        named_inputs(inputs, job), plan if plan in ("auto", "mjoin", "xjoin") else Plan.parse(plan),
        Statistics.load(stats) if stats else None, cells,
    )  # fmt: skip
    job.check_apart(where, work.inputs)
    work.check()
    totals = {"rows": 0, "results": 0}
    with ExitStack() as stack:
        with show.busy("starting Spark"):
            began = time.perf_counter()
            spark = stack.enter_context(open_session(master, f"watersmeet {path.name}", settings(conf)))
        started = time.perf_counter()
        batches: list[Mapping[str, Any]] = []

        def tell(batch: Mapping[str, Any]) -> None:
            if as_json:
                batches.append(batch)
            _tell(batch, totals)

        try:
            work.run(spark, tell)
        except KeyboardInterrupt:
            show.facts((("stopped", f"nothing is lost: the same command goes on from {work.checkpoint}"),))
            if not work.bounded:  # there is no other way to end it
                return
            raise
    ran = time.perf_counter()
    if rows and totals["results"] and (first := output.first_rows(where, rows)) is not None:
        show.rows_table(first, total=totals["results"])
    made = [("rows in", show.count(totals["rows"])), ("results", show.count(totals["results"]))]
    bad, late = _by_stream(totals, "bad."), _by_stream(totals, "late.")
    made += told_aside(job, work.bad_in_tables | bad, late)
    show.facts([*made, ("written to", where.path), ("checkpoint", work.checkpoint)])
    if as_json:
        output.report({
            "job": str(path), "engine": master, "plan": _chosen(job, work.plan, work.stats), "metrics": totals,
            "events": [{"batch": b["batch"], **event} for b in batches for event in b["events"]],
            "seconds": {"start": started - began, "run": ran - started},
            "batches": [{n: v for n, v in b.items() if n != "events"} for b in batches],
            "written": [where.path], "checkpoint": work.checkpoint,
        })  # fmt: skip


def _chosen(job: Job, plan: str | Plan, stats: Statistics | None) -> str:
    """The plan that the job began with. (Cells may have changed theirs: the events say so.)"""
    from watersmeet.api import choose

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they have been said
        return str(choose(job.bound, plan, stats, job.query.budget).bare)


def _by_stream(totals: Mapping[str, int], what: str) -> dict[str, int]:
    return {name.removeprefix(what): count for name, count in totals.items() if name.startswith(what)}


def settings(conf: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` options as settings of the session, besides ours."""
    made = {"spark.log.level": "OFF", "spark.ui.enabled": "false"}
    for pair in conf:
        name, equals, value = pair.partition("=")
        if not equals or not name.startswith("spark."):
            raise DataError(f"--conf {pair}: expected NAME=VALUE, for example --conf spark.driver.memory=4g")
        made[name] = value
    return made


def _tell(batch: Mapping[str, Any], totals: dict[str, int]) -> None:
    for name, value in batch.items():
        if name in ("rows", "results") or name.startswith(("bad.", "late.")):
            totals[name] = totals.get(name, 0) + int(value)
    speed = batch["rows"] / max(batch["seconds"], 1e-9)
    late = "".join(f", {show.count(batch[n])} {n}" for n in ("bad", "late") if batch.get(n))
    show.err.print(
        f"batch {batch['batch']}: {show.count(batch['rows'])} rows in {batch['seconds']:.2f} s ({show.rate(speed)}), "
        f"{show.count(batch.get('results', 0))} results{late}; {show.count(batch.get('window_rows', 0))} rows in windows, "
        f"{show.count(batch.get('waiting_rows', 0))} waiting",
        soft_wrap=True,
    )
