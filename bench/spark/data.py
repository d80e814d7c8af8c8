"""The common workload as files: for each batch two files a stream, so that both cores read; in order of time."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.engine.workload import Workload

FILES = 2  # of each stream in a batch


def write(workload: Workload, folder: Path, batches: int) -> None:
    """Cut all streams at the same moments."""
    tables = workload.tables()
    end = max(int(ts[-1]) for ts, _ in workload.streams.values()) + 1
    for name, table in tables.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        cuts = np.searchsorted(workload.streams[name][0], np.linspace(0, end, batches * FILES + 1))
        for i, (low, high) in enumerate(pairwise(cuts)):
            path = folder / name / f"{i:04d}.parquet"
            pq.write_table(table.slice(int(low), int(high - low)), path)
            os.utime(path, (1e9 + i, 1e9 + i))
