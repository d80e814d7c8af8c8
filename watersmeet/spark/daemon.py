"""A daemon of Python workers that has loaded everything before it forks: spark.python.daemon.module=watersmeet.spark.daemon.

Each worker then starts with Arrow, the compiled kernel and this package in memory, shared with the others, and talks to Spark without
delays (sockets.py).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from watersmeet.errors import WatersmeetError
from watersmeet.spark.sockets import prompt


def prefer_installed() -> None:
    """Take PySpark from where it is installed, if the same version is, instead of from the archives that Spark puts on the path: those are
    compiled again at each start, and each task looks through them again."""
    archives = [p for p in sys.path if Path(p).name == "pyspark.zip" or Path(p).match("py4j-*.zip")]
    rest = [p for p in sys.path if p not in archives]
    pyspark, py4j = PathFinder.find_spec("pyspark", rest), PathFinder.find_spec("py4j", rest)
    shipped = [p for p in archives if Path(p).name == "pyspark.zip"]
    if pyspark is None or pyspark.origin is None or py4j is None or len(archives) != 2 or len(shipped) != 1:
        return
    try:
        with ZipFile(shipped[0]) as archive:
            same = archive.read("pyspark/version.py") == Path(pyspark.origin).with_name("version.py").read_bytes()
    except (OSError, KeyError, BadZipFile):
        return
    if same:
        sys.path[:] = rest
        for path in archives:
            sys.path_importer_cache.pop(path, None)


def spare_memory() -> None:
    """Before Arrow is loaded: let it use the allocator that gives back what is free. Its own choice keeps some 30 MB more in each worker,
    and the more the larger the windows are (docs/internals/decisions.md, 67)."""
    if sys.platform == "linux":
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")


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
    from watersmeet.spark import blocks, packing, processor  # noqa: F401

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
    packing.route_hash_check()


if __name__ == "__main__":
    # Ctrl-C goes to all processes of a terminal. It is the driver's: that stops the query, and with it the workers.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    gc.disable()  # what is loaded stays, and looking through it meanwhile takes a tenth of the time
    prefer_installed()
    spare_memory()
    with suppress(
        ImportError, WatersmeetError
    ):  # the worker that needs what is missing says so, where the user sees it
        warm()
    import pyspark.worker
    from pyspark.daemon import manager

    gc.freeze()
    gc.enable()
    pyspark.worker.main = prompt(pyspark.worker.main)
    manager()
