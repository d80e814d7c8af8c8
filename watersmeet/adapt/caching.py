"""Caching: adds caches to the pipelines of the plan in use while they pay, gives them memory, and drops them when they do not.

The idea: each candidate cache is used, profiled or unused. While some are profiled, looks are short; after `looks` of them the selection
problem is solved with what was seen, its caches are used and all others unused, until the next interval.

    LEAST, I   4,096, 65,536   arrivals between two looks while caches are profiled, and between two selections; I is doubled, up to
                               1,048,576, while selections change nothing
    LOOKS      4               looks that a candidate is profiled for before it is judged
    P          0.2             rule (c): nothing is selected again unless a benefit or a cost has changed by so much
    GAIN       0.05            least part of all pipelines' work that a new selection must save; keeps it from flapping
    M          6               quota of candidates from which on globally-consistent ones are left out

- A used cache whose benefit falls below its cost is dropped at the next look (rule a), and left alone for twice as long each time.
- Rule (b) holds by itself: what a subset of a used cache would miss is measured on windows (cache_profile.py).
- When another plan comes into use, all starts anew.
- Rows that would go in groups without a cache and one by one with it pay for that: both ways are priced, the cheaper one is taken.
- Caches get the bytes that the plan leaves of the budget (cache_memory.py), and give them back when its windows grow.

Source: a-caching 4.5 and Section 5; what it selects by is in cache_profile.py and selection.
Departs from the paper in: GAIN and the growing pause after a drop; looks follow each other faster while something is profiled.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from watersmeet.adapt.cache_costs import Segment
from watersmeet.adapt.cache_memory import Want, allocate
from watersmeet.adapt.cache_profile import Flow, Profile, counts_of, operator
from watersmeet.adapt.distinct import Tags
from watersmeet.adapt.recent import Recent, drifted
from watersmeet.adapt.selection import Candidate, Problem, select
from watersmeet.engine.control import CacheCount, Change, Observed
from watersmeet.engine.program.compile import compile_plan
from watersmeet.engine.program.pipelines import may_group
from watersmeet.model.bind import BoundQuery
from watersmeet.model.budget import Budget, bytes_text
from watersmeet.model.cache_places import Place, conflict, place, way
from watersmeet.model.plan import Cache, Plan
from watersmeet.model.statistics import Costs
from watersmeet.optimize.cache_candidates import candidates

P: Final = 0.2
GAIN: Final = 0.05
M: Final = 6
LOOKS: Final = 4
TUPLE_BYTES: Final = 64  # of a cache for each tuple, where the budget is in tuples
CROWDED: Final = 0.05  # entries that a cache lets go, for each lookup, from which on it is too small
LARGEST: Final = 1 << 26  # bytes of one cache


@dataclass
class Caching:
    """costs: prices of the machine. budget: windows, states and caches must fit it.

    since: arrivals when candidates were last moved to the profiled state; young: looks since caches last changed.
    saved: CPU seconds that the caches in use save for each row that arrives, by the last look.
    """

    bound: BoundQuery
    costs: Costs | None = None
    budget: Budget | None = None
    every: int = 1 << 12
    orders: str = ""
    state: str = "profiled"
    looks: int = 0
    young: int = 0
    since: int = 0
    interval: int = 1 << 16
    saved: float = 0.0
    nets: dict[str, tuple[float, float]] = field(default_factory=dict)  # benefit and upkeep at the last selection
    paused: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # until which arrival, and how long the last pause was
    held: int = 0  # bytes of windows and states at the last look
    profile: Profile = field(init=False)

    LEAST: ClassVar[int] = 1 << 12
    INTERVAL: ClassVar[int] = 1 << 16
    LONGEST: ClassVar[int] = 1 << 20

    def __post_init__(self) -> None:
        self.profile = Profile(self.bound, self.costs or Costs())
        self._root: object = None
        self._places: tuple[Place, ...] = ()
        self._in_use: tuple[Place, ...] = ()
        self._grouped = False
        self._grouping: dict[frozenset[str], bool] = {}

    def step(self, seen: Observed) -> Change | None:
        self._follow(seen)
        used = self._used(seen.plan)
        self.profile.look(seen, used, self._places if self.state == "profiled" else ())
        self.looks += 1
        self.young += 1
        judged = self.state == "profiled" and self.looks >= LOOKS
        some = (*used, *self._places) if judged else used
        segments = {p.cache: self.profile.segment(seen.plan, p, used) for p in some}
        self.saved = sum(s.benefit for c, s in segments.items() if c in {p.cache for p in used})
        self.saved -= sum({p.content: segments[p.cache].upkeep for p in used}.values())
        change = self._demoted(seen, used, segments) or self._fits(seen, used, segments)
        if change is None and judged:
            change = self._selected(seen, used, segments)
            self.state, self.since = "unused", seen.arrivals
            self.interval = min(2 * self.interval, self.LONGEST)
        elif self.state == "unused" and seen.arrivals - self.since >= self.interval:
            self.state, self.looks = "profiled", 0
        if change is not None:
            self.young, self.interval = 0, self.INTERVAL
        more = self.state == "profiled" or (used and self.young < LOOKS)
        self.every = self.LEAST if more and self._places else self.INTERVAL
        self.held = _plan_bytes(seen)
        return change

    def _follow(self, seen: Observed) -> None:
        """Start anew where the plan is another; else only find the places of its candidates again."""
        if seen.plan.root is not self._root:
            orders = str(Plan(seen.plan.root, scan=seen.plan.scan))
            if orders != self.orders:
                self.orders, self.state, self.looks, self.saved, self.interval = (
                    orders,
                    "profiled",
                    0,
                    0.0,
                    self.INTERVAL,
                )
                self.profile, self.nets, self.paused = Profile(self.bound, self.profile.costs), {}, {}
            self._root, self._in_use, self._grouping = seen.plan.root, (), {}
            plain = replace(seen.plan, caches=())
            self._grouped = may_group(compile_plan(self.bound, plain))
            found = candidates(self.bound, plain, M, 1)
            self._places = tuple(
                p for p in (place(self.bound, seen.plan, c) for c in found) if self._worth(seen.plan, p)
            )

    def _worth(self, plan: Plan, p: Place) -> bool:
        """Whether it is ever asked, and saves more than one probe by hash, which is as dear as a look-up: a scan is dearer."""
        below = next(i for i in p.node.inputs if str(i) == p.cache.pipeline)
        asking = [a for a in sorted(below.streams) if not self.bound.source(a).static]
        if not asking or len(p.cache.segment) > 1:
            return bool(asking)
        return self.profile.scans_at(plan, next(s for s in way(plan, asking[0]) if p.covers(s)))

    def _used(self, plan: Plan) -> tuple[Place, ...]:
        if plan.caches != tuple(p.cache for p in self._in_use):
            self._in_use = tuple(place(self.bound, plan, c) for c in plan.caches)
        return self._in_use

    def _demoted(self, seen: Observed, used: tuple[Place, ...], segments: dict[Cache, Segment]) -> Change | None:
        """Rule (a): drop at once what costs more than it saves, group by group, once entries have had time to be made."""
        if self.young < 2:
            return None
        bad = []
        for content in dict.fromkeys(p.content for p in used):
            group = [p for p in used if p.content == content]
            benefit, upkeep = sum(segments[p.cache].benefit for p in group), segments[group[0].cache].upkeep
            if benefit < upkeep:
                bad += [(p, benefit, upkeep) for p in group]
        if not bad:
            return None
        for p, _, _ in bad:
            pause = max(2 * self.paused.get(_name(p.cache), (0, 0))[1], self.INTERVAL)
            self.paused[_name(p.cache)] = seen.arrivals + pause, pause
        worst, benefit, upkeep = bad[0]
        gone = {p.cache for p, _, _ in bad}
        reason = (
            f"{worst} saves {_ns(benefit)} for each row and costs {_ns(upkeep)}: "
            f"{segments[worst.cache].miss:.0%} of lookups miss"
        )
        return Change(reason, caches=tuple((c, c.bytes or LARGEST) for c in seen.plan.caches if c not in gone))

    def _fits(self, seen: Observed, used: tuple[Place, ...], segments: dict[Cache, Segment]) -> Change | None:
        """Give bytes back when the plan leaves less of the budget; double a cache that lets go of what it is asked for again."""
        free = self.free(seen)
        have = sum(c.bytes for c in seen.caches)
        if not used:
            return None
        if free is None or have <= free:
            return self._grown(used, counts_of(used, seen.caches), LARGEST if free is None else free - have)
        given = self._bytes(used, segments, free)
        reason = f"caches have {bytes_text(have)}, and the plan leaves {bytes_text(max(free, 0))} of the budget"
        return Change(reason, caches=tuple((p.cache, given[_name(p.cache)]) for p in used if _name(p.cache) in given))

    def _grown(self, used: tuple[Place, ...], counts: dict[tuple[object, ...], CacheCount], room: int) -> Change | None:
        for content, c in counts.items():
            lost, asked = c.replaced + c.crowded, c.hits + c.misses
            if self.young >= 2 and c.hits > c.misses and lost > CROWDED * asked and c.bytes <= min(room, LARGEST // 2):
                reason = f"{c.name} let go of {lost} entries in {asked} lookups: it may have {bytes_text(2 * c.bytes)}"
                sizes = {k: (2 if k == content else 1) * v.bytes for k, v in counts.items()}
                return Change(reason, caches=tuple((p.cache, sizes[p.content]) for p in used))
        return None

    def free(self, seen: Observed) -> int | None:
        """Bytes that caches may have; None: as many as they want. Windows that are growing may be twice as large at the next look."""
        if self.budget is None:
            return None
        if self.budget.memory_tuples is not None:
            return max(self.budget.memory_tuples - seen.state_tuples, 0) * TUPLE_BYTES
        if self.budget.memory_bytes is None:
            return None
        plan = _plan_bytes(seen)
        return max(self.budget.memory_bytes - (2 * plan if plan > self.held else plan), 0)

    def _bytes(self, chosen: tuple[Place, ...], segments: dict[Cache, Segment], free: int | None) -> dict[str, int]:
        """Bytes by cache: pages by priority; caches of one content are one store."""
        wants, members = [], dict[tuple[object, ...], list[Place]]()
        for p in chosen:
            members.setdefault(p.content, []).append(p)
        for group in members.values():
            net = sum(segments[p.cache].benefit for p in group) - segments[group[0].cache].upkeep
            size = max(self.profile.wanted_bytes(p, segments[p.cache]) for p in group)
            size = max([size, *(p.cache.bytes or 0 for p in group if free is None)])
            wants.append(Want(_name(group[0].cache), max(net, 1e-30), min(size, LARGEST)))
        given = allocate(wants, free)
        return {_name(p.cache): given[n] for g in members.values() for p in g if (n := _name(g[0].cache)) in given}

    def _selected(self, seen: Observed, used: tuple[Place, ...], segments: dict[Cache, Segment]) -> Change | None:
        """Solve the selection problem, and use its caches if they are others and save enough."""
        now = {_name(p.cache): (segments[p.cache].benefit, segments[p.cache].upkeep) for p in self._places}
        moved = [n for n, (b, u) in now.items() if n not in self.nets or _changed(self.nets[n], (b, u))]
        if not moved:
            return None  # rule (c)
        self.nets = now
        able = [p for p in self._places if self.paused.get(_name(p.cache), (0, 0))[0] <= seen.arrivals]
        best, least = self._best(seen.plan, able, used, segments)
        was = {_name(p.cache) for p in used}
        kept = self._total(seen.plan, used, used, segments)
        if {_name(p.cache) for p in best} == was or least > (1 - GAIN) * kept:
            return None
        given = self._bytes(best, segments, self.free(seen))
        chosen = tuple((p.cache, given[_name(p.cache)]) for p in best if _name(p.cache) in given)
        if {_name(c) for c, _ in chosen} == was:
            return None
        return Change(self._why(best, segments, kept, least), caches=chosen)

    def _why(self, best: tuple[Place, ...], segments: dict[Cache, Segment], kept: float, least: float) -> str:
        said = [
            f"{p} would save {_ns(segments[p.cache].benefit)} for each row and cost {_ns(segments[p.cache].upkeep)}, "
            f"missing {segments[p.cache].miss:.0%}" for p in best
        ]  # fmt: skip
        return "; ".join([*said, f"pipelines take {_ns(kept)} now, {_ns(least)} then"])

    def _best(
        self, plan: Plan, able: list[Place], used: tuple[Place, ...], segments: dict[Cache, Segment]
    ) -> tuple[tuple[Place, ...], float]:
        """The cheapest selection: of all candidates, and of those with which rows still go in groups."""
        tried: list[tuple[float, int, tuple[Place, ...]]] = [(self._total(plan, (), used, segments), 0, ())]
        grouping = [p for p in able if self._groups(plan, (p,))]
        for some in (able, grouping) if self._grouped else (able,):
            found = self._solve(plan, some, used, segments)
            tried.append((self._total(plan, found, used, segments), len(tried), found))
        least, _, best = min(tried, key=lambda t: t[:2])
        return best, least

    def _groups(self, plan: Plan, chosen: tuple[Place, ...]) -> bool:
        names = frozenset(_name(p.cache) for p in chosen)
        if names not in self._grouping:
            self._grouping[names] = may_group(
                compile_plan(self.bound, replace(plan, caches=tuple(p.cache for p in chosen)))
            )
        return self._grouping[names]

    def _solve(
        self, plan: Plan, able: list[Place], used: tuple[Place, ...], segments: dict[Cache, Segment]
    ) -> tuple[Place, ...]:
        proc = self._operators(plan, used)
        groups = {p.content: f"g{k}" for k, p in enumerate({p.content: p for p in able}.values())}
        of = {}
        for p in able:
            c = Candidate(
                p.cache.pipeline, p.first, p.first + len(p.cache.segment) - 1, groups[p.content], segments[p.cache].proc
            )
            of[c] = p
        upkeep = {groups[p.content]: segments[p.cache].upkeep for p in able}
        found = [of[c] for c in select(Problem(proc, tuple(of), upkeep))]
        found.sort(key=lambda p: -segments[p.cache].net)
        together: list[Place] = []
        for p in found:
            if not any(conflict(self.bound, plan, p, other) for other in together):
                together.append(p)
        return tuple(together)

    def _operators(self, plan: Plan, used: tuple[Place, ...]) -> dict[tuple[str, int], float]:
        """What each operator costs for each row that arrives, without caches."""
        proc: dict[tuple[str, int], float] = {}
        for source in self.bound.sources:
            if not source.static:
                rates = self.profile.rates(plan, source.alias, used)
                for step in way(plan, source.alias):
                    key, at = operator(source.alias, step), (str(step.below), step.number)
                    proc[at] = proc.get(at, 0.0) + rates[key] * self.profile.each(key)
        return proc

    def _total(
        self, plan: Plan, chosen: tuple[Place, ...], used: tuple[Place, ...], segments: dict[Cache, Segment]
    ) -> float:
        """What a row that arrives costs with these caches, less where rows go in groups."""
        work = sum(self._operators(plan, used).values()) + self.profile.costs.insert
        work -= sum(segments[p.cache].benefit for p in chosen)
        work += sum({p.content: segments[p.cache].upkeep for p in chosen}.values())
        together = self._grouped and (not chosen or self._groups(plan, chosen))
        return work * (self.profile.costs.together if together else 1.0)

    def memory(self) -> bytes:
        p = self.profile
        kept: dict[str, Any] = {
            "plain": [self.every, self.orders, self.state, self.looks, self.young, self.since, self.interval, self.saved, self.held],
            "nets": self.nets, "paused": self.paused, "scans": p.scans,
            "flows": {k: list(f.values) for k, f in p.flows.items()},
            "reach": {k: list(f.values) for k, f in p.reach.items()},
            "misses": {k: list(r.values) for k, r in p.misses.items()},
            "tags": {k: b64encode(zlib.compress(t.packed(), 1)).decode() for k, t in p.tags.items()},
        }  # fmt: skip
        return json.dumps(kept).encode()

    def recall(self, memory: bytes) -> None:
        if not memory:
            return
        kept, p = json.loads(memory), self.profile
        self.every, self.orders, self.state, self.looks, self.young, *more = kept["plain"]
        self.since, self.interval, self.saved, self.held = more
        self.nets = {k: (v[0], v[1]) for k, v in kept["nets"].items()}
        self.paused = {k: (v[0], v[1]) for k, v in kept["paused"].items()}
        p.scans = kept["scans"]
        p.flows = {k: Flow(values=v) for k, v in kept["flows"].items()}
        p.reach = {k: Flow(values=v) for k, v in kept["reach"].items()}
        p.misses = {k: Recent(values=v) for k, v in kept["misses"].items()}
        p.tags = {k: Tags(zlib.decompress(b64decode(v))) for k, v in kept["tags"].items()}


def _plan_bytes(seen: Observed) -> int:
    return seen.state_bytes - sum(c.bytes for c in seen.caches)


def _changed(was: tuple[float, float], now: tuple[float, float]) -> bool:
    return drifted(was[0], now[0], P) or drifted(was[1], now[1], P)


def _name(cache: Cache) -> str:
    return str(replace(cache, bytes=None))


def _ns(seconds: float) -> str:
    return f"{seconds * 1e9:.3g} ns"
