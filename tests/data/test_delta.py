"""Delta tables in process: a table or a version of it in, one new version out."""

from __future__ import annotations

import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import watersmeet as wm
from watersmeet.cli.app import app
from watersmeet.data import read_declared
from watersmeet.errors import DataError
from watersmeet.model.query import Declaration

UTC = pa.timestamp("us", tz="UTC")


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int32()), "ts": pa.array([i * 1_000_000 for i in ids], UTC), "more": ["x"] * len(ids)}
    )


def declared(path: Path, more: str = "", columns: str = "ID BIGINT, ts TIMESTAMP") -> Declaration:
    text = f"CREATE STREAM s ({columns}) FROM '{path}' FORMAT delta {more}; SELECT p.ts FROM s [ROWS 1] AS p, s [ROWS 1] AS q"
    return wm.parse(text).declarations[0]


def test_a_table_is_read_whole_or_at_a_version(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), rows(1, 2))
    deltalake.write_deltalake(str(tmp_path), rows(3), mode="append")
    found = read_declared(declared(tmp_path))
    assert found.column_names == ["ID", "ts"] and sorted(found["ID"].to_pylist()) == [1, 2, 3]
    assert sorted(read_declared(declared(tmp_path, "OPTIONS ('versionAsOf' = '0')"))["ID"].to_pylist()) == [1, 2]


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"id": [1], "ts": pa.array([None], UTC)}))
    for place, message in {
        declared(tmp_path / "none"): "can't be read as a Delta table",
        declared(tmp_path / "t", columns="nr BIGINT, ts TIMESTAMP"): "no column 'nr'",
        declared(tmp_path / "t"): "NULL, but every row of a stream needs its timestamp",
        declared(tmp_path / "t", "OPTIONS ('versionAsOf' = '7')"): "can't be read as a Delta table",
        declared(tmp_path / "t", "OPTIONS ('version' = '0')"): "did you mean 'versionAsOf'",
    }.items():
        with pytest.raises(DataError, match=message):
            read_declared(place)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(DataError, match=r"pip install 'watersmeet\[delta\]'"):
        read_declared(declared(tmp_path / "t"))


def test_results_are_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    deltalake.write_deltalake("R", rows(*range(20)))
    Path("job.sql").write_text("""
        CREATE STREAM R (id BIGINT, ts TIMESTAMP) FROM 'R' FORMAT delta;
        SELECT p.id FROM R [RANGE 5 SECONDS] AS p, R [RANGE 5 SECONDS] AS q WHERE p.id = q.id EMIT ISTREAM INTO 'out' FORMAT delta
    """)
    for flags, versions, count in (([], 1, 20), ([], 2, 40), (["--overwrite"], 3, 20)):
        done = CliRunner().invoke(app, ["run", "job.sql", *flags])
        assert done.exit_code == 0, done.output
        made = deltalake.DeltaTable("out")
        assert (made.version() + 1, made.to_pyarrow_table().num_rows) == (versions, count)
