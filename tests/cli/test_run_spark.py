"""`watersmeet run --master` and `learn`: what can not work is said before Spark starts, with exit code 1 and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.test_run import refusal
from watersmeet.spark.check_paths import check_together
from watersmeet.spark.trigger import Trigger

JOB = """\
CREATE STREAM R (a BIGINT, ts TIMESTAMP) FROM 'R' FORMAT parquet;
CREATE STREAM S (a BIGINT, ts TIMESTAMP) FROM 'S.csv' FORMAT csv;
SELECT R.a FROM R [RANGE 10 MINUTES], S [RANGE 5 MINUTES] WHERE R.a = S.a
EMIT ISTREAM INTO 'out' FORMAT parquet;
"""


def _fill(folder: Path) -> None:
    (folder / "job.sql").write_text(JOB)
    (folder / "R").mkdir()
    pq.write_table(pa.table({"a": [1], "ts": pa.array([1], pa.timestamp("us", tz="UTC"))}), folder / "R" / "0.parquet")
    (folder / "S.csv").write_text("a,ts\n1,1970-01-01 00:00:00\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    _fill(tmp_path)
    return tmp_path


def refused(*arguments: str) -> str:
    return refusal("run", "job.sql", "--master", "local[2]", *arguments)


def _change(old: str, new: str) -> None:
    Path("job.sql").write_text(JOB.replace(old, new))


def test_refuses_a_wrong_query_with_its_place(folder: Path) -> None:
    _change("R.a = S.a", "R.a = S.aa")
    assert refused().startswith("error: job.sql, line 3, column 71: 'S' has no column 'aa'\n")
    _change("SELECT R.a FROM", "SELECT R.a FRM")
    assert refused().startswith("error: job.sql, line 3, column 12")


def test_refuses_sources_that_are_not_there(folder: Path) -> None:
    _change("'R'", "'nowhere'")
    assert refused() == (
        f"error: R: there is no file or folder 'nowhere'\n  paths are relative to the current directory: {folder}\n"
    )
    assert (
        refusal("learn", "job.sql")
        == f"error: R: there is no file or folder 'nowhere'\n  paths are relative to the current directory: {folder}\n"
    )
    _change(" FROM 'R' FORMAT parquet", "")
    assert refused().startswith("error: R: its declaration does not say where its rows are\n")
    assert refusal("learn", "job.sql").startswith("error: 'R' has no history to learn from\n")


def test_refuses_parquet_files_without_a_column(folder: Path) -> None:
    _change("R (a BIGINT, ts", "R (a BIGINT, tss STRING, ts")
    assert refused() == "error: R (R/0.parquet): no column 'tss'\n  did you mean 'ts'? found: a, ts\n"


def test_refuses_an_output_that_can_not_be_written(folder: Path) -> None:
    assert (
        refused("--into", "S.csv/out") == "error: output 'S.csv/out': can't be written: S.csv is a file, not a folder\n"
    )
    assert (
        refused("--checkpoint", "S.csv")
        == "error: checkpoint 'S.csv': can't be written: S.csv is a file, not a folder\n"
    )
    _change(" INTO 'out' FORMAT parquet", "")
    assert refused().startswith("error: the job names no INTO: where should Spark write the results?\n")


def test_refuses_an_output_and_a_checkpoint_that_do_not_belong_together(folder: Path) -> None:
    """Results of an old output would be lost or there twice, those of a removed one would never be written again."""
    (folder / "out").mkdir(parents=True)
    check_together("out", "out.checkpoint")  # a start that came to nothing
    (folder / "out" / "part-000000-0000.parquet").touch()
    assert refused().startswith(
        "error: the output 'out' holds files already, and the checkpoint 'out.checkpoint' is new: they do not belong together\n"
    )
    (folder / "out" / "part-000000-0000.parquet").unlink()
    (folder / "out.checkpoint" / "commits").mkdir(parents=True)
    (folder / "out.checkpoint" / "commits" / "0").touch()
    assert refused() == (
        "error: the output 'out' is gone, but the checkpoint 'out.checkpoint' says that results were written there\n"
        "  to start again remove 'out.checkpoint' too\n"
    )
    check_together("late", "out.checkpoint", ours=True, aside=True)  # a job may be given a place for late rows later
    (folder / "out" / "_spark_metadata").mkdir()
    assert refused().startswith("error: the output 'out' was written by Spark's own sink: ")


def test_refuses_options_that_mean_nothing(folder: Path) -> None:
    assert refused("--trigger", "soon") == (
        "error: the trigger 'soon' is none\n  for example '10 seconds' or '1 minute' (for ever), or available-now (what is there)\n"
    )
    assert refused("--conf", "memory=4g") == (
        "error: --conf memory=4g: expected NAME=VALUE, for example --conf spark.driver.memory=4g\n"
    )
    assert refused("--overwrite").startswith("error: --overwrite: on Spark a job goes on from its checkpoint\n")
    assert refused("--input", "Q=R").startswith("error: --input Q=R: the query has no stream or table 'Q'\n")
    assert "nowhere.json" in refused("--stats", "nowhere.json")
    assert refused("--plan", "((R S)").startswith("error: ")
    assert refusal("learn", "job.sql", "--out", "no/where.json") == (
        "error: can't write no/where.json: there is no folder no\n"
    )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("10 seconds", {"processingTime": "10000 milliseconds"}),
        ("1 minute", {"processingTime": "60000 milliseconds"}),
        ("250ms", {"processingTime": "250 milliseconds"}),
        ("0 seconds", {"processingTime": "0 milliseconds"}),
        ("available-now", {"availableNow": True}),
        ("availableNow", {"availableNow": True}),
    ],
)
def test_reads_triggers(text: str, options: dict[str, object]) -> None:
    assert Trigger.parse(text).options == options


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without rights")
def test_refuses_folders_without_permission(open_folder: Path) -> None:
    _fill(open_folder)
    (open_folder / "secret").mkdir(mode=0o700)
    (open_folder / "mixed").mkdir()
    (open_folder / "mixed" / "1.parquet").touch(0o600)
    (open_folder / "open").mkdir()
    (open_folder / "open").chmod(0o777)
    cases = [
        ("--checkpoint open/c", "output 'out': can't be written: Permission denied"),
        ("--into open/out --checkpoint secret/c", "checkpoint 'secret/c': can't be written: Permission denied"),
        ("--into open/out --input R=secret", "R: can't read 'secret': Permission denied"),
        ("--into open/out --input R=mixed", "R (mixed/1.parquet): can't be read: Permission denied"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS, *(arguments for arguments, _ in cases)],
        cwd=open_folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [[1, f"error: {message}\n"] for _, message in cases]


# What the command needs is loaded first. (Python itself may lie in root's home.)
WITHOUT_RIGHTS = """
import json, os, sys
import watersmeet.cli.run_spark, watersmeet.spark.run, watersmeet.lang
from typer.testing import CliRunner
from watersmeet.cli.app import app
CliRunner().invoke(app, ["run", "job.sql", "--master", "local[2]", "--input", "R=nowhere"])
os.setgroups([]), os.setegid(65534), os.seteuid(65534)
told = [CliRunner().invoke(app, ["run", "job.sql", "--master", "local[2]", *a.split()]) for a in sys.argv[1:]]
print(json.dumps([[t.exit_code, t.stderr] for t in told]))
"""
