"""The command as a process of its own: exit codes, signals, speed of starting, and what is left on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from watersmeet.data import write_table

COMMAND = [sys.executable, "-m", "watersmeet"]
ENDLESS = """\
CREATE STREAM a (k BIGINT, ts TIMESTAMP) FROM 'a.parquet' FORMAT parquet;
SELECT x.k FROM a [UNBOUNDED] AS x, a [UNBOUNDED] AS y, a [UNBOUNDED] AS z WHERE x.k = y.k AND y.k = z.k
EMIT ISTREAM INTO '{into}' FORMAT csv;
"""


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("into", ["out/", "out.csv"])
def test_interrupted_run_leaves_nothing_half_written(tmp_path: Path, number: int, code: int, into: str) -> None:
    rows = 5_000  # 1.25e11 results: it is interrupted, or the test never ends
    write_table(
        pa.table({"k": [1] * rows, "ts": pa.array(range(rows), pa.timestamp("us", tz="UTC"))}), tmp_path / "a.parquet"
    )
    (tmp_path / "job.sql").write_text(ENDLESS.format(into=into))
    process = subprocess.Popen(
        [*COMMAND, "run", "job.sql"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while process.poll() is None and not written(tmp_path):
            os.sched_yield()
        assert process.poll() is None, process.communicate()
        process.send_signal(number)
        said, complaint = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code, complaint
    assert files(tmp_path) == ["a.parquet", "job.sql"]
    assert "Traceback" not in complaint
    if number == signal.SIGINT:
        assert complaint == "error: interrupted; nothing is half-written\n" and said == ""


def written(folder: Path) -> bool:
    """Whether some results are on disk, under their hidden name."""
    hidden = [p for p in folder.rglob("*") if p.is_file() and ".tmp" in str(p.relative_to(folder))]
    try:
        return any(p.stat().st_size > 100_000 for p in hidden)
    except FileNotFoundError:
        return False


def test_module_and_script_are_the_same_command() -> None:
    script = Path(sys.executable).with_name("watersmeet")
    for command in (COMMAND, [str(script)]):
        done = subprocess.run([*command, "version"], capture_output=True, text=True, check=True)
        assert done.stdout == "0.1.0\n"


def test_no_arguments_show_the_verbs_and_a_wrong_verb_is_a_usage_error() -> None:
    shown = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert all(verb in shown.stdout + shown.stderr for verb in ("demo", "run", "explain", "version"))
    wrong = subprocess.run([*COMMAND, "rum"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "rum" in wrong.stderr and "Traceback" not in wrong.stderr


def test_output_to_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m watersmeet --help | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert "Traceback" not in done.stderr


def test_import_loads_a_few_modules() -> None:
    """Of ours the package alone, and a handful of the standard library."""
    code = "import sys; before = set(sys.modules); import watersmeet; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert {m for m in loaded if m.split(".")[0] not in sys.stdlib_module_names} == {"watersmeet"}
    assert len(loaded) < 20, loaded


def test_import_loads_nothing_heavy() -> None:
    heavy = "numba numpy pandas pyarrow pyspark scipy matplotlib sqlglot rich typer"
    code = (
        f"import sys, watersmeet, watersmeet.cli.app; print(*[m for m in '{heavy}'.split()[:-1] if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_stream_needs_no_numba_in_the_driver() -> None:
    code = "import sys, watersmeet.spark.stream, watersmeet.spark.processor; print(*({'numba', 'scipy', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_run_shows_odd_values_in_a_narrow_terminal(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("text", pa.string()), ("flag", pa.bool_()), ("none", pa.int64()),
                        ("x", pa.float64()), ("ts", pa.timestamp("us", tz="UTC"))])  # fmt: skip
    row = {"k": 1, "text": "[bold]a\nb", "flag": True, "none": None, "x": 0.1, "ts": 0}
    write_table(pa.Table.from_pylist([row], schema), tmp_path / "a.parquet")
    (tmp_path / "job.sql").write_text(
        "CREATE STREAM a (k BIGINT, text STRING, flag BOOLEAN, none BIGINT, x DOUBLE, ts TIMESTAMP) "
        "FROM 'a.parquet' FORMAT parquet; "
        "SELECT a.k, a.text, a.none, a.flag, a.x FROM a [ROWS 1], a [ROWS 1] AS b WHERE a.k = b.k;"
    )
    shown = {}
    for width in ("100", "30", "5"):
        environment = {**os.environ, "COLUMNS": width}
        done = subprocess.run(
            [*COMMAND, "run", "job.sql"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        shown[width] = done.stdout
    assert [line.split() for line in shown["100"].splitlines() if "bold" in line] == [
        ["1", r"[bold]a\nb", "NULL", "true", "0.1", "1970-01-01", "00:00:00"]
    ]
    assert r"[bold]a\nb" in shown["30"] and "columns that don't fit: flag, x, result_ts" in shown["30"]
    assert "columns that don't fit: text, none, flag, x, result_ts" in shown["5"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without rights")
def test_run_refuses_folders_without_permission(open_folder: Path) -> None:
    """As a user who may look but not touch."""
    tmp_path = open_folder
    write_table(pa.table({"k": [1], "ts": pa.array([1], pa.timestamp("us", tz="UTC"))}), tmp_path / "a.parquet")
    (tmp_path / "job.sql").write_text(ENDLESS.format(into="out/"))
    (tmp_path / "secret").mkdir(mode=0o700)
    (tmp_path / "secret" / "a.csv").write_text("k,ts\n")
    (tmp_path / "closed.csv").write_text("k,ts\n")
    (tmp_path / "closed.csv").chmod(0o600)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    cases = [
        ("run job.sql", "output (out/): can't be written: Permission denied"),
        ("run job.sql --into secret/o.csv", "output (secret/o.csv): can't be written: Permission denied"),
        ("run secret/job.sql", "can't read the job file secret/job.sql: Permission denied"),
        ("run job.sql --into open/o.csv --input a=secret/a.csv", "a: can't read 'secret/a.csv': Permission denied"),
        ("run job.sql --into open/o.csv --input a=closed.csv", "a (closed.csv): can't be read: Permission denied"),
        (
            "demo --out secret",
            "can't write to the folder 'secret': Permission denied\n  give another with --out FOLDER",
        ),
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS, *(arguments for arguments, _ in cases)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [[1, f"error: {message}\n"] for _, message in cases]
    assert files(tmp_path) == ["a.csv", "a.parquet", "closed.csv", "job.sql", "open", "secret"]


# One good run loads what the command needs; then the rights are given up. (Python itself may lie in root's home.)
WITHOUT_RIGHTS = """
import json, os, sys, zoneinfo
import watersmeet.cli.demo, watersmeet.cli.demo_data
from typer.testing import CliRunner
from watersmeet.cli.app import app
good = CliRunner().invoke(app, ["run", "job.sql", "--into", "warm.csv"])
assert good.exit_code == 0, good.output
os.unlink("warm.csv")
os.setgroups([]), os.setegid(65534), os.seteuid(65534)
ended = [CliRunner().invoke(app, arguments.split()) for arguments in sys.argv[1:]]
print(json.dumps([[e.exit_code, e.stderr] for e in ended]))
"""
