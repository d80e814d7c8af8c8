"""Shared memory: one run at a time, half a batch is never taken for a whole one, no room is no harm, and the dead leave nothing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from tests.spark.local_cells import LocalCells
from watersmeet.spark import park
from watersmeet.spark.park import Park
from watersmeet.testing import random_case, same_rows


def test_conform_a_second_run_of_a_cell_is_kept_apart(tmp_path: Path) -> None:
    first, second = Park(tmp_path), Park(tmp_path)
    assert first.enter() and not second.enter()
    first.leave()
    assert second.enter()
    second.leave()


def test_conform_what_is_parked_is_taken_once_and_only_as_what_it_is(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None, 3], "s": ["x", "y", None]})
    here = Park(tmp_path)
    here.allocate(10)[:] = np.arange(10)
    arena = here.allocate(20)
    arena[:] = np.arange(20)
    assert here.put((1, "token"), {"rows": [table], "none": [table.select([])]}, extra=7)
    assert len([p for p in tmp_path.iterdir() if p.name.startswith("arena")]) == 1
    there = Park(tmp_path)
    found = there.take((1, "token"))
    assert found is not None and found["extra"] == 7 and found["tables"]["rows"][0].equals(table)
    assert found["m"].tolist() == list(range(20)) and found["m"].flags.writeable
    assert Park(tmp_path).take((1, "token")) is None, "a batch is under way: nobody else may go on from here"
    other = Park(tmp_path)
    other.allocate(4)
    assert other.put((2, "other"), {"rows": found["tables"]["rows"]})
    assert Park(tmp_path).take((1, "token")) is None
    assert [p.name for p in tmp_path.iterdir()] == [], "what belongs to another state is removed"


@contextmanager
def _no_files_above(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 600, 3000])
def test_conform_without_room_cells_stay_in_their_worker(tmp_path: Path, size: int) -> None:
    case = random_case(12)
    local = LocalCells(case.query, case.plan, 2, Random(1), 0.0, tmp_path)
    with _no_files_above(size):
        made = local.run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, wrong


def test_conform_what_a_dead_executor_left_is_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    started = park._started(str(ended.pid))
    ended.wait()
    for name, owner in (
        ("dead", f"{ended.pid} {started}"),
        ("alive", f"{os.getpid()} {park._started(str(os.getpid()))}"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "owner").write_text(owner)
        (tmp_path / name / "arena-x").write_bytes(b"x")
    monkeypatch.setattr(park, "_swept", False)
    park.sweep(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["alive"]


def test_conform_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(park, "SHARED", tmp_path)
    assert Park.of("query", 0) is not None
    base = tmp_path / f"watersmeet-{os.getuid()}"
    base.chmod(0o770)
    assert Park.of("query", 0) is None
    base.rename(tmp_path / "elsewhere")
    base.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    assert Park.of("query", 0) is None
