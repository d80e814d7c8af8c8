"""Bad rows by policy, and numbers as timestamps: every format gives the same good rows and says the same of the bad ones."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from watersmeet.data import as_table
from watersmeet.data.bad_rows import Rejects
from watersmeet.errors import DataError
from watersmeet.model.location import BadRows, Location
from watersmeet.model.types import EPOCH_UNITS, Field, Schema, Type

SCHEMA = Schema((Field("k", Type("STRING")), Field("v", Type("BIGINT")), Field("ts", Type("TIMESTAMP"))))
NOON = "2026-01-31T12:00:00Z"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def kept() -> Rejects:
    return Rejects(BadRows("INTO", Location("bad", "json")))


def read(path: str, rejects: Rejects, schema: Schema = SCHEMA, **options: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = as_table(
        path, "s", schema, timestamp="ts", rejects=rejects, options=options
    ).to_pylist()
    return made


def test_csv_rows_of_every_kind_of_damage(folder: Path) -> None:
    lines = [
        b"k,v,ts", f"a,1,{NOON}".encode(), f"b,x,{NOON}".encode(), b"", b"c,3", f'"d\n""d""",4,{NOON}'.encode(),
        f"e,5,{NOON},6".encode(), b"f,6,soon", b"\xff,7," + NOON.encode(), b"h,8,", f"i,y,soon,{NOON}".encode(), b"j,z,never",
        f"k,,{NOON}".encode(),
    ]  # fmt: skip
    (folder / "o.csv").write_bytes(b"\n".join(lines) + b"\n")
    rejects = kept()
    assert [(r["k"], r["v"]) for r in read("o.csv", rejects)] == [("a", 1), ('d\n"d"', 4), ("k", None)]
    found = rejects.table().to_pylist()
    assert rejects.count == len(found) == 8
    assert {r["stream"] for r in found} == {"s"} and {r["file"] for r in found} == {"o.csv"}
    assert [(r["row"], r["line"], r["column"], r["reason"], r["text"]) for r in found] == [
        (2, 3, "v", "'x' is not a BIGINT", f"b,x,{NOON}"),
        (3, 5, None, "expected 3 columns, found 2", "c,3"),
        (5, 8, None, "expected 3 columns, found 4", f"e,5,{NOON},6"),
        (6, 9, "ts", "'soon' is not a TIMESTAMP", "f,6,soon"),
        (7, 10, "k", "is not UTF-8 text", f"\\xff,7,{NOON}"),
        (8, 11, "ts", "NULL, but every row of a stream needs its timestamp", "h,8,"),
        (9, 12, None, "expected 3 columns, found 4", f"i,y,soon,{NOON}"),
        (10, 13, "v", "'z' is not a BIGINT", "j,z,never"),
    ]
    with pytest.raises(DataError) as e:
        read("o.csv", Rejects())
    assert str(e.value) == "s (o.csv), row 2 (line 3), column 'v': 'x' is not a BIGINT"


def test_json_rows_of_every_kind_of_damage(folder: Path) -> None:
    lines = [
        b'{"K":"a","v":1,"ts":"%s"}', b"", b"nonsense", b'{"K":5,"v":1,"ts":"%s"}', b'{"K":{"x":1},"v":1,"ts":"%s"}',
        b'{"K":"b","v":2.0,"ts":"%s"}', b'{"K":"c","v":"3","ts":"%s"}', b'{"K":"\xff","v":1,"ts":"%s"}', b'{"K":"d","v":1}',
        b'{"K":"e","v":1,"ts":"%s"} {"K":"f","v":1,"ts":"%s"}', b"[1]", b'{"v":null,"ts":"%s"}',
    ]  # fmt: skip
    (folder / "o.json").write_bytes(b"\n".join(lines).replace(b"%s", NOON.encode()))
    rejects = kept()
    assert [(r["k"], r["v"]) for r in read("o.json", rejects)] == [("a", 1), ("b", 2), (None, None)]
    found = rejects.table().to_pylist()
    assert [(r["row"], r["line"], r["column"], r["reason"]) for r in found] == [
        (2, 3, None, "is not JSON: Expecting value at character 1"),
        (3, 4, "k", "5 is not a STRING"),
        (4, 5, "k", "{'x': 1} is not a STRING"),
        (6, 7, "v", "'3' is not a BIGINT"),
        (7, 8, None, "is not UTF-8 text"),
        (8, 9, "ts", "NULL, but every row of a stream needs its timestamp"),
        (9, 10, None, "is not JSON: Extra data at character 45"),
        (10, 11, None, "expected a JSON object, found list"),
    ]
    assert found[4]["text"] == f'{{"K":"\\xff","v":1,"ts":"{NOON}"}}'


