"""One job file, one answer: messy files give the same rows, or the same words, in process and on Spark; and so do written ones."""

from __future__ import annotations

import gzip
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner, Result

from watersmeet.cli.app import app
from watersmeet.cli.job import Job
from watersmeet.data import arrow_schema, as_table, read_declared, schema_of
from watersmeet.errors import DataError
from watersmeet.lang import parse
from watersmeet.model.query import Declaration
from watersmeet.model.types import EPOCH_UNITS, TIMESTAMP, Field, Schema
from watersmeet.spark.columns import conform
from watersmeet.spark.history import history
from watersmeet.spark.plain_errors import plain_error
from watersmeet.testing import same_rows

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", tz="UTC")
NOON = "2026-01-31T12:00:00Z"
EXAMPLES = Path(__file__).parents[2] / "examples"
COLUMNS = "k STRING, n BIGINT, x DOUBLE, ts TIMESTAMP"

Content = str | bytes | Callable[[Path], None]


def csv(*rows: str) -> str:
    return "\n".join(("k,n,x,ts", *rows)) + "\n"


def json(*rows: str) -> str:
    return "\n".join(rows).replace("NOON", NOON) + "\n"


def parquet(**columns: Any) -> Callable[[Path], None]:
    given: dict[str, Any] = {"k": ["a"], "n": [1], "x": [1.5], "ts": pa.array([1], UTC)} | columns
    return lambda path: pq.write_table(pa.table({n: c for n, c in given.items() if c is not None}), path)


def truncated(path: Path) -> None:
    parquet()(path)
    path.write_bytes(path.read_bytes()[:-9])


