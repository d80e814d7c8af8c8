"""Hashes, and arithmetic modulo 2^64 for them.

`sip_*` is SipHash-2-4 with 128 bits of output: a keyed hash. Whoever does not know its key can't choose values that collide.

    v = sip_start(low, high);  v = sip_word(*v, word) for each word;  low, high = sip_end(*v)

Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF" (2012), sections 2.1 to 2.4, and the 128-bit variant of its authors'
reference implementation (constants 0xee and 0xdd).

Numba tells LLVM that signed integers never overflow, and LLVM makes use of it (`a * HASH < b * HASH` became `a > b`): a hash that
overflows must be computed with unsigned integers, or it may come out otherwise in another place, or on another machine.
"""

from __future__ import annotations

import numpy as np

from watersmeet.engine.native.mark import inlined

State = tuple[int, int, int, int]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio


@inlined
def scatter(x: int) -> int:
    """x times 2^64 / golden ratio: neighbours come to lie far apart in the high bits.

    >>> scatter(1), scatter(-3)
    (-7046029254386353131, 2691343689449507777)
    """
    return np.int64(np.uint64(x) * _GOLDEN)  # type: ignore[return-value]


@inlined
def times(a: int, b: int) -> int:
    """
    >>> times(2**62, 6) == -(2**63)
    True
    """
    return np.int64(np.uint64(a) * np.uint64(b))  # type: ignore[return-value]


@inlined
def plus(a: int, b: int) -> int:
    """
    >>> plus(2**63 - 1, 1) == -(2**63)
    True
    """
    return np.int64(np.uint64(a) + np.uint64(b))  # type: ignore[return-value]


@inlined
def _rotated(x: int, by: int) -> int:
    return np.int64((np.uint64(x) << np.uint64(by)) | (np.uint64(x) >> np.uint64(64 - by)))  # type: ignore[return-value]


@inlined
def sip_round(v0: int, v1: int, v2: int, v3: int) -> State:
    """One SipRound."""
    v0 = plus(v0, v1)
    v1 = _rotated(v1, 13) ^ v0
    v0 = _rotated(v0, 32)
    v2 = plus(v2, v3)
    v3 = _rotated(v3, 16) ^ v2
    v0 = plus(v0, v3)
    v3 = _rotated(v3, 21) ^ v0
    v2 = plus(v2, v1)
    v1 = _rotated(v1, 17) ^ v2
    return v0, v1, _rotated(v2, 32), v3


@inlined
def sip_start(low: int, high: int) -> State:
    """The state that a key begins with ("somepseudorandomlygeneratedbytes", and 0xee: 128 bits are wanted)."""
    return (
        low ^ 0x736F6D6570736575,
        high ^ 0x646F72616E646F6D ^ 0xEE,
        low ^ 0x6C7967656E657261,
        high ^ 0x7465646279746573,
    )


@inlined
def sip_word(v0: int, v1: int, v2: int, v3: int, word: int) -> State:
    """Take in eight bytes: two rounds."""
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@inlined
def sip_end(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int]:
    """The hash: four rounds for each of its two words."""
    v2 ^= 0xEE
    for _ in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    for _ in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3
