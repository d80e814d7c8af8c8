"""Sockets between Spark and a worker that hold nothing back (watersmeet/spark/sockets.py)."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from watersmeet.spark.sockets import prompt

ROUNDS = 20


def answer_in_two_pieces(connection: socket.socket) -> None:
    """As Spark does it: a small piece, then another, over a socket that waits for the first to be acknowledged."""
    with connection:
        while connection.recv(1):
            connection.send(b"a")
            connection.send(b"b")


def rounds_over_loopback(infile: Any, outfile: Any) -> None:
    for _ in range(ROUNDS):
        outfile.write(b"?")
        outfile.flush()
        assert infile.read(2) == b"ab"


@pytest.fixture
def worker() -> Any:
    """A worker's end of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as spark:
        mine, _ = server.accept()
        thread = threading.Thread(target=answer_in_two_pieces, args=(spark,))
        thread.start()
        yield mine
        mine.close()
        thread.join()


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can be told to acknowledge at once")
def test_every_read_acknowledges_at_once(worker: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Recording(socket.socket):
        def setsockopt(self, level: int, option: int, value: Any) -> None:  # type: ignore[override]
            super().setsockopt(level, option, value)
            assert value == 1
            done.append({socket.TCP_NODELAY: "send at once", socket.TCP_QUICKACK: "acknowledge"}[option])

        def recv_into(self, *arguments: Any) -> int:
            done.append("read")
            return super().recv_into(*arguments)

    monkeypatch.setattr(socket, "socket", Recording)
    with worker.makefile("rb") as infile, worker.makefile("wb") as outfile:
        prompt(rounds_over_loopback)(infile, outfile)
        assert worker.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    worker.shutdown(socket.SHUT_RDWR)
    assert done[0] == "send at once"
    assert done[1:] == ["acknowledge", "read"] * (len(done) // 2)
    assert ROUNDS <= done.count("read") <= 2 * ROUNDS


def test_large_pieces_come_whole() -> None:
    """More than a buffer, in pieces of any size, read as they were sent; the socket stays open for the next task."""
    sent = bytes(range(256)) * 4096
    with socket.create_server(("127.0.0.1", 0)) as server:
        spark = socket.create_connection(server.getsockname())
        mine, _ = server.accept()
    got: list[bytes] = []

    def task(infile: Any, _: Any) -> None:
        got.append(infile.read(10) + infile.read(len(sent) - 10))

    with spark, mine, mine.makefile("rb") as infile, mine.makefile("wb") as outfile:
        for _ in range(2):
            thread = threading.Thread(target=spark.sendall, args=(sent,))
            thread.start()
            prompt(task)(infile, outfile)
            thread.join()
    assert got == [sent, sent]


def test_other_sockets_stay_as_they_are() -> None:
    seen: list[Any] = []
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as infile, ours.makefile("wb") as outfile:
        prompt(lambda a, b: seen.extend((a, b)))(infile, outfile)
        assert seen == [infile, outfile]
