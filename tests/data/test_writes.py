"""Writing: what is written reads back the same, and nothing is ever half-written, replaced by accident, or left behind."""

from __future__ import annotations

import datetime as dt
import json
import os
import resource
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from watersmeet.data import TableWriter, as_table, schema_of, write_table
from watersmeet.errors import DataError
from watersmeet.model.query import Location

NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=dt.UTC)
TABLE = pa.table(
    {
        "a": pa.array([1, -(2**63), None]),
        "b": pa.array([0.1, float("-inf"), None]),
        "c": pa.array(['q"uo\\te,\n\tü\x00', "x", None]),
        "d": pa.array([True, False, None]),
        "e": pa.array([dt.date(2026, 1, 31), dt.date(1, 1, 1), None]),
        "f": pa.array([NOON, NOON.replace(year=1969), None], pa.timestamp("us", tz="UTC")),
        "g": pa.array([Decimal("-12.30"), Decimal("9999.99"), None], pa.decimal128(6, 2)),
        'k"ey': pa.array([1, 2, 3]),
    }
)
OUTPUTS = ["o.parquet", "o.csv", "o.json", "o.jsonl", "o.ndjson"]


def fail_half_way(output: str, error: type[BaseException], *, overwrite: bool = False) -> list[str]:
    """Write, and raise before it is done; what was there in between."""
    seen: list[str] = []
    try:
        with TableWriter(output, TABLE.schema, overwrite=overwrite) as writer:
            writer.write(TABLE)
            seen = names(Path.cwd())
            raise error
    except error:
        assert writer.files == []
        return seen


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.mark.parametrize("output", OUTPUTS)
def test_writes_what_reads_back_the_same(folder: Path, output: str) -> None:
    assert write_table(TABLE, output) == [Path(output)]
    assert as_table(output, "t", schema_of(TABLE.schema)).equals(TABLE)
    assert names(folder) == [output]


@pytest.mark.parametrize("output", OUTPUTS)
def test_writes_batches_of_any_size_the_same(folder: Path, output: str) -> None:
    table = pa.concat_tables([TABLE] * 50)
    with TableWriter(output, table.schema) as writer:
        for start, size in ((0, 0), (0, 1), (1, 2), (3, 7), (10, 140)):
            writer.write(table.slice(start, size).combine_chunks().to_batches()[0] if size else TABLE.slice(0, 0))
    assert writer.rows == 150 and writer.size_bytes == Path(output).stat().st_size
    assert as_table(output, "t", schema_of(TABLE.schema)).equals(table)


@pytest.mark.parametrize("output", OUTPUTS)
def test_writes_no_rows_as_an_empty_file(folder: Path, output: str) -> None:
    write_table(TABLE.slice(0, 0), output)
    assert as_table(output, "t", schema_of(TABLE.schema)).num_rows == 0


def test_writes_nan_and_intervals(folder: Path) -> None:
    table = pa.table({"x": [float("nan"), float("inf")], "i": pa.array([1, -2_000_000], pa.duration("us"))})
    write_table(table, "o.json")
    assert [json.loads(line) for line in Path("o.json").read_text().splitlines()] == [
        {"x": "NaN", "i": 1}, {"x": "Infinity", "i": -2_000_000},
    ]  # fmt: skip
    write_table(table, "o.csv")
    assert Path("o.csv").read_text() == '"x","i"\nnan,1\ninf,-2000000\n'
    write_table(table, "o.parquet")
    assert pq.read_table("o.parquet").column("i").to_pylist() == [1, -2_000_000]


def test_writes_a_folder_of_part_files(folder: Path) -> None:
    with TableWriter(Location("deep/er/out/", "csv"), TABLE.schema, part_rows=4) as writer:
        for _ in range(3):
            writer.write(TABLE)
        assert names(folder)[-1].endswith(".tmp/part-00001.csv")
    assert writer.files == [Path("deep/er/out/part-00000.csv"), Path("deep/er/out/part-00001.csv")]
    assert names(folder) == [
        "deep",
        "deep/er",
        "deep/er/out",
        "deep/er/out/part-00000.csv",
        "deep/er/out/part-00001.csv",
    ]
    assert as_table("deep/er/out", "t", schema_of(TABLE.schema)).num_rows == 9


def test_writes_a_folder_by_name_or_because_it_is_one(folder: Path) -> None:
    (folder / "there").mkdir()
    assert write_table(TABLE, "there") == [Path("there/part-00000.parquet")]
    assert write_table(TABLE, Location("results", "json")) == [Path("results/part-00000.jsonl")]
    assert write_table(TABLE, Location("o.json", "csv")) == [Path("o.json")]
    assert Path("o.json").read_text().startswith('"a","b"')


def test_writes_with_the_usual_permissions(folder: Path) -> None:
    mask = os.umask(0o022)
    try:
        write_table(TABLE, "o.csv")
        write_table(TABLE, "out/")
        assert Path("o.csv").stat().st_mode & 0o777 == 0o644
        assert Path("out").stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(mask)


