"""Secret: what hashes of one engine are keyed with, so that nobody outside can choose keys that collide.

Two words are drawn when an arena is made, and stay with it: they lie in the table of stores, and what is derived from them in the table
of indexes, so whoever carries the tables over carries the secret. Answers do not depend on it.

    SECRET   the key of SipHash, for strings, wide decimals and partitions (rows/values.py)
    FACTOR   factors of the hash indexes (index.py); the first is odd, and spreads keys that count up evenly
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Final

import numpy as np

from watersmeet.engine.program import layout as L

LARGEST: Final = 12  # partial quotient of factor / 2^64; 1 would be the golden ratio, which spreads best
FAR_ENOUGH: Final = 1 << 30  # buckets, as many as an index may have


def fresh() -> Any:
    """Two random words."""
    return np.frombuffer(secrets.token_bytes(16), np.int64)


def factors(secret: Any) -> Any:
    """The factors that belong to a secret.

    >>> made = factors(np.array([1, 2]))
    >>> len(made) == L.FACTORS, int(made[0]) % 2, bool((made == factors(np.array([1, 2]))).all())
    (True, 1, True)
    """
    draw = 0
    while True:
        digest = hashlib.blake2b(
            np.asarray(secret, np.int64).tobytes() + draw.to_bytes(8, "little"), digest_size=8 * L.FACTORS
        )
        made = np.frombuffer(digest.digest(), np.int64).copy()
        made[0] |= 1
        if _spreads(int(made[0]) % (1 << 64)):
            return made
        draw += 1


def _spreads(factor: int) -> bool:
    """Whether multiples of a factor lie evenly: no partial quotient of factor / 2^64 is large.

    >>> _spreads(0x9E3779B97F4A7C15), _spreads((1 << 62) + 1)
    (True, False)
    """
    a, b = 1 << 64, factor
    before, denominator = 0, 1
    while b and denominator < FAR_ENOUGH:
        quotient = a // b
        if quotient > LARGEST:
            return False
        a, b = b, a % b
        before, denominator = denominator, quotient * denominator + before
    return True
