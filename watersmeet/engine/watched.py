"""Watched: what can be seen of a running engine from outside. Nothing here changes it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from watersmeet.engine.cache_audit import audit
from watersmeet.engine.cache_counts import cache_counts
from watersmeet.engine.control import CacheCount, OpCount, StoreCount
from watersmeet.engine.inspect import View, view
from watersmeet.engine.metrics import Totals, counted, moved, operators, stores
from watersmeet.engine.program import layout as L
from watersmeet.engine.rows.gather import Gather
from watersmeet.engine.rows.payload import Payload
from watersmeet.engine.store.arena import Arena


class Watched:
    """The part of an engine that tells what has happened, and what its stores hold."""

    arena: Arena
    totals: Totals
    control: Any
    payloads: list[Payload]
    gather: Gather

    @property
    def held(self) -> list[int]:
        """How many tuples each window holds, in the order of FROM."""
        return [self.arena.live(k) for k in range(self.arena.leaves)]

    def sweep(self) -> None:
        """Take dead entries out of all inner states, so that counts are of live ones."""
        self.arena.sweep_states()

    def metrics(self) -> dict[str, Any]:
        """What has happened so far, as numbers by name."""
        made, unmatched = asdict(self.totals), self.gather.unmatched
        for name, count in counted(self.arena).items():
            made[name] += count
        made["state_tuples"] = self.arena.tuples
        made["state_bytes"] = self.arena.bytes
        made["cache_bytes"] = 8 * int(self.arena.S[self.arena.caches.start :, L.WORDS].sum())
        made["payload_bytes"] = sum(p.bytes for p in self.payloads) + (unmatched.bytes if unmatched else 0)
        return made

    def operators(self) -> tuple[OpCount, ...]:
        """The steps of all pipelines of the plan in use, with their counts since it came into use."""
        return operators(self.arena, self.arena.counters)

    def caches(self) -> tuple[CacheCount, ...]:
        """The caches of the plan in use, with what they have done since it came into use."""
        return cache_counts(self.arena, self.arena.counters, moved(self.arena))

    def audit(self) -> int:
        """Check by brute force that all entries of all caches are right, for tests. Returns how many there are."""
        return audit(self.arena)

    def stores(self) -> tuple[StoreCount, ...]:
        """The windows, then the inner states: what they hold, and what has come and gone since the plan came into use."""
        return stores(self.arena, moved(self.arena))

    def inspect(self, entries: bool = False) -> View:
        """A read-only look inside; `entries`: also what is in each store, by row numbers."""
        return view(self.arena, self.control, [p.rows for p in self.payloads], self.metrics(), entries)