def test_parquet_rows_that_do_not_fit(folder: Path) -> None:
    times = [EPOCH, None, EPOCH, EPOCH]
    pq.write_table(pa.table({"k": ["a", "b", "c", "d"], "v": [1.0, 2.0, 0.5, 4.0], "ts": times}), "o.parquet")
    rejects = kept()
    assert [r["k"] for r in read("o.parquet", rejects)] == ["a", "d"]
    found = rejects.table().to_pylist()
    assert [(r["row"], r["line"], r["column"], r["reason"]) for r in found] == [
        (2, None, "ts", "NULL, but every row of a stream needs its timestamp"),
        (3, None, "v", "0.5 is not a whole number that fits a BIGINT"),
    ]
    assert json.loads(found[1]["text"])["k"] == "c"
    pq.write_table(pa.table({"k": ["a"], "v": ["1"], "ts": [EPOCH]}), "o.parquet")
    with pytest.raises(DataError, match="is STRING, but BIGINT is declared"):
        read("o.parquet", kept())  # no row is bad: the file is not what was declared


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_bad_rows_deep_in_a_file_are_those_that_were_put_there(folder: Path, format: str) -> None:
    rng = random.Random(f"bad rows {format}")
    n = 60_000
    bad = sorted(rng.sample(range(n), 40))
    values: list[Any] = list(range(n))
    for at in bad:
        values[at] = 0.5 if format == "parquet" else "x"
    if format == "csv":
        text = "k,v,ts\n" + "".join(f"a{i},{v},{NOON}\n" for i, v in enumerate(values))
    else:
        text = "".join(json.dumps({"k": f"a{i}", "v": v, "ts": NOON}) + "\n" for i, v in enumerate(values))
    if format == "parquet":
        table = pa.table({"k": [f"a{i}" for i in range(n)], "v": [float(v) for v in values], "ts": [EPOCH] * n})
        pq.write_table(table, "o.parquet", row_group_size=7_000)
    else:
        Path(f"o.{format}").write_text(text)
    rejects = kept()
    good = read(f"o.{format}", rejects)
    assert [r["v"] for r in good] == [i for i in range(n) if i not in set(bad)]
    assert rejects.table().column("row").to_pylist() == [i + 1 for i in bad]


@pytest.mark.parametrize("unit", EPOCH_UNITS)
def test_numbers_are_timestamps_by_declaration(folder: Path, unit: str) -> None:
    per_second = EPOCH_UNITS[unit]
    schema = Schema((Field("ts", Type("TIMESTAMP"), unit),))
    numbers = [0, 1_700_000_000 * per_second, -5 * per_second]
    wanted = [EPOCH + dt.timedelta(seconds=n // per_second) for n in numbers]
    Path("o.csv").write_text("ts\n" + "".join(f"{n}\n" for n in numbers))
    Path("o.json").write_text("".join(f'{{"ts": {n}}}\n' for n in numbers))
    Path("slow.json").write_text('{"ts": null}\n' + "".join(f'{{"ts": {n}.0, "x": 1e999}}\n' for n in numbers))
    pq.write_table(pa.table({"ts": numbers}), "o.parquet")
    pq.write_table(pa.table({"ts": [float(n) for n in numbers]}), "double.parquet")
    given: list[Any] = [
        "o.csv",
        "o.json",
        "o.parquet",
        "double.parquet",
        pa.table({"ts": numbers}),
        [{"ts": n} for n in numbers],
    ]
    for value in given:
        assert as_table(value, "s", schema).column("ts").to_pylist() == wanted, value
    assert as_table("slow.json", "s", schema).column("ts").to_pylist()[1:] == wanted


def test_numbers_lose_nothing_as_timestamps(folder: Path) -> None:
    def refusal(text: str, unit: str, name: str = "o.csv") -> str:
        Path(name).write_text(text)
        with pytest.raises(DataError) as e:
            as_table(name, "s", Schema((Field("ts", Type("TIMESTAMP"), unit),)))
        return str(e.value).partition("column 'ts': ")[2]

    assert refusal("ts\n1500\n", "NANOSECONDS") == "'1500' NANOSECONDS is finer than a microsecond"
    assert refusal("ts\n0.0000001\n", "SECONDS") == "'0.0000001' SECONDS is finer than a microsecond"
    assert refusal("ts\n2026-01-31\n", "SECONDS") == "'2026-01-31' is not a number of SECONDS"
    assert (
        refusal("ts\n99999999999999\n", "SECONDS")
        == "'99999999999999' SECONDS since 1970 is outside the years 1 to 9999"
    )
    assert refusal('{"ts": 1500}', "NANOSECONDS", "o.json") == "1500.000000000 NANOSECONDS is finer than a microsecond"
    pq.write_table(pa.table({"ts": ["0"]}), "o.parquet")
    with pytest.raises(DataError, match="is STRING, but numbers IN SECONDS are declared\n"):
        as_table("o.parquet", "s", Schema((Field("ts", Type("TIMESTAMP"), "SECONDS"),)))
    for given in (pa.table({"ts": [EPOCH]}), [{"ts": EPOCH}]):  # real timestamps are what they are
        made = as_table(given, "s", Schema((Field("ts", Type("TIMESTAMP"), "SECONDS"),)))
        assert made.column("ts").to_pylist() == [EPOCH]
    pq.write_table(pa.table({"ts": [1.5, 0.1]}), "o.parquet")
    made = as_table("o.parquet", "s", Schema((Field("ts", Type("TIMESTAMP"), "SECONDS"),)))
    assert made.column("ts").cast(pa.int64()).to_pylist() == [1_500_000, 100_000]
