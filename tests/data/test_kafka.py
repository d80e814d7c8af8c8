"""Topics in process: what messages become, which are bad rows, bounded reads, and results as messages."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import watersmeet as wm
from tests.kafka_brokers import MockCluster
from watersmeet.cli.app import app
from watersmeet.data import read_declared
from watersmeet.data.bad_rows import Rejects
from watersmeet.data.kafka_options import KafkaOptions
from watersmeet.data.messages import RAW, Decoder
from watersmeet.errors import DataError
from watersmeet.model.location import BadRows, Location
from watersmeet.model.query import Declaration


def declared(text: str) -> Declaration:
    return wm.parse(
        f"CREATE STREAM other (ts TIMESTAMP); CREATE {text}; SELECT * FROM other [ROWS 1] AS p, other [ROWS 1] AS q"
    ).declarations[1]


def batch(*values: Any, **same: Any) -> pa.RecordBatch:
    rows = [
        {"topic": "t", "partition": 1, "offset": 10 + i, "timestamp": 5_000_000, **same,
         "value": v if isinstance(v, bytes | None) else json.dumps(v).encode()}
        for i, v in enumerate(values)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, RAW)


TABLE = "TABLE t ({0}) FROM 't' FORMAT kafka"


def one(columns: str, value: Any, **message: Any) -> dict[str, Any]:
    found: dict[str, Any] = Decoder.of(declared(TABLE.format(columns)))(batch(value, **message), Rejects()).to_pylist()[
        0
    ]
    return found


def test_conform_a_message_and_what_kafka_adds_have_names_apart() -> None:
    value = {"key": "own", "offset": "own", "user": {"Id": 7, "home.town": {"zip": "X"}}, "n": None}
    columns = """key STRING, offset STRING, k STRING METADATA FROM key, o BIGINT METADATA FROM offset, p BIGINT METADATA FROM partition,
        topic STRING METADATA, at TIMESTAMP METADATA FROM timestamp, id BIGINT FROM user.id, zip STRING FROM user.`home.town`.zip,
        no STRING FROM user.gone.deeper, n DOUBLE, trace STRING METADATA FROM headers.trace, all STRING METADATA FROM headers"""
    headers = [{"key": "trace", "value": b"old"}, {"key": "trace", "value": b"new"}, {"key": "x", "value": None}]
    found = one(columns, value, key=b"k1", headers=headers)
    assert found.pop("at").timestamp() == 5
    assert found == {
        "key": "own", "offset": "own", "k": "k1", "o": 10, "p": 1, "topic": "t", "id": 7, "zip": "X", "no": None, "n": None,
        "trace": "new", "all": '[["trace", "old"], ["trace", "new"], ["x", null]]',
    }  # fmt: skip
    assert one("k BIGINT METADATA FROM key", None, key=b"42") == {
        "k": 42
    }  # a tombstone, but nobody asked for the value
    assert one("k BIGINT METADATA FROM key.id", None, key=b'{"id": 3}') == {"k": 3}


VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "BIGINT": ([1, -5, 2**63 - 1, None], ["1", 1.5, True, 2**63, {}]),
    "DOUBLE": ([1, 2.5, "NaN", None, 1e300], ["x", True, 2**53 + 1]),
    "STRING": (["a", "", "\N{SNOWMAN}", None], [1, True, {}, ["a"]]),
    "BOOLEAN": ([True, False, None], [1, "true"]),
    "DATE": (["2026-01-31", None], ["31.1.2026", 5]),
    "TIMESTAMP": (["2026-01-31T12:00:00.123456Z", "2026-01-31", None], ["noon", 5, "2026-01-31T12:00:00.1234567Z"]),
    "DECIMAL(10,2)": ([1, 2.25, "3.10", None], [1.234, "x", True]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_conform_one_by_one_and_in_batches_the_same(kind: str) -> None:
    good, bad = VALUES[kind]
    decoder = Decoder.of(declared(TABLE.format(f"v {kind}")))
    singly = [decoder(batch({"v": v}), Rejects()).to_pylist()[0]["v"] for v in good]
    assert all((v is None) == (s is None) for v, s in zip(good, singly, strict=True))
    for v in bad:
        with pytest.raises(DataError, match=r"^t \(topic t, partition 1, offset 10\), column 'v': .* is (not a|finer)"):
            decoder(batch({"v": v}), Rejects())
    skipped = Rejects(BadRows("SKIP"))
    together = decoder(batch(*({"v": v} for pair in zip(good, bad * 3) for v in pair)), skipped)  # noqa: B905
    assert str(together.column("v").to_pylist()) == str(singly) and skipped.count == len(good)


POISON = {
    b"": "the message is not JSON: ", b"{": "the message is not JSON: ", b'{"id": 1}{"id": 2}': "the message is not JSON: ",
    b"[1]": "expected a JSON object, found [1]", b"null": "expected a JSON object, found None",
    b"\xff\xfe": "the message is not UTF-8 text", None: "a tombstone: the message has no value",
    b'{"id": "x", "ts": "2026-01-01"}': "'x' is not a BIGINT", b'{"id": 1}': "NULL, but every row of a stream needs its timestamp",
    b'{"id": 1, "ts": "2026-01-01", "user": 5}': "'user' is 5, not an object",
    b'{"ID": 1, "Id": 2, "ts": "2026-01-01"}': "'id' may be 'ID' or 'Id'",
}  # fmt: skip


@pytest.mark.parametrize("value", POISON)
def test_conform_poison_follows_the_policy(value: bytes | None) -> None:
    good = {"id": 1, "ts": "2026-01-01T00:00:00Z"}
    decoder = Decoder.of(declared("STREAM s (id BIGINT, n BIGINT FROM user.n, ts TIMESTAMP) FROM 't' FORMAT kafka"))
    with pytest.raises(DataError, match=r"^s \(topic t, partition 1, offset 11\)") as refused:
        decoder(batch(good, value, good), Rejects())
    assert POISON[value] in str(refused.value)
    kept = Rejects(BadRows("INTO", Location("bad", "json")))
    assert decoder(batch(good, value, good), kept).num_rows == 2 and kept.count == 1
    row = kept.table().to_pylist()[0]
    assert (row["stream"], row["file"]) == ("s", "topic t, partition 1, offset 11") and POISON[value] in row["reason"]
    assert row["text"] == (None if value is None else value.decode(errors="replace"))


def test_conform_numbers_are_times_in_their_unit() -> None:
    text = "STREAM s (ts TIMESTAMP) FROM 't' FORMAT kafka TIMESTAMP ts IN MILLISECONDS"
    found = Decoder.of(declared(text))(batch({"ts": 1_700_000_000_123}, {"ts": 5}), Rejects())
    assert found.column("ts").cast(pa.int64()).to_pylist() == [1_700_000_000_123_000, 5_000]
    with pytest.raises(DataError, match="is not a number of MILLISECONDS"):
        Decoder.of(declared(text))(batch({"ts": "noon"}), Rejects())


OPTIONS = {
    "": "needs to know a broker",
    "'kafka.bootstrap.servers' = 'a:1', 'subscribe' = 'x'": "the topic is the path",
    "'kafka.bootstrap.servers' = 'a:1', 'startingOfsets' = 'latest'": "did you mean 'startingOffsets'",
    "'kafka.bootstrap.servers' = 'a:1', 'startingOffsets' = 'yesterday'": "earliest",
    "'kafka.bootstrap.servers' = 'a:1', 'maxOffsetsPerTrigger' = '0'": "above 0",
}


@pytest.mark.parametrize("given", OPTIONS)
def test_wrong_options_are_refused(given: str) -> None:
    place = declared(TABLE.format("a BIGINT") + (f" OPTIONS ({given})" if given else "")).location
    assert place is not None
    with pytest.raises(DataError) as refused:
        KafkaOptions.source(place, "t")
    assert OPTIONS[given] in str(refused.value)


@pytest.fixture(scope="module")
def broker() -> MockCluster:
    return MockCluster()


def test_a_topic_is_read_up_to_its_end(broker: MockCluster) -> None:
    rows = [{"id": i, "ts": f"2026-01-01T00:00:{i % 60:02d}Z"} for i in range(25_000)]
    broker.send("whole", rows)
    text = f"STREAM s (id BIGINT, o BIGINT METADATA FROM offset, ts TIMESTAMP) FROM 'whole' {broker.location()}"
    found = read_declared(declared(text))
    assert sorted(found["id"].to_pylist()) == list(range(25_000)) and max(found["o"].to_pylist()) == 25_000 // 4 - 1
    latest = declared(text.replace("OPTIONS (", "OPTIONS ('startingOffsets' = 'latest', "))
    assert read_declared(latest).num_rows == 0
    with pytest.raises(DataError, match=r"s \(topic none\): can't be read: .*[Uu]nknown topic"):
        read_declared(declared(text.replace("'whole'", "'none'")))


def test_a_job_from_topics_to_a_topic(broker: MockCluster, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broker.send(
        "orders", [{"order": {"id": i}, "ts": f"2026-01-01T00:{i:02d}:00Z"} for i in range(50)] + [b"poison", None]
    )
    broker.send("payments", [{"id": i, "ts": f"2026-01-01T00:{i:02d}:30.5Z"} for i in range(0, 50, 3)])
    (tmp_path / "job.sql").write_text(f"""
        CREATE STREAM orders (id BIGINT FROM order.id, ts TIMESTAMP) FROM 'orders' {broker.location()} ON BAD ROW SKIP;
        CREATE STREAM payments (id BIGINT, ts TIMESTAMP) FROM 'payments' {broker.location()};
        SELECT o.id, p.ts AS paid FROM orders [RANGE 5 MINUTES] AS o, payments [RANGE 5 MINUTES] AS p WHERE o.id = p.id
        EMIT ISTREAM INTO 'paid' {broker.location(key="id")}
    """)
    done = CliRunner().invoke(app, ["run", "job.sql"])
    assert done.exit_code == 0, done.output
    assert "2 of orders, left out" in done.output
    found = sorted(broker.received("paid"), key=lambda m: int(m[1]["id"]))
    assert [(k, v["id"]) for k, v in found] == [(str(i).encode(), i) for i in range(0, 50, 3)]
    assert found[1][1]["paid"] == "2026-01-01T00:03:30.500000Z"
    wrong = (tmp_path / "job.sql").read_text().replace("'key' = 'id'", "'key' = 'ids'")
    (tmp_path / "job.sql").write_text(wrong)
    done = CliRunner().invoke(app, ["run", "job.sql"])
    assert done.exit_code == 1 and "the results have no column 'ids' to be the key" in done.output
