"""Chunks: what the state store keeps of a cell. A manifest (one small value) and chunks of rows (up to 1 MB each).

A row is written once, in the batch in which it comes, whether it is released at once or waits: the watermark in the manifest tells the two
apart (released: ts < watermark). Rows are dead when their window has let them go. A chunk whose rows are all dead is removed; one
that is more than half dead is rewritten without them; small ones are merged. docs/internals/state-format.md has the layout.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from watersmeet.data import timestamps
from watersmeet.engine.rows.release import NEVER
from watersmeet.errors import StateError
from watersmeet.spark.blob import decode_table, encode_table

LAYOUT: Final = 3
READABLE: Final = (1, 2, 3)
CHUNK_BYTES: Final = 1 << 20  # of rows; on its way to the store a chunk is in memory some seven times over
# classes of small chunks, each from one size to the next
SMALL: Final = (0, CHUNK_BYTES // 128, CHUNK_BYTES // 16, CHUNK_BYTES // 2)
FEW: Final = 8  # so many chunks of one class and stream are merged


class Store(Protocol):
    """Spark's state store for one cell, or a stand-in of the same behaviour."""

    def manifest(self) -> str | None: ...
    def set_manifest(self, text: str) -> None: ...
    def chunk(self, number: int) -> bytes | None: ...
    def put_chunk(self, number: int, data: bytes) -> None: ...
    def remove_chunk(self, number: int) -> None: ...


@dataclass(frozen=True)
class Chunk:
    """Rows of one entry of FROM; `low`, `middle` and `high` are of their timestamps. `bytes`: in the store, `plain`: before compression."""

    number: int
    source: int
    rows: int
    bytes: int
    low: int
    middle: int
    high: int
    plain: int = 0  # not known in layout 1
    digest: str = ""  # of its bytes in the store; not known before layout 3


@dataclass
class Manifest:
    """What a cell knows between two batches, besides the rows.

    fingerprint: what the state belongs to. version, token: which state this is. high, lowest, watermark: the clock.
    plan: the one in use; given_plan: the one that the query was started with (both not known before layout 3).
    numbered, marks: of a LEFT JOIN how many rows have a number, and where the marks are: chunk, first number, how many (`marks.py`).
    """

    fingerprint: dict[str, str]
    version: int = 0
    token: str = ""
    high: dict[str, int] = field(default_factory=dict)
    lowest: int = -NEVER
    watermark: int = NEVER
    next: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    plan: str = ""
    given_plan: str = ""
    numbered: int = 0
    marks: list[int] = field(default_factory=list)

    def text(self) -> str:
        made = asdict(self)
        made["chunks"] = [list(asdict(c).values()) for c in self.chunks]
        return _signed({"layout": LAYOUT, **made})

    @classmethod
    def read(cls, text: str) -> Manifest:
        try:
            made = json.loads(text)
            digest = made.pop("digest", None)
            if (digest is not None or made["layout"] == LAYOUT) and text != _signed(made):
                raise ValueError
            layout = made.pop("layout")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StateError(
                "the state of a cell can't be read: its manifest is damaged\n"
                "  restore the checkpoint from a copy, or start from a new one"
            ) from None
        if layout not in READABLE:
            raise StateError(
                f"the state has layout {layout}, and this version of watersmeet reads {', '.join(map(str, READABLE))}\n"
                "  go on with the version that wrote it, or start from a new checkpoint"
            )
        made["chunks"] = [Chunk(*c) for c in made["chunks"]]
        return cls(**made)


def check_fingerprint(found: dict[str, str], wanted: dict[str, str], refresh_tables: bool = False) -> None:
    """Refuse the state of another query, and name what differs."""
    differ = [k for k in {**found, **wanted} if found.get(k) != wanted.get(k)]
    if refresh_tables:
        differ = [k for k in differ if not k.startswith("table ")]
    if not differ:
        return
    if differ == ["hash"]:
        raise StateError(
            "the state in this checkpoint was made by a version of watersmeet that hashed keys in another way\n"
            "  its rows lie in other cells than new ones would go to\n"
            "  go on with the version that wrote it, or start from a new checkpoint"
        )
    lines = [f"  {k}: was {_short(found.get(k))}, is {_short(wanted.get(k))}" for k in differ]
    hint = "run the query as it was, or start from a new checkpoint"
    if all(k.startswith("table ") for k in differ):
        hint += "; refresh_tables=True goes on with the new rows of the table"
    elif "cells" in differ:
        hint = f"pass cells={found.get('cells')}, or start from a new checkpoint"
    raise StateError("the state in this checkpoint belongs to another query\n" + "\n".join(lines) + f"\n  {hint}")


