"""The command line on Spark: Ctrl-C and the same command again, every kind of source and trigger, learn, and errors in words."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import watersmeet as wm
from watersmeet.cli.app import app
from watersmeet.data import write_table
from watersmeet.model.query import Location
from watersmeet.spark.run import SparkJob
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", tz="UTC")
ROOT = Path(__file__).parents[2]
QUERY = "SELECT R.a, R.ts AS r, S.ts AS s FROM R [RANGE 8 SECONDS], S [ROWS 30] WHERE R.a = S.a"


def declared(name: str, place: str, rest: str = "") -> str:
    return f"CREATE STREAM {name} (a BIGINT, ts TIMESTAMP) FROM {place} {rest};\n"


def rows(low: int, high: int, seed: int = 1) -> pa.Table:
    """Two rows a second, in order of time."""
    rng = Random(seed)
    times = [t * 500_000 for t in range(2 * low, 2 * high)]
    return pa.table({"a": [rng.randint(0, 5) for _ in times], "ts": pa.array(times, UTC)})


def put(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    moment = 1e9 + sum(1 for _ in path.parent.iterdir())  # Spark takes files by their time
    os.utime(path, (moment, moment))


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for query in spark.streams.active:
        query.stop()


def answer(spark: SparkSession, out: Path, schema: pa.Schema) -> pa.Table:
    return spark.read.parquet(str(out)).toArrow().select(schema.names).cast(schema)


# As a process of its own


def command(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """`watersmeet ...` as a terminal starts it: in a process group that Ctrl-C goes to."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    known = {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(
        [sys.executable, "-m", "watersmeet", *arguments], cwd=folder, env=os.environ | known | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def daemons(session: int) -> list[int]:
    """The daemons of Python workers in a session of processes; Spark has one for each environment that it asks for."""
    found: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent, _, of = map(int, (process / "stat").read_text().rpartition(")")[2].split()[1:4])
            words = (process / "cmdline").read_text().split("\0")
        except OSError:
            continue  # it has ended, or is another's
        if of == session and words[1:3] == ["-m", "watersmeet.spark.daemon"]:
            found[int(process.name)] = parent
    return [process for process, parent in found.items() if parent not in found]  # the others are workers


def test_spark_goes_on_after_ctrl_c(spark: SparkSession, tmp_path: Path) -> None:
    """Interrupted in mid-run, then started again: each result is there once."""
    files = 20
    whole = {}
    for number, name in enumerate("RS"):
        pieces = [rows(10 * i, 10 * i + 10, seed=100 * number + i) for i in range(files)]
        for i, piece in enumerate(pieces):
            put(tmp_path / name / f"{i:03d}.parquet", piece)
        whole[name] = pa.concat_tables(pieces)
    place = "FORMAT parquet OPTIONS ('maxFilesPerTrigger' = '1')"
    text = declared("R", f"'R' {place}") + declared("S", f"'S' {place}", "LATENESS 2 SECONDS")
    (tmp_path / "job.sql").write_text(f"{text}{QUERY} EMIT ISTREAM INTO 'out' FORMAT parquet")
    arguments = ("run", "job.sql", "--master", "local[2,4]", "--checkpoint", "kept", "--conf", "spark.driver.memory=1g")
    seen: list[int] = []
    for interrupted in (True, False):
        process = command(tmp_path, *arguments)
        told = []
        try:
            assert process.stderr is not None
            for line in process.stderr:
                told.append(line)
                if line.startswith("batch "):
                    seen.append(int(line.split()[1].rstrip(":")))
                    if interrupted:
                        assert len(daemons(process.pid)) == 1, "rows are packed and joined by the same workers"
                        os.killpg(process.pid, signal.SIGINT)
                        break
            said, rest = process.communicate(timeout=120)
        finally:
            os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
            process.wait()
        complaint = "".join(told) + rest
        assert "Traceback" not in complaint, complaint
        assert process.returncode == (130 if interrupted else 0), complaint
        assert ("nothing is lost: the same command goes on from kept" in said) == interrupted
        assert len(list((tmp_path / "kept" / "commits").glob("[0-9]*"))) < files or not interrupted
    assert max(seen) >= files - 1
    expected = wm.oracle(text + QUERY, whole)
    assert (wrong := same_rows(answer(spark, tmp_path / "out", expected.schema), expected)) is None, wrong
    assert expected.num_rows > 100


