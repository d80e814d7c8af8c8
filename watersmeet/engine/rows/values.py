"""Values as the kernel sees them: every column it compares is int64, so that one comparison serves all types.

Integers, dates, timestamps, intervals and booleans are themselves; doubles are mapped so that order is kept (NaN greatest,
-0.0 as 0.0); decimals of up to 18 digits are their unscaled value; strings and wider decimals are 64-bit hashes, which find
candidates only and are verified on the payload.

Hashes are SipHash-2-4 with a key. An engine has a key of its own, which nobody outside can know (store/secret.py), so nobody can
choose values that collide. Routing has a fixed one: the same value must find the same cell on every host and after every restart.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.engine.native.hashing import sip_end, sip_start, sip_word
from watersmeet.engine.native.mark import Bytes, Halves, Table, Words, compiled
from watersmeet.model.types import Type

Int64s = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Key = tuple[int, int]
ROUTING: Final[Key] = (0x0706050403020100, 0x0F0E0D0C0B0A0908)  # it must never change: it is part of every checkpoint
NONE: Final = np.zeros(0, np.bool_)


def encode(array: pa.Array, kind: Type, key: Key = ROUTING) -> tuple[Int64s, Bools | None]:
    """The values as int64, and which of them are there (None: all); `key` is that of the hash where they are hashed."""
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    name = kind.name
    if name == "STRING":
        return hash_strings(array, key), valid
    if name == "DECIMAL":
        if kind.precision > 18:
            return hash_fixed(array, 16, key), valid
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


def ranked(column: pa.Array) -> pa.Array:
    """A column that Arrow sorts and compares as the tie key wants: NaN last and equal to itself, -0.0 as 0.0."""
    if pa.types.is_float64(column.type):
        made = sortable(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False))
        return pa.array(made, mask=pc.is_null(column).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(column.type):
        return column.cast(pa.int8())
    return column


def _buffer(array: pa.Array, kind: Any, width: int) -> Any:
    """The values of a fixed-width array as they lie in memory; what stands at NULLs means nothing."""
    if len(array) == 0:
        return np.zeros(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset * width : (array.offset + len(array)) * width]


def hash_strings(array: pa.Array, key: Key = ROUTING) -> Int64s:
    """64 bits of each string."""
    made: Int64s = np.zeros((2, len(array)), np.int64)
    _add_strings(array, NONE, key, made)
    return np.ascontiguousarray(made[0])


def hash_fixed(array: pa.Array, width: int, key: Key = ROUTING) -> Int64s:
    """64 bits of values of so many bytes each."""
    made: Int64s = np.zeros((2, len(array)), np.int64)
    _add_fixed(array, width, NONE, key, made)
    return np.ascontiguousarray(made[0])


def add_column(array: pa.Array, kind: Type, key: Key, total: Int64s) -> None:
    """Add a column to the running hash, 128 bits a row, of several. Values that are the same are hashed the same: NULL as NULL, NaN as
    NaN, -0.0 as 0.0."""
    there = NONE if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    if kind.name == "STRING":
        _add_strings(array, there, key, total)
    elif kind.name == "DECIMAL" and kind.precision > 18:
        _add_fixed(array, 16, there, key, total)
    else:
        add_words(np.ascontiguousarray(encode(array, kind)[0]), there, *key, total)


def _add_strings(array: pa.Array, there: Bools, key: Key, total: Int64s) -> None:
    if len(array):
        _, offsets, data = array.buffers()
        at = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
        bytes_ = np.frombuffer(data, np.uint8) if data and data.size else np.zeros(1, np.uint8)
        add_bytes(at, bytes_, there, *key, total)


def _add_fixed(array: pa.Array, width: int, there: Bools, key: Key, total: Int64s) -> None:
    if len(array):
        at = (np.arange(len(array) + 1) + array.offset).astype(np.int32) * np.int32(width)
        add_bytes(at, np.frombuffer(array.buffers()[1], np.uint8), there, *key, total)


@compiled
def add_bytes(offsets: Halves, data: Bytes, there: Bytes, low: int, high: int, total: Table) -> None:
    """total[:, i] = SipHash of total[:, i] and of the bytes from offsets[i] to offsets[i + 1]; an empty `there`: none is NULL."""
    for i in range(total.shape[1]):
        v0, v1, v2, v3 = sip_start(low, high)
        v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, total[0, i])
        v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, total[1, i])
        word, count, size = 0, 0, -1
        if there.shape[0] == 0 or there[i] != 0:
            size = offsets[i + 1] - offsets[i]
            for j in range(offsets[i], offsets[i + 1]):
                word |= data[j] << (8 * count)
                count += 1
                if count == 8:
                    v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, word)
                    word, count = 0, 0
        v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, word | (((size + 16) & 0xFF) << 56))
        total[0, i], total[1, i] = sip_end(v0, v1, v2, v3)


@compiled
def add_words(values: Words, there: Bytes, low: int, high: int, total: Table) -> None:
    """The same of one word each."""
    for i in range(total.shape[1]):
        v0, v1, v2, v3 = sip_start(low, high)
        v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, total[0, i])
        v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, total[1, i])
        size = -1
        if there.shape[0] == 0 or there[i] != 0:
            size = 8
            v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, values[i])
        v0, v1, v2, v3 = sip_word(v0, v1, v2, v3, (size + 16) << 56)
        total[0, i], total[1, i] = sip_end(v0, v1, v2, v3)
