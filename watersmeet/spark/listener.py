"""Metrics of cells on their way to the driver: each cell adds one row of them to its output, which Spark adds up as it passes.

They come with the progress of the query: `query.lastProgress.observedMetrics["watersmeet"]`.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from watersmeet.spark.spec import METRICS

NAME = "watersmeet"
SUMMED = (
    "rows_in", "results", "late", "rebuilt", "waiting_rows", "waiting_bytes", "window_rows", "memory_bytes", "stored_rows",
    "stored_bytes", "chunks",
)  # fmt: skip
LARGEST = ("batch_us", "watermark_us")


def observed(frame: DataFrame) -> DataFrame:
    """The same rows; the metrics among them are added up for the listener."""

    def value(name: str) -> Any:
        return F.get_json_object(F.col(METRICS), f"$.{name}").cast("bigint")

    made = [F.sum(value(n)).alias(n) for n in SUMMED] + [F.max(value(n)).alias(n) for n in LARGEST]
    return frame.observe(NAME, *made)


def metrics_of(progress: Any) -> dict[str, int]:
    """The metrics of a batch from a query's progress; empty if the batch had none."""
    row = (progress.observedMetrics if progress is not None else {}).get(NAME)
    return {} if row is None else {k: v for k, v in row.asDict().items() if v is not None}
