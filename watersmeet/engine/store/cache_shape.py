"""How the memory of a cache is divided: half for entries, half for values that do not fit into them."""

from __future__ import annotations

from typing import Any, Final

from watersmeet.engine.program import layout as L
from watersmeet.model.program import StoreSpec

LEAST: Final = 2 * 2 * 8 * 8  # bytes: a set of the largest entries, and as much for values


def shape_cache(row: Any, spec: StoreSpec) -> None:
    """Write the shape of a cache into its row of the table of stores; it has at most `spec.bytes`."""
    row[L.NCOLS] = len(spec.sources)
    row[L.STRIDE] = 4 if len(spec.sources) < 2 else 8
    words, pair = spec.bytes // 8 // L.CACHE_BLOCK * L.CACHE_BLOCK, 2 * int(row[L.STRIDE])
    row[L.CAP] = max(words // 2 // pair, 1)
    row[L.BLOCKS] = (words - int(row[L.CAP]) * pair) // L.CACHE_BLOCK


def expected_bytes(keys: float, references: float, members: int, columns: int = 1) -> int:
    """What a cache of so many keys takes, each of so many references to combinations of `members` tuples.

    Source: Babu et al., "Adaptive Caching for Continuous Queries", 5: entries times size of an entry.
    """
    entry = 8 * (4 if columns < 2 else 8)
    inside = (entry // 4 - 2 - 2 * columns) // members
    blocks = 0.0 if references <= inside else -(-references * members // (2 * L.CACHE_BLOCK))
    return max(int(keys * max(2 * entry, entry + 8 * L.CACHE_BLOCK * blocks)), LEAST)
