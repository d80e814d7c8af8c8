"""Kept: what drop boxes let pass, and what is left of the output."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """Fractions of the streams' tuples that drop boxes let pass; `results` and `of` per second. Not feasible: keep is ()."""

    keep: tuple[tuple[str, float], ...]
    results: float
    of: float
    feasible: bool = True
    cpu: float = 0.0
    memory: float = 0.0

    def __str__(self) -> str:
        if not self.feasible:
            return f"not even the minimum rates fit: they need {self.cpu:.6g} CPU and {self.memory:.6g} memory"
        inside = ", ".join(f"{s} {x:.6g}" for s, x in self.keep)
        return f"keep {inside}: {self.results:.6g} of {self.of:.6g} results/s"
