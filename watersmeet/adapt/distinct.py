"""Shadow tags: how often a cache would miss, before it is there, and how many keys it would hold.

The idea: a bitmap of the keys that look-ups have had. Of a run of look-ups that follow each other, the first half marks its keys, and the
second half is measured: a key whose bit is not set would miss once. Bits that other keys have set hide some misses; the part of the
bitmap that is set says how many. With b of m bits set, -m ln(1 - b / m) keys were seen (linear counting). A bitmap that is more than
half full is begun anew.

>>> import numpy as np
>>> tags, draw = Tags(), np.random.default_rng(1)
>>> [round(tags.see(draw.integers(0, 4000, 2000)), 2) for _ in range(5)]
[0.69, 0.41, 0.23, 0.15, 0.09]
>>> round(tags.keys), round(Tags().see(np.arange(2000)), 2)
(3639, 1.0)

Source: a-caching 4.3 and Appendix A, miss_prob, whose W_d is the length of a run.
Departs from the paper in: b / W_d, as printed, forgets all keys after W_d look-ups, so a cache with more keys than that would seem to miss
always; and it reads 0.63 for 1 with as many bits as keys, since keys share bits. What a bitmap can't see is how large the cache is: keys
that return after being replaced count as hits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

BITS: Final = 1 << 17
LEAST: Final = 64  # look-ups below which nothing is measured
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Tags:
    """The keys that a stream of look-ups has had. set: the bitmap, packed, as another Tags gave it."""

    def __init__(self, set: bytes = b"") -> None:
        read = np.unpackbits(np.frombuffer(set, np.uint8)).astype(bool) if set else np.zeros(BITS, bool)
        self.bits: Any = read

    def see(self, keys: Any) -> float | None:
        """Take in keys of look-ups that followed each other; the fraction that would miss, None if they are too few to say."""
        if len(keys) < LEAST:
            return None
        if self.fill > 0.5:
            self.bits[:] = False
        places = _places(keys)
        half = len(places) // 2
        self.bits[places[:half]] = True
        behind, fill = places[half:], self.fill
        fresh = np.unique(behind[~self.bits[behind]])
        self.bits[fresh] = True
        return min(1.0, len(fresh) / (1 - fill) / len(behind))

    @property
    def fill(self) -> float:
        return float(self.bits.sum()) / BITS

    @property
    def keys(self) -> float:
        """About how many different keys there were."""
        return float(-BITS * np.log1p(-min(self.fill, 1 - 1 / BITS)))

    def packed(self) -> bytes:
        return bytes(np.packbits(self.bits))


def _places(keys: Any) -> Any:
    with np.errstate(over="ignore"):
        mixed = np.asarray(keys).astype(np.int64).view(np.uint64) * _MIX
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    return (mixed >> np.uint64(64 - (BITS.bit_length() - 1))).astype(np.int64)


def mixed_keys(columns: list[Any]) -> Any:
    """Keys of several columns as one."""
    made: Any = np.asarray(columns[0]).astype(np.int64).view(np.uint64)
    with np.errstate(over="ignore"):
        for column in columns[1:]:
            made = (made * _MIX) ^ (made >> np.uint64(31)) ^ np.asarray(column).astype(np.int64).view(np.uint64)
    return made.view(np.int64)
