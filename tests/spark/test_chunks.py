"""Chunks in the state store: of a good size, written a few times at most, and read from the layout before."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.spark.local_cells import DictStore
from watersmeet.spark.blob import decode_table
from watersmeet.spark.chunks import CHUNK_BYTES, Chunks, Manifest, check_fingerprint
from watersmeet.spark.packing import route_hash_check


class CountingStore(DictStore):
    """A store that counts the bytes that are put into it, before compression."""

    plain = 0

    def put_chunk(self, number: int, data: bytes) -> None:
        self.plain += decode_table(data).nbytes
        super().put_chunk(number, data)


def _rows(first: int, count: int, text: str = "") -> pa.Table:
    ts = pa.array(np.arange(first, first + count)).cast(pa.timestamp("us", tz="UTC"))
    keys = np.random.default_rng(first).integers(0, 1 << 62, count)
    return pa.table({"ts": ts, "a": keys} if not text else {"ts": ts, "a": pa.repeat(pa.scalar(text), count)})


def _chunks() -> tuple[CountingStore, Chunks]:
    store = CountingStore()
    return store, Chunks(store, Manifest({}), ["ts"])


@pytest.mark.parametrize("count", [1, 1000, 65_000, 70_000, 700_000])
def test_chunks_are_of_one_good_size(count: int) -> None:
    store, chunks = _chunks()
    rows = _rows(0, count)
    chunks.add(0, rows)
    made = chunks.of(0)
    assert all(c.plain <= CHUNK_BYTES for c in made)
    assert len(made) == 1 or min(c.plain for c in made) > CHUNK_BYTES / 2
    assert chunks.load(0).equals(rows) and sum(c.plain for c in made) == store.plain  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "always the same long text in every one of the rows of this stream"])
@pytest.mark.parametrize("count", [20, 300, 5000, 40_000])
def test_a_row_is_written_a_few_times_at_most(count: int, text: str) -> None:
    """Also where rows shrink to next to nothing in compression: chunks that are full stay as they are."""
    store, chunks = _chunks()
    batches = min(300, 2_000_000 // count)
    for batch in range(batches):
        chunks.add(0, _rows(batch * count, count, text))
        chunks.merge(0)
    rows = chunks.load(0)
    assert rows is not None and rows.num_rows == batches * count
    assert store.plain <= 6 * rows.nbytes
    assert len(chunks.of(0)) <= 3 * 7 + 2 * rows.nbytes / CHUNK_BYTES


@pytest.mark.parametrize("window", [1, 700, 10_000, 25_000, 200_000, 1_000_000])
@pytest.mark.parametrize("count", [3000, 50_000, 150_000])
def test_what_is_stored_is_at_most_half_dead(count: int, window: int) -> None:
    """And where windows are longer than batches, rows are written once: the oldest chunk need not be read only because it is half dead."""
    store, chunks = _chunks()
    for batch in range(40):
        chunks.add(0, _rows(batch * count, count))
        end = (batch + 1) * count
        cut = end - window
        chunks.trim(0, cut)
        rows = chunks.load(0)
        assert rows is not None
        live = int((rows.column("ts").cast(pa.int64()).to_numpy() >= cut).sum())
        assert live == min(window, end)
        assert rows.num_rows == sum(c.rows for c in chunks.of(0)) <= 2 * live
    once = 40 * count * 16
    assert store.plain == once if window > 2 * min(count, CHUNK_BYTES // 16) else store.plain <= 2 * once


def test_older_layouts_are_read_and_an_unknown_one_refused() -> None:
    _, chunks = _chunks()
    for batch in range(9):
        chunks.add(0, _rows(batch * 100, 100))
    manifest = json.loads(chunks.manifest.text())
    del manifest["plan"], manifest["given_plan"], manifest["digest"]  # new in layout 3
    assert Manifest.read(json.dumps({**manifest, "layout": 2})).plan == ""
    older = {**manifest, "layout": 1, "chunks": [c[:-2] for c in manifest["chunks"]]}
    read = Chunks(chunks.store, Manifest.read(json.dumps(older)), ["ts"])
    read.merge(0)
    assert len(read.of(0)) == 1 and read.load(0).num_rows == 900  # type: ignore[union-attr]
    with pytest.raises(wm.StateError, match=r"layout 99, and this version of watersmeet reads 1, 2, 3"):
        Manifest.read(json.dumps({**manifest, "layout": 99}))


def test_layout_2_is_read() -> None:
    _, chunks = _chunks()
    chunks.add(0, _rows(0, 100))
    manifest = json.loads(chunks.manifest.text())
    del manifest["plan"], manifest["given_plan"], manifest["digest"]  # new in layout 3
    older = {**manifest, "layout": 2, "chunks": [c[:-1] for c in manifest["chunks"]]}
    read = Chunks(chunks.store, Manifest.read(json.dumps(older)), ["ts"])
    assert read.load(0).equals(_rows(0, 100))  # type: ignore[union-attr]
    read.add(0, _rows(100, 100))
    again = Chunks(chunks.store, Manifest.read(read.manifest.text()), ["ts"])
    assert [bool(c.digest) for c in again.of(0)] == [False, True] and again.load(0).num_rows == 200  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(40))
def test_one_bit_flipped_in_a_chunk_is_refused(seed: int) -> None:
    """Below Spark's own checksums: it gave other answers, or worse."""
    store, chunks = _chunks()
    for batch in range(3):
        chunks.add(0, _rows(batch * 100, 100))
    rng = Random(seed)
    victim = rng.choice(chunks.of(0))
    data = bytearray(store.chunks[victim.number])
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    store.chunks[victim.number] = bytes(data)
    read = Chunks(store, Manifest.read(chunks.manifest.text()), ["ts"])
    with pytest.raises(wm.StateError, match=rf"chunk {victim.number} of the state .* is damaged") as e:
        read.load(0)
    assert "start from a new one" in str(e.value)


@pytest.mark.parametrize("seed", range(40))
def test_one_bit_flipped_in_a_manifest_is_refused(seed: int) -> None:
    _, chunks = _chunks()
    chunks.add(0, _rows(0, 100))
    chunks.manifest.watermark = 123_456_789
    rng = Random(seed)
    data = bytearray(chunks.manifest.text().encode())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(7)
    with pytest.raises(wm.StateError, match="its manifest is damaged"):
        Manifest.read(data.decode())


def test_a_chunk_that_is_not_there_is_refused() -> None:
    store, chunks = _chunks()
    chunks.add(0, _rows(0, 100))
    store.chunks.clear()
    with pytest.raises(wm.StateError, match=r"chunk 0 of the state .* is missing"):
        chunks.load(0)


def test_the_state_of_another_hash_is_refused_in_words() -> None:
    """Fingerprints have a few hashed values in them; these are of the hash that was used before SipHash."""
    mine = {"query": "SELECT 1", "hash": route_hash_check()}
    check_fingerprint(mine, dict(mine))
    with pytest.raises(wm.WatersmeetError, match="a version of watersmeet that hashed keys in another way") as e:
        check_fingerprint({**mine, "hash": "0 3106 2862 2204"}, mine)
    assert "or start from a new checkpoint" in str(e.value)
