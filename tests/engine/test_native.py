"""Compiled code: loaded without numba, made by one process at a time, and never called with arrays that it does not expect."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from watersmeet.engine.native.load import PARTS, SOURCES, Native
from watersmeet.engine.native.mark import ARRAYS
from watersmeet.engine.program import layout as L
from watersmeet.engine.store.partition import rehash

ROOT = Path(__file__).parent.parent.parent


def process(code: str, cache: Path, path: Path = ROOT) -> subprocess.Popen[str]:
    """A new Python that finds no compiled code."""
    environment = {**os.environ, "WATERSMEET_CACHE": str(cache), "PYTHONPATH": os.pathsep.join((str(path), str(ROOT)))}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_join_loads_no_numba() -> None:
    code = """
import sys, watersmeet as wm
rows = [{"a": 1, "ts": "2026-01-31 12:00"}]
made = wm.run("CREATE STREAM R (a BIGINT, ts TIMESTAMP); SELECT R.a FROM R [ROWS 1], R [ROWS 1] AS S WHERE R.a = S.a", {"R": rows})
print(made.rows.num_rows, "numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["1", "False"]


def test_several_processes_get_the_code_that_one_of_them_makes(tmp_path: Path) -> None:
    code = "from watersmeet.engine.native.hashing import scatter; print(scatter(-3))"
    started = [process(code, tmp_path) for _ in range(3)]
    assert [p.communicate()[0].strip() for p in started] == ["2691343689449507777"] * 3
    (folder,) = tmp_path.iterdir()
    assert sorted(p.name for p in folder.iterdir()) == ["lock", "native.hashing.scatter.o"]


def test_threads_load_the_code_once() -> None:
    fresh = Native(rehash.__wrapped__, ARRAYS)  # type: ignore[attr-defined]
    entries = np.array([[1, 2, 3, 4]])

    def call(_: int) -> int:
        directory, row = np.zeros(16, np.int64), np.zeros(L.STORE_WIDTH, np.int64)
        row[L.PART_MASK] = 3
        fresh(directory, row, entries)
        return int(directory.sum())

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(call, range(64))) == {10}


def test_says_why_code_could_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['numba'] = None\n")
    code = "from watersmeet.engine.native.hashing import scatter; print(scatter(-3))"
    said = process(code, tmp_path / "cache", tmp_path).communicate()[1]
    assert (
        "WatersmeetError: the join kernel could not be compiled" in said and "numba" in said.partition("compiled\n")[2]
    )


@pytest.mark.parametrize(
    "entries",
    [np.zeros((2, 4), np.int32), np.zeros(8, np.int64), np.zeros((4, 8), np.int64)[:, ::2], np.zeros((4, 2), np.int64).T],
    ids=["half words", "one dimension", "gaps", "columns first"],
)  # fmt: skip
def test_refuses_arrays_of_another_kind(entries: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    with pytest.raises(TypeError, match="rehash: argument 3 must be an array of int64 in 2 dimensions, without gaps"):
        rehash(np.zeros(8, np.int64), np.zeros(40, np.int64), entries)
    with pytest.raises(ValueError, match="longer"):
        rehash(np.zeros(8, np.int64), np.zeros(40, np.int64))  # type: ignore[call-arg]


def test_what_is_made_at_once_is_what_python_calls() -> None:
    for part in PARTS:
        for name in part:
            module, _, function = name.rpartition(".")
            assert isinstance(getattr(import_module(f"watersmeet.engine.{module}"), function), Native)


def negative(index: ast.expr) -> bool:
    return isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)


def test_no_index_in_compiled_code_counts_from_the_end() -> None:
    """It would read what lies before the array (decision 143)."""
    seen = 0
    for path in (path for pattern in SOURCES for path in (ROOT / "watersmeet/engine").glob(pattern)):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            if not any(isinstance(d, ast.Name) and d.id in ("compiled", "inlined") for d in function.decorator_list):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Subscript):
                    places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                    assert not any(map(negative, places)), f"{path.name}, line {node.lineno}"
                    seen += 1
    assert seen > 1000
    columns = {name: value for name, value in vars(L).items() if isinstance(value, int)}
    assert [name for name, value in columns.items() if value < 0] == ["DEAD"]
