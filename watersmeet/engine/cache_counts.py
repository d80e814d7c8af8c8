"""What the caches of a running plan have done, and what they hold."""

from __future__ import annotations

from typing import Any

from watersmeet.engine.control import CacheCount
from watersmeet.engine.program import layout as L
from watersmeet.engine.store.arena import Arena
from watersmeet.model.program import Drop, Lookup, Update

CACHE_COUNTERS = (L.CREATED, L.REPLACED, L.CROWDED, L.UNCACHED)


def cache_counts(arena: Arena, counters: Any, moved: Any) -> tuple[CacheCount, ...]:
    """All caches, in the order of their stores. `counters` of ops; `moved`: for each store what it has counted, CACHE_COUNTERS last."""
    program, made = arena.program, []
    for s in arena.caches:
        row, pipelines = arena.S[s], dict[str, tuple[int, int]]()
        told = {Update: 0, Drop: 0}
        for pipes, starts in ((program.arrive, arena.pipelines.arrive), (program.leave, arena.pipelines.leave)):
            for leaf, (pipeline, first) in enumerate(zip(pipes, starts, strict=True)):
                for k, op in enumerate(pipeline):
                    if isinstance(op, Lookup | Update | Drop) and op.store == s:
                        came, did = (int(c) for c in counters[first + k, : L.UNPROBED])
                        if isinstance(op, Lookup):
                            hits, misses = pipelines.get(program.stores[leaf].name, (0, 0))
                            pipelines[program.stores[leaf].name] = hits + did, misses + came - did
                        else:
                            told[type(op)] += did
        created, replaced, crowded, uncached = (int(c) for c in moved[s, -len(CACHE_COUNTERS) :])
        used = 8 * int(row[L.ENTRIES] * row[L.STRIDE] + row[L.BLOCKS_USED] * L.CACHE_BLOCK)
        made.append(
            CacheCount(
                program.stores[s].name, pipelines, int(row[L.WORDS]) * 8, used, int(row[L.ENTRIES]), created,
                told[Update], replaced, crowded, told[Drop], uncached,
            )
        )  # fmt: skip
    return tuple(made)


def cache_totals(arena: Arena) -> dict[str, int]:
    """Counts over all caches, by the names of metrics."""
    codes, counters = arena.pipelines.ops[:, L.CODE], arena.counters
    asked, hits = counters[codes == L.LOOKUP, : L.UNPROBED].sum(axis=0)
    rows = arena.S[arena.caches.start :]
    return {
        "cache_hits": int(hits),
        "cache_misses": int(asked - hits),
        "cache_updates": int(counters[codes == L.UPDATE, L.MATCHES].sum()),
        "cache_evictions": int(rows[:, [L.REPLACED, L.CROWDED]].sum() + counters[codes == L.DROP, L.MATCHES].sum()),
    }
