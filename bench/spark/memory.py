"""Memory of all Python workers below a process: their own pages, shared ones counted once, and the cells' files in shared memory once.

PSS (proportional set size) divides each page by the number of processes that map it, so the sum over daemon and workers counts a page
that they share once. Pages of shared memory files are taken out of it and the files added whole, whether they are mapped just now or not.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SHARED = Path("/dev/shm") / f"watersmeet-{os.getuid()}"
DAEMONS = ("pyspark.daemon", "watersmeet.spark.daemon")


@dataclass(frozen=True)
class Memory:
    """Bytes at one moment."""

    workers: int
    shared: int
    processes: int

    @property
    def total(self) -> int:
        return self.workers + self.shared


def measure(root: int, before: frozenset[str] = frozenset()) -> Memory:
    """Workers and their daemon among the descendants of `root`; `before`: folders in shared memory that belong to others."""
    workers = processes = 0
    for pid in _descendants(root):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[1:2] != ["-m"] or words[2] not in DAEMONS:  # forked workers have the daemon's command line
                continue
            fields = dict(
                line.split(":", 1)
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
                if ":" in line
            )
        except OSError:
            continue  # it has ended
        processes += 1
        workers += (_kilobytes(fields.get("Pss")) - _kilobytes(fields.get("Pss_Shmem"))) * 1024
    return Memory(workers, _shared(before), processes)


def cells() -> frozenset[str]:
    """The folders of cells in shared memory."""
    return frozenset(p.name for p in SHARED.iterdir()) if SHARED.is_dir() else frozenset()


class Watch:
    """Measures again and again while a process runs; `seen` has what came."""

    def __init__(self, root: int, every_seconds: float = 0.5) -> None:
        self.root, self.every_seconds = root, every_seconds
        self.seen: list[Memory] = []
        self._before = cells()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self.every_seconds):
            self.seen.append(measure(self.root, self._before))


def _kilobytes(text: str | None) -> int:
    return int(text.split()[0]) if text else 0


def _shared(before: frozenset[str]) -> int:
    total = 0
    for name in cells() - before:
        try:
            total += sum(p.stat().st_blocks * 512 for p in (SHARED / name).iterdir())
        except OSError:
            continue  # removed meanwhile
    return total


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found, at = [root], 0
    while at < len(found):
        found += children.get(found[at], [])
        at += 1
    return found[1:]
