"""Where `watersmeet run` writes and what it says: --into, --quiet, --json, and options that are for Spark alone."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import watersmeet
from tests.cli.test_run import JOB, call
from tests.cli.test_run import folder as _folder

folder = _folder
ROW = {"id": 1, "amount": 5.0, "delay": 600_000_000, "result_ts": "2026-01-31T12:10:00.000000Z"}


@pytest.mark.parametrize(
    ("format", "into", "file"),
    [
        ("csv", "other", "other/part-00000.csv"),
        ("json", "other/", "other/part-00000.jsonl"),
        ("csv", "other.parquet", "other.parquet"),
        ("parquet", "other", "other/part-00000.parquet"),
    ],
)
def test_into_keeps_the_format_unless_its_suffix_names_one(folder: Path, format: str, into: str, file: str) -> None:
    Path("job.sql").write_text(JOB.replace("INTO 'out/' FORMAT parquet", f"INTO 'out/' FORMAT {format}"))
    assert call("run", "job.sql", "--into", into).exit_code == 0
    assert Path(file).is_file()
    assert not Path("out").exists()


@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_into_stdout_writes_results_alone_there(folder: Path, format: str) -> None:
    before = sorted(folder.iterdir())
    Path("job.sql").write_text(JOB.replace("'out/' FORMAT parquet", f"'out/' FORMAT {format}"))
    result = call("run", "job.sql", "--into", "-")
    assert result.exit_code == 0, result.output
    if format == "csv":
        assert result.stdout.splitlines()[0] == '"id","amount","delay","result_ts"'
        assert len(result.stdout.splitlines()) == 2
    else:
        assert json.loads(result.stdout) == ROW
    assert f"written to  stdout as {'csv' if format == 'csv' else 'json'} (" in result.stderr
    assert sorted(folder.iterdir()) == before


def test_into_stdout_writes_nothing_if_the_job_fails(folder: Path) -> None:
    Path("orders.csv").write_text("id,ts\nx,2026-01-31 12:00:00\n")
    result = call("run", "job.sql", "--into", "-")
    assert (result.exit_code, result.stdout) == (1, "")


def test_quiet_says_nothing_but_warnings_and_errors(folder: Path) -> None:
    result = call("run", "job.sql", "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert Path("out/part-00000.parquet").is_file()
    refused = call("run", "job.sql", "--quiet")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: output (out/): exists already")
    assert "results     1" in call("run", "job.sql", "--overwrite").stdout  # and it is over after the run


def test_quiet_lets_warnings_through(folder: Path) -> None:
    Path("job.sql").write_text(JOB.replace("WHERE o.id = p.order_id\n", ""))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = call("run", "job.sql", "-q")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("warning: a cross product: o | p: no condition links them")


def test_json_reports_the_run_as_one_object(folder: Path) -> None:
    result = call("run", "job.sql", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert told["job"] == "job.sql"
    assert told["engine"] == "process"
    assert watersmeet.Plan.parse(told["plan"]).kind == "mjoin"
    assert (told["metrics"]["results"], told["metrics"]["tuples_in"]) == (1, 4)
    assert told["written"] == ["out/part-00000.parquet"]
    assert set(told["seconds"]) == {"read", "load", "run"}
    assert isinstance(told["events"], list)


def test_json_and_results_do_not_share_stdout(folder: Path) -> None:
    result = call("run", "job.sql", "--json", "--into", "-")
    assert result.exit_code == 2
    assert "both --json and --into - write to stdout" in result.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--checkpoint", "c"),
        ("--trigger", "1 second"),
        ("--cells", "3"),
        ("--stats", "s.json"),
        ("--conf", "spark.x=1"),
    ],
)
def test_options_for_spark_say_that_they_need_a_master(folder: Path, option: str, value: str) -> None:
    result = call("run", "job.sql", option, value)
    assert result.exit_code == 2
    assert f"{option}: it is for Spark: give --master, too" in result.stderr
    assert not Path("out").exists()


def test_spark_does_not_write_to_stdout(folder: Path) -> None:
    result = call("run", "job.sql", "--master", "local[2]", "--into", "-")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: --into -: Spark writes from many processes")


def test_version_is_an_option_too() -> None:
    assert call("--version").stdout == call("version").stdout == f"{watersmeet.__version__}\n"


def test_shells_can_complete() -> None:
    assert "--install-completion" in call("--help").stdout
