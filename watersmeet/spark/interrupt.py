"""Ctrl-C while Spark is at work: it waits for a moment between two calls.

In the midst of a call it would break Spark's client, and PySpark's own handler makes a call of its own right there: both end in pages of
tracebacks. A second Ctrl-C does not wait.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupt:
    """Whether the user wants to stop."""

    def __init__(self) -> None:
        self.wanted = False

    def check(self) -> None:
        """Between two calls: stop here if the user wants to."""
        if self.wanted:
            raise KeyboardInterrupt

    def _came(self, *_: Any) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Ctrl-C is only noted, until `check` is called. Where this is not the main thread, Ctrl-C is somebody else's."""
    made = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield made
        return
    before = signal.signal(signal.SIGINT, made._came)
    try:
        yield made
    finally:
        signal.signal(signal.SIGINT, before)
