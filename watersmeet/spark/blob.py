"""Blobs: what travels from pack to a cell. Rows of a stream as a compressed Arrow stream; marks of how far it has come; tallies; the end.

The columns of the DataFrame between the two: `cell` (the key Spark groups by), `source` (position in FROM), `kind`, `low`, `high`
(timestamps in microseconds, of a mark), `rows` (the blob).
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

ROWS: Final = 0
MARK: Final = 1
END: Final = 2
SHED: Final = 3  # low: how many rows were given up; high: the highest timestamp of them
TALLY: Final = 4  # low: rows read, high: bad rows among them, rows: those that are to be written
UNSENT: Final = 5  # rows that can't join, sent all the same where late rows are given out: these may be late
FAILED: Final = 6  # rows on which a condition fails, and how: an error, unless they are late
BLOB_BYTES: Final = 100 << 10  # of rows, about

ARROW_SCHEMA: Final = pa.schema(
    [("cell", pa.int32()), ("source", pa.int32()), ("kind", pa.int32()), ("low", pa.int64()), ("high", pa.int64()),
     ("rows", pa.binary())]
)  # fmt: skip
Parcel = tuple[int, int, int, int, int, Any]

# Columns that pack adds to rows, under names that a query can't have by accident.
ALIVE: Final = "_wm_alive"  # whether the row can join here, or only counts towards a ROWS window
SHOWN: Final = (
    "_wm_shown"  # of the preserved stream of a LEFT JOIN: whether the row comes out here although nothing joins it
)
ERROR: Final = "_wm_error"  # how a condition fails on the row
AGAIN: Final = "_wm_again"  # whether the row was sent under an earlier alias of the same stream already

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_PLAIN: Final = pa.ipc.IpcWriteOptions()
_SMALL: Final = 1 << 12  # bytes below which compression does not pay


def encode_table(table: pa.Table, compress: bool = True) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    options = _OPTIONS if compress and table.nbytes > _SMALL else _PLAIN
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table if _in_one_piece(table) else table.combine_chunks())
    made: bytes = sink.getvalue().to_pybytes()
    return made


def _in_one_piece(table: pa.Table) -> bool:
    return all(column.num_chunks == 1 for column in table.columns)


def decode_table(data: Any) -> pa.Table:
    """The table of bytes that `encode_table` made."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def parcels_batch(parcels: list[Parcel]) -> pa.RecordBatch:
    """Parcels (cell key, source, kind, low, high, rows) as the DataFrame's rows."""
    columns = [[parcel[i] for parcel in parcels] for i in range(len(ARROW_SCHEMA))]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, ARROW_SCHEMA, strict=True)],
        schema=ARROW_SCHEMA,
    )
