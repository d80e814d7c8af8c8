"""Three streams of a web shop for the demo: orders, payments and shipments of one busy day, and a table of items.

Most orders are paid within minutes and shipped within the hour; some are paid short, some never. Each stream is a folder of files, one for
each part of the day, as if they had come in over the day. Seeded: the same seed makes the same files.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from watersmeet.data import write_table

ITEMS: Final = (
    ("teapot", 24.0), ("lantern", 39.5), ("notebook", 6.25), ("compass", 18.0), ("hammock", 64.0), ("kettle", 31.0),
    ("blanket", 45.0), ("thermos", 22.5), ("tent", 189.0), ("map case", 14.75), ("rope", 12.0), ("stove", 78.0),
)  # fmt: skip
DEPOTS: Final = ("Basel", "Genoa", "Leeds", "Malmö", "Porto")
_START_US: Final = 1_769_817_600_000_000  # 2026-01-31 00:00 UTC
_DAY_US: Final = 86_400_000_000
PARTS: Final = 5  # of the day


def make_data(folder: Path, orders: int, seed: int) -> dict[str, int]:
    """Write the files; returns the number of rows of each."""
    rng = np.random.default_rng(seed)
    prices = np.array([p for _, p in ITEMS])
    ids = np.arange(1, orders + 1)
    placed = np.sort(rng.integers(0, _DAY_US, orders))
    item = rng.zipf(1.4, orders) % len(ITEMS)
    price = prices[item]

    paid = np.flatnonzero(rng.random(orders) < 0.93)
    paid_at = placed[paid] + rng.gamma(2.0, 90e6, len(paid)).astype(np.int64)
    short = rng.random(len(paid)) < 0.02
    amount = np.round(price[paid] * np.where(short, rng.uniform(0.5, 0.99, len(paid)), 1.0), 2)

    shipped = np.flatnonzero(rng.random(orders) < 0.88)
    shipped_at = placed[shipped] + rng.gamma(3.0, 500e6, len(shipped)).astype(np.int64)
    depot = rng.integers(0, len(DEPOTS), len(shipped))

    tables = {
        "orders": {"id": ids, "item": item, "price": price, "ts": _times(placed)},
        "payments": {"order_id": ids[paid], "amount": amount, "ts": _times(paid_at)},
        "shipments": {"order_id": ids[shipped], "depot": pa.array(np.array(DEPOTS)[depot]), "ts": _times(shipped_at)},
    }
    for name, columns in tables.items():
        _write_parts(pa.table(columns).sort_by("ts"), folder / name)
    items = pa.table({"item": np.arange(len(ITEMS)), "name": [n for n, _ in ITEMS]})
    write_table(items, folder / "items.csv", overwrite=True)
    return {name: len(columns["ts"]) for name, columns in tables.items()} | {"items": items.num_rows}


def _write_parts(table: pa.Table, folder: Path) -> None:
    """A file for each part of the day, all streams cut at the same moments; what comes after midnight is in the last."""
    offsets = table.column("ts").cast(pa.int64()).to_numpy() - _START_US
    inner = np.searchsorted(offsets, _DAY_US // PARTS * np.arange(1, PARTS))
    cuts = [0, *inner.tolist(), table.num_rows]
    shutil.rmtree(folder, ignore_errors=True)
    for i in range(PARTS):
        path = folder / f"part-{i:03d}.parquet"
        path.parent.mkdir(exist_ok=True)
        write_table(table.slice(cuts[i], cuts[i + 1] - cuts[i]), path, overwrite=True)
        os.utime(path, (1e9 + i, 1e9 + i))  # Spark takes the oldest first


def _times(offsets_us: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pa.array(_START_US + offsets_us, pa.timestamp("us", tz="UTC"))
