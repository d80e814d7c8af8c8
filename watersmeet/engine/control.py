"""The seam between a running engine and whatever decides about it: facts go out, decisions come in, and each decision is logged.

    engine ──Observed──▶ Controller.step ──Change──▶ Engine.apply ──Event──▶ log

A controller holds no reference to the engine. Adaptive plans, overload control and tests that force changes are all controllers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Protocol

from watersmeet.engine.sample import Sampler
from watersmeet.errors import PlanError
from watersmeet.model.bind import BoundQuery
from watersmeet.model.plan import Cache, Plan, Retention

ENDLESS: Final = 1 << 62  # arrivals


@dataclass(frozen=True)
class OpCount:
    """One step of one pipeline of the plan in use: how many tuples probed there, how many matches that gave, and how many tuples came
    but were not allowed to probe."""

    pipeline: str
    step: str
    tuples_in: int
    matches: int
    unprobed: int = 0


@dataclass(frozen=True)
class StoreCount:
    """One window or inner state: what it holds now, and how many tuples or entries have come and gone."""

    name: str
    tuples: int
    bytes: int
    inserts: int
    expiries: int


@dataclass(frozen=True)
class CacheCount:
    """One cache of the plan in use.
    pipelines: of the streams whose tuples look it up, with (hits, misses) of each.
    bytes: that it may have; used_bytes: of these, in entries that are there and in their values.
    entries: keys that it has now; created: entries made; updates: combinations added to entries.
    replaced: entries that another key took the place of; crowded: entries given up for lack of room.
    dropped: entries given up because a new tuple met nobody in the pipeline that looks up (globally-consistent caches).
    uncached: values that were not kept, too long or without room.
    """

    name: str
    pipelines: dict[str, tuple[int, int]]
    bytes: int
    used_bytes: int
    entries: int
    created: int
    updates: int
    replaced: int
    crowded: int
    dropped: int
    uncached: int

    @property
    def hits(self) -> int:
        return sum(hits for hits, _ in self.pipelines.values())

    @property
    def misses(self) -> int:
        return sum(misses for _, misses in self.pipelines.values())


@dataclass(frozen=True)
class Observed:
    """What has happened since the last step of the controller, or since the plan came into use if that is later.

    operators, stores, caches: counts of that span; what a store or cache holds is as of now.
    rows_in: by alias, rows that came to their windows: after selections, except where rows are counted. Static tables have none.
    rates: by alias, rows_in per second of event time, with those that were shed; empty if event time has not moved.
    state_tuples, state_bytes: in all windows and inner states now. cpu_seconds: of the engine's thread.
    event_time_us: timestamp of the last row; None before the first. arrivals: rows_in of all streams since the query began.
    results: given out in this span. sample: takes key columns out of the windows as they are; only during the step.
    """

    plan: Plan
    operators: tuple[OpCount, ...]
    stores: tuple[StoreCount, ...]
    rows_in: Mapping[str, int]
    rates: Mapping[str, float]
    state_tuples: int
    state_bytes: int
    cpu_seconds: float
    event_time_us: int | None
    arrivals: int
    results: int
    caches: tuple[CacheCount, ...] = ()
    sample: Sampler = field(default=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Change:
    """What shall be from now on, and why. What is None stays as it is.

    caches: those to have, each with its bytes; none while allowances leave probes out, since these would keep caches up.
    allowances: (pipeline, target, fraction of probes done); those not named are done. keep: (stream, share kept).

    >>> print(Change("S is fast now", plan=Plan.parse("((A B) C)")))
    plan ((A B) C): S is fast now
    """

    reason: str
    plan: Plan | None = None
    caches: tuple[tuple[Cache, int], ...] | None = None
    allowances: tuple[tuple[str, str, float], ...] | None = None
    keep: tuple[tuple[str, float], ...] | None = None
    retention: Retention | None = None

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise PlanError("a change needs a reason\n  say in words what was seen and why this follows")
        if not self.parts:
            raise PlanError(f"a change that changes nothing: '{self.reason}'\n  return None to leave all as it is")

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of what is changed."""
        return tuple(name for name in _PARTS if getattr(self, name) is not None)

    def wanted(self, plan: Plan) -> Plan:
        """The plan in use with this change made, as far as plans say it; the same object if it is not touched."""
        plan = plan if self.plan is None else self.plan
        plan = plan if self.keep is None else replace(plan, keep=self.keep)
        plan = plan if self.allowances is None else replace(plan, allow=self.allowances)
        if self.caches is not None:
            plan = replace(plan, caches=tuple(replace(cache, bytes=size) for cache, size in self.caches))
        return replace(plan, caches=()) if plan.caches and plan.limited else plan

    def __str__(self) -> str:
        parts = {name: getattr(self, name) for name in self.parts}
        if self.caches is not None:
            parts["caches"] = ", ".join(str(replace(cache, bytes=size)) for cache, size in self.caches) or "none"
        return f"{', '.join(f'{name} {part}' for name, part in parts.items())}: {self.reason}"


