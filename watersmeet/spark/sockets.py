"""Prompt sockets: nothing on its way between Spark and a Python worker waits for an acknowledgement.

TCP holds a small piece back until what was sent before is acknowledged (Nagle), and acknowledges late, in case there is an answer to go
with it: 40 ms that nobody does anything in. Tasks of a small batch lose them several times over. Spark's side can't be told to
send at once, but this side can acknowledge at once, and send at once itself (docs/internals/decisions.md, 80).
"""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from typing import Any, Final

BUFFER_BYTES: Final = 1 << 16
_QUICK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)  # Linux has it
Main = Callable[[Any, Any], None]


class PromptReader(io.RawIOBase):
    """Reads from a socket, and has the kernel acknowledge what came before. It forgets that it was told to, so it is told each time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._connection.fileno()

    def readinto(self, buffer: Any) -> int:
        assert _QUICK is not None
        self._connection.setsockopt(socket.IPPROTO_TCP, _QUICK, 1)
        return self._connection.recv_into(buffer)


def prompt(main: Main) -> Main:
    """The main function of a worker, which is called for each task with its two ends of the socket, over a prompt one."""

    def promptly(infile: Any, outfile: Any) -> None:
        with socket.socket(fileno=os.dup(infile.fileno())) as connection:
            if _QUICK is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
                main(infile, outfile)
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with io.BufferedReader(PromptReader(connection), BUFFER_BYTES) as reader:
                main(reader, outfile)

    return promptly
