"""Keys that a sender has chosen to collide: answers stay right, and chains stay short."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.engine.running import Run, agrees, stream
from watersmeet.engine.control import Change
from watersmeet.engine.program import layout as L
from watersmeet.engine.rows import values
from watersmeet.engine.rows.values import ROUTING, Key, add_bytes
from watersmeet.engine.store import arena

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def twins(count: int) -> list[tuple[str, str]]:
    """Pairs of 16 bytes that differ in one bit of three bytes each: a hash that multiplies and shifts takes many of them for equal."""
    rng = np.random.default_rng(7)
    made = []
    for _ in range(count):
        one = rng.integers(32, 127, 16).astype(np.uint8)
        other = one.copy()
        other[[0, 8, 11]] ^= np.array([0x40, 0x40, 0x02], np.uint8)
        made.append((one.tobytes().decode(), other.tobytes().decode()))
    return made


@pytest.mark.parametrize("by", ["w", "w, c"])
def test_conform_partitions_of_strings_that_differ_in_three_bits(by: str) -> None:
    words = [word for pair in twins(200) for word in pair]
    n = len(words)
    tables = {"R": stream(np.arange(n), id=np.arange(n), w=pa.array(words), c=[1] * n), "S": stream([n], one=[1])}
    made = agrees(f"SELECT R.id AS r FROM R [PARTITION BY {by} ROWS 1], S [UNBOUNDED]", tables)
    assert made.num_rows == n


def test_conform_partitions_of_wide_decimals_that_differ_in_three_bits() -> None:
    numbers = []
    for pair in twins(100):
        for word in pair:
            unscaled = int.from_bytes(bytes(b & 0x0F if i > 12 else b for i, b in enumerate(word.encode())), "little")
            numbers.append(Decimal(unscaled % 10**38))
    n = len(numbers)
    drawn = pa.array(numbers, pa.decimal128(38, 0))
    tables = {"R": stream(np.arange(n), id=np.arange(n), d=drawn), "S": stream([n], one=[1])}
    made = agrees("SELECT R.id AS r FROM R [PARTITION BY d ROWS 1], S [UNBOUNDED]", tables)
    assert made.num_rows == len(set(numbers))


@pytest.mark.parametrize("by", ["w", "p, w", "f, w, d", "p, f", "d", "p"])
def test_conform_partitions_whose_hashes_all_collide(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash of no use at all every row is held against what is there, and the answer is the oracle's."""

    def useless(array: pa.Array, kind: Any, key: Key, total: Any) -> None:
        used.append(len(array))
        total[:] = 7

    used: list[int] = []
    monkeypatch.setattr(values, "add_column", useless)
    rng = np.random.default_rng(3)

    def table(n: int) -> pa.Table:
        nulls = [rng.random(n) < 0.2 for _ in range(4)]
        wide = [Decimal(int(v)) * 10**25 for v in rng.integers(-1, 2, n)]
        return stream(
            np.sort(rng.integers(0, n, n)), id=np.arange(n), k=rng.integers(0, 4, n),
            p=pa.array(rng.integers(-1, 3, n), mask=nulls[0]),
            w=pa.array([["a", "", "ab"][v] for v in rng.integers(0, 3, n)], mask=nulls[1]),
            f=pa.array(rng.choice([0.0, -0.0, np.nan, 1.5], n), mask=nulls[2]),
            d=pa.array(wide, pa.decimal128(38, 2), mask=nulls[3]),
        )  # fmt: skip

    rows = {name: table(60) for name in "RS"}
    times = {name: t.column("ts").cast(pa.int64()).to_numpy() for name, t in rows.items()}
    batches = [{n: t.filter(pa.array((times[n] // 7) == b)) for n, t in rows.items()} for b in range(9)]
    text = (
        f"SELECT R.id AS r, S.id AS s FROM R [PARTITION BY {by} ROWS 2], S [PARTITION BY {by} ROWS 1] WHERE R.k = S.k"
    )
    assert agrees(text, batches, "(R S)").num_rows > 10 and used


def longest_chain(run: Run) -> int:
    """The longest chain of the first stream's only index, which must be one of hash chains."""
    found, mem = 0, run.engine.arena.memory
    (x,) = range(mem.stores[0, L.INDEX_FROM], mem.stores[0, L.INDEX_TO])
    index = run.engine.arena.I[x]
    assert not index[L.ORDERED]
    for head in run.engine.arena.h[index[L.HEADS_AT] : index[L.HEADS_AT] + index[L.BUCKETS] + 1].tolist():
        length, tid = 0, head
        while tid >= 0:
            row = run.engine.arena.S[0]
            record = int(row[L.ROWS_AT] + (tid & int(row[L.MASK])) * row[L.STRIDE])
            length, tid = length + 1, int(run.engine.arena.h[2 * record + index[L.LINK]])
        found = max(found, length)
    return found


def signed(value: int) -> int:
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


def chosen(kind: str, n: int) -> dict[str, Any]:
    """Keys that a sender would choose who knows all of the code: for each a way of hashing falls into one chain."""
    inverse = pow(GOLDEN, -1, 1 << 64)
    if kind == "multiples":  # the high bits of key * GOLDEN are the same
        return {"k": [signed(i * inverse) for i in range(n)]}
    if kind == "high bits":
        return {"k": [signed(i << 48) for i in range(n)]}
    if kind == "pairs":  # key * GOLDEN ^ other is the same
        return {"k": list(range(n)), "j": [signed(i * GOLDEN) for i in range(n)]}
    if kind == "high pairs":
        return {"k": [signed(i // 64 << 58) for i in range(n)], "j": [signed(i % 64 << 58) for i in range(n)]}
    return {"k": sorted({word for pair in twins(n) for word in pair})[:n]}


@pytest.mark.parametrize("kind", ["multiples", "high bits", "pairs", "high pairs", "strings"])
@pytest.mark.parametrize("secret", [0, 1, 2])
def test_conform_chains_stay_short_whatever_keys_are_sent(
    kind: str, secret: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena, "fresh", lambda: np.random.default_rng(secret).integers(-(1 << 63), 1 << 63, 2))
    n = 4_096
    columns = chosen(kind, n)
    assert len(set(zip(*columns.values(), strict=True))) == n
    equal = " AND ".join(f"R.{c} = S.{c}" for c in columns)
    one = {c: v[:1] for c, v in columns.items()}
    run = Run.of(
        f"SELECT R.k FROM R [UNBOUNDED], S [UNBOUNDED] WHERE {equal}",
        {"R": stream(range(n), **columns), "S": stream([n], **one)},
        "(R S)",
    )
    assert run.rows().num_rows == 1
    assert longest_chain(run) <= 16


def test_conform_an_engine_draws_its_own_secret() -> None:
    tables = {"R": stream([1], k=["a"]), "S": stream([2], k=["a"])}
    runs = [Run.of("SELECT R.k FROM R [ROWS 1], S [ROWS 1] WHERE R.k = S.k", tables, "(R S)") for _ in range(3)]
    secrets = [run.engine.arena.secret for run in runs]
    assert len({*secrets, ROUTING}) == 4
    engine = runs[0].engine
    assert runs[0].rows().num_rows == 1
    engine.apply(Change("test", plan=engine.plan))
    assert engine.arena.secret == secrets[0]


def sip(key: bytes, data: bytes) -> bytes:
    """SipHash-2-4 with 128 bits, with Python's own integers."""

    def rounds(v: list[int], times: int) -> None:
        def turn(x: int, by: int) -> int:
            return (x << by | x >> (64 - by)) & MASK

        for _ in range(times):
            v[0] = v[0] + v[1] & MASK
            v[1] = turn(v[1], 13) ^ v[0]
            v[0] = turn(v[0], 32)
            v[2] = v[2] + v[3] & MASK
            v[3] = turn(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & MASK
            v[3] = turn(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & MASK
            v[1] = turn(v[1], 17) ^ v[2]
            v[2] = turn(v[2], 32)

    low, high = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    v = [
        low ^ 0x736F6D6570736575,
        high ^ 0x646F72616E646F6D ^ 0xEE,
        low ^ 0x6C7967656E657261,
        high ^ 0x7465646279746573,
    ]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(v, 2)
        v[0] ^= word
    made = b""
    for place, mark in ((2, 0xEE), (1, 0xDD)):
        v[place] ^= mark
        rounds(v, 4)
        made += (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    return made


def test_paper_siphash_of_128_bits() -> None:
    """The vectors of the authors' reference implementation, and then the compiled code against the same algorithm in Python."""
    key = bytes(range(16))
    assert sip(key, b"").hex() == "a3817f04ba25a8e66df67214c7550293"
    assert sip(key, b"\x00").hex() == "da87c1d86b99af44347659119b22fc45"
    rng = np.random.default_rng(5)
    data = rng.integers(0, 256, 4_000).astype(np.uint8)
    offsets = np.cumsum([0, *range(70)]).astype(np.int32)
    before = rng.integers(-(1 << 63), 1 << 63, (2, 70))
    total = before.copy()
    add_bytes(offsets, data, values.NONE, *ROUTING, total)
    for i in range(70):
        message = before[:, i].tobytes() + data[offsets[i] : offsets[i + 1]].tobytes()
        assert total[:, i].tobytes() == sip(key, message), i
