"""`watersmeet explain`: what each job file means and how it would be run."""

from __future__ import annotations

from pathlib import Path

from watersmeet.cli import show
from watersmeet.cli.job import Job
from watersmeet.errors import WatersmeetError


def explain_jobs(paths: list[Path]) -> None:
    """Explain each file; a file that is wrong does not keep the others from being explained."""
    from watersmeet import api

    failed = None
    for path in paths:
        try:
            job = Job.load(path)
            told = api.explain(job.text)
        except WatersmeetError as e:
            if len(paths) == 1:
                raise
            show.complain(str(e))
            failed = e
            continue
        show.heading(str(path))
        show.plain(told)
    if failed is not None:
        raise WatersmeetError("not all job files could be explained; see above")