def test_spark_says_that_executors_have_no_numba(tmp_path: Path) -> None:
    """Workers run a Python in which numba can't be imported; the driver's has it."""
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text("import sys\nsys.modules['numba'] = None\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/without:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    for name in "RS":
        put(tmp_path / name / "0.parquet", rows(0, 10))
    text = declared("R", "'R' FORMAT parquet") + declared("S", "'S' FORMAT parquet") + QUERY
    (tmp_path / "job.sql").write_text(f"{text} EMIT ISTREAM INTO 'out' FORMAT parquet")
    process = command(tmp_path, "run", "job.sql", "--master", "local[2]", PYSPARK_PYTHON=str(python))
    try:
        _, complaint = process.communicate(timeout=200)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "error: numba is not installed in the Python that runs here" in complaint, complaint
    assert "ship the environment with the job (docs/deploy.md)" in complaint
    assert "Traceback" not in complaint and "pickle" not in complaint, complaint


# In the session of the tests, which runs in another folder


def test_spark_runs_orc_json_and_lines(spark: SparkSession, folder: Path) -> None:
    tables = {n: rows(0, 30, seed) for seed, n in enumerate("RST")}
    (folder / "R").mkdir()
    pyarrow.orc.write_table(tables["R"], folder / "R" / "0.orc")
    write_table(tables["S"], folder / "S.jsonl")
    write_table(tables["T"], folder / "T.jsonl")
    text = (
        declared("R", f"'{folder}/R' FORMAT orc")
        + declared("S", f"'{folder}/S.jsonl' FORMAT json")
        + declared("T", f"'{folder}/T.jsonl' FORMAT text")
    )
    query = (
        "SELECT R.a, R.ts AS r, S.ts AS s, T.ts AS t FROM R [RANGE 3 SECONDS], S [RANGE 3 SECONDS], T [ROWS 9]"
        " WHERE R.a = S.a AND S.a = T.a"
    )
    Path("job.sql").write_text(f"{text}{query} EMIT ISTREAM INTO '{folder}/out' FORMAT parquet")
    done = call("run", "job.sql", "--master", "local[2]")
    assert done.exit_code == 0, done.output
    expected = wm.oracle(text + query, tables)
    assert (wrong := same_rows(answer(spark, folder / "out", expected.schema), expected)) is None, wrong
    assert expected.num_rows > 20
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["rows", "in", "180"] in lines and ["results", str(expected.num_rows)] in lines
    assert not spark.sparkContext._jsc.sc().isStopped(), "a session that was there before stays"


class Enough(Exception):
    """Raised to stop a job that has no end."""


def until(rows: int, job: SparkJob, spark: SparkSession) -> None:
    """Run a job until so many rows have come in."""
    came = 0

    def count(batch: Mapping[str, Any]) -> None:
        nonlocal came
        came += batch["rows"]
        if came >= rows:
            raise Enough

    with pytest.raises(Enough):
        job.run(spark, count)


def test_spark_reads_lines_from_a_socket(spark: SparkSession, folder: Path) -> None:
    table = rows(0, 20)
    lines = [json.dumps({"a": r["a"], "ts": r["ts"].isoformat()}) for r in table.to_pylist()]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            taken, _ = server.accept()
            with taken:
                taken.sendall("".join(f"{line}\n" for line in lines).encode())
                taken.recv(1)  # until the other side goes

        Thread(target=serve, daemon=True).start()
        place = f"'' FORMAT socket OPTIONS ('host' = '127.0.0.1', 'port' = '{server.getsockname()[1]}')"
        text = (
            declared("R", place)
            + "SELECT x.a, x.ts AS x, y.ts AS y FROM R [RANGE 2 SECONDS] AS x, R [ROWS 4] AS y WHERE x.a = y.a"
        )
        job = SparkJob(wm.parse(text), Location(f"{folder}/out", "parquet"), f"{folder}/kept")
        assert not job.bounded
        until(table.num_rows, job, spark)
    expected = wm.oracle(text, {"R": table.slice(0, table.num_rows - 1)})  # the last one waits for ever
    assert (wrong := same_rows(answer(spark, folder / "out", expected.schema), expected)) is None, wrong


def test_spark_reads_a_rate(spark: SparkSession, folder: Path) -> None:
    text = (
        "CREATE STREAM R (value BIGINT, timestamp TIMESTAMP) FROM '' FORMAT rate OPTIONS ('rowsPerSecond' = '50') TIMESTAMP timestamp;"
        "SELECT x.value, y.value AS other FROM R [RANGE 1 SECOND] AS x, R [RANGE 1 SECOND] AS y WHERE x.value = y.value"
    )
    until(100, SparkJob(wm.parse(text), Location(f"{folder}/out", "parquet"), f"{folder}/kept", "0 seconds"), spark)
    found = spark.read.parquet(f"{folder}/out").orderBy("value").toArrow()
    assert (
        found["value"].to_pylist() == found["other"].to_pylist() == list(range(found.num_rows)) and found.num_rows > 10
    )


def test_spark_triggers_may_change_from_start_to_start(spark: SparkSession, folder: Path) -> None:
    """What is there now, then by an interval, then to the end: what waits goes on waiting in between."""
    text = declared("R", f"'{folder}/R' FORMAT parquet") + declared("S", f"'{folder}/S' FORMAT parquet") + QUERY
    pieces: dict[str, list[pa.Table]] = {"R": [], "S": []}

    def job(trigger: str | None) -> SparkJob:
        at = len(pieces["R"])
        for seed, name in enumerate("RS"):
            pieces[name].append(rows(10 * at, 10 * at + 10, seed=10 * seed + at))
            put(folder / name / f"{at}.parquet", pieces[name][-1])
        return SparkJob(wm.parse(text), Location(f"{folder}/out", "parquet"), f"{folder}/kept", trigger)

    told: list[Mapping[str, Any]] = []
    job("available-now").run(spark, told.append)
    assert told[-1]["waiting_rows"] > 0
    until(40, job("0 seconds"), spark)
    job(None).run(spark, told.append)
    assert told[-1]["waiting_rows"] == 0
    expected = wm.oracle(text, {n: pa.concat_tables(t) for n, t in pieces.items()})
    assert (wrong := same_rows(answer(spark, folder / "out", expected.schema), expected)) is None, wrong
    assert expected.num_rows > 20


def test_spark_runs_over_an_empty_folder(spark: SparkSession, folder: Path) -> None:
    put(folder / "S" / "0.parquet", rows(0, 5))
    (folder / "R").mkdir()
    text = declared("R", f"'{folder}/R' FORMAT parquet") + declared("S", f"'{folder}/S' FORMAT parquet") + QUERY
    Path("job.sql").write_text(f"{text} EMIT ISTREAM INTO '{folder}/out' FORMAT parquet")
    done = call("run", "job.sql", "--master", "local[2]")
    assert done.exit_code == 1 and done.stderr == call("run", "job.sql").stderr, "nothing is there, in process either"
    done = call("run", "job.sql", "--master", "local[2]", "--trigger", "available-now")  # something may come
    assert done.exit_code == 0, done.output
    assert "results     0" in done.stdout.splitlines()


ODD = {
    "kafka": (
        "'' FORMAT kafka OPTIONS ('subscribe' = 'x')",
        "R: FORMAT kafka has no option 'subscribe'\n  the topic is the path",
    ),
    "delta": ("'{0}/R' FORMAT delta", "this Spark knows no FORMAT delta: its package is missing\n"),
    "no parquet": ("'{0}/odd' FORMAT parquet", "R ({0}/odd/0.parquet): is damaged or is not a Parquet file\n"),
    "other type": (
        "'{0}/text' FORMAT parquet",
        "R ({0}/text/0.parquet), column 'a': is STRING, but BIGINT is declared\n",
    ),
    "bad csv": ("'{0}/bad.csv' FORMAT csv", "R ({0}/bad.csv), row 2 (line 3), column 'a': 'x' is not a BIGINT\n"),
    "other header": ("'{0}/other.csv' FORMAT csv", "R ({0}/other.csv): no column 'a'\n"),
    "bad json": (
        "'{0}/bad.json' FORMAT json",
        "R ({0}/bad.json), row 2 (line 2): is not JSON: Expecting value at character 1\n",
    ),
    "bad lines": ("'{0}/bad.json' FORMAT text", "Spark: Malformed records are detected in record parsing"),
    "no time": (
        "'{0}/no_time' FORMAT json",
        "R ({0}/no_time/0.json), row 1 (line 1), column 'ts': NULL, but every row of a stream needs its timestamp",
    ),
    "socket": ("'' FORMAT socket", "Spark: Set a host to read from with option"),
}


@pytest.mark.parametrize("kind", ODD)
def test_spark_says_what_is_wrong_with_a_source(spark: SparkSession, folder: Path, kind: str) -> None:
    place, wanted = ODD[kind]
    for name in "RS":
        put(folder / name / "0.parquet", rows(0, 5))
    put(folder / "text" / "0.parquet", pa.table({"a": ["x"], "ts": pa.array([1], UTC)}))
    (folder / "odd").mkdir()
    (folder / "odd" / "0.parquet").write_bytes(b"PAR1 this is none")
    (folder / "bad.csv").write_text("a,ts\n1,1970-01-01 00:00:01\nx,1970-01-01 00:00:02\n")
    (folder / "other.csv").write_text("b,ts\n1,1970-01-01 00:00:01\n")
    (folder / "bad.json").write_text('{"a": 1, "ts": "1970-01-01T00:00:01Z"}\nnonsense\n')
    (folder / "no_time").mkdir()
    (folder / "no_time" / "0.json").write_text('{"a": 1}\n')
    text = declared("R", place.format(folder)) + declared("S", f"'{folder}/S' FORMAT parquet") + QUERY
    Path("job.sql").write_text(f"{text} EMIT ISTREAM INTO '{folder}/out' FORMAT parquet")
    done = call("run", "job.sql", "--master", "local[2]")
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("error: " + wanted.format(folder)), done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr) < 1000, done.stderr


