"""Profiler: what each operator of each pipeline does, and what each candidate cache would save and cost, from what a run counts anyway.

For pipeline i and operator j, per row that arrives anywhere:

    d_ij   tuples that come to the operator, over the last W looks
    c_ij   probe + match x what it finds; a scan pays a match for each tuple that is there

Where no cache is used the engine's counters are d_ij exactly. Inside the segment of a used cache they count misses alone: d is then
carried on from operator to operator by what those found, each miss standing for lookups / misses tuples. The operator behind the
segment sees hits too and is counted exactly again.

    miss_prob   of a used cache: counted; of another: by shadow tags (distinct.py) over keys of the newest tuples of the window
    bytes       keys seen by the tags, times what an entry takes

>>> Flow(8).add(10, 5).add(30, 35).found
1.0

Source: a-caching 4.3 and Appendix A.
Departs from the paper in: all tuples are counted instead of a sample (counting is free in this engine), so none is processed without
caches. Costs are prices of the cost model, not clocks. Misses are rare keys more often than frequent ones; if what a key finds goes with
how frequent it is, d inside a used segment is off by that, never d outside. Keys are read from windows, not from the pipeline, so a
used cache need not be given up for its subsets to be measured (rule b of 4.5 holds by itself).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from watersmeet.adapt.cache_costs import Segment, probe_cost, update_cost
from watersmeet.adapt.distinct import Tags, mixed_keys
from watersmeet.adapt.recent import Recent, W
from watersmeet.engine.control import CacheCount, Observed
from watersmeet.engine.sample import WindowSample
from watersmeet.engine.store.cache_shape import expected_bytes
from watersmeet.model.bind import BoundQuery
from watersmeet.model.cache_places import Place, Step, way
from watersmeet.model.graph import JoinGraph
from watersmeet.model.plan import Leaf, Plan, Tree
from watersmeet.model.statistics import Costs

LOOKUP = 1.5  # probes that a look-up costs: it reads two entries of a set and marks one as used
JOINED = 1 << 13  # combinations of sampled tuples that are followed at most


def named(tree: Tree) -> str:
    """What the engine calls the store of an input."""
    return tree.stream if isinstance(tree, Leaf) else str(tree)


class Flow:
    """Tuples in and matches of an operator, in the last `size` looks."""

    def __init__(self, size: int = W, values: Any = ()) -> None:
        self.values: deque[tuple[float, float]] = deque((tuple(v) for v in values), maxlen=size)

    def add(self, came: float, matched: float) -> Flow:
        self.values.append((came, matched))
        return self

    @property
    def found(self) -> float:
        """Matches for each tuple."""
        came = sum(c for c, _ in self.values)
        return sum(m for _, m in self.values) / came if came else 0.0


@dataclass
class Profile:
    """The statistics of one plan's pipelines. flows: by pipeline and operator; arrived: rows of each look; came: tuples of each look.

    tags, misses: by what looks up and by which key; of used caches `misses` are those that were counted.
    """

    bound: BoundQuery
    costs: Costs
    flows: dict[str, Flow] = field(default_factory=dict)
    reach: dict[str, Flow] = field(default_factory=dict)
    tags: dict[str, Tags] = field(default_factory=dict)
    misses: dict[str, Recent] = field(default_factory=dict)
    scans: dict[str, float] = field(default_factory=dict)  # tuples that a scan of each operator sees
    graph: JoinGraph = field(init=False)

    def __post_init__(self) -> None:
        self.graph = JoinGraph.of(self.bound)

    def look(self, seen: Observed, used: tuple[Place, ...], profiled: tuple[Place, ...]) -> None:
        """Take in what has happened since the last look."""
        rows = float(sum(seen.rows_in.values()))
        if not rows:
            return
        counts: dict[tuple[str, str], list[int]] = {}
        for op in seen.operators:
            sums = counts.setdefault((op.pipeline, op.step), [0, 0])
            sums[0] += op.tuples_in
            sums[1] += op.matches
        held = {s.name: s.tuples for s in seen.stores}
        counted = counts_of(used, seen.caches)
        for alias in seen.rows_in:
            for step in way(seen.plan, alias):
                key = operator(alias, step)
                came, matched = counts.get((alias, named(step.target)), [0, 0])
                if came:
                    self.flows.setdefault(key, Flow()).add(came, matched)
                cache = next((p for p in used if p.covers(step)), None)
                if cache is not None and step.number == cache.first:
                    hits, misses = counted[cache.content].pipelines.get(alias, (0, 0))
                    came = hits + misses
                if cache is None or step.number == cache.first:
                    self.reach.setdefault(key, Flow()).add(rows, came)
                if self.scans_at(seen.plan, step):
                    self.scans[key] = float(held.get(named(step.target), 0))
        for place in used:
            count = counted[place.content]
            asked = sum(sum(count.pipelines.get(a, (0, 0))) for a in place_leaves(place))
            if asked:
                missed = sum(count.pipelines.get(a, (0, 0))[1] for a in place_leaves(place))
                self.misses.setdefault(miss_name(place), Recent()).add(missed / asked)
        if profiled:
            windows = seen.sample()
            for place in {miss_name(p): p for p in profiled if p.content not in counted}.values():
                self._tag(place, seen, windows)

    def _tag(self, place: Place, seen: Observed, windows: dict[str, WindowSample]) -> None:
        name = miss_name(place)
        keys = lookup_keys(self.bound, self.graph, seen, windows, place)
        missed = self.tags.setdefault(name, Tags()).see(keys)
        if missed is not None:
            both = self.bound.query.emit == "CHANGES"  # a tuple that leaves asks again for what it asked for
            self.misses.setdefault(name, Recent()).add(missed / 2 if both else missed)

    def scans_at(self, plan: Plan, step: Step) -> bool:
        """Whether an operator looks at each tuple of its target."""
        if str(step.target) in plan.scan:
            return True
        there = step.target.streams
        ranged = any(c.op != "<>" for c in self.graph.between(step.have, there))
        return not self.graph.linking(step.have, there) and not ranged

    def each(self, key: str) -> float:
        """c: what a tuple costs at an operator."""
        found = self.flows[key].found if key in self.flows else 0.0
        return self.costs.probe + self.costs.match * max(found, self.scans.get(key, 0.0))

    def rates(self, plan: Plan, alias: str, used: tuple[Place, ...]) -> dict[str, float]:
        """d of the operators of a pipeline, and under "" what comes out of it."""
        made: dict[str, float] = {}
        carried = 0.0
        for step in way(plan, alias):
            key = operator(alias, step)
            inside = any(p.covers(step) and step.number > p.first for p in used)
            made[key] = carried if inside or key not in self.reach else self.reach[key].found
            carried = made[key] * (self.flows[key].found if key in self.flows else 0.0)
        return made | {"": carried}

    def segment(self, plan: Plan, place: Place, used: tuple[Place, ...]) -> Segment:
        """What a cache saves and costs, per row that arrives."""
        size = len(place.cache.segment)
        reach, work, after = [0.0] * size, [0.0] * size, 0.0
        for alias in place_leaves(place):
            if self.bound.source(alias).static:
                continue
            rates, last = self.rates(plan, alias, used), False
            for step in way(plan, alias):
                d = rates[operator(alias, step)]
                if last:
                    after, last = after + d, False
                if place.covers(step):
                    k = step.number - place.first
                    reach[k] += d
                    work[k] += d * self.each(operator(alias, step))
                    last = k == size - 1
            after += rates[""] if last else 0.0
        told = sum(self._told(plan, alias, place, used) for alias in place.tellers)
        told /= 2 if self.bound.query.emit == "CHANGES" else 1  # only arrivals tell
        references = after / reach[0] if reach[0] else 0.0
        update = update_cost(self.costs, len(place.segment))
        return Segment(
            tuple(reach), tuple(w / d if d else 0.0 for w, d in zip(work, reach, strict=True)), after, told, self.miss(place),
            probe_cost(self.costs, references) + (LOOKUP - 1) * self.costs.probe, update, 2 * update, self.costs.probe,
        )  # fmt: skip

    def _told(self, plan: Plan, alias: str, place: Place, used: tuple[Place, ...]) -> float:
        if self.bound.source(alias).static:
            return 0.0
        rates = self.rates(plan, alias, used)
        for step in way(plan, alias):
            if step.have == place.told:
                return rates[operator(alias, step)]
        return rates[""]

    def miss(self, place: Place) -> float:
        """The probability that a look-up finds nothing; 1 before anything is known."""
        seen = self.misses.get(miss_name(place))
        return seen.mean if seen and seen.values else 1.0

    def wanted_bytes(self, place: Place, segment: Segment) -> int:
        """Memory for all keys that were seen, at the average length of a value."""
        tags = self.tags.get(miss_name(place))
        references = segment.after / segment.reach[0] if segment.reach[0] else 0.0
        return expected_bytes(tags.keys if tags else 0.0, references, len(place.segment), len(place.key))


def operator(alias: str, step: Step) -> str:
    return f"{alias} / {named(step.target)}"


def place_leaves(place: Place) -> list[str]:
    """The streams whose tuples look a cache up."""
    below = next(i for i in place.node.inputs if str(i) == place.cache.pipeline)
    return sorted(below.streams)


def miss_name(place: Place) -> str:
    """Caches that are asked by the same tuples for the same key miss alike."""
    return f"{place.cache.pipeline} {' '.join(sorted(place.prefix))}: {', '.join(c.name for c in place.key)}"


def counts_of(used: tuple[Place, ...], caches: tuple[CacheCount, ...]) -> dict[tuple[object, ...], CacheCount]:
    """What each cache of the plan in use has counted, by its content: the engine lists each content once, in the plan's order."""
    return dict(zip(dict.fromkeys(p.content for p in used), caches, strict=False))


