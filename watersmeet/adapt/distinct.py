"""Distinct keys by linear counting, and from them how often a cache would miss, before it is there.

The idea: hash the keys of W_d look-ups into a bitmap. With b of m bits set, -m ln(1 - b / m) keys were distinct. Each misses once.

>>> import numpy as np
>>> keys = np.random.default_rng(1).integers(0, 400, 2000)
>>> round(distinct(keys)), len(np.unique(keys)), round(miss_probability(keys), 2)
(394, 399, 0.2)

Source: a-caching, Appendix A, miss_prob.
Departs from the paper in: b / W_d, as printed, reads 0.63 for 1 with as many bits as keys, since keys share bits; linear counting with
eight bits a key corrects for that. What a bitmap can't see is how large the cache is: keys that return after being replaced count as hits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BITS = 8  # for each key
_MIX = np.uint64(0x9E3779B97F4A7C15)


def distinct(keys: Any) -> float:
    """About how many different values an array of int64 has."""
    if len(keys) == 0:
        return 0.0
    bits = max(64, 1 << int(np.ceil(np.log2(BITS * len(keys)))))
    with np.errstate(over="ignore"):
        mixed = np.asarray(keys).astype(np.int64).view(np.uint64) * _MIX
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    places = mixed >> np.uint64(64 - int(np.log2(bits)))
    seen = np.zeros(bits, bool)
    seen[places.astype(np.int64)] = True
    return float(-bits * np.log1p(-seen.sum() / bits))


def miss_probability(keys: Any) -> float:
    """Of look-ups by these keys, one after the other, in a cache that begins empty and keeps all: the fraction that finds nothing."""
    return min(1.0, distinct(keys) / len(keys)) if len(keys) else 1.0
