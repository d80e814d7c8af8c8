"""`watersmeet run`: results where INTO says, and a kind word and exit code 1 for every mistake a user can make."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from watersmeet.cli.app import app
from watersmeet.data import as_table, schema_of, write_table
from watersmeet.model.types import Field, Schema, Type

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
JOB = """\
CREATE STREAM orders (id BIGINT, ts TIMESTAMP) FROM 'orders.csv' FORMAT csv;
CREATE STREAM payments (order_id BIGINT, amount DOUBLE, ts TIMESTAMP) FROM 'payments.parquet' FORMAT parquet;
SELECT o.id, p.amount, p.ts - o.ts AS delay
FROM orders [RANGE 10 MINUTES] AS o, payments [RANGE 5 MINUTES] AS p
WHERE o.id = p.order_id
EMIT ISTREAM INTO 'out/' FORMAT parquet;
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a job and its data: order 1 is paid in time, order 2 too late."""
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text(JOB)
    Path("orders.csv").write_text("id,ts\n1,2026-01-31 12:00:00\n2,2026-01-31 12:00:01\n")
    payments = [{"order_id": 1, "amount": 5.0, "ts": NOON + dt.timedelta(minutes=10)},
                {"order_id": 2, "amount": 7.0, "ts": NOON + dt.timedelta(minutes=11)}]  # fmt: skip
    write_table(as_table(payments, "payments"), "payments.parquet")
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def refusal(*arguments: str) -> str:
    """What is said on stderr, given that the command fails as it should: code 1 and no output left behind."""
    before = sorted(Path.cwd().rglob("*"))
    result = call(*arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert sorted(Path.cwd().rglob("*")) == before
    return result.stderr


def test_run_writes_results_and_says_where(folder: Path) -> None:
    result = call("run", "job.sql")
    assert result.exit_code == 0, result.output
    assert pq.read_table("out/part-00000.parquet").to_pylist() == [
        {"id": 1, "amount": 5.0, "delay": 600_000_000, "result_ts": NOON + dt.timedelta(minutes=10)}
    ]
    lines = result.stdout.splitlines()
    assert any(line.split() == ["1", "5", "0:10:00", "2026-01-31", "12:10:00"] for line in lines)
    assert any(line.startswith("rows in     4,") for line in lines)
    assert "results     1" in lines
    assert any(line.startswith("written to  out/part-00000.parquet (") for line in lines)
    assert sorted(p.name for p in folder.iterdir()) == ["job.sql", "orders.csv", "out", "payments.parquet"]


@pytest.mark.parametrize("plan", ["mjoin", "xjoin", "(o p)", "(p o)"])
def test_run_gives_the_same_answer_by_every_plan(folder: Path, plan: str) -> None:
    assert call("run", "job.sql", "--plan", plan).exit_code == 0
    assert pq.read_table("out").column("id").to_pylist() == [1]


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet"])
def test_run_writes_elsewhere_if_told_so(folder: Path, name: str) -> None:
    assert call("run", "job.sql", "--into", name).exit_code == 0
    assert as_table(name, "r", schema_of(pa.schema([("id", pa.int64())]))).to_pydict() == {"id": [1]}
    assert not Path("out").exists()


def test_run_writes_changes(folder: Path) -> None:
    Path("job.sql").write_text(
        JOB.replace("EMIT ISTREAM INTO 'out/' FORMAT parquet", "EMIT CHANGES INTO 'out.json' FORMAT json")
    )
    result = call("run", "job.sql")
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in Path("out.json").read_text().splitlines()]
    assert [(row["id"], row["change"]) for row in found] == [(1, "insert"), (1, "delete")]


def test_run_without_into_shows_the_first_rows_only(folder: Path) -> None:
    Path("job.sql").write_text(
        JOB.replace(" INTO 'out/' FORMAT parquet", "").replace("p.order_id", "p.order_id % 1 + o.id")
    )
    result = call("run", "job.sql", "--rows", "1")
    assert result.exit_code == 0, result.output
    assert "... and 1 more results" in result.stdout
    assert "written to  nowhere: the job names no INTO (or give --into PATH)" in result.stdout
    assert call("run", "job.sql", "--rows", "0").stdout.startswith("rows in ")


def test_run_of_empty_streams_writes_an_empty_output(folder: Path) -> None:
    Path("orders.csv").write_text("id,ts\n")
    assert call("run", "job.sql").exit_code == 0
    assert pq.read_table("out").schema.names == ["id", "amount", "delay", "result_ts"]
    assert pq.read_table("out").num_rows == 0


def test_run_takes_inputs_by_name(folder: Path) -> None:
    Path("more.csv").write_text("id,ts\n2,2026-01-31 12:05:00\n")
    assert call("run", "job.sql", "--input", "orders=more.csv").exit_code == 0
    assert pq.read_table("out").column("id").to_pylist() == [2]
    assert refusal("run", "job.sql", "--into", "x/", "--input", "ordrs=more.csv") == (
        "error: --input ordrs=more.csv: the query has no stream or table 'ordrs'\n  did you mean 'orders'?\n"
    )
    assert refusal("run", "job.sql", "--into", "x/", "--input", "orders") == (
        "error: --input orders: expected NAME=PATH, for example --input orders=data/orders.parquet\n"
    )


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet", "r/"])
def test_run_writes_every_type(folder: Path, name: str) -> None:
    kinds = ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(6, 2)")
    row = {
        "c0": 1,
        "c1": 0.5,
        "c2": "ü, x",
        "c3": True,
        "c4": "2026-01-31",
        "c5": "2026-01-31T12:00:00Z",
        "c6": "-1.25",
    }
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    Path("a.json").write_text(
        json.dumps({"ts": "2026-01-31", **row}) + "\n" + json.dumps({"ts": "2026-01-31", "c0": 2}) + "\n"
    )
    Path("job.sql").write_text(
        f"CREATE STREAM a ({columns}, ts TIMESTAMP) FROM 'a.json' FORMAT json; "
        "SELECT a.c0, a.c1, a.c2, a.c3, a.c4, a.c5, a.c6, b.ts - a.ts AS age FROM a [ROWS 9], a [ROWS 9] AS b WHERE a.c0 = b.c0"
    )
    assert call("run", "job.sql", "--into", name).exit_code == 0
    schema = Schema(tuple(Field(f"c{i}", Type.parse(kind)) for i, kind in enumerate(kinds)))
    expected = {"c0": 1, "c1": 0.5, "c2": "ü, x", "c3": True, "c4": NOON.date(), "c5": NOON, "c6": Decimal("-1.25")}
    none = {**dict.fromkeys(expected), "c0": 2}
    assert as_table(name, "r", schema).to_pylist() == [expected, none]


def test_run_refuses_a_wrong_query_with_its_place(folder: Path) -> None:
    Path("job.sql").write_text(JOB.replace("o.id = p", "o.idd = p"))
    said = refusal("run", "job.sql")
    assert said.startswith("error: job.sql, line 5, column 7: 'o' has no column 'idd'\n  WHERE o.idd = p.order_id\n")
    assert said.endswith("\n        ^\n  did you mean 'id'?\n")
    Path("job.sql").write_text("SELECT a.k FROM a [ROWS 1], b [ROWS 1] WHERE a.k = b.k")
    assert refusal("run", "job.sql") == (
        "error: job.sql, line 1, column 17: unknown stream 'a'\n"
        "  SELECT a.k FROM a [ROWS 1], b [ROWS 1] WHERE a.k = b.k\n"
        "                  ^\n"
        "  declare it with CREATE STREAM or pass it by name\n"
    )


def test_run_refuses_job_files_that_are_none(folder: Path) -> None:
    assert refusal("run", "no.sql") == "error: can't read the job file no.sql: No such file or directory\n"
    assert refusal("run", ".") == "error: can't read the job file .: Is a directory\n"
    Path("empty.sql").write_text("\n")
    assert refusal("run", "empty.sql") == (
        "error: empty.sql is empty\n  a job file holds CREATE STREAM statements and one SELECT\n"
    )
    Path("binary.sql").write_bytes(b"\xff\xfe\x00")
    assert refusal("run", "binary.sql") == "error: binary.sql is not a text file in UTF-8\n"


def test_run_refuses_missing_empty_and_damaged_inputs(folder: Path) -> None:
    Path("orders.csv").unlink()
    assert refusal("run", "job.sql") == (
        f"error: orders: there is no file or folder 'orders.csv'\n  paths are relative to the current directory: {folder}\n"
    )
    Path("orders.csv").write_text("\n")
    assert refusal("run", "job.sql").startswith("error: orders (orders.csv): is empty: not even a header line\n")
    Path("orders.csv").write_text("id,ts\n1,2026-01-31\nx,2026-01-31\n")
    assert refusal("run", "job.sql") == "error: orders (orders.csv), row 2 (line 3), column 'id': 'x' is not a BIGINT\n"
    Path("orders.csv").write_text("id,ts\n1,\n")
    assert "NULL, but every row of a stream needs its timestamp" in refusal("run", "job.sql")
    Path("orders.csv").write_text("id,ts\n1,2026-01-31\n")
    Path("payments.parquet").write_bytes(b"PAR1")
    assert refusal("run", "job.sql").startswith(
        "error: payments (payments.parquet): is damaged or is not a Parquet file\n"
    )


def test_run_refuses_a_stream_without_a_place(folder: Path) -> None:
    Path("job.sql").write_text(JOB.replace(" FROM 'orders.csv' FORMAT csv", ""))
    assert refusal("run", "job.sql") == (
        "error: orders: its declaration does not say where its rows are\n"
        "  add FROM 'path' FORMAT parquet to it, or give --input orders=PATH\n"
    )


def test_run_refuses_an_output_that_exists_unless_told_to_overwrite(folder: Path) -> None:
    assert call("run", "job.sql").exit_code == 0
    assert refusal("run", "job.sql") == (
        "error: output (out/): exists already and holds 1 file\n  give --overwrite to replace it, or name another INTO\n"
    )
    assert call("run", "job.sql", "--overwrite").exit_code == 0
    Path("orders.csv").write_text("id,ts\nx,\n")
    assert call("run", "job.sql", "--overwrite").exit_code == 1
    assert pq.read_table("out").num_rows == 1, "a run that fails leaves the old output"


def test_run_refuses_an_output_that_can_not_be_written(folder: Path) -> None:
    assert refusal("run", "job.sql", "--into", "orders.csv/out.csv") == (
        "error: output (orders.csv/out.csv): can't be written: Not a directory\n"
    )


def test_run_refuses_a_wrong_plan(folder: Path) -> None:
    assert refusal("run", "job.sql", "--plan", "((o p)").startswith("error: ")
    assert refusal("run", "job.sql", "--plan", "(o x)").startswith("error: ")


def test_run_reports_a_value_that_stops_the_query(folder: Path) -> None:
    Path("job.sql").write_text(JOB.replace("p.amount,", "p.amount, 1 % (o.id - 1) AS boom,"))
    assert "zero" in refusal("run", "job.sql")
