"""A Spark session that suits Watersmeet: for the command line, and as a list of settings for everybody else."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from watersmeet.spark.stderr_filter import hushed

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

# With a local master, too. Driver and executors are one process then, with a small heap: the collector that is made for throughput does
# less at every write than Java's own choice. Java's compiler, which takes a third of two cores for the first minutes, gets less to do: it
# copies only small methods into those that call them. And what is shuffled stays on this machine.
_THROUGHPUT = "-XX:+UseParallelGC"
_LESS_INLINING = "-XX:InlineSmallCode=500 -XX:FreqInlineSize=75"
_LOCAL_JAVA = f"{_JAVA} {_LESS_INLINING}"
_LOCAL: Mapping[str, str] = {
    "spark.driver.defaultJavaOptions": f"{_LOCAL_JAVA} {_THROUGHPUT}",
    "spark.shuffle.compress": "false",
}
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")


def settings_for(master: str | None, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a session on this master should have, and what is given, which goes first."""
    made = dict(SETTINGS)
    if master is not None and master.startswith("local"):
        made |= _LOCAL
        if _collector_chosen(given or {}):  # Java refuses to start with two
            made["spark.driver.defaultJavaOptions"] = _LOCAL_JAVA
    return made | dict(given or {})


def _collector_chosen(given: Mapping[str, str]) -> bool:
    """Whether a garbage collector is named where Spark or Java look for options."""
    texts = [*given.values(), *(os.environ.get(name, "") for name in _JAVA_VARIABLES)]
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or Path(home) / "conf") / "spark-defaults.conf"
    if defaults.is_file():
        texts.append(defaults.read_text(errors="replace"))
    return any(re.search(r"-XX:[+-]Use\w+GC", text) for text in texts)


def session(master: str | None = None, name: str = "watersmeet", **settings: str) -> SparkSession:
    """The session of this process, or a new one. Workers run the Python that runs this."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    for key, value in settings_for(master, settings).items():
        builder = builder.config(key, value)
    with hushed():
        made: SparkSession = builder.getOrCreate()
    return made
