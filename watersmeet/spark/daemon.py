"""A daemon of Python workers that has loaded everything before it forks: spark.python.daemon.module=watersmeet.spark.daemon.

Each worker then starts with Arrow, the compiled kernel and this package in memory, shared with the others.
"""

from __future__ import annotations

import gc


def warm() -> None:
    """Load what workers need, and run the kernel once, so that its code is read from the cache."""
    import pandas  # noqa: F401
    import pyarrow as pa

    from watersmeet.engine.executor import Engine
    from watersmeet.model.bind import bind
    from watersmeet.model.expr import Column, Compare
    from watersmeet.model.plan import Leaf, Node, Plan
    from watersmeet.model.query import Declaration, Output, Query, Source
    from watersmeet.model.types import BIGINT, TIMESTAMP, Field, Schema
    from watersmeet.model.window import Window
    from watersmeet.spark import hot, pack, processor  # noqa: F401

    schema = Schema((Field("a", BIGINT), Field("ts", TIMESTAMP)))
    query = Query(
        (Output(None),),
        tuple(Source(n, Window.range_us(1), n) for n in "RS"),
        (Compare("=", Column("R", "a"), Column("S", "a")),),
        declarations=tuple(Declaration(n, schema) for n in "RS"),
    )
    engine = Engine(bind(query), Plan(Node((Leaf("R"), Leaf("S")))))
    rows = pa.table({"a": [1], "ts": pa.array([0], pa.timestamp("us", tz="UTC"))})
    for _ in engine.feed({"R": rows, "S": rows}):
        pass
    pack.route_hash_check()


if __name__ == "__main__":
    warm()
    gc.collect()
    gc.freeze()
    from pyspark.daemon import manager

    manager()
