"""`watersmeet learn`: statistics from the data that a job file names, saved as a small file."""

from __future__ import annotations

from pathlib import Path

from watersmeet.cli import show
from watersmeet.cli.job import Job
from watersmeet.errors import DataError


def learn_job(path: Path, out: Path, master: str) -> None:
    """Read the history of each stream with Spark, measure, and save."""
    job = Job.load(path)
    try:
        from watersmeet.spark.history import history
        from watersmeet.spark.learn import learn
        from watersmeet.spark.session import session
    except ImportError as e:
        raise DataError(f"{e.name} is not installed\n  pip install 'watersmeet[spark]'") from None
    with show.busy("starting Spark"):
        spark = session(
            master, f"watersmeet learn {path.name}", **{"spark.log.level": "OFF", "spark.ui.enabled": "false"}
        )
    try:
        with show.progress() as bar:
            task = bar.add_task("learning", total=None)
            made = learn(
                job.query,
                history(spark, job.sources()),
                lambda done, total: bar.update(task, completed=done, total=total),
            )
    finally:
        spark.stop()
    try:
        made.save(out)
    except OSError as e:
        raise DataError(f"can't write {out}: {e.strerror}") from None
    show.facts([*((f"rate of {a}", f"{r:.6g} rows/s") for a, r in made.rate.items()), ("saved to", str(out))])
