"""A Spark session that suits Watersmeet: for the command line, and as a list of settings for everybody else."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from watersmeet.spark.hush import hushed

# Arrow in the JVM looks at every single value whether it lies within its buffer; Spark only reads values that are there.
_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
# Java begins with a heap of 1/64 of the memory and room for few classes, and collects garbage dozens of times before both have grown
# to what Spark needs. Never above the largest heap that is set.
_ROOM = "-XX:InitialRAMPercentage=6.25 -XX:MetaspaceSize=256m"
_JAVA = f"{_UNCHECKED} {_ROOM}"

# What a session should have from its start; wm.stream sets what can be set later.
SETTINGS: Mapping[str, str] = {
    "spark.python.daemon.module": "watersmeet.spark.daemon",
    "spark.driver.defaultJavaOptions": _JAVA,
    "spark.executor.defaultJavaOptions": _JAVA,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # what others can read; Spark's own default is long deprecated
    "spark.ui.showConsoleProgress": "false",
}


def session(master: str | None = None, name: str = "watersmeet", **settings: str) -> SparkSession:
    """The session of this process, or a new one. Workers run the Python that runs this."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    for key, value in {**SETTINGS, **settings}.items():
        builder = builder.config(key, value)
    with hushed():
        made: SparkSession = builder.getOrCreate()
    return made
