"""Arithmetic modulo 2^64 for hashes.

Numba tells LLVM that signed integers never overflow, and LLVM makes use of it (`a * HASH < b * HASH` became `a > b`): a hash that
overflows must be computed with unsigned integers, or it may come out otherwise in another place, or on another machine.
"""

from __future__ import annotations

import numpy as np

from watersmeet.engine.native.mark import inlined

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio


@inlined
def scatter(x: int) -> int:
    """x times 2^64 / golden ratio: neighbours come to lie far apart in the high bits.

    >>> scatter(1), scatter(-3)
    (-7046029254386353131, 2691343689449507777)
    """
    return np.int64(np.uint64(x) * _GOLDEN)  # type: ignore[return-value]


@inlined
def plus(a: int, b: int) -> int:
    """
    >>> plus(2**63 - 1, 1) == -(2**63)
    True
    """
    return np.int64(np.uint64(a) + np.uint64(b))  # type: ignore[return-value]
