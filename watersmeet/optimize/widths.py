"""Widths: bytes of a tuple in its window, where the budget is in bytes. Measured rows (`row_bytes`) are better than types."""

from __future__ import annotations

from watersmeet.model.bind import BoundSource
from watersmeet.model.statistics import Statistics

COLUMN_BYTES = {
    "BIGINT": 8.0, "DOUBLE": 8.0, "TIMESTAMP": 8.0, "DATE": 4.0, "BOOLEAN": 1.0, "DECIMAL": 16.0, "STRING": 24.0,
}  # fmt: skip
UNKNOWN_ROW_BYTES = 64.0
OVERHEAD_BYTES = (
    48.0  # of a row in a window: timestamp, join keys, index links, and the room that growing arrays leave free
)


def row_bytes(source: BoundSource, stats: Statistics, said: list[str]) -> float:
    """Payload and overhead of one row of a stream.

    >>> from watersmeet.model.types import BIGINT, STRING, Field, Schema
    >>> said = []
    >>> orders = BoundSource("o", "orders", None, Schema((Field("id", BIGINT), Field("name", STRING))), "ts")
    >>> row_bytes(orders, Statistics(), said), said
    (80.0, ['a row of o has 32 bytes, going by its column types'])
    """
    if source.alias in stats.row_bytes:
        return stats.row_bytes[source.alias] + OVERHEAD_BYTES
    if not source.schema.fields:
        said.append(f"a row of {source.alias} has {UNKNOWN_ROW_BYTES:g} bytes")
        return UNKNOWN_ROW_BYTES + OVERHEAD_BYTES
    payload = sum(COLUMN_BYTES[f.type.name] for f in source.schema.fields)
    said.append(f"a row of {source.alias} has {payload:g} bytes, going by its column types")
    return payload + OVERHEAD_BYTES
