"""Park: where a cell's memory lies between two batches: shared memory of the host, so that whichever worker is next just goes on.

Workers of a host swap cells from batch to batch. A cell's arena is mapped from a file in shared memory and used in place; its payload
is in Arrow files, written once when rows come and mapped; the small rest is in `head`, which also says which stored state all this is
equal to. At the start of a batch `head` is taken away, and at its end rewritten: whatever happens in between, a retry, a kill, a
second run at the same time, nobody takes half a batch for a whole one. A lock keeps two runs of one cell apart; the second then works
in memory of its own.

    <shared memory>/watersmeet-<user>/<query>-<cell>/   head, lock, owner, arena-*, rows-*

What a dead executor leaves behind is swept away by the next worker that starts on this host.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import shutil
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from watersmeet.model.cache_folder import open_to_others

SHARED: Final = Path("/dev/shm")
UNUSED_SECONDS: Final = 6 * 3600  # a cell that nobody has touched for so long is swept away; it would be rebuilt


class Park:
    """The place of one cell. Use between `enter` and `leave`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock: int | None = None
        self.usable = True
        self.arena: Path | None = None
        self.files: dict[int, tuple[pa.Table, Path]] = {}  # by identity: tables that lie in files

    @classmethod
    def of(cls, query: str, number: int) -> Park | None:
        """The place for a cell of a query; None where there is no shared memory."""
        if not SHARED.is_dir() or not os.access(SHARED, os.W_OK):
            return None
        base = SHARED / f"watersmeet-{os.getuid()}"
        try:
            base.mkdir(mode=0o700, exist_ok=True)
            if open_to_others(base, 0o077) is not None:  # what lies there is unpickled
                return None
            sweep(base)
            folder = base / f"{query}-{number}"
            folder.mkdir(exist_ok=True)
        except OSError:
            return None
        return cls(folder)

    def enter(self) -> bool:
        """Take the lock; False if another run of this cell has it, or if there is no room for anything."""
        try:
            self.lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self.folder / "owner").write_text(_owner())
        except OSError:
            self.leave()
            return False
        return True

    def leave(self) -> None:
        """Give the lock back. Memory that is mapped stays valid."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def take(self, identity: tuple[Any, ...]) -> dict[str, Any] | None:
        """What was parked, if it is equal to that state; in any case it is not parked any more."""
        head = self.folder / "head"
        try:
            parked = pickle.loads(head.read_bytes())
            head.unlink()
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
            parked = None  # there is nothing, or another version of this code left it
        if parked is None or parked["identity"] != identity:
            self.clear()
            return None
        self.arena = self.folder / parked["arena"]
        self.files = {}
        try:
            parked["words"] = _map(self.arena)
            parked["tables"] = {k: [self._open(*piece) for piece in pieces] for k, pieces in parked["tables"].items()}
        except OSError:
            self.clear()
            return None
        return dict(parked)

    def put(self, identity: tuple[Any, ...], tables: dict[Any, list[pa.Table]], **rest: Any) -> bool:
        """Park: tables that are not in files yet are written. False if there is no room."""
        names: dict[Any, list[tuple[str | None, int]]] = {}
        try:
            for key, pieces in tables.items():
                names[key] = [(self._name(table), table.num_rows) for table in pieces]
            if not self.usable or self.arena is None:
                raise OSError("the arena is not in shared memory")
            made = {"identity": identity, "arena": self.arena.name, "tables": names, **rest}
            fresh = self.folder / "head.new"
            fresh.write_bytes(pickle.dumps(made, protocol=5))
        except OSError:
            self.clear()
            return False
        used = {name for pieces in names.values() for name, _ in pieces} | {
            self.arena.name,
            fresh.name,
            "lock",
            "owner",
        }
        self._remove([p for p in self.folder.iterdir() if p.name not in used])
        fresh.rename(self.folder / "head")
        return True

    def _name(self, table: pa.Table) -> str | None:
        """The name of the file that has this table, written now if there is none."""
        known = self.files.get(id(table))
        return known[1].name if known else self._write(table)

    def allocate(self, words: int) -> Any:
        """Zeroed words in shared memory; in this process's own if there is not enough."""
        path = self.folder / f"arena-{os.urandom(6).hex()}"
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            try:
                os.posix_fallocate(file, 0, max(words * 8, 8))
            finally:
                os.close(file)
            made = _map(path)[:words]
        except OSError:
            path.unlink(missing_ok=True)
            self.usable = False
            return np.zeros(words, np.int64)
        if self.arena is not None:
            self.arena.unlink(missing_ok=True)
        self.arena = path
        return made

    def hold(self, arena: Any) -> Any:
        """The arena in shared memory: as it is if it lies there, else a copy; as it is, too, if there is not enough room."""
        if self.arena is not None and self.usable:
            return arena
        if self.arena is not None:
            self.arena.unlink(missing_ok=True)
        self.arena, self.usable = None, True
        made = self.allocate(len(arena))
        if not self.usable:
            return arena
        made[:] = arena
        return made

    def clear(self) -> None:
        """Remove all but the lock. Memory that is mapped stays valid."""
        self.arena, self.files = None, {}
        if self.folder.is_dir():
            self._remove([p for p in self.folder.iterdir() if p.name not in ("lock", "owner")])

    def _write(self, table: pa.Table) -> str | None:
        """The name of a new file with the table; None for one without columns, of which only the number of rows is known."""
        if table.num_columns == 0:
            return None
        path = self.folder / f"rows-{os.urandom(6).hex()}"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        return path.name

    def _open(self, name: str | None, rows: int) -> pa.Table:
        if name is None:
            return pa.table({"x": pa.nulls(rows)}).select([])
        path = self.folder / name
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        self.files[id(table)] = (table, path)
        return table

    def _remove(self, paths: list[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)


def _map(path: Path) -> Any:
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0), np.int64)


def _owner() -> str:
    """The process that this worker stands and falls with (two above it: its daemon's parent, the executor), and when it started."""
    pid = _stat(str(os.getppid()))[1] if os.getppid() > 1 else str(os.getpid())
    return f"{pid} {_started(pid)}"


def _stat(pid: str) -> list[str]:
    """Fields of a process from the third on (state, parent, ...); those of none if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return [""] * 50


def _started(pid: str) -> str:
    return _stat(pid)[19]


_swept = False


def sweep(base: Path) -> None:
    """Once in a worker's life: remove what executors left that are gone."""
    global _swept
    if _swept:
        return
    _swept = True
    now = time.time()
    for folder in base.iterdir():
        if _is_left(folder, now) and (here := Park(folder)).enter():  # not while somebody is at work there
            shutil.rmtree(folder, ignore_errors=True)
            here.leave()


def _is_left(folder: Path, now: float) -> bool:
    """Whether the executor that a folder belongs to is gone. The folder itself may go meanwhile: workers start together."""
    try:
        pid, started = (folder / "owner").read_text().split()
        return _started(pid) != started or now - (folder / "owner").stat().st_mtime > UNUSED_SECONDS
    except (OSError, ValueError):
        pass  # it is new, or was left before it had an owner
    try:
        return now - folder.stat().st_mtime > 60
    except OSError:
        return False