def _short(value: str | None) -> str:
    text = "nothing" if value is None else " ".join(value.split())
    return text if len(text) <= 300 else f"{text[:300]}..."


def _signed(manifest: dict[str, Any]) -> str:
    """A manifest as text, with the digest of all else in it."""
    return json.dumps({**manifest, "digest": _digest(json.dumps(manifest).encode())})


def _digest(data: bytes) -> str:
    """64 bits that change with any bit of the data."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class Chunks:
    """The chunks of one cell, in a store, listed in its manifest. `times`: the timestamp column of each entry of FROM."""

    def __init__(self, store: Store, manifest: Manifest, times: list[str | None]) -> None:
        self.store, self.manifest, self.times = store, manifest, times

    def of(self, source: int) -> list[Chunk]:
        return [c for c in self.manifest.chunks if c.source == source]

    def load(self, source: int) -> pa.Table | None:
        """All stored rows of one entry of FROM."""
        tables = [self._read(c) for c in self.of(source)]
        return pa.concat_tables(tables) if tables else None

    def _read(self, chunk: Chunk) -> pa.Table:
        data = self.store.chunk(chunk.number)
        if data is None or (chunk.digest and _digest(data) != chunk.digest):
            raise StateError(
                f"chunk {chunk.number} of the state (of entry {chunk.source + 1} of FROM, {chunk.rows} rows) is"
                f" {'missing' if data is None else 'damaged: it is not what was written'}\n"
                "  restore the checkpoint from a copy, or start from a new one"
            )
        return decode_table(data)

    def add(self, source: int, table: pa.Table) -> None:
        """Write rows, in chunks of a good size: as few as will do, all of one size."""
        time = self.times[source]
        assert time is not None
        step = -(-table.num_rows // -(-max(table.nbytes, 1) // CHUNK_BYTES))
        for first in range(0, table.num_rows, step):
            piece = table.slice(first, step)
            ts = np.sort(timestamps(piece, time))
            data = encode_table(piece)
            number = self.manifest.next
            self.manifest.next += 1
            self.store.put_chunk(number, data)
            self.manifest.chunks.append(
                Chunk(
                    number,
                    source,
                    len(ts),
                    len(data),
                    int(ts[0]),
                    int(ts[len(ts) // 2]),
                    int(ts[-1]),
                    piece.nbytes,
                    _digest(data),
                )
            )

    def replace(self, source: int, old: Iterable[Chunk], keep: Callable[[pa.Table], Any] | None = None) -> None:
        """Write the rows of some chunks again, those that `keep` marks."""
        old = list(old)
        tables = [self._read(c) for c in old]
        self._remove(old)
        table = pa.concat_tables(tables)
        if keep is not None:
            table = table.filter(pa.array(keep(table)))
        if table.num_rows:
            self.add(source, table)

    def _remove(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            self.store.remove_chunk(chunk.number)
        self.manifest.chunks = [c for c in self.manifest.chunks if c not in chunks]

    def trim(self, source: int, cut: int) -> None:
        """Rows with ts < cut are dead. A chunk of dead rows is removed; those more than half dead are rewritten only if more than half
        of all that is stored may be dead, since that means to read them first."""
        time = self.times[source]
        assert time is not None
        self._remove([c for c in self.of(source) if c.high < cut])
        stored = self.of(source)
        stale = [c for c in stored if c.middle < cut]
        dead = sum(c.rows for c in stale) + sum(c.rows // 2 for c in stored if c.low < cut <= c.middle)  # or less
        if 2 * dead > sum(c.rows for c in stored):
            for chunk in stale:
                self.replace(source, [chunk], lambda table: timestamps(table, time) >= cut)

    def merge(self, source: int) -> None:
        """Put small chunks together, so that there are never many: those of about one size at a time."""
        for low, high in itertools.pairwise(SMALL):
            small = [c for c in self.of(source) if low <= max(c.bytes, c.plain) < high]
            if len(small) >= FEW:
                self.replace(source, small)
