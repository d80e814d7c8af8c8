"""Keeps from the terminal what Spark says each time it starts, and each time a stateful query does: lines that ask for nothing.

Java writes to the standard error that it inherits when it is started, and so do its Python workers. It gets a pipe there; what comes
through it is passed on, except for these lines. Anything else, errors above all, is seen as ever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NOISE: Final = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Using Spark's default log4j profile",
    b"Setting default log level to",
    b"Setting Spark log level to",
    b"To adjust logging level use sc.setLogLevel",
    b"WARN Utils: Your hostname",
    b"WARN Utils: Set SPARK_LOCAL_IP",
    b"WARN NativeCodeLoader",
    b"Streaming TransformWithStateInPandas Python worker",
)
_STDERR: Final = 2


def passes(line: bytes) -> bool:
    """Whether a line is to be seen.

    >>> passes(b"Using Spark's default log4j profile: x"), passes(b"ERROR Executor: Exception in task 0.0")
    (False, True)
    """
    return not any(noise in line for noise in NOISE)


@contextmanager
def hushed() -> Iterator[None]:
    """A process that is started meanwhile has a standard error without these lines, for all its life."""
    try:
        terminal = os.dup(_STDERR)
    except OSError:  # there is none
        yield
        return
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, os.dup(terminal)), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(terminal, _STDERR)
        os.close(terminal)


def _pass_on(reading: int, terminal: int) -> None:
    """Until the last process that writes has ended."""
    with os.fdopen(reading, "rb", buffering=0) as lines, os.fdopen(terminal, "wb", buffering=0) as out:
        rest, muted = b"", False
        while piece := lines.read(65536):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                muted = not passes(line) or (muted and not line)  # empty lines after one that is kept away go with it
                if not muted:
                    out.write(line + b"\n")
        if rest:
            out.write(rest)