def lookup_keys(
    bound: BoundQuery, graph: JoinGraph, seen: Observed, windows: dict[str, WindowSample], place: Place
) -> Any:
    """The keys that the newest tuples would look up a cache by, in order of arrival: those tuples joined with what windows hold."""
    made = list[Any]()
    for alias in place_leaves(place):
        if bound.source(alias).static or not windows[alias].columns:
            continue
        fresh = min(seen.rows_in[alias], len(windows[alias].columns[0]))
        rows = {alias: np.arange(len(windows[alias].columns[0]) - fresh, len(windows[alias].columns[0]))}
        wanted = [next(m for m in c.members if m.stream in place.prefix) for c in place.key]
        for other in _toward(place, alias, {m.stream for m in wanted}, graph):
            rows = _joined(graph, windows, rows, other)
        columns = [windows[m.stream].values(m.expr)[rows[m.stream]] for m in wanted]
        made.append(mixed_keys(columns))
    return np.concatenate(made) if made else np.zeros(0, np.int64)


def _toward(place: Place, alias: str, wanted: set[str], graph: JoinGraph) -> list[str]:
    """The streams of the prefix to join, each linked with those before it; none if the arriving tuple has the key itself."""
    if wanted <= {alias}:
        return []
    order, have, left = list[str](), {alias}, set(place.prefix) - {alias}
    while left:
        linked = sorted(s for s in left if graph.linking(have, (s,))) or sorted(left)
        order.append(linked[0])
        have.add(linked[0])
        left.discard(linked[0])
    return order


def _joined(graph: JoinGraph, windows: dict[str, WindowSample], rows: dict[str, Any], other: str) -> dict[str, Any]:
    """Combinations of sampled tuples with those of another window, in order, as many as are followed."""
    count = len(windows[other].columns[0]) if windows[other].columns else 0
    links = graph.linking(rows, (other,))
    here = np.zeros(len(next(iter(rows.values()))), np.int64)
    there = np.zeros(count, np.int64)
    for c in links:
        left = next(m for m in c.members if m.stream in rows)
        right = c.of(other)
        assert right is not None
        here = mixed_keys([here, windows[left.stream].values(left.expr)[rows[left.stream]]])
        there = mixed_keys([there, windows[other].values(right.expr)])
    order = np.argsort(there, kind="stable")
    low, high = np.searchsorted(there[order], here, "left"), np.searchsorted(there[order], here, "right")
    found = np.minimum(high - low, JOINED)
    ends = np.cumsum(found)
    keep = ends <= JOINED
    found = found[keep]
    at = np.repeat(np.arange(len(here))[keep], found)
    within = np.arange(len(at)) - np.repeat(np.cumsum(found) - found, found)
    return {a: r[at] for a, r in rows.items()} | {other: order[low[at] + within]}
