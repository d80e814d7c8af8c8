"""Reoptimizer: the one controller of `plan="auto"`: orders and trees, then caches on what they leave.

    budget ──▶ a plan that fits it ──▶ none? ──▶ what the query allows: SHED rows, DIRECT probes, else WAIT
                       │
                       └──▶ another plan is cheaper? move ──▶ caches in the memory that is left

At each step the plan's tree and orders are looked at first (replan.py), with what the caches in use save counted for the plan in use. If
that changes nothing, caches are (caching.py). A plan that comes into use has no caches; they are profiled anew for it.

>>> from watersmeet.lang import parse
>>> from watersmeet.model.bind import bind
>>> text = "".join(f"CREATE STREAM {r} (a BIGINT, ts TIMESTAMP) FROM '{r}' FORMAT csv;" for r in "RS")
>>> query = parse(text + "SELECT R.a FROM R [ROWS 1], S [ROWS 1] WHERE R.a = S.a")
>>> Reoptimizer(bind(query)).every
4096

Source: a-caching 4.2: "join ordering and caching" as two modules, the first of which may undo what the second did.
Departs from the paper in: what caches save is part of the first module's comparison: no tree is moved to where caches do as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from watersmeet.adapt.caching import Caching
from watersmeet.adapt.replan import Replan
from watersmeet.engine.control import Change, Observed
from watersmeet.model.bind import BoundQuery
from watersmeet.model.budget import Budget
from watersmeet.model.statistics import Costs


@dataclass
class Reoptimizer:
    """costs: prices of the machine. budget: windows, states and caches must fit it."""

    bound: BoundQuery
    costs: Costs | None = None
    budget: Budget | None = None
    replan: Replan = field(init=False)
    caching: Caching = field(init=False)

    def __post_init__(self) -> None:
        self.replan = Replan(self.bound, self.costs, self.budget)
        self.caching = Caching(self.bound, self.costs, self.budget)

    @property
    def every(self) -> int:
        return min(self.replan.every, self.caching.every)

    def step(self, seen: Observed) -> Change | None:
        self.replan.saved = self.caching.saved
        change = self.replan.step(seen)
        if change is not None or seen.plan.limited:  # a probe that is left out would keep caches up
            return change
        return self.caching.step(seen)

    def memory(self) -> bytes:
        return json.dumps([self.replan.memory().decode(), self.caching.memory().decode()]).encode()

    def recall(self, memory: bytes) -> None:
        if memory:
            replan, caching = json.loads(memory)
            self.replan.recall(replan.encode())
            self.caching.recall(caching.encode())
