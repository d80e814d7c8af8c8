"""`watersmeet explain`: what each job file means and how it would be run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watersmeet.cli import show
from watersmeet.cli.job import Job
from watersmeet.errors import WatersmeetError

if TYPE_CHECKING:
    from watersmeet.model.statistics import Statistics


def explain_jobs(
    paths: list[Path],
    stats: Path | None = None,
    sample: bool = False,
    steps: bool = False,
    plot: Path | None = None,
    asked: Mapping[str, Any] | None = None,
) -> None:
    """Explain each file; a file that is wrong does not keep the others from being explained. asked: what else is asked of `optimize`."""
    if plot is not None and len(paths) > 1:
        raise WatersmeetError("--plot draws one job\n  give one job file")
    from watersmeet import api
    from watersmeet.model.statistics import Statistics

    known = Statistics.load(stats) if stats is not None else None
    failed = None
    for path in paths:
        try:
            job = Job.load(path)
            told = api.explain(
                job.text, known or (sampled(job) if sample else None), steps=steps, plot=plot, **(asked or {})
            )
        except WatersmeetError as e:
            if len(paths) == 1:
                raise
            show.complain(str(e))
            failed = e
            continue
        show.heading(str(path))
        show.plain(told)
        if plot is not None:
            show.plain(f"drawn in {plot}")
    if failed is not None:
        raise WatersmeetError("not all job files could be explained; see above")


def sampled(job: Job) -> Statistics:
    """Statistics from the first rows of the job's data."""
    from watersmeet.data import read_declared
    from watersmeet.engine.estimate import observe

    tables = {d.name: read_declared(d) for d in job.sources()}
    return observe(job.bound, {s.alias: tables[s.stream] for s in job.bound.sources}, whole=True)
