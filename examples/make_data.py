"""Makes the data that the job files in this folder read: `python examples/make_data.py [FOLDER]` (default: examples/data).

Small and seeded: every run makes the same files.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from watersmeet.data import as_table, write_table

START = datetime(2026, 1, 31, 8, tzinfo=UTC)
Rows = list[dict[str, Any]]


def at(seconds: float) -> datetime:
    return START + timedelta(microseconds=round(seconds * 1e6))


def shop(rng: random.Random) -> dict[str, Rows]:
    """orders.sql: orders, their payments and shipments over two hours, and the items."""
    names = ["teapot", "lantern", "notebook", "compass", "hammock", "kettle", "blanket", "thermos"]
    prices = [24.0, 39.5, 6.25, 18.0, 64.0, 31.0, 45.0, 22.5]
    orders, payments, shipments = [], [], []
    for number in range(1, 4001):
        placed, item = rng.uniform(0, 7200), rng.randrange(len(names))
        orders.append({"id": number, "item": item, "price": prices[item], "ts": at(placed)})
        if rng.random() < 0.95:
            part = rng.uniform(0.5, 0.95) if rng.random() < 0.05 else 1.0
            paid = placed + rng.expovariate(1 / 120)
            payments.append({"order_id": number, "amount": round(prices[item] * part, 2), "ts": at(paid)})
        if rng.random() < 0.9:
            depot = rng.choice(["Basel", "Genoa", "Leeds"])
            shipments.append({"order_id": number, "depot": depot, "ts": at(placed + rng.uniform(60, 2400))})
    items = [{"item": i, "name": name} for i, name in enumerate(names)]
    return {"orders.parquet": orders, "payments.parquet": payments, "shipments.csv": shipments, "items.csv": items}


def plant(rng: random.Random) -> dict[str, Rows]:
    """sensors.sql: readings of twenty sensors, alarms of their machines, and where each sensor hangs."""
    sensors = [
        {"sensor": s, "machine": f"press-{s % 5 + 1}", "site": "north" if s < 10 else "south"} for s in range(20)
    ]
    readings, alarms = [], []
    level = [rng.uniform(40, 60) for _ in range(20)]
    for tick in range(6000):
        sensor = rng.randrange(20)
        level[sensor] += rng.gauss(0, 2) + (50 - level[sensor]) * 0.02
        celsius = None if rng.random() < 0.01 else round(level[sensor], 2)
        readings.append({"sensor": sensor, "celsius": celsius, "ts": at(tick * 0.5 + rng.uniform(0, 0.4))})
    for _ in range(60):
        alarms.append({"machine": f"press-{rng.randint(1, 5)}", "code": rng.choice(["E17", "E20", "W3"]),
                       "ts": at(rng.uniform(60, 3000))})  # fmt: skip
    return {"readings.jsonl": readings, "alarms.jsonl": alarms, "sensors.csv": sensors}


def cards(rng: random.Random) -> dict[str, Rows]:
    """fraud.sql: card payments; a few cards pay about the same sum in two countries within minutes."""
    rows: Rows = []
    countries = ["CH", "DE", "FR", "IT", "PT", "SE"]
    home = {card: rng.choice(countries) for card in range(800)}
    for _ in range(8000):
        card = rng.randrange(800)
        rows.append({"card": card, "country": home[card], "amount": round(rng.lognormvariate(3.2, 0.8), 2),
                     "ts": at(rng.uniform(0, 14400))})  # fmt: skip
    for _ in range(40):
        seen = rng.choice(rows)
        abroad = rng.choice([c for c in countries if c != seen["country"]])
        later = seen["ts"] + timedelta(seconds=round(rng.uniform(20, 580), 3))
        amount = round(seen["amount"] * rng.uniform(0.96, 1.04), 2)
        rows.append({"card": seen["card"], "country": abroad, "amount": amount, "ts": later})
    return {"card_payments.parquet": rows}


def advertising(rng: random.Random) -> dict[str, Rows]:
    """clicks.sql: an advertisement is shown, clicked, and may lead to a purchase."""
    views, clicks, purchases = [], [], []
    for number in range(20_000):
        seen, user = rng.uniform(0, 3600), rng.randrange(3000)
        views.append({"view": number, "campaign": rng.randrange(40), "ts": at(seen)})
        if rng.random() < 0.15:
            clicked = seen + rng.expovariate(1 / 20)
            clicks.append({"view": number, "user": user, "ts": at(clicked)})
            if rng.random() < 0.2:
                purchases.append(
                    {"user": user, "amount": round(rng.uniform(5, 200), 2), "ts": at(clicked + rng.uniform(10, 900))}
                )
    return {"views.parquet": views, "clicks.parquet": clicks, "purchases.parquet": purchases}


def make(folder: Path) -> list[Path]:
    """Write every file; returns their paths."""
    rng = random.Random(2026)
    made: list[Path] = []
    for files in (shop(rng), plant(rng), cards(rng), advertising(rng)):
        for name, rows in files.items():
            ordered = sorted(rows, key=lambda r: r["ts"]) if "ts" in rows[0] else rows
            made += write_table(as_table(ordered, name), folder / name, overwrite=True)
    return made


def main(arguments: Iterable[str]) -> None:
    folder = Path(next(iter(arguments), Path(__file__).parent / "data"))
    for path in make(folder):
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
