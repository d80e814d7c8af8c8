"""Values as the kernel sees them: every column it compares is int64, so that one comparison serves all types.

Integers, dates, timestamps, intervals and booleans are themselves; doubles are mapped so that order is kept (NaN greatest,
-0.0 as 0.0); decimals of up to 18 digits are their unscaled value; strings and wider decimals are 64-bit hashes, which find
candidates only and are verified on the payload.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.engine.native.hashing import plus, scatter
from watersmeet.engine.native.mark import Bytes, Halves, Words, compiled
from watersmeet.model.types import Type

Int64s = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


def encode(array: pa.Array, kind: Type, seed: int = 0) -> tuple[Int64s, Bools | None]:
    """The values as int64, and which of them are there (None: all); `seed` chooses among hashes where they are hashed."""
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    name = kind.name
    if name == "STRING":
        return hash_strings(array, seed), valid
    if name == "DECIMAL":
        if kind.precision > 18:
            return hash_fixed(array, 16, seed), valid
        return np.ascontiguousarray(_buffer(array, np.int64, 2)[::2]), valid
    if name == "BOOLEAN":
        return pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.int64), valid
    if name == "DATE":
        return _buffer(array, np.int32, 1).astype(np.int64), valid
    if name == "DOUBLE":
        return sortable(_buffer(array, np.float64, 1)), valid
    return _buffer(array, np.int64, 1), valid


def sortable(values: Any) -> Int64s:
    """Doubles as integers of the same order; NaN is the greatest, -0.0 is 0.0.

    >>> sortable(np.array([-1.0, -0.0, 0.0, 2.5, np.nan])).argsort(kind="stable").tolist()
    [0, 1, 2, 3, 4]
    """
    bits = (values + 0.0).view(np.int64)
    ordered = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    return np.where(np.isnan(values), np.int64(0x7FFFFFFFFFFFFFFF), ordered)


def _buffer(array: pa.Array, kind: Any, width: int) -> Any:
    """The values of a fixed-width array as they lie in memory; what stands at NULLs means nothing."""
    if len(array) == 0:
        return np.zeros(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset * width : (array.offset + len(array)) * width]


def hash_strings(array: pa.Array, seed: int = 0) -> Int64s:
    out = np.zeros(len(array), np.int64)
    if len(array):
        _, offsets, data = array.buffers()
        at = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
        _hash_strings(at, np.frombuffer(data, np.uint8) if data and data.size else np.zeros(1, np.uint8), out, seed)
    return out


def hash_fixed(array: pa.Array, width: int, seed: int = 0) -> Int64s:
    out = np.zeros(len(array), np.int64)
    if len(array):
        at = (np.arange(len(array) + 1) + array.offset).astype(np.int32) * np.int32(width)
        _hash_strings(at, np.frombuffer(array.buffers()[1], np.uint8), out, seed)
    return out


@compiled
def _hash_strings(offsets: Halves, data: Bytes, out: Words, seed: int) -> None:
    for i in range(out.shape[0]):
        x = scatter(offsets[i + 1] - offsets[i] + 1 + (seed << 32))
        word = 0
        count = 0
        for j in range(offsets[i], offsets[i + 1]):
            word = (word << 8) | data[j]
            count += 1
            if count == 8:
                x = scatter(x ^ word)
                x ^= x >> 29
                word = 0
                count = 0
        x = scatter(x ^ word)
        x ^= x >> 32
        out[i] = scatter(x)


@compiled
def mix_into(values: Words, valid: Bytes, total: Words, seed: int) -> None:
    """Add a column to the running hash of several; an empty `valid` means that every value is there."""
    for i in range(total.shape[0]):
        there = valid.shape[0] == 0 or valid[i] != 0
        x = plus(scatter(total[i] ^ (values[i] if there else 0)), seed if there else ~seed)
        total[i] = scatter(x ^ (x >> 31))