# Each file, and how many rows it has; a word of the error where it is refused.
FILES: dict[str, tuple[str, Content, int | str]] = {
    "doubled quotes": ("csv", csv(f'"/p/""x""",1,1,{NOON}'), 1),
    "comma inside quotes": ("csv", csv(f'"a,""b"",c",1,1,{NOON}'), 1),
    "newline inside quotes": ("csv", csv(f'"a\nb",1,1,{NOON}', f'"c\r\nd",2,2,{NOON}'), 2),
    "extra column": ("csv", f"k,n,extra,x,ts\na,1,?,1,{NOON}\n", 1),
    "reordered columns": ("csv", f"ts,X,N,K\n{NOON},1,2,a\n", 1),
    "missing column": ("csv", f"k,n,y,ts\na,1,1,{NOON}\n", "no column 'x'\n  found: k, n, y, ts"),
    "more values than columns": ("csv", csv(f"a,1,1,{NOON},5"), "row 1 (line 2): expected 4 columns, found 5"),
    "no bytes, csv": ("csv", b"", 0),
    "no bytes, json": ("json", b"", 0),
    "no bytes, parquet": ("parquet", b"", 0),
    "no rows, csv": ("csv", csv(), 0),
    "blank lines only": ("csv", "\n\n", "is empty: not even a header line"),
    "infinities": ("csv", csv(f"a,1,inf,{NOON}", f"b,1,-inf,{NOON}", f"c,1,NaN,{NOON}", f"d,1,1e400,{NOON}"), 4),
    "a time to the minute": ("csv", csv("a,1,1,2026-01-31T00:05Z", "b,1,1,2026-01-31T00:05", "c,1,1,2026-01-31"), 3),
    "zones": ("csv", csv("a,1,1,2026-01-31T12:00:00+05:30", "b,1,1,2026-01-31 12:00:00-0800", "c,1,1,2026-06-30T12:00"), 3),
    "an impossible time": ("csv", csv("a,1,1,2026-02-30T12:00"), "column 'ts': '2026-02-30T12:00' is not a TIMESTAMP"),
    "a leap second": ("csv", csv("a,1,1,2026-06-30T23:59:60Z"), "is not a TIMESTAMP"),
    "nanoseconds": ("csv", csv("a,1,1,2026-01-31T12:00:00.1234567"), "is finer than a microsecond"),
    "epoch milliseconds": ("csv", csv("a,1,1,1769860800000"), "say in what: TIMESTAMP ts IN MILLISECONDS"),
    "a fraction for BIGINT": ("csv", csv(f"a,1.0,1,{NOON}"), "row 1 (line 2), column 'n': '1.0' is not a BIGINT"),
    "no timestamp": ("csv", csv("a,1,1,"), "column 'ts': NULL, but every row of a stream needs its timestamp"),
    "a mark before UTF-8": ("csv", b"\xef\xbb\xbf" + csv(f"\xe9,1,1,{NOON}").encode(), 1),
    "latin-1": ("csv", csv(f"\xe9,1,1,{NOON}").encode("latin-1"), "row 1 (line 2), column 'k': is not UTF-8 text"),
    "UTF-16": ("csv", csv(f"a,1,1,{NOON}").encode("utf-16"), "the header is not UTF-8 text"),
    "NUL bytes": ("csv", csv(f"a\0b,1,1,{NOON}"), 1),
    "NUL bytes for a number": ("csv", csv(f"a,\0,1,{NOON}"), "column 'n': '\\x00' is not a BIGINT"),
    "an open quote": ("csv", csv(f'"a,1,1,{NOON}'), "row 1 (line 2)"),
    "gzip": ("csv.gz", gzip.compress(csv(f"a,1,1,{NOON}", f"b,2,2,{NOON}").encode()), 2),
    "half a gzip": ("csv.gz", gzip.compress(csv(*(f"{i},{i},{i},{NOON}" for i in range(999))).encode())[:500], "is damaged"),
    "not gzip": ("csv.gz", csv(f"a,1,1,{NOON}"), "is damaged or is not CSV"),
    "other case of keys": ("json", json('{"K":"a","N":1,"X":1,"TS":"NOON"}'), 1),
    "a column that no row has": ("json", json('{"k":"a","m":1,"x":1,"ts":"NOON"}'), "no column 'n'\n  "),
    "a key that a row lacks": ("json", json('{"k":"a","n":1,"x":1,"ts":"NOON"}', '{"ts":"NOON"}'), 2),
    "1.0 for BIGINT": ("json", json('{"k":"a","n":1.0,"x":1,"ts":"NOON"}'), 1),
    "1.5 for BIGINT": ("json", json('{"k":"a","n":1.5,"x":1,"ts":"NOON"}'), "column 'n': 1.5 is not a BIGINT"),
    "a number for STRING": ("json", json('{"k":7,"n":1,"x":1,"ts":"NOON"}'), "column 'k': 7 is not a STRING"),
    "an object for STRING": ("json", json('{"k":{"a":1},"n":1,"x":1,"ts":"NOON"}'), "column 'k': {'a': 1} is not a STRING"),
    "epoch in JSON": ("json", json('{"k":"a","n":1,"x":1,"ts":1769860800000}'), "say in what: TIMESTAMP ts IN MILLISECONDS"),
    "NaN in JSON": ("json", json('{"k":"a","n":1,"x":"NaN","ts":"NOON"}', '{"k":"b","n":1,"x":NaN,"ts":"NOON"}'), 2),
    "no JSON": ("json", json('{"k":"a","n":1,"x":1,"ts":"NOON"}', "", '{"k":'), "row 2 (line 3): is not JSON"),
    "two objects on a line": ("json", json('{"k":"a","n":1,"x":1,"ts":"NOON"}{}'), "row 1 (line 1): is not JSON: Extra data"),
    "an object on two lines": ("json", json('{"k":"a",', '"n":1,"x":1,"ts":"NOON"}'), "row 1 (line 1): is not JSON"),
    "NUL in JSON": ("json", json('{"k":"\\u0000","n":1,"x":1,"ts":"NOON"}'), 1),
    "latin-1 in JSON": ("json", json('{"k":"\xe9","n":1,"x":1,"ts":"NOON"}').encode("latin-1"), "is not UTF-8 text"),
    "parquet": ("parquet", parquet(), 1),
    "narrow types": ("parquet", parquet(n=pa.array([1], pa.int16()), x=pa.array([1.5], pa.float32())), 1),
    "whole doubles for BIGINT": ("parquet", parquet(n=[1.0]), 1),
    "a fraction in parquet": ("parquet", parquet(n=[1.5]), "row 1, column 'n': 1.5 is not a whole number"),
    "text for BIGINT": ("parquet", parquet(n=["1"]), "column 'n': is STRING, but BIGINT is declared"),
    "numbers for TIMESTAMP": ("parquet", parquet(ts=[1]), "say in what: TIMESTAMP ts IN MILLISECONDS"),
    "times without a zone": ("parquet", parquet(ts=pa.array([1], pa.timestamp("ms"))), 1),
    "nanoseconds in parquet": ("parquet", parquet(ts=pa.array([1], pa.timestamp("ns"))), "is finer than a microsecond"),
    "no such column": ("parquet", parquet(n=None, m=[1]), "no column 'n'"),
    "columns of another case": ("parquet", parquet(k=None, K=["a"]), 1),
    "truncated parquet": ("parquet", truncated, "is damaged or is not a Parquet file"),
    "no parquet": ("parquet", b"PAR1 this is none", "is damaged or is not a Parquet file"),
}  # fmt: skip


