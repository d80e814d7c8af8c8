"""`watersmeet run`: rows that are no results have a place too, and no output takes the place of an input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from watersmeet.cli.app import app

JOB = """\
CREATE STREAM orders (id BIGINT, ts TIMESTAMP) FROM 'orders' FORMAT csv OPTIONS ('maxFilesPerTrigger' = '1') {0};
CREATE STREAM payments (id BIGINT, ts TIMESTAMP) FROM 'payments.csv' FORMAT csv;
SELECT o.id FROM orders [RANGE 10 MINUTES] AS o, payments [RANGE 5 MINUTES] AS p WHERE o.id = p.id AND o.id > 1
{1}
"""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files of orders: the second, by its time, has a row that comes too late, and one that is bad."""
    monkeypatch.chdir(tmp_path)
    Path("orders").mkdir()
    rows = {
        "b.csv": "1,2026-01-31T12:00\n2,2026-01-31T12:05\n",
        "a.csv": "3,2026-01-31T12:04\n,soon\n1,2026-01-31T12:03\n",
    }
    for moment, (name, text) in enumerate({**rows, "c.csv": "5,2026-01-31T12:06\n"}.items()):
        Path("orders", name).write_text(f"id,ts\n{text}")
        os.utime(Path("orders", name), (1e9 + moment, 1e9 + moment))
    Path("payments.csv").write_text("id,ts\n" + "".join(f"{i},2026-01-31T12:0{i}\n" for i in range(1, 7)))
    return tmp_path


def job(rest: str = "ON BAD ROW SKIP", end: str = "") -> None:
    Path("job.sql").write_text(JOB.format(rest, end))


def lines(path: str) -> list[dict[str, object]]:
    files = [Path(path)] if Path(path).is_file() else sorted(Path(path).iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_run_counts_late_and_bad_rows_and_says_what_to_do(folder: Path) -> None:
    job()
    done = call("run", "job.sql", "--rows", "0")
    assert done.exit_code == 0, done.output
    said = {line[:12].strip(): line[12:] for line in done.stdout.splitlines()}
    assert said["results"] == "2" and said["bad rows"] == "1 of orders, left out"
    assert said["late rows"] == "2 of orders, left out; LATE INTO 'path' would keep them"
    assert said[""] == "to wait longer for such rows, give orders a larger LATENESS"
    job("ON BAD ROW SKIP LATENESS 2 MINUTES")
    done = call("run", "job.sql", "--rows", "0")
    assert "late" not in done.stdout and "results     3" in done.stdout.splitlines()


def test_run_writes_late_and_bad_rows(folder: Path) -> None:
    job("ON BAD ROW INTO 'aside/bad.json'", "LATE INTO 'aside/late' EMIT ISTREAM INTO 'out' FORMAT json")
    done = call("run", "job.sql")
    assert done.exit_code == 0, done.output
    assert lines("aside/bad.json") == [
        {"stream": "orders", "file": "orders/a.csv", "row": 2, "line": 3, "column": "ts", "reason": "'soon' is not a TIMESTAMP",
         "text": ",soon"}
    ]  # fmt: skip
    assert lines("aside/late") == [
        {
            "stream": "orders",
            "ts": "2026-01-31T12:04:00.000000Z",
            "row": '{"id": 3, "ts": "2026-01-31T12:04:00.000000Z"}',
        },
        {
            "stream": "orders",
            "ts": "2026-01-31T12:03:00.000000Z",
            "row": '{"id": 1, "ts": "2026-01-31T12:03:00.000000Z"}',
        },
    ]
    again = call("run", "job.sql")
    assert again.exit_code == 1 and "exists already" in again.stderr
    assert call("run", "job.sql", "--overwrite").exit_code == 0 and len(lines("aside/late")) == 2


def test_run_stops_at_a_bad_row_unless_told_otherwise(folder: Path) -> None:
    job("", "LATE INTO 'late' EMIT ISTREAM INTO 'out' FORMAT csv")
    before = sorted(folder.rglob("*"))
    done = call("run", "job.sql")
    assert done.exit_code == 1
    assert done.stderr == "error: orders (orders/a.csv), row 2 (line 3), column 'ts': 'soon' is not a TIMESTAMP\n"
    assert sorted(folder.rglob("*")) == before
    Path("job.sql").write_text(JOB.format("", "").replace("'1'", "'none'"))
    assert call("run", "job.sql").stderr.startswith("error: orders: option 'maxFilesPerTrigger' is 'none'\n")


@pytest.mark.parametrize(
    ("into", "other"),
    [
        ("payments.csv", "'payments' is read from 'payments.csv'"),
        ("./orders/../payments.csv", "'payments' is read from 'payments.csv'"),
        ("link.csv", "'payments' is read from 'payments.csv'"),
        ("orders", "'orders' is read from 'orders'"),
        ("orders/d.csv", "'orders' is read from 'orders'"),
        ("elsewhere/d.csv", "'orders' is read from 'orders'"),
        (".", "'orders' is read from 'orders'"),
    ],
)
def test_run_never_writes_over_what_it_reads(folder: Path, into: str, other: str) -> None:
    Path("link.csv").symlink_to("payments.csv")
    Path("elsewhere").symlink_to("orders")
    kept = {f: f.read_bytes() for f in folder.rglob("*.csv")}
    for clause in ("EMIT ISTREAM INTO", "LATE INTO"):
        job("ON BAD ROW SKIP", f"{clause} '{into}' FORMAT csv")
        for how in (("--overwrite",), (), ("--master", "local[2]", "--into", "fine")):
            if "--master" in how and clause != "LATE INTO":
                continue
            done = call("run", "job.sql", *how)
            assert done.exit_code == 1
            assert done.stderr == (
                f"error: {clause.removeprefix('EMIT ISTREAM ')} '{into}': {other}\n"
                "  what is written must lie apart from that: name another place\n"
            )
    job(f"ON BAD ROW INTO '{into}' FORMAT csv")
    assert call("run", "job.sql", "--overwrite").stderr.startswith(f"error: ON BAD ROW INTO '{into}': {other}\n")
    assert {f: f.read_bytes() for f in folder.rglob("*.csv")} == kept


def test_run_keeps_its_outputs_apart(folder: Path) -> None:
    job("ON BAD ROW INTO 'aside'", "LATE INTO 'aside' EMIT ISTREAM INTO 'out' FORMAT json")
    assert call("run", "job.sql").stderr.startswith(
        "error: ON BAD ROW INTO 'aside': LATE INTO 'aside' is written too\n"
    )