@pytest.mark.parametrize("output", [*OUTPUTS, "out/", "new/deep/out/"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_writes_nothing_when_it_fails_half_way(folder: Path, output: str, error: type[BaseException]) -> None:
    assert fail_half_way(output, error) != []
    assert names(folder) == []


@pytest.mark.parametrize("output", [*OUTPUTS, "out/"])
def test_writes_leave_the_old_output_when_they_fail(folder: Path, output: str) -> None:
    write_table(TABLE, output)
    before = {n: Path(n).read_bytes() for n in names(folder) if Path(n).is_file()}
    fail_half_way(output, RuntimeError, overwrite=True)
    assert {n: Path(n).read_bytes() for n in names(folder) if Path(n).is_file()} == before


@pytest.mark.parametrize("output", [*OUTPUTS, "out/"])
def test_refuses_an_output_that_exists_unless_told_to_overwrite(folder: Path, output: str) -> None:
    write_table(TABLE, output)
    with pytest.raises(DataError) as e:
        write_table(TABLE, output)
    holds = " and holds 1 file" if output == "out/" else ""
    assert str(e.value) == (
        f"output ({output}): exists already{holds}\n  give --overwrite to replace it, or name another INTO"
    )
    before = names(folder)
    write_table(pa.concat_tables([TABLE, TABLE]), output, overwrite=True)
    assert names(folder) == before
    assert as_table(output, "t", schema_of(TABLE.schema)).num_rows == 6


def test_refuses_to_replace_a_folder_that_holds_other_files(folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "letters.txt").write_text("dear")
    with pytest.raises(DataError) as e:
        write_table(TABLE, "home/", overwrite=True)
    assert str(e.value) == (
        "output (home/): holds files that are no part files, such as 'letters.txt'; it is not replaced\n  name another INTO"
    )
    assert names(folder) == ["home", "home/letters.txt"]


@pytest.mark.parametrize("into_folder", [True, False])
def test_refuses_an_output_that_came_into_being_meanwhile(folder: Path, into_folder: bool) -> None:
    output = "out/" if into_folder else "o.csv"
    writer = TableWriter(output, TABLE.schema)
    writer.write(TABLE)
    if into_folder:
        (folder / "out").mkdir()
        (folder / "out" / "x").write_text("")
    else:
        (folder / "o.csv").write_text("mine")
    with pytest.raises(DataError, match="has come into being meanwhile"):
        writer.close()
    assert names(folder) == (["out", "out/x"] if into_folder else ["o.csv"])


def test_refuses_places_that_can_not_be_written(folder: Path) -> None:
    (folder / "file").write_text("")
    for output, message in [
        ("file/o.csv", "output (file/o.csv): can't be written: Not a directory"),
        (
            "file/",
            "output (file/): is a file, but a folder is meant\n  give it the suffix of its format, or another name",
        ),
        (
            "s3://b/o.csv",
            "output: 's3://b/o.csv' is not a local path\n  in process only local files are read and written",
        ),
        (f"{'x' * 300}.csv", f"output ({'x' * 300}.csv): can't be written: File name too long"),
    ]:
        with pytest.raises(DataError) as e:
            write_table(TABLE, output)
        assert str(e.value) == message
    with pytest.raises(DataError, match="unknown format 'orc'\n  known: csv, json, parquet"):
        write_table(TABLE, Location("out/", "orc"))
    with pytest.raises(DataError, match="unknown option 'sep' for output"):
        write_table(TABLE, Location("o.csv", "csv", (("sep", ";"),)))
    assert names(folder) == ["file"]


def test_refuses_odd_paths(folder: Path) -> None:
    for output, message in [
        ("/", "output (/): is no place to write to"),
        ("", "output: '' is not a path"),
        ("a\0b", "output: 'a\\x00b' is not a path"),
        (".", "output (.): exists already and holds 1 file\n  give --overwrite to replace it, or name another INTO"),
    ]:
        (folder / "mine").write_text("")
        with pytest.raises(DataError) as e:
            write_table(TABLE, output)
        assert str(e.value) == message
    with pytest.raises(DataError, match="holds files that are no part files, such as 'mine'; it is not replaced"):
        write_table(TABLE, ".", overwrite=True)
    assert write_table(TABLE, "~nobody-has-this-name/o.csv") == [Path("~nobody-has-this-name/o.csv")]
    assert names(folder) == ["mine", "~nobody-has-this-name", "~nobody-has-this-name/o.csv"]


def test_refuses_to_write_after_closing(folder: Path) -> None:
    with TableWriter("o.csv", TABLE.schema) as writer:
        pass
    with pytest.raises(ValueError, match="closed"):
        writer.write(TABLE)


@pytest.mark.parametrize("output", [*OUTPUTS, "out/"])
def test_refuses_a_file_that_outgrows_its_limit(folder: Path, output: str) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    big = pa.table({"a": [(i * 2_654_435_761) % 2**32 for i in range(300_000)]})
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(DataError) as e:
            write_table(big, output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(e.value) == f"output ({output}): can't be written: File too large"
    assert names(folder) == []
