"""A contest: contestants one after the other on the same files, each in a process of its own, in turns when there are repeats."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from bench.engine.workload import Workload
from bench.spark.data import write, write_csv, write_job
from bench.spark.memory import Memory, Watch

ROOT = Path(__file__).parent.parent.parent
FLINK = ROOT / ".venv-flink" / "bin" / "python"
Report = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """What one contestant did. Times are seconds since the epoch; a batch has rows, seconds, at (its end), observed (metrics)."""

    contestant: str
    batches: tuple[dict[str, Any], ...]
    spawned: float
    began: float
    memory: tuple[Memory, ...] = ()

    @property
    def rows(self) -> int:
        return sum(b["rows"] for b in self.batches)

    @property
    def steady(self) -> tuple[dict[str, Any], ...]:
        """All batches but the first, unless there was only one."""
        return self.batches[1:] or self.batches

    @property
    def rate(self) -> float:
        """Rows per second of the steady state."""
        return float(sum(b["rows"] for b in self.steady) / sum(b["seconds"] for b in self.steady))

    @property
    def batch_rates(self) -> list[float]:
        return [b["rows"] / b["seconds"] for b in self.steady]

    def batch_seconds(self, last: int) -> float:
        """The median time of the last batches."""
        return float(statistics.median(b["seconds"] for b in self.batches[-last:]))

    @property
    def first_batch_seconds(self) -> float:
        """From the start of the query (the session is there) to the end of its first batch."""
        return float(self.batches[0]["at"] - self.began)

    def cold_seconds(self, rows: int) -> float:
        """From the start of the process to the end of so many rows; of rows that there were not, the rest at the steady rate."""
        done = 0
        for batch in self.batches:
            done += batch["rows"]
            if done >= rows:
                return float(batch["at"] - self.spawned)
        first = self.batches[0]
        return float(first["at"] - self.spawned + (rows - first["rows"]) / self.rate)


@dataclass
class Contest:
    """One workload as files, to be run by several. `limit_seconds`: slow ones may stop when batches after the first took so long."""

    workload: Workload
    batches: int
    cells: int = 2
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="watersmeet-bench-")))

    def __enter__(self) -> Self:
        write(self.workload, self.folder / "in", self.batches)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, name: str, report: Report, limit_seconds: float | None = None, memory: bool = False) -> Run:
        """`memory`: whether that of the workers is watched, which takes a little time."""
        job = write_job(self.workload, self.folder, self.batches, self.cells, limit_seconds)
        if name.startswith("flink"):
            if not (self.folder / "csv").exists():
                write_csv(self.workload, self.folder / "csv")
            command = [
                str(FLINK),
                str(Path(__file__).with_name("flink.py")),
                "read" if name == "flink read" else "join",
                str(job),
            ]
        else:
            command = [sys.executable, "-m", "bench.spark.contestant", name, str(job)]
        try:
            return _follow(name, command, self.workload.rows, report, memory)
        finally:
            for left in (f"checkpoint-{name}", "local", "warehouse"):
                shutil.rmtree(self.folder / left, ignore_errors=True)


def _follow(name: str, command: list[str], rows: int, report: Report, memory: bool) -> Run:
    """Run a contestant, telling of its progress."""
    with tempfile.TemporaryFile("w+") as errors:
        spawned = time.time()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            batches: list[dict[str, Any]] = []
            bounds: dict[str, float] = {}
            done = 0
            with Watch(process.pid) if memory else nullcontext() as watch:
                for line in process.stdout:
                    if not line.startswith("{"):
                        continue
                    told = json.loads(line)
                    if "ended" in told:
                        bounds = told
                        continue
                    batches.append(told)
                    done += told["rows"]
                    report(f"{name}: {done / rows:4.0%} of {rows:,} rows, {time.time() - spawned:.0f} s")
        if process.returncode or not batches or not bounds:
            errors.seek(0)
            raise SystemExit(f"{name} failed ({process.returncode}):\n{errors.read()[-3000:]}")
    return Run(name, tuple(batches), spawned, bounds["began"], tuple(watch.seen if watch else ()))


def flink_is_there() -> bool:
    return FLINK.exists()
