"""Files: csv, parquet and JSON lines by file, folder and glob; every kind of damage is named by file, row, line and column."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from watersmeet.data import arrow_schema, as_table, read_declared, write_table
from watersmeet.errors import DataError
from watersmeet.model.query import Declaration, Location
from watersmeet.model.types import Field, Schema, Type

SCHEMA = Schema((Field("id", Type("BIGINT")), Field("price", Type("DOUBLE")), Field("ts", Type("TIMESTAMP"))))
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "price": 2.5, "ts": NOON},
    {"id": 2, "price": None, "ts": NOON + dt.timedelta(microseconds=1)},
]
CSV = "id,price,ts\n1,2.5,2026-01-31 12:00:00\n2,,2026-01-31T12:00:00.000001Z\n"
JSON = '{"id":1,"price":2.5,"ts":"2026-01-31T12:00:00Z"}\n{"id":2,"ts":"2026-01-31 12:00:00.000001"}\n'


COUNTS = "if it counts the time since 1970, say in what: TIMESTAMP {} IN MILLISECONDS"


def put(path: str, content: str | bytes) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: str, schema: Schema | None = SCHEMA, **how: Any) -> str:
    with pytest.raises(DataError) as e:
        as_table(path, "orders", schema, **how)
    return str(e.value)


def assert_read_or_refused(path: str, schema: Schema | None) -> None:
    try:
        as_table(path, "orders", schema, timestamp="ts" if schema else None)
    except DataError as e:
        refused = str(e)
    else:
        return
    assert refused.startswith(f"orders ({path})"), Path(path).read_bytes()


def one(kind: str) -> Schema:
    return Schema((Field("v", Type.parse(kind)),))


@pytest.mark.parametrize(("name", "text"), [("o.csv", CSV), ("o.json", JSON), ("o.jsonl", JSON), ("o.ndjson", JSON)])
def test_reads_text_formats(folder: Path, name: str, text: str) -> None:
    made = as_table(put(name, text), "orders", SCHEMA, timestamp="ts")
    assert made.schema == arrow_schema(SCHEMA) and made.to_pylist() == ROWS
    packed = as_table(put(f"{name}.gz", gzip.compress(text.encode())), "orders", SCHEMA)
    assert packed.equals(made)
    assert as_table(put("plain", text), "orders", SCHEMA, format=name.split(".")[1]).equals(made)


def test_reads_parquet(folder: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{"extra": [1], **r} for r in ROWS]), "o.parquet")
    assert as_table(Path("o.parquet"), "orders", SCHEMA).to_pylist() == ROWS
    assert as_table(Location("o.parquet", "parquet"), "orders", SCHEMA).to_pylist() == ROWS


def test_reads_folders_and_globs_in_order_of_names_without_hidden_files(folder: Path) -> None:
    put("in/b.csv", "v\n2\n")
    put("in/a.csv", "v\n1\n")
    put("in/_SUCCESS", "")
    put("in/.a.csv.crc", "x")
    put("in/part-0", "v\n3\n")
    put("in/sub/c.csv", "v\n4\n")
    assert as_table("in", "t", one("BIGINT"), format="csv").column("v").to_pylist() == [1, 2, 3]
    assert as_table("in/*.csv", "t", one("BIGINT")).column("v").to_pylist() == [1, 2]
    assert as_table(str(folder / "in" / "[b]*.csv"), "t").column("v").to_pylist() == [2]
    assert refusal("in", one("BIGINT")) == (
        "orders (in/part-0): can't tell the format from the file's name\n"
        "  say FORMAT csv, parquet or json, or pass format=..."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31", NOON.replace(hour=0)),
        ("2026-01-31T12", NOON),
        ("2026-01-31 12:00", NOON),
        (" 2026-01-31 12:00:00 ", NOON),
        ("2026-01-31T12:00:00.5", NOON.replace(microsecond=500_000)),
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31T13:30:00+01:30", NOON),
        ("2026-01-31T07:00:00-0500", NOON),
        ("2026-01-31T12:00:00.000000000", NOON),
        ("2026-01-31T12:00:00.123456000Z", NOON.replace(microsecond=123_456)),
    ],
)
def test_reads_iso_times_with_and_without_a_zone_side_by_side(folder: Path, text: str, expected: dt.datetime) -> None:
    both = ["2026-01-31 12:00:00", text, "2026-01-31T12:00:00+00:00"]
    put("t.csv", "v\n" + "\n".join(both) + "\n")
    put("t.json", "".join(json.dumps({"v": v}) + "\n" for v in both))
    for file in ("t.csv", "t.json"):
        assert as_table(file, "t", one("TIMESTAMP")).column("v").to_pylist() == [NOON, expected, NOON]


def test_reads_every_type_from_csv_and_json(folder: Path) -> None:
    kinds = ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(6,2)")
    schema = Schema(tuple(Field(n, Type.parse(t)) for n, t in zip("abcdefg", kinds, strict=True)))
    row = {
        "a": -(2**63),
        "b": 1e300,
        "c": 'a "b", \\ü\n',
        "d": True,
        "e": dt.date(2026, 1, 31),
        "f": NOON,
        "g": Decimal("-12.30"),
    }
    none = dict.fromkeys(row)
    put(
        "t.csv",
        'a,b,c,d,e,f,g\n-9223372036854775808,1e300,"a ""b"", \\ü\n",TRUE,2026-01-31,2026-01-31T12:00:00,-12.3\n,,,,,,\n',
    )
    line = {**row, "e": "2026-01-31", "f": "2026-01-31T12:00:00", "g": -12.3}
    put("t.json", json.dumps(line, default=str) + "\n" + json.dumps(none) + "\n{}\n")
    assert as_table("t.csv", "t", schema).to_pylist() == [row, none]
    assert as_table("t.json", "t", schema).to_pylist() == [row, none, none]


def test_reads_an_empty_csv_value_as_null_as_spark_does(folder: Path) -> None:
    put("t.csv", 'a,v\n1,""\n2,\n3,x\n4, y \n5,NaN\n6,NULL\n')
    assert as_table("t.csv", "t", one("STRING")).column("v").to_pylist() == [None, None, "x", " y ", "NaN", "NULL"]
    assert as_table("t.csv", "t", one("STRING"), options={"nullValue": "NULL"}).column("v").to_pylist()[-1] is None


def test_reads_csv_options(folder: Path) -> None:
    put("t.csv", "'a;b';2\r\n")
    schema = Schema((Field("s", Type("STRING")), Field("n", Type("BIGINT"))))
    options = {"header": "false", "SEP": ";", "quote": "'", "maxFilesPerTrigger": "1"}
    assert as_table("t.csv", "t", schema, options=options).to_pylist() == [{"s": "a;b", "n": 2}]
    assert as_table(put("u.csv", "s\tn\nx\t1\n"), "t", schema, options={"delimiter": "\\t"}).num_rows == 1
    assert refusal("t.csv", schema, options={"headr": "false"}) == (
        "orders (t.csv): unknown option 'headr' for csv\n  did you mean 'header'?"
    )
    assert (
        refusal("t.csv", schema, options={"header": "no"})
        == "orders (t.csv): option 'header' is 'no'\n  'true' or 'false'"
    )
    assert (
        refusal("t.csv", schema, options={"sep": "ab"}) == "orders (t.csv): option 'sep' is 'ab'\n  one ASCII character"
    )
    assert refusal("t.csv", None, options={"header": "false"}) == (
        "orders (t.csv): a CSV file without a header needs declared columns\n  CREATE STREAM ... or a schema"
    )
    assert refusal(put("t.json", "{}"), options={"header": "true"}) == (
        "orders (t.json): unknown option 'header' for json\n  json has no options here"
    )


def test_reads_empty_inputs_as_empty_streams(folder: Path) -> None:
    given = {
        "a.csv": "id,price,ts\n",
        "b.csv": "id,price,ts",
        "a.json": "",
        "b.json": "\n\n",
        "d.csv": "",
        "d.parquet": "",
    }
    for name, content in given.items():
        assert as_table(put(name, content), "orders", SCHEMA, timestamp="ts").equals(arrow_schema(SCHEMA).empty_table())
    assert as_table(put("c.csv", ""), "t", SCHEMA, options={"header": "false"}).num_rows == 0
    write_table(arrow_schema(SCHEMA).empty_table(), "a.parquet")
    assert as_table("a.parquet", "orders", SCHEMA).num_rows == 0


def test_refuses_empty_files_that_hold_no_table(folder: Path) -> None:
    assert refusal(put("b.csv", "\n\n")) == (
        "orders (b.csv): is empty: not even a header line\n  for files without one: OPTIONS ('header' = 'false')"
    )
    assert refusal(put("b.csv.gz", gzip.compress(b""))).startswith(
        "orders (b.csv.gz): is empty: not even a header line"
    )
    assert refusal(put("a.parquet", "\n")).startswith("orders (a.parquet): is damaged or is not a Parquet file\n")


def test_refuses_paths_that_lead_nowhere(folder: Path) -> None:
    here = f"  paths are relative to the current directory: {folder}"
    assert refusal("no.csv") == f"orders: there is no file or folder 'no.csv'\n{here}"
    assert refusal("no/*.csv") == f"orders: no file matches 'no/*.csv'\n{here}"
    assert refusal(str(folder / "no.csv")) == f"orders: there is no file or folder '{folder / 'no.csv'}'"
    (folder / "empty").mkdir()
    assert refusal("empty") == (
        "orders: the folder 'empty' holds no files\n  files whose names begin with . or _ don't count"
    )
    assert refusal(put("o.xls", "")) == (
        "orders (o.xls): can't tell the format from the file's name\n  say FORMAT csv, parquet or json, or pass format=..."
    )
    assert refusal("o.xls", format="exel") == "orders: unknown format 'exel'\n  known: csv, json, parquet"
    assert refusal("s3://bucket/o.csv") == (
        "orders: 's3://bucket/o.csv' is not a local path\n  in process only local files are read and written"
    )
    assert refusal("o.xls/a.csv").startswith("orders: there is no file or folder 'o.xls/a.csv'")


@pytest.mark.parametrize(
    ("kind", "good", "bad", "message"),
    [
        ("BIGINT", "1", "x", "'x' is not a BIGINT"),
        ("BIGINT", "1", "1.5", "'1.5' is not a BIGINT"),
        ("BIGINT", "1", "9223372036854775808", "'9223372036854775808' is not a BIGINT"),
        ("DOUBLE", "1", "1,5", "'1,5' is not a DOUBLE"),
        ("BOOLEAN", "true", "yes", "'yes' is not a BOOLEAN"),
        ("DATE", "2026-01-31", "2026-02-30", "'2026-02-30' is not a DATE"),
        ("TIMESTAMP", "2026-01-31", "2026-01-31 25:00:00", "'2026-01-31 25:00:00' is not a TIMESTAMP"),
        ("TIMESTAMP", "2026-01-31", "1767225600", f"'1767225600' is not a TIMESTAMP\n  {COUNTS.format('v')}"),
        (
            "TIMESTAMP", "2026-01-31", "2026-01-31 12:00:00.0000001",
            "'2026-01-31 12:00:00.0000001' is finer than a microsecond",
        ),
        ("DECIMAL(5,2)", "1.25", "1.255", "'1.255' is not a DECIMAL(5,2)"),
        ("DECIMAL(5,2)", "1.25", "1234.5", "'1234.5' is not a DECIMAL(5,2)"),
    ],
)  # fmt: skip
def test_refuses_a_csv_value_by_row_line_and_column(folder: Path, kind: str, good: str, bad: str, message: str) -> None:
    lines = ["k,V", '"two\nlines",' + good, "", f'x,"{bad}"', f"y,{good}"]
    assert (
        refusal(put("o.csv", "\n".join(lines)), one(kind)) == f"orders (o.csv), row 2 (line 5), column 'v': {message}"
    )
    put("o.csv", "\n".join([lines[1], "", *lines[3:]]))
    schema = Schema((Field("k", Type("STRING")), *one(kind).fields))
    assert (
        refusal("o.csv", schema, options={"header": "false"})
        == f"orders (o.csv), row 2 (line 4), column 'v': {message}"
    )


def test_refuses_a_csv_value_deep_in_a_large_file(folder: Path) -> None:
    rows = [f"{i},{i}.5,2026-01-31 12:00:00" for i in range(400_000)]
    rows[333_332] = "oops,1,2026-01-31"
    assert refusal(put("o.csv", "id,price,ts\n" + "\n".join(rows))) == (
        "orders (o.csv), row 333333 (line 333334), column 'id': 'oops' is not a BIGINT"
    )
    rows[333_332] = "1,1,soon"
    assert refusal(put("o.csv", "id,price,ts\n" + "\n".join(rows))) == (
        "orders (o.csv), row 333333 (line 333334), column 'ts': 'soon' is not a TIMESTAMP"
    )
    rows[333_332] = "1,2026-01-31"
    assert refusal(put("o.csv", "id,price,ts\n" + "\n".join(rows))) == (
        "orders (o.csv), row 333333 (line 333334): expected 3 columns, found 2\n"
        "  a value that holds a separator or a line break must be in quotes"
    )


def test_refuses_csv_that_is_no_text(folder: Path) -> None:
    assert refusal(put("o.csv", b"v\nab\n\xff\xfe\n"), one("STRING")) == (
        "orders (o.csv), row 2 (line 3), column 'v': is not UTF-8 text"
    )
    assert refusal(put("o.csv.gz", b"v\n1\n"), one("BIGINT")).startswith("orders (o.csv.gz): ")


def test_refuses_a_missing_csv_column_by_its_header(folder: Path) -> None:
    assert refusal(put("o.csv", "id,prize,ts\n1,2,3\n")) == (
        "orders (o.csv): no column 'price'\n  did you mean 'prize'? found: id, prize, ts"
    )
    assert refusal(put("o.csv", "1,2\n3,4\n"), options={"header": "false"}) == (
        "orders (o.csv), row 1 (line 1): expected 3 columns, found 2\n"
        "  a value that holds a separator or a line break must be in quotes"
    )


def test_refuses_a_null_timestamp_in_any_file(folder: Path) -> None:
    put("in/a.csv", CSV)
    put("in/b.csv", CSV.replace("2026-01-31T12:00:00.000001Z", ""))
    message = "column 'ts': NULL, but every row of a stream needs its timestamp"
    assert refusal("in", timestamp="ts") == f"orders (in/b.csv), row 2 (line 3), {message}"
    put("o.json", '{"id":1,"price":1,"ts":"2026-01-31"}\n\n{"id":2,"price":1}\n')
    assert refusal("o.json", timestamp="ts") == f"orders (o.json), row 2 (line 3), {message}"
    pq.write_table(pa.table({"id": [1], "price": [1.0], "ts": pa.nulls(1)}), "o.parquet")
    assert refusal("o.parquet", timestamp="ts") == f"orders (o.parquet), row 1, {message}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id":"x"}', ", column 'id': 'x' is not a BIGINT"),
        ('{"id":1.5}', ", column 'id': 1.5 is not a BIGINT"),
        ('{"id":9223372036854775808}', ", column 'id': 9223372036854775808 is not a BIGINT"),
        ('{"id":true}', ", column 'id': True is not a BIGINT"),
        ('{"id":[1]}', ", column 'id': [1] is not a BIGINT"),
        ('{"price":"dear"}', ", column 'price': 'dear' is not a DOUBLE"),
        ('{"ts":5}', f", column 'ts': 5 is not a TIMESTAMP\n  {COUNTS.format('ts')}"),
        ('{"ts":"soon"}', ", column 'ts': 'soon' is not a TIMESTAMP"),
        (
            '{"ts":"2026-01-31T12:00:00.1234567Z"}',
            ", column 'ts': '2026-01-31T12:00:00.1234567Z' is finer than a microsecond",
        ),
        ('{"id":1', ": is not JSON: Expecting ',' delimiter at character 8"),
        (
            "[1]",
            ': expected a JSON object, found list\n  one object on each line, such as {"id": 1, "ts": "2026-01-31T12:00:00Z"}',
        ),
    ],
)
def test_refuses_a_json_line(folder: Path, line: str, message: str) -> None:
    put("o.jsonl", JSON + "\n" + line + "\n" + JSON)
    assert refusal("o.jsonl") == f"orders (o.jsonl), row 3 (line 4){message}"


def test_refuses_json_that_is_no_text(folder: Path) -> None:
    put("o.json", b'{"v":"a"}\n{"v":"\xff"}\n')
    for schema in (one("STRING"), None):
        assert refusal("o.json", schema) == "orders (o.json), row 2 (line 2): is not UTF-8 text"


def test_reads_json_that_arrow_alone_refuses(folder: Path) -> None:
    put(
        "o.json",
        '{"id":1.0,"price":"NaN","ts":"2026-01-31T12:00:00Z","g":1}\n{"id":2,"price":1,"ts":null,"g":"0.25"}\n',
    )
    schema = Schema((*SCHEMA.fields, Field("g", Type("DECIMAL", 6, 2))))
    made = as_table("o.json", "orders", schema).to_pydict()
    assert made["id"] == [1, 2] and made["price"][0] != made["price"][0] and made["ts"] == [NOON, None]
    assert made["g"] == [Decimal("1.00"), Decimal("0.25")]


def test_reads_json_keys_whatever_the_case_and_refuses_keys_that_no_row_has(folder: Path) -> None:
    put("o.json", '{"ID":1,"Price":null,"ts":"2026-01-31"}\n')
    assert as_table("o.json", "orders", SCHEMA).to_pydict()["id"] == [1]
    put("o.json", '{"id":1,"prize":1,"ts":"2026-01-31"}\n')
    assert refusal("o.json") == "orders (o.json): no column 'price'\n  did you mean 'prize'? found: id, prize, ts"


def test_refuses_damaged_parquet_wherever_the_damage_is(folder: Path) -> None:
    n = 20_000
    rng = random.Random(1)
    table = pa.table({"id": [rng.randrange(10**9) for _ in range(n)], "price": [rng.random() for _ in range(n)],
                      "ts": pa.array([NOON] * n)})  # fmt: skip
    pq.write_table(table, "o.parquet", compression="zstd")
    whole = Path("o.parquet").read_bytes()
    for size in (1, 4, 100, len(whole) - 1):
        assert refusal(put("cut.parquet", whole[:size])).startswith(
            "orders (cut.parquet): is damaged or is not a Parquet file\n"
        )
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(20):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        put("bad.parquet", bytes(damaged))
        assert_read_or_refused("bad.parquet", SCHEMA)
    assert refusal(put("text.parquet", CSV)).startswith("orders (text.parquet): is damaged or is not a Parquet file\n")


def test_refuses_parquet_text_that_is_not_utf8(folder: Path) -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(struct.pack("<3i", 0, 1, 2)), pa.py_buffer(b"a\xff")]
    )
    pq.write_table(pa.table({"v": bad}), "o.parquet")
    assert refusal("o.parquet", one("STRING")) == "orders (o.parquet), row 2, column 'v': is not UTF-8 text"


def test_refuses_parquet_columns_of_another_type(folder: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "price": [1.0], "ts": [NOON]}), "o.parquet")
    assert refusal("o.parquet") == (
        "orders (o.parquet), column 'id': is STRING, but BIGINT is declared\n  declare it STRING, or convert the column"
    )
    pq.write_table(pa.table({"v": pa.array([1, 2], pa.timestamp("ns"))}), "ns.parquet")
    assert refusal("ns.parquet", one("TIMESTAMP")) == (
        "orders (ns.parquet), row 1, column 'v': 1970-01-01 00:00:00.000000001 is finer than a microsecond"
    )


def test_refuses_files_that_disagree_where_no_columns_are_declared(folder: Path) -> None:
    put("in/a.csv", "v\n1\n")
    put("in/b.csv", "v\nx\n")
    assert refusal("in", None) == (
        "orders (in/b.csv): its columns are not those of in/a.csv\n  declare the columns that you need"
    )


def test_reads_a_declaration_from_where_it_says(folder: Path) -> None:
    put("o.csv", CSV.replace("id,price,ts\n", ""))
    location = Location("o.csv", "csv", (("header", "false"),))
    assert read_declared(Declaration("orders", SCHEMA, location)).to_pylist() == ROWS
    with pytest.raises(
        DataError, match="orders: no data\n  say FROM 'path' in its declaration, or pass orders by name"
    ):
        read_declared(Declaration("orders", SCHEMA))


def test_refuses_random_bytes_with_an_error_that_names_the_file(folder: Path) -> None:
    rng = random.Random(7)
    for i in range(300):
        name = f"o.{['csv', 'json', 'parquet'][i % 3]}"
        text = (
            bytearray((CSV if i % 3 == 0 else JSON).encode()) if i % 2 else bytearray(rng.randbytes(rng.randrange(80)))
        )
        for _ in range(rng.randrange(4)):
            if text:
                text[rng.randrange(len(text))] = rng.randrange(256)
        put(name, bytes(text))
        assert_read_or_refused(name, SCHEMA)
        assert_read_or_refused(name, None)
