"""A workload as files. Parquet: for each batch two files a stream, so that both cores read; in order of time. CSV, for Flink: one file a
stream, the same rows."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench.engine.workload import Workload

FILES = 2  # of each stream in a batch
SAMPLE = 1_000_000  # rows of a stream in which distinct keys are counted


def write(workload: Workload, folder: Path, batches: int) -> None:
    """Cut all streams at the same moments."""
    tables = workload.tables()
    begin = min(int(ts[0]) for ts, _ in workload.streams.values())
    end = max(int(ts[-1]) for ts, _ in workload.streams.values()) + 1
    for name, table in tables.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        cuts = np.searchsorted(workload.streams[name][0], np.linspace(begin, end, batches * FILES + 1))
        for i, (low, high) in enumerate(pairwise(cuts)):
            path = folder / name / f"{i:04d}.parquet"
            pq.write_table(table.slice(int(low), int(high - low)), path)
            os.utime(path, (1e9 + i, 1e9 + i))


def write_csv(workload: Workload, folder: Path) -> None:
    """The same rows without a header, times to the millisecond (the workload has no finer ones)."""
    for name, table in workload.tables().items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        at = table.column_names.index("ts")
        texts = table.column("ts").cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("ms")).cast(pa.string())
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
        pyarrow.csv.write_csv(table.set_column(at, "ts", texts), folder / name / "rows.csv", options)


def write_job(workload: Workload, folder: Path, batches: int, cells: int, limit_seconds: float | None) -> Path:
    """What a contestant needs to know, as JSON."""
    seconds = max(int(ts[-1]) for ts, _ in workload.streams.values()) / 1e6
    job = {
        "folder": str(folder), "text": workload.text, "columns": {n: t.column_names for n, t in workload.tables().items()},
        "window_us": workload.window_us, "cells": cells, "rows": workload.rows, "batches": batches,
        "limit_seconds": limit_seconds, "rate": {n: len(ts) / seconds for n, (ts, _) in workload.streams.items()},
        "distinct": [(n, c, len(np.unique(v[:SAMPLE]))) for n, (_, columns) in workload.streams.items() for c, v in columns.items()],
    }  # fmt: skip
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return path