def declared(name: str, path: str, form: str, columns: str = COLUMNS, rest: str = "") -> str:
    return f"CREATE STREAM {name} ({columns}) FROM '{path}' FORMAT {form} {rest};\n"


def declaration(text: str) -> Declaration:
    query = "SELECT p.ts FROM s [ROWS 1] AS p, s [ROWS 1] AS q WHERE p.ts = q.ts"
    return parse(text + query).declarations[0]


def in_process(stream: Declaration) -> list[str] | str:
    try:
        return sorted(map(str, read_declared(stream).to_pylist()))
    except DataError as e:
        return str(e)


def on_spark(spark: SparkSession, stream: Declaration) -> list[str] | str:
    try:
        made = history(spark, [stream])[stream.name].toArrow()
    except (PySparkException, Py4JError) as e:
        return str(plain_error(e))
    return sorted(map(str, made.cast(read_schema(stream)).to_pylist()))


def read_schema(stream: Declaration) -> pa.Schema:
    return arrow_schema(stream.schema)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_conform_files_are_read_the_same(spark: SparkSession, folder: Path, name: str) -> None:
    suffix, content, expected = FILES[name]
    path = folder / "in" / f"f [1].{suffix}"
    path.parent.mkdir()
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    stream = declaration(declared("s", "in", suffix.split(".")[0]))
    here, there = in_process(stream), on_spark(spark, stream)
    assert here == there
    if isinstance(expected, int):
        assert isinstance(here, list) and len(here) == expected, here
    else:
        assert isinstance(here, str) and here.startswith(f"s (in/f [1].{suffix})") and expected in here, here


# Written files


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def put(path: str, text: str, moment: int) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    os.utime(path, (1e9 + moment, 1e9 + moment))  # both engines take files by their time


def written(folder: str, form: str) -> list[str]:
    """The rows of an output as text, in any order; headers of parts count once."""
    files = sorted(f for f in Path(folder).iterdir() if f.name.startswith("part-"))
    assert files, folder
    if form == "parquet":
        tables = [pq.read_table(f) for f in files]
        assert len({str(t.schema) for t in tables}) == 1
        return [str(tables[0].schema), *sorted(str(r) for t in tables for r in t.to_pylist())]
    lines = [f.read_text().split("\n") for f in files]
    if form == "csv":
        assert len({part[0] for part in lines}) == 1
        return [lines[0][0], *sorted(line for part in lines for line in part[1:] if line)]
    return sorted(line for part in lines for line in part if line)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_conform_jobs_write_the_same(spark: SparkSession, folder: Path, form: str) -> None:
    """Results with microseconds and intervals, late rows, bad rows, and what is said of them."""
    late_form, bad_form = {"csv": ("json", "csv"), "json": ("parquet", "json"), "parquet": ("csv", "parquet")}[form]
    first = [f'"/p/""{i}"",\n{i}",{i},{i}.25,2026-01-31T12:00:{i:02d}.123456Z' for i in range(20)]
    first.insert(5, "x,not a number,1,2026-01-31T12:00:01Z")
    put("R/0.csv", csv(*first), 0)
    put("R/1.csv", csv(f"later,3,1e300,2026-01-31T12:00:03Z", f"on time,3,,2026-01-31T12:00:20Z", "short"), 1)  # noqa: F541
    put("S/0.json", "".join(f'{{"N": {i}.0, "At": {1769860800000 + 1000 * i}}}\n' for i in range(20)) + "oops\n", 0)
    put("S/1.json", '{"N": 3, "At": 1769860821000}\n', 1)
    put("T.csv", "n,name\n3,three\n4,four\nfive,5\n", 0)
    pace = "OPTIONS ('maxFilesPerTrigger' = '1')"
    text = (
        declared("R", "R", f"csv {pace}", rest=f"ON BAD ROW INTO 'OUT/bad' FORMAT {bad_form}")
        + declared("S", "S", f"json {pace}", "n BIGINT, at TIMESTAMP", "TIMESTAMP at IN MILLISECONDS ON BAD ROW SKIP")
        + f"CREATE TABLE T (n BIGINT, name STRING) FROM 'T.csv' FORMAT csv ON BAD ROW INTO 'OUT/bad' FORMAT {bad_form};\n"
        "SELECT R.k, R.n, R.x, R.ts, S.at - R.ts AS waited, T.name, R.n > 3 AS large FROM R [RANGE 1 MINUTE], S [RANGE 1 MINUTE], T\n"
        f"WHERE R.n = S.n AND S.n = T.n AND R.k <> 'nobody' LATE INTO 'OUT/late' FORMAT {late_form}\n"
        f"EMIT ISTREAM INTO 'OUT/out' FORMAT {form};"
    )
    said = {}
    for place, master in (("here", ()), ("there", ("--master", "local[2]"))):
        Path("job.sql").write_text(text.replace("OUT", place))
        done = call("run", "job.sql", *master)
        assert done.exit_code == 0, done.output
        lines = [line.replace(place, "OUT") for line in done.stdout.splitlines()]
        said[place] = [
            line.split(maxsplit=2) for line in lines if line.startswith(("bad rows", "late rows", " ", "results"))
        ]
        said[place] = [line for line in said[place] if line and line[0] in ("bad", "late", "to", "results")]
    assert said["here"] == said["there"] and len(said["here"]) == 4, said
    for kind, how in (("out", form), ("late", late_form), ("bad", bad_form)):
        here, there = written(f"here/{kind}", how), written(f"there/{kind}", how)
        assert here == there, kind
    assert len(written("here/out", "json")) > 3 if form == "json" else True
    assert any("later" in row for row in written("here/late", late_form))
    bad = "\n".join(written("here/bad", bad_form))
    assert "not a number" in bad and "expected 4 columns, found 1" in bad and "'five' is not a BIGINT" in bad


