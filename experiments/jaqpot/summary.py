"""Means over settings and runs, as figures and claims need them."""

from __future__ import annotations

from typing import Any

import numpy as np


def mean_by(rows: list[dict[str, Any]], keys: tuple[str, ...], value: str) -> dict[tuple[Any, ...], float]:
    """The mean of a column by others, sorted by these."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for r in rows:
        found.setdefault(tuple(r[k] for k in keys), []).append(float(r[value]))
    return {k: float(np.mean(v)) for k, v in sorted(found.items())}
