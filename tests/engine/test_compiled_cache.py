"""The cache of compiled code: the same package at another place, with other file times, is not compiled again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import watersmeet
from watersmeet.engine.native import load as native

JOB = """
import pyarrow as pa, watersmeet as wm
rows = pa.table({"a": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us", tz="UTC"))})
made = wm.run("SELECT R.a FROM R [RANGE 1 SECOND], S [RANGE 1 SECOND] WHERE R.a = S.a", {"R": rows, "S": rows})
print(wm.__file__, made.rows.num_rows)
"""


def run(package: Path) -> subprocess.CompletedProcess[str]:
    cache = {"WATERSMEET_CACHE": str(native.folder().parent), "PYTHONPATH": str(package)}
    return subprocess.run(
        [sys.executable, "-c", JOB], capture_output=True, text=True, check=True, env={**os.environ, **cache}, cwd=package
    )  # fmt: skip


def test_kernel_is_found_again_at_another_place(tmp_path: Path) -> None:
    here = Path(watersmeet.__file__).parent
    run(here.parent)
    shutil.copytree(here, tmp_path / "watersmeet", copy_function=shutil.copyfile)  # as files of now, not of then
    done = run(tmp_path)
    assert done.stdout.split() == [str(tmp_path / "watersmeet" / "__init__.py"), "2"]
    assert "compiling" not in done.stderr
    (tmp_path / "watersmeet/engine/native/mark.py").open("a").write("\n# another version\n")
    code = "from watersmeet.engine.native import load; print(load.warm())"
    cold = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "WATERSMEET_CACHE": str(native.folder().parent), "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert cold.stdout.strip() == "False"