def test_conform_a_job_that_fails_says_the_same(spark: SparkSession, folder: Path) -> None:
    put("R/0.csv", csv(f"a,1,1,{NOON}", f"b,x,1,{NOON}"), 0)
    put("S/0.csv", csv(f"a,1,1,{NOON}"), 0)
    query = "SELECT R.k FROM R [ROWS 5], S [ROWS 5] WHERE R.n = S.n EMIT ISTREAM INTO 'out' FORMAT csv;"
    Path("job.sql").write_text(declared("R", "R", "csv") + declared("S", "S", "csv") + query)
    here, there = call("run", "job.sql"), call("run", "job.sql", "--master", "local[2]")
    assert here.exit_code == there.exit_code == 1
    assert here.stderr == there.stderr == "error: R (R/0.csv), row 2 (line 3), column 'n': 'x' is not a BIGINT\n"
    Path("job.sql").write_text(declared("R", "R", "csv") + declared("S", "nowhere", "csv") + query)
    assert call("run", "job.sql").stderr == call("run", "job.sql", "--master", "local[2]").stderr


@pytest.mark.filterwarnings("ignore:BUDGET:watersmeet.errors.BudgetWarning")
@pytest.mark.parametrize(
    "name", ["orders", *(pytest.param(n, marks=pytest.mark.long) for n in ("sensors", "clicks", "fraud"))]
)
def test_conform_examples_give_the_same_rows(spark: SparkSession, folder: Path, name: str) -> None:
    runpy.run_path(str(EXAMPLES / "make_data.py"))["make"](folder / "examples" / "data")
    job = str(EXAMPLES / f"{name}.sql")
    for place, master in (("here", ()), ("there", ("--master", "local[2]"))):
        text = Path(job).read_text().replace("examples/out/", f"{place}/")
        Path("job.sql").write_text(text)
        done = call("run", "job.sql", *master)
        assert done.exit_code == 0, done.output
        into = parse(text).into
        assert into is not None
        columns = Job.load(Path("job.sql")).output_schema()
        plain = [(f.name, pa.int64() if pa.types.is_duration(f.type) else f.type) for f in columns]
        found = as_table(into, "results", schema_of(pa.schema(plain)))
        if place == "here":
            expected = found
    assert (wrong := same_rows(found, expected)) is None, wrong
    assert expected.num_rows > 10


def test_conform_numbers_in_dataframes_are_timestamps_by_declaration(spark: SparkSession) -> None:
    for unit, per_second in EPOCH_UNITS.items():
        schema = Schema((Field("ts", TIMESTAMP, unit),))
        frame = spark.createDataFrame([(1_700_000_000 * per_second,), (None,)], "TS BIGINT")
        made = conform(frame, "s", schema).select(F.unix_micros("ts").alias("us")).collect()
        assert [row["us"] for row in made] == [1_700_000_000_000_000, None]
    fine = spark.createDataFrame([(1_500,)], "ts BIGINT")
    with pytest.raises(PySparkException, match="1500 NANOSECONDS is finer than a microsecond"):
        conform(fine, "s", Schema((Field("ts", TIMESTAMP, "NANOSECONDS"),))).collect()
