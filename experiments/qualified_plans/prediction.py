"""How predictions compare to measurements: errors, and whether the ranking agrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.experiment import Tables
from experiments.qualified_plans.predicted import COUNTS

PRICED = dict(zip(COUNTS, ("probe", "match", "insert", "delete"), strict=True))


def prices(tables: Tables) -> dict[str, float]:
    """The median of each price over the calibrations."""
    return {name: float(np.median([r[name] for r in tables["prices"]])) for name in PRICED.values()}


def cpu_predicted(tables: Tables) -> list[float]:
    """CPU of each plan at the calibrated prices, from the model's counts."""
    each = prices(tables)
    return [sum(r[f"{c}_predicted"] * each[p] for c, p in PRICED.items()) for r in tables["predicted"]]


def spearman(x: list[float], y: list[float]) -> float:
    """Rank correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


def within_queries(tables: Tables, x: list[float], y: list[float], apart: float = 1.25) -> tuple[int, int]:
    """Of the pairs of plans of one query whose measured CPU differs by `apart` or more: how many there are, and in how many
    the prediction ranks them alike."""
    groups: dict[tuple[Any, Any], list[int]] = {}
    for i, r in enumerate(tables["predicted"]):
        groups.setdefault((r["seed"], r["query"]), []).append(i)
    pairs = alike = 0
    for group in groups.values():
        for i in group:
            for j in group:
                if y[i] >= apart * y[j]:
                    pairs += 1
                    alike += x[i] > x[j]
    return pairs, alike


def errors(predicted: list[float], measured: list[float]) -> tuple[float, float]:
    """Median and 90 % quantile of |predicted / measured − 1|."""
    off = [abs(p / m - 1) for p, m in zip(predicted, measured, strict=True) if m > 0]
    return float(np.median(off)), float(np.quantile(off, 0.9))
