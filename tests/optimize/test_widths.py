"""Bytes that the model plans for, against bytes that the engine holds: windows, inner states and payload."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log

import numpy as np
import pyarrow as pa
import pytest

from watersmeet.engine.executor import Engine
from watersmeet.engine.rows.batches import Batches
from watersmeet.lang import parse
from watersmeet.model.budget import Budget
from watersmeet.model.plan import Leaf, Plan
from watersmeet.model.statistics import Statistics
from watersmeet.optimize.cost import price
from watersmeet.optimize.from_query import state_problem

FACTOR = 1.5  # as docs/internals/cost-model.md says
ROWS = 24_000
BATCHES = 24
US = 1_000_000

CHAIN = "A.x = B.x AND B.y = C.y"
FOUR = "A.x = B.x AND B.y = C.y AND C.z = D.z"
STAR = "A.x = B.x AND A.y = C.y AND A.z = D.z"
ONE_CLASS = "A.x = B.x AND B.x = C.x"
CASES = [
    ("mjoin of three", "(A B C)", CHAIN, "RANGE", 2000, ("x",)),
    ("tree of three", "((A B) C)", CHAIN, "RANGE", 2000, ("x",)),
    ("tree of three, other way round", "(A (B C))", CHAIN, "RANGE", 3000, ("x", "text")),
    ("three of one class", "((A B) C)", ONE_CLASS, "RANGE", 1500, ("x",)),
    ("no payload", "(A B C)", CHAIN, "RANGE", 2900, ()),
    ("wide payload", "(A B C)", CHAIN, "RANGE", 1100, ("x", "y", "z", "flag", "text", "long")),
    ("mjoin of four", "(A B C D)", FOUR, "RANGE", 1200, ("y", "ts")),
    ("bushy", "((A B) (C D))", FOUR, "RANGE", 1700, ("y", "ts")),
    ("deep", "(((A B) C) D)", FOUR, "RANGE", 2500, ("y",)),
    ("mixed", "((A B) C D)", FOUR, "RANGE", 900, ("y", "text")),
    ("three in a state", "((A B C) D)", FOUR, "RANGE", 1400, ("x",)),
    ("star", "((A B) C D)", STAR, "RANGE", 1300, ("x",)),
    ("rows", "((A B) C)", CHAIN, "ROWS", 2000, ("x", "text")),
    ("partitions", "(A B C)", CHAIN, "PARTITION", 5, ("x",)),
    ("partitions by text", "(A B C)", CHAIN, "PARTITION BY TEXT", 5, ("x",)),
    ("comparison", "(A B C)", "A.x = B.x AND B.y = C.y AND A.z < C.z", "RANGE", 600, ("x",)),
    ("joined by text", "((A B) C)", "A.long = B.long AND B.y = C.y", "RANGE", 1500, ("x",)),
]


def streams(names: str, seed: int) -> dict[str, pa.Table]:
    """A row of each stream in a millisecond on average; a probe meets about as many tuples as its window has thousands."""
    rng = np.random.default_rng(seed)
    made = {}
    for name in names:
        keys = {k: rng.integers(0, 1000, ROWS) for k in "xyz"}
        words = {"text": pa.array([f"{v:020d}" for v in keys["x"]]), "long": pa.array([f"{v:020d}" for v in keys["y"]])}
        flag, times = pa.array(keys["z"] > 500), np.sort(rng.integers(0, ROWS * 1000, ROWS))
        made[name] = pa.table({**keys, "flag": flag, **words, "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC"))})
    return made


def batches(tables: dict[str, pa.Table]) -> Iterator[dict[str, pa.Table]]:
    """Rows in the order of time, in small batches: payload is let go batch by batch."""
    times = {n: t.column("ts").cast(pa.int64()).to_numpy() for n, t in tables.items()}
    cuts = np.linspace(0, ROWS * 1000 + 1, BATCHES + 1)
    for low, high in pairwise(cuts):
        given = {}
        for name, table in tables.items():
            a, b = np.searchsorted(times[name], [low, high])
            given[name] = table.slice(int(a), int(b - a))
        yield given


@pytest.mark.parametrize(
    ("plan", "where", "window", "size", "columns"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_bytes_of_a_plan_are_as_the_engine_holds(
    plan: str, where: str, window: str, size: int, columns: tuple[str, ...]
) -> None:
    names = "".join(sorted(set(plan) & set("ABCD")))
    shown = {
        "RANGE": f"[RANGE {size * 1000} MICROSECONDS]", "ROWS": f"[ROWS {size}]", "PARTITION": f"[PARTITION BY x ROWS {size}]",
        "PARTITION BY TEXT": f"[PARTITION BY text ROWS {size}]",
    }[window]  # fmt: skip
    chosen = ", ".join(f"{n}.{c} AS {n}_{c}" for n in names for c in columns) or "1 AS one"
    declared = "".join(
        f"CREATE STREAM {n} (x BIGINT, y BIGINT, z BIGINT, flag BOOLEAN, text STRING, long STRING, ts TIMESTAMP);"
        for n in names
    )
    tables = streams(names, seed=len(plan))
    text = f"{declared} SELECT {chosen} FROM {', '.join(f'{n} {shown}' for n in names)} WHERE {where}"
    bound = Batches(parse(text), tables).bound
    engine = Engine(bound, Plan.parse(plan))
    for given in batches(tables):
        for _ in engine.feed(given):
            pass
    stats = Statistics(
        rate=dict.fromkeys(names, 1000.0),
        distinct={(n, c): 1000.0 for n in names for c in ("x", "y", "z", "text", "long")},
    )
    bill = price(state_problem(bound, stats, Budget(memory=1 << 30)).problem, Plan.parse(plan).root)
    held = engine.metrics()
    total = held["state_bytes"] + held["payload_bytes"]
    states = {s.name: s.bytes for s in engine.stores() if s.name not in names}
    guessed = {str(p.tree): p.memory for p in bill.parts if not isinstance(p.tree, Leaf) and p.memory}
    said = f"predicted {bill.memory:,.0f}, the engine holds {total:,} bytes; states {guessed} and {states}"
    assert abs(log(bill.memory / total)) < log(FACTOR), said
    assert guessed.keys() == states.keys()
    for name, size_of in states.items():
        assert abs(log(guessed[name] / size_of)) < log(FACTOR), said
