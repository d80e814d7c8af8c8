"""Metrics of cells on their way to the driver: each cell adds one row of them to its output, which Spark collects as it passes.

They come with the progress of the query, `query.lastProgress.observedMetrics["watersmeet"]`, as one JSON text for each cell;
`metrics_of(query.lastProgress)` adds them up, and `wm.metrics(query)` is for users. They are taken from the blocks of results
(`blocks.py`), before these are unfolded: Spark does this row by row.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from watersmeet.spark.spec import METRICS

NAME = "watersmeet"
LARGEST = ("batch_us", "watermark_us")  # the other metrics are summed
APART = ("cell", "totals", "events")  # what is told of each cell by itself


def observed(frame: DataFrame) -> DataFrame:
    """The same rows; the metrics among them are collected for the listener."""
    return frame.observe(NAME, F.collect_list(METRICS).alias("cells"))


def metrics_by_cell(progress: Any) -> list[dict[str, Any]]:
    """What each cell that had work in a batch tells of it, by cell. `totals`: what its engine has counted since it was last rebuilt from
    the state store; `events`: what was changed in it during the batch, and why."""
    row = (progress.observedMetrics if progress is not None else {}).get(NAME)
    return sorted(map(json.loads, row.cells if row is not None else []), key=lambda told: int(told["cell"]))


def metrics_of(progress: Any) -> dict[str, int]:
    """The metrics of a batch from a query's progress, of all cells together; empty if the batch had none."""
    made: dict[str, int] = {}
    for cell in metrics_by_cell(progress):
        for name, value in cell.items():
            if name in APART:
                continue
            made[name] = max(made.get(name, value), value) if name in LARGEST else made.get(name, 0) + value
    return made


def events_of(progress: Any) -> list[dict[str, Any]]:
    """What was changed in a batch while it ran, and why: the events of all cells, each with the number of its cell."""
    return [{"cell": told["cell"], **event} for told in metrics_by_cell(progress) for event in told["events"]]


def metrics(query: StreamingQuery) -> dict[str, Any]:
    """What the last batch with rows did, of a query that writes the results of `wm.stream`: its number (`batch`), what all cells measured
    together, and `events`: what was changed in it, and why. Empty before the first such batch."""
    for progress in reversed(query.recentProgress):
        if found := metrics_of(progress):
            return {"batch": progress["batchId"], **found, "events": events_of(progress)}
    return {}
