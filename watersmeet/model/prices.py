"""Prices: those of the cost model as `watersmeet calibrate` measured them on this machine.

They lie in a small JSON file in the cache folder (model/cache_folder.py), or where
WATERSMEET_PRICES says. Statistics that state no prices of their own are priced with them; without the file, with the defaults.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from watersmeet.errors import DataError, QueryError
from watersmeet.model.cache_folder import cache_places
from watersmeet.model.statistics import Costs, Statistics

NAMES = ("probe", "match", "insert", "delete")
TOGETHER = 0.6  # of the engine, where it has not been measured


def prices_file() -> Path:
    """Where measured prices are kept."""
    named = os.environ.get("WATERSMEET_PRICES")
    if named:
        return Path(named)
    return cache_places()[0] / "prices.json"


def save_prices(costs: Costs) -> Path:
    """Keep prices for this machine; the file appears whole."""
    path = prices_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(json.dumps({n: getattr(costs, n) for n in (*NAMES, "source", "together")}, indent=2) + "\n")
        part.replace(path)
    except OSError as e:
        raise DataError(f"can't write prices to {path}: {e.strerror}\n  WATERSMEET_PRICES names another file") from None
    return path


def load_prices() -> Costs | None:
    """The prices of this machine, None if they were never measured."""
    path = prices_file()
    try:
        read = json.loads(path.read_text())
        probe, match, insert, delete = (float(read[n]) for n in NAMES)
        return Costs(probe, match, insert, delete, str(read["source"]), float(read.get("together", TOGETHER)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, QueryError) as e:
        raise DataError(
            f"the prices in {path} can't be read: {e}\n  measure them again: watersmeet calibrate"
        ) from None


def priced(stats: Statistics | None) -> Statistics | None:
    """Statistics with this machine's prices where they state none.

    >>> priced(Statistics(costs=Costs(probe=1e-6))).costs.source
    'given'
    """
    if stats is None:
        return None
    if stats.costs == Costs():
        return replace(stats, costs=load_prices() or replace(stats.costs, together=TOGETHER))
    if stats.costs.source == Costs().source:
        return replace(stats, costs=replace(stats.costs, source="given"))
    return stats