def test_spark_says_what_is_wrong_with_a_sink(spark: SparkSession, folder: Path) -> None:
    for name in "RS":
        put(folder / name / "0.parquet", rows(0, 5))
    text = declared("R", f"'{folder}/R' FORMAT parquet") + declared("S", f"'{folder}/S' FORMAT parquet") + QUERY
    for form in ("delta", "nonsense"):
        Path("job.sql").write_text(f"{text} EMIT ISTREAM INTO '{folder}/out' FORMAT {form}")
        done = call("run", "job.sql", "--master", "local[2]")
        assert (done.exit_code, done.stderr.split("\n")[0]) == (
            1,
            f"error: this Spark knows no FORMAT {form}: its package is missing",
        )


def test_spark_refuses_a_changed_job_on_an_old_checkpoint(spark: SparkSession, folder: Path) -> None:
    for name in "RS":
        put(folder / name / "0.parquet", rows(0, 5))
    text = declared("R", f"'{folder}/R' FORMAT parquet") + declared("S", f"'{folder}/S' FORMAT parquet") + QUERY
    into = f" EMIT ISTREAM INTO '{folder}/out' FORMAT parquet"
    Path("job.sql").write_text(text + into)
    assert call("run", "job.sql", "--master", "local[2]").exit_code == 0
    put(folder / "R" / "1.parquet", rows(5, 6))
    Path("job.sql").write_text(text.replace("ROWS 30", "ROWS 31") + into)
    done = call("run", "job.sql", "--master", "local[2]")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: the state in this checkpoint belongs to another query\n  query: was "), (
        done.stderr
    )
    assert "ROWS 31" in done.stderr and "start from a new checkpoint" in done.stderr


