"""Means over the runs, as figures and claims need them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from experiments.experiment import Tables

Means: TypeAlias = dict[tuple[str, str, int], tuple[float, float]]


def means(tables: Tables) -> Means:
    """Mean and deviation of the results, by streams, algorithm and cache size."""
    found: dict[tuple[str, str, int], list[float]] = {}
    for r in tables["runs"]:
        found.setdefault((r["streams"], r["algorithm"], r["size"]), []).append(r["results"])
    return {key: (float(np.mean(v)), float(np.std(v))) for key, v in found.items()}


def hits(tables: Tables, algorithm: str) -> dict[int, int]:
    """REAL: hits by cache size."""
    return {r["size"]: r["hits"] for r in tables["real"] if r["algorithm"] == algorithm}
