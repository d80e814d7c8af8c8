"""The paper's engine: states bound by a count of tuples, Poisson arrivals, and only allowed probes are made.

Every arrival goes into its window, whatever is probed. It then follows its path hop by hop; at each hop a part x of its
combinations is let in, evenly spread. What a hop makes goes into the state of its node, where it takes the place of the
oldest. A state that little comes into therefore keeps old combinations: results made from them are stale.

Two tuples join with probability σ, drawn for each probe (uniform keys, independent joins), or where their keys are
equal, if σ is negative (the sensors).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from watersmeet.adapt.direction.half_joins import JoinTree

NEVER = -1e30
ROOM = 1 << 18  # combinations of one arrival at one hop


@dataclass
class Simulator:
    """A plan with its states. windows: seconds that each stream's window spans, for tolerances."""

    tree: JoinTree
    seed: int

    def __post_init__(self) -> None:
        tree = self.tree
        self.streams = [w.stream for w in tree.windows]
        self.states = [*self.streams, *(node for node, _ in tree.states)]
        size = {w.stream: w.size for w in tree.windows} | dict(tree.states)
        self.sizes = np.array([int(size[s]) for s in self.states])
        k = len(self.streams)
        self.rng = np.random.default_rng(self.seed)
        # [state, place, stream]: arrival of the member; all states are full at the start, with members of random age
        self.members = np.full((len(self.states), int(self.sizes.max()), k), NEVER)
        self.keys = np.full((len(self.states), int(self.sizes.max())), -1)
        self.heads = np.zeros(len(self.states), dtype=np.int64)
        within = {node: [self.streams.index(s) for h in hs for s in h.streams] for node, hs in tree.operators.items()}
        for i, state in enumerate(self.states):
            for s in within.get(state, [self.streams.index(state)] if state in self.streams else []):
                ages = self.rng.uniform(0, tree.windows[s].size / tree.windows[s].rate, self.sizes[i])
                self.members[i, : self.sizes[i], s] = -np.sort(ages)[::-1]
        # hops[stream, j] = (place of x, state probed, state kept in or −1, join)
        self.places = [(w.stream, h.input) for w in tree.windows for h in tree.path(w.stream)]
        depth = max(len(tree.path(s)) for s in self.streams)
        self.hops = np.full((k, depth, 4), -1)
        joins = list(tree.operators)
        for i, (stream, at) in enumerate(self.places):
            half = tree.by_input[at]
            j = [h.input for h in tree.path(stream)].index(at)
            kept = self.states.index(half.node) if half.node in self.states else -1
            target = self.states.index(half.steps[0].target)
            self.hops[self.streams.index(stream), j] = i, target, kept, joins.index(half.node)
        self.spread = self.rng.uniform(0, 1, len(self.places))
        self.played = np.zeros(k, dtype=np.int64)
        self.left = 0.0  # resources of the last second
        self.now = 0.0

    def run(
        self,
        seconds: float,
        sigma: Any,
        parts: dict[tuple[str, str], float],
        tolerance: Any,
        resources: float = np.inf,
        keys: Any = None,
    ) -> dict[str, Any]:
        """Go on for so many seconds. sigma: by join; parts: x by (stream, input); tolerance: [choice, stream] in seconds.

        resources: probes a second; what one second leaves can be used in the next, no later.
        keys: [stream, number of the arrival] for joins on keys, played again from the start when it ends.
        """
        rates = np.array([w.rate for w in self.tree.windows])
        count = int(self.rng.poisson(rates.sum() * seconds))
        at = self.now + np.sort(self.rng.uniform(0, seconds, count))
        who = self.rng.choice(len(rates), count, p=rates / rates.sum())
        x = np.array([parts.get(p, 0.0) for p in self.places])
        given = np.zeros((1, 1), dtype=np.int64) if keys is None else keys
        results, stale, probes, matches, self.left = _run(
            at, who, x, np.asarray(sigma, dtype=float), np.asarray(tolerance, dtype=float), self.members, self.keys,
            self.heads, self.sizes, self.hops, self.spread, given, self.played, self.left, float(resources),
            int(self.rng.integers(1 << 31)),
        )  # fmt: skip
        self.now += seconds
        return {"results": results, "stale": stale, "probes": probes, "matches": matches}


@njit
def _run(  # a hot loop over what one simulator holds
    at: Any, who: Any, x: Any, sigma: Any, tolerance: Any, members: Any, keys: Any, heads: Any, sizes: Any, hops: Any,
    spread: Any, given: Any, played: Any, left: float, resources: float, seed: int,
) -> Any:  # fmt: skip
    np.random.seed(seed)  # noqa: NPY002
    k = members.shape[2]
    come, made = np.empty((ROOM, k)), np.empty((ROOM, k))
    stale = np.zeros(tolerance.shape[0], dtype=np.int64)
    probes, matches = np.zeros(x.size, dtype=np.int64), np.zeros(x.size, dtype=np.int64)
    results = 0
    last = at[0] if at.size else 0.0
    for n in range(at.size):
        now, stream, key = at[n], who[n], -1
        left = min(left + (now - last) * resources, resources) if np.isfinite(resources) else resources
        last = now
        come[0, :] = NEVER
        come[0, stream] = now
        if given.size > 1:
            key = given[stream, played[stream] % given.shape[1]]
            played[stream] += 1
        place = heads[stream] % sizes[stream]
        members[stream, place] = come[0]
        keys[stream, place] = key
        heads[stream] += 1
        coming = 1
        for j in range(hops.shape[1]):
            here, target, kept, join = hops[stream, j]
            if here < 0:
                break
            making = 0
            for c in range(coming):
                spread[here] += x[here]
                if spread[here] < 1.0:
                    continue
                spread[here] -= 1.0
                if left < 1.0:
                    continue
                left -= 1.0
                probes[here] += 1
                size = sizes[target]
                if sigma[join] >= 0:
                    hits = np.random.poisson(sigma[join] * size)  # noqa: NPY002
                else:
                    hits = size
                for h in range(hits):
                    spot = np.random.randint(size) if sigma[join] >= 0 else h  # noqa: NPY002
                    if sigma[join] < 0 and keys[target, spot] != key:
                        continue
                    matches[here] += 1
                    if kept < 0:
                        results += 1
                        for t in range(tolerance.shape[0]):
                            for s in range(k):
                                if now - max(come[c, s], members[target, spot, s]) > tolerance[t, s]:
                                    stale[t] += 1
                                    break
                        continue
                    if making == ROOM:
                        raise ValueError("one arrival makes more combinations than there is room for")
                    for s in range(k):
                        made[making, s] = max(come[c, s], members[target, spot, s])
                    place = heads[kept] % sizes[kept]
                    members[kept, place] = made[making]
                    keys[kept, place] = key
                    heads[kept] += 1
                    making += 1
            come, made = made, come
            coming = making
    return results, stale, probes, matches, left
