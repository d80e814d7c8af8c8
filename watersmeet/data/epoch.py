"""Timestamps written as numbers: how many seconds, milliseconds, microseconds or nanoseconds since 1970. Nothing is rounded."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.model.types import EPOCH_UNITS

_UTC = pa.timestamp("us", tz="UTC")


def from_epoch(numbers: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    """TIMESTAMPs of a column of integers, floats, decimals or text; raises ArrowInvalid where one is no whole microsecond.

    >>> from_epoch(pa.chunked_array([["1700000000123", " 5.25 "]]), "MILLISECONDS").cast(pa.int64()).to_pylist()
    [1700000000123000, 5250]
    """
    if pa.types.is_string(numbers.type) or pa.types.is_large_string(numbers.type):
        text = pc.utf8_trim_whitespace(numbers)
        try:
            numbers = text.cast(pa.int64())
        except pa.ArrowInvalid:
            numbers = text.cast(pa.decimal256(50, 9))
    if pa.types.is_integer(numbers.type):
        return _of_integers(numbers.cast(pa.int64()), EPOCH_UNITS[unit]).cast(_UTC)
    if pa.types.is_floating(numbers.type):
        return _of_doubles(numbers.cast(pa.float64()), EPOCH_UNITS[unit]).cast(_UTC)
    exact = numbers.cast(pa.decimal256(50, numbers.type.scale))
    factor = Decimal(10**6) / EPOCH_UNITS[unit]
    return pc.multiply(exact, pa.scalar(factor, pa.decimal256(10, 3))).cast(pa.int64()).cast(_UTC)


def _of_integers(numbers: pa.ChunkedArray, per_second: int) -> pa.ChunkedArray:
    if per_second <= 10**6:
        return pc.multiply_checked(numbers, 10**6 // per_second)
    whole = pc.divide(numbers, per_second // 10**6)
    if not pc.all(pc.equal(pc.multiply(whole, per_second // 10**6), numbers)).as_py():
        raise pa.ArrowInvalid("finer than a microsecond")
    return whole


def _of_doubles(numbers: pa.ChunkedArray, per_second: int) -> pa.ChunkedArray:
    """A double stands for the nearest microsecond if it is the double nearest to that."""
    factor = 10**6 / per_second
    ticks = pc.round(pc.multiply(numbers, factor))
    if not pc.all(pc.equal(pc.divide(ticks, factor), numbers)).as_py():
        raise pa.ArrowInvalid("finer than a microsecond")
    return ticks.cast(pa.int64())


def epoch_us(value: Any, unit: str) -> int:
    """The microseconds of one number; raises ValueError where it is none, or no whole microsecond.

    >>> epoch_us(1.5, "SECONDS"), epoch_us("2000", "NANOSECONDS")
    (1500000, 2)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(value)
    try:
        with localcontext(prec=100):
            exact = Decimal(repr(value) if isinstance(value, float) else value) * 10**6 / EPOCH_UNITS[unit]
            if not exact.is_finite() or exact != exact.to_integral_value():
                raise ValueError(value)
    except InvalidOperation:
        raise ValueError(value) from None
    return int(exact)


def epoch_reason(value: Any, shown: str, unit: str) -> str:
    """Why a number was refused."""
    try:
        with localcontext(prec=100):
            exact = Decimal(repr(value) if isinstance(value, float) else str(value).strip()) * 10**6 / EPOCH_UNITS[unit]
    except (InvalidOperation, ValueError):
        return f"{shown} is not a number of {unit}"
    if exact.is_finite() and exact != exact.to_integral_value():
        return f"{shown} {unit} is finer than a microsecond"
    return (
        f"{shown} {unit} since 1970 is outside the years 1 to 9999" if exact.is_finite() else f"{shown} is not a time"
    )
