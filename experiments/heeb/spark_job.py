"""Runs as a Spark batch job: settings are rows, each partition simulates its own. `on = "process"` runs them here
instead."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.experiment import Config, Row, Setting
from experiments.qualified_plans.settings import session

Measured = Iterator[tuple[Setting, list[Row]]]


def spread(place: str) -> Callable[[Config, list[Setting]], Measured]:
    """A part's `measure` from a function `module:name` that takes the config and one setting."""

    def measure(config: Config, missing: list[Setting]) -> Measured:
        if not missing:
            return
        bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=Console(file=sys.stderr), disable=not sys.stderr.isatty(),
        )  # fmt: skip
        with bar:
            task = bar.add_task(place.partition(":")[2], total=len(missing))
            for done in (_here if config["on"] == "process" else _on_spark)(place, config, missing):
                bar.advance(task)
                yield done

    return measure


def one(place: str) -> Callable[[Config, Setting], list[Row]]:
    module, _, name = place.partition(":")
    found: Callable[[Config, Setting], list[Row]] = getattr(import_module(module), name)
    return found


def _here(place: str, config: Config, missing: list[Setting]) -> Measured:
    run = one(place)
    for setting in missing:
        yield setting, run(config, setting)


def _on_spark(place: str, config: Config, missing: list[Setting]) -> Measured:
    """A batch job for each chunk of settings, so that a run that is stopped loses one chunk at most."""
    import pandas as pd

    root, given = str(Path(__file__).parents[2]), dict(config)

    def partition(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import os
        import sys

        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # a worker a core is enough
        sys.path.insert(0, root)  # workers know the package, but not this checkout
        from experiments.heeb.spark_job import one

        run: Any = one(place)
        for frame in frames:
            found = [json.dumps([dict(r) for r in run(given, json.loads(text))]) for text in frame["setting"]]
            yield pd.DataFrame({"setting": frame["setting"], "found": found})

    with session() as spark:
        for at in range(0, len(missing), config["chunk"]):
            chunk = [json.dumps(dict(s)) for s in missing[at : at + config["chunk"]]]
            parts = spark.createDataFrame(pd.DataFrame({"setting": chunk})).repartition(len(chunk) // 4 + 1)
            for row in parts.mapInPandas(partition, "setting string, found string").collect():
                yield json.loads(row["setting"]), json.loads(row["found"])
