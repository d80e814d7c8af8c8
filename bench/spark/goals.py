"""What is aimed for, as ratios within one run, and whether it was reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.spark.cases import COLD_ROWS, OWN, Line


@dataclass(frozen=True)
class Goal:
    """A ratio or difference of measured values, with the bound that it should keep."""

    what: str
    value: float
    bound: float
    at_least: bool
    unit: str = "x"

    @property
    def reached(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def line(self, judged: bool = True) -> Line:
        """`judged`: whether this run is large enough to be held to the goal."""
        verdict = ("reached" if self.reached else "missed") if judged else "not judged by a quick run"
        note = f"{'at least' if self.at_least else 'at most'} {self.bound:g}: {verdict}"
        return Line("goal", "watersmeet", self.what, self.value, self.value, self.value, self.unit, 1, 0, note)


def goals(lines: list[Line], batch: int, large: int) -> Iterator[Goal]:
    """All goals of which both sides were measured."""
    found = {(x.case, x.contestant, x.measure): x.value for x in lines}

    def best(name: str) -> float | None:
        rates = [
            v for (case, n, measure), v in found.items() if n == name and measure == "rate" and "rows a batch" in case
        ]
        return max(rates, default=None)

    def of(case: str, name: str, measure: str = "rate") -> float | None:
        return found.get((case, name, measure))

    same, cold = f"{batch:,} rows a batch", f"cold start to the end of {COLD_ROWS:,} rows"
    faster = max(OWN, key=lambda name: of(same, name) or 0.0)
    rivals = {f"Spark's own join ({faster})": (faster, 12, 25, 12), "Flink SQL": ("flink", 10, 20, 10)}
    mine = of(same, "watersmeet")
    for title, (name, at_same, at_best, at_cold) in rivals.items():
        if mine and (theirs := of(same, name)):
            yield Goal(f"rate at {same}, against {title}", mine / theirs, at_same, True)
        if (my_best := best("watersmeet")) and (their_best := best(name)):
            yield Goal(f"rate at the best batch size of each, against {title}", my_best / their_best, at_best, True)
        if (my_time := of(cold, "watersmeet", "time")) and (their_time := of(cold, name, "time")):
            yield Goal(f"{cold}, against {title}", their_time / my_time, at_cold, True)
    for size, share in ((batch, 0.25), (large, 0.40)):
        case = f"{size:,} rows a batch"
        if (rate := of(case, "watersmeet")) and (limit := of(case, "noop")):
            yield Goal(f"share of the no-op read at {case}", rate / limit, share, True)
    first, least = of(same, "watersmeet", "first batch"), of(same, "trivial", "first batch")
    if first and least:
        yield Goal("first batch, later than that of a trivial stateful query", first - least, 3, False, "s")
    yield from _growth(lines, of)


def _growth(lines: list[Line], of: Any) -> Iterator[Goal]:
    cases = [x.case for x in lines if x.case.startswith("windows x") and x.measure == "batch"]
    if len(cases) < 2:
        return
    first, last = cases[0], cases[-1]
    yield Goal(
        f"batch time, {last} against {first}",
        of(last, "watersmeet", "batch") / of(first, "watersmeet", "batch"),
        1.3,
        False,
    )
    base, used = (of(case, "watersmeet", "workers' memory") for case in ("windows of no length", last))
    if live := of(last, "watersmeet", "state"):
        yield Goal(
            f"workers' memory above a base of {base / 1e6:.0f} MB, against the state, {last}",
            (used - base) / live,
            2,
            False,
        )
