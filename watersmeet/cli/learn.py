"""`watersmeet learn`: statistics from the data that a job file names, saved as a small file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from watersmeet.cli import show
from watersmeet.cli.job import Job
from watersmeet.cli.run_spark import settings
from watersmeet.errors import DataError


def learn_job(path: Path, out: Path, master: str, conf: Sequence[str] = ()) -> None:
    """Read the history of each stream with Spark, measure, and save."""
    job = Job.load(path)
    if not out.absolute().parent.is_dir():
        raise DataError(f"can't write {out}: there is no folder {out.parent}")
    try:
        from watersmeet.spark.history import check_history, history
        from watersmeet.spark.interrupt import deferred_interrupt
        from watersmeet.spark.learn import learn
        from watersmeet.spark.run import open_session
    except ImportError as e:
        raise DataError(f"{e.name} is not installed\n  pip install 'watersmeet[spark]'") from None
    check_history(job.sources())
    with ExitStack() as stack:
        with show.busy("starting Spark"):
            spark = stack.enter_context(open_session(master, f"watersmeet learn {path.name}", settings(conf)))
        bar = stack.enter_context(show.progress())
        task = bar.add_task("learning", total=None)
        interrupt = stack.enter_context(deferred_interrupt())

        def progress(done: int, total: int) -> None:
            interrupt.check()
            bar.update(task, completed=done, total=total)

        made = learn(job.query, history(spark, job.sources()), progress)
    try:
        made.save(out)
    except OSError as e:
        raise DataError(f"can't write {out}: {e.strerror}") from None
    show.facts([*((f"rate of {a}", f"{r:.6g} rows/s") for a, r in made.rate.items()), ("saved to", str(out))])
