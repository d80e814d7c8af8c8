"""Unprobed: until when results may be missing because allowances left a probe out.

A tuple that does not probe misses the results that it would have completed, now. If a state lies behind the probe, the
combinations that were not found are missing there too, until one of their members leaves: at the latest when the shortest RANGE
window among them is over.

    ((R S) T), R may not probe S at t:   (r, s) is missing from (R S) until t + min(window of R, window of S)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from watersmeet.engine.program import layout as L
from watersmeet.engine.store.arena import Arena
from watersmeet.model.bind import BoundQuery
from watersmeet.model.program import Keep, Op, Program


@dataclass
class Unprobed:
    """steps: each probe that is not always made, and for how many microseconds after it results may be missing. seen: how many had been
    left out there when somebody looked last."""

    steps: dict[int, int]
    seen: dict[int, int]

    @classmethod
    def of(cls, bound: BoundQuery, arena: Arena) -> Unprobed:
        program, pipelines = arena.program, arena.pipelines
        steps = {}
        for pipes, starts in ((program.arrive, pipelines.arrive), (program.leave, pipelines.leave)):
            for pipeline, first in zip(pipes, starts, strict=True):
                for k in range(len(pipeline)):
                    if pipelines.ops[first + k, L.ALLOWED] < L.ALL:
                        steps[first + k] = _lasting(bound, program, pipeline[k:])
        return cls(steps, dict.fromkeys(steps, 0))

    def look(self, counters: Any) -> set[int]:
        """The steps at which probes have been left out since the last look."""
        counts = {pc: int(counters[pc, L.UNPROBED]) for pc in self.steps}
        found = {pc for pc, count in counts.items() if count > self.seen[pc]}
        self.seen = counts
        return found

    def missing_until(self, counters: Any, now: int) -> int:
        """Event time from which on nothing is missing for what has been left out since the last look, up to `now`; DEAD: nothing is."""
        lasting = [self.steps[pc] for pc in self.look(counters)]
        if not lasting:
            return L.DEAD
        return L.FAR if max(lasting) == L.FAR else now + max(lasting) + 1


def _lasting(bound: BoundQuery, program: Program, rest: tuple[Op, ...]) -> int:
    """For how long a state lacks what was not found; 0 if the rest of the pipeline keeps none, FAR if only ROWS windows end it."""
    kept = next((op.store for op in rest if isinstance(op, Keep)), None)
    if kept is None:
        return 0
    windows = [bound.sources[leaf].window for leaf in program.stores[kept].leaves]
    return min((w.size for w in windows if w is not None and w.kind == "RANGE"), default=L.FAR)