def test_spark_learns_and_explain_and_run_take_it(spark: SparkSession, folder: Path) -> None:
    for seed, name in enumerate("RS"):
        put(folder / name / "0.parquet", rows(0, 50, seed))
    text = declared("R", f"'{folder}/R' FORMAT parquet") + declared("S", f"'{folder}/S' FORMAT parquet") + QUERY
    Path("job.sql").write_text(f"{text} EMIT ISTREAM INTO '{folder}/out' FORMAT parquet")
    done = call("learn", "job.sql", "--out", "learned.json", "--master", "local[2]")
    assert done.exit_code == 0, done.output
    assert (
        any(line.split()[:3] == ["rate", "of", "R"] for line in done.stdout.splitlines())
        and "learned.json" in done.stdout
    )
    learned = wm.Statistics.load(folder / "learned.json")
    assert learned.rate["R"] == pytest.approx(100 / 49.5) and learned.distinct["R", "a"] == 6
    explained = call("explain", "job.sql", "--stats", "learned.json")
    assert explained.exit_code == 0 and "2.02" in explained.stdout, explained.output
    assert call("run", "job.sql", "--master", "local[2]", "--stats", "learned.json").exit_code == 0
    expected = wm.oracle(text, {n: pq.read_table(folder / n / "0.parquet") for n in "RS"})
    assert (wrong := same_rows(answer(spark, folder / "out", expected.schema), expected)) is None, wrong
