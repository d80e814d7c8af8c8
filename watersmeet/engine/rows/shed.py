"""Shed: drop boxes at work. Which rows of a stream are kept when it is allowed to give some up.

A row is kept if a hash of it lies below the share to keep. So the choice is random, but the same in every run, batch, retry and engine,
and a smaller share keeps a part of what a larger one keeps. The timestamp and all numbers of the row that the query uses go into the hash:
rows that are equal in these share their fate. The stream's place in FROM and the seed go in as well, so that streams are thinned
independently of each other.

A row that is shed does not join. It still counts towards a ROWS window, so what is produced is part of the exact answer.

>>> import pyarrow as pa
>>> from watersmeet.model.types import Field, Schema, Type
>>> schema = Schema((Field("k", Type("BIGINT")), Field("ts", Type("TIMESTAMP"))))
>>> rows = pa.table({"k": range(10000), "ts": pa.array(range(10000), pa.timestamp("us", tz="UTC"))})
>>> kept = Shed(0.25, 0, 0, schema).kept(rows)
>>> int(kept.sum()), bool((Shed(0.5, 0, 0, schema).kept(rows) >= kept).all())
(2462, True)

Source: static-optimization 5.1 (drop boxes at the inputs; random dropping).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from watersmeet.engine.rows.values import encode
from watersmeet.model.types import Schema, Type

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class Shed:
    """keep: the share of rows kept. stream: its place in FROM. schema: of the columns that the query uses."""

    keep: float
    seed: int
    stream: int
    schema: Schema

    def kept(self, table: pa.Table) -> Any:
        """Which rows stay, as a mask."""
        total = np.full(table.num_rows, self.seed * 1_000_003 + self.stream, np.uint64)
        with np.errstate(over="ignore"):
            for field in self.schema.fields:
                if field.name in table.column_names and _fixed(field.type):
                    values, valid = encode(table.column(field.name).combine_chunks(), field.type)
                    there = values if valid is None else np.where(valid, values, 0)
                    total = _mixed(total + np.ascontiguousarray(there).view(np.uint64))
        return (
            total < np.uint64(min(int(self.keep * 2.0**64), (1 << 64) - 1))
            if self.keep < 1
            else np.ones(len(total), bool)
        )


def _fixed(kind: Type) -> bool:
    return kind.name != "STRING" and not (kind.name == "DECIMAL" and kind.precision > 18)


def _mixed(x: Any) -> Any:
    """Every bit of the input moves half of the output's (Steele, Lea, Flood 2014: SplitMix)."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
