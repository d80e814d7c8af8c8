"""A run of the tests ends and names the test when a worker dies, and runs every other test once (tests/workers.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TESTS = """
import os, threading
from pathlib import Path
import pytest

def run(name):
    with Path("ran").open("a") as file:
        file.write(name + "\\n")

@pytest.mark.xdist_group("one worker")
@pytest.mark.parametrize("n", range(6))
def test_of_a_group(n):
    run(f"group {n}")
    if n == 3:
        END

@pytest.mark.parametrize("n", range(12))
def test_alone(n):
    run(f"alone {n}")
    if n in ALSO:
        END
"""
EXITS, HANGS = "os._exit(1)", "threading.Event().wait()"


@pytest.mark.parametrize(("end", "also", "limit_seconds"), [(EXITS, (), 300), (EXITS, (0, 5, 11), 300), (HANGS, (), 5)])
def test_a_dead_worker_fails_its_test_alone(
    end: str, also: tuple[int, ...], limit_seconds: int, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text("from tests.workers import pytest_xdist_make_scheduler\n")
    (tmp_path / "test_it.py").write_text(TESTS.replace("END", end).replace("ALSO", repr(also)))
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nfaulthandler_timeout = {limit_seconds}\nfaulthandler_exit_on_timeout = true\n"
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-rf", "-p", "no:cacheprovider"],
        cwd=tmp_path, env={**inherited, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    dead = ["test_it.py::test_of_a_group[3]", *(f"test_it.py::test_alone[{n}]" for n in also)]
    assert done.returncode == 1, done.stdout + done.stderr
    assert sorted(re.findall(r"^FAILED (\S+\])", done.stdout, re.MULTILINE)) == sorted(dead), done.stdout
    for test in dead:
        assert re.search(rf"crashed while running '{re.escape(test)}", done.stdout)
    assert f"{len(dead)} failed, {18 - len(dead)} passed" in done.stdout
    expected = [f"alone {n}" for n in range(12)] + [f"group {n}" for n in range(6)]
    assert sorted((tmp_path / "ran").read_text().splitlines()) == sorted(expected)
    if end == HANGS:
        assert "Timeout" in done.stderr and "in test_of_a_group" in done.stderr