def caches_text(plan: Plan) -> str:
    """The caches of a plan, as the event log says them."""
    return "; ".join(map(str, plan.caches)) or "none"


def allow_text(plan: Plan) -> str:
    """The allowances of a plan, as the event log says them."""
    return "; ".join(f"{a}/{b}: {x:.4g}" for a, b, x in plan.allow) or "all"


_PARTS: Final = ("plan", "caches", "allowances", "keep", "retention")


class Controller(Protocol):
    """Decides while a query runs. The engine calls `step` after each `every` arrivals, between two tuples, and at the end of each feed.

    every: arrivals until the next step; read after each step, so it may differ from step to step.
    memory, recall: what it has learnt, as bytes, so that it goes on in another process; `recall` is called before the first step.
    """

    @property
    def every(self) -> int: ...
    def step(self, seen: Observed) -> Change | None: ...
    def memory(self) -> bytes: ...
    def recall(self, memory: bytes) -> None: ...


@dataclass(frozen=True)
class Static:
    """Never changes anything: the floor of the family.

    >>> Static().memory()
    b''
    """

    every: int = ENDLESS

    def step(self, seen: Observed) -> Change | None:
        return None

    def memory(self) -> bytes:
        return b""

    def recall(self, memory: bytes) -> None:
        pass


def unchanging(bound: BoundQuery) -> Controller:
    """Makes the controller of a run that stays as it is."""
    return Static()


@dataclass(frozen=True)
class Event:
    """One change that was applied. number: counts up over the life of a query. was, now: as text, of what `kind` names.

    >>> Event(0, "plan", "(A B C)", "((A B) C)", "S is fast now", arrivals=7, event_time_us=1000).json()
    '{"number": 0, "kind": "plan", "was": "(A B C)", "now": "((A B) C)", "reason": "S is fast now", "arrivals": 7, "event_time_us": 1000}'
    """

    number: int
    kind: str
    was: str
    now: str
    reason: str
    arrivals: int
    event_time_us: int | None

    def json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


def json_lines(events: Iterable[Event]) -> str:
    """Events as text: a JSON object a line."""
    return "".join(f"{event.json()}\n" for event in events)


@dataclass
class EventLog:
    """The events that nobody has taken yet, and the number of the next one."""

    next: int = 0
    waiting: list[Event] = field(default_factory=list)

    def add(self, kind: str, was: str, now: str, reason: str, arrivals: int, event_time_us: int | None) -> None:
        self.waiting.append(Event(self.next, kind, was, now, reason, arrivals, event_time_us))
        self.next += 1

    def note(self, change: Change, was: Plan, now: Plan, arrivals: int, event_time_us: int | None) -> None:
        """A change was applied: an event for each kind of thing that it concerns."""
        if change.plan is not None or change.keep is not None:
            self.add("plan", str(was.bare), str(now.bare), change.reason, arrivals, event_time_us)
        if change.allowances is not None:
            self.add("allowances", allow_text(was), allow_text(now), change.reason, arrivals, event_time_us)
        if change.caches is not None or (change.plan is None and was.caches != now.caches):
            self.add("caches", caches_text(was), caches_text(now), change.reason, arrivals, event_time_us)

    def take(self) -> tuple[Event, ...]:
        """All that has been logged since the last call."""
        made, self.waiting = tuple(self.waiting), []
        return made
