"""The command line: `watersmeet demo | run | explain | calibrate | experiment | bench | version`.

Exit codes: 0 done, 1 the query, the data or a file is wrong (said in red, without a traceback), 2 the command line is wrong,
130 interrupted (Ctrl-C), 143 ended by SIGTERM. In every case but 0 nothing is half-written.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main() -> None:
    """The console script."""

    def ended(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)  # as an exception, so that what is being written is taken away

    signal.signal(signal.SIGTERM, ended)
    try:
        from watersmeet.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
