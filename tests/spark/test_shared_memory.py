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
from watersmeet.spark import shared_memory as park
from watersmeet.spark.cell import Cell
from watersmeet.spark.shared_memory import Park
from watersmeet.testing import random_case, same_rows


def test_a_second_run_of_a_cell_is_kept_apart(tmp_path: Path) -> None:
    first, second = Park(tmp_path), Park(tmp_path)
    assert first.enter() and not second.enter()
    first.leave()
    assert second.enter()
    second.leave()


def test_what_is_parked_is_taken_once_and_only_as_what_it_is(tmp_path: Path) -> None:
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
    assert found["words"].tolist() == list(range(20)) and found["words"].flags.writeable
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
def test_without_room_cells_stay_in_their_worker(tmp_path: Path, size: int) -> None:
    case = random_case(12)
    LocalCells(case.query, case.plan, 2, Random(1)).run(case.batches)  # all that is compiled is in its cache then
    local = LocalCells(case.query, case.plan, 2, Random(1), 0.0, tmp_path)
    with _no_files_above(size):
        made = local.run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, wrong


def test_what_a_dead_executor_left_is_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_folder_that_another_worker_sweeps_away_meanwhile_is_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers start together, and each finds what a dead executor left; a link to nowhere stands for a folder that is listed and gone."""
    monkeypatch.setattr(park, "SHARED", tmp_path)
    monkeypatch.setattr(park, "_swept", False)
    base = tmp_path / f"watersmeet-{os.getuid()}"
    base.mkdir(mode=0o700)
    (base / "gone").symlink_to(tmp_path / "nowhere")
    here = Park.of("query", 0)
    assert here is not None and here.enter()
    here.leave()


class _FirstWithout(LocalCells):
    """The first batches of each cell find no shared memory, and stay in one worker; from then on each batch has a new worker."""

    without = 2

    def _at(self, number: int) -> Cell:
        runs = sum(m["cell"] == number for m in self.metrics)
        if runs > self.without:
            return super()._at(number)
        kept = self.hot.setdefault(number, Cell(self.flow.spec, number))
        if runs == self.without:
            kept.park = super()._at(number).park
        return kept


@pytest.mark.parametrize("seed", [2, 3, 7, 8, 14, 27])
def test_a_cell_that_found_no_shared_memory_moves_there_later(tmp_path: Path, seed: int) -> None:
    """Else it would be rebuilt whenever another worker gets it, and lie in each of them."""
    case = random_case(seed)
    local = _FirstWithout(case.query, case.plan, 2, Random(1), 0.0, tmp_path)
    made = local.run(case.batches)
    assert (wrong := same_rows(made, case.expected)) is None, wrong
    for number in range(2):
        runs = [m for m in local.metrics if m["cell"] == number]
        assert len(runs) > local.without + 1
        assert [m["rebuilt"] for m in runs] == [1] + [0] * (len(runs) - 1)


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(park, "SHARED", tmp_path)
    assert Park.of("query", 0) is not None
    base = tmp_path / f"watersmeet-{os.getuid()}"
    base.chmod(0o770)
    assert Park.of("query", 0) is None
    base.rename(tmp_path / "elsewhere")
    base.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    assert Park.of("query", 0) is None
