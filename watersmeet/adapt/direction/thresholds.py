"""When to analyse and when to act: the error threshold ε and the performance threshold p; then both, tuned by what they did.

    statistics differ by more than ε from those of the last decision      → analyse (another thread)
    the analysis promises more than p above what is in use                → act

`tuned` is the paper's future work: an analysis that leads to nothing raises ε, one that leads to action lowers it; an
action that gave less than was promised raises p, one that did not lowers it; both within bounds.

>>> t = Thresholds(error=0.05, gain=0.05)
>>> t.analyse({"A": 100.0}, {"A": 104.0}), t.analyse({"A": 100.0}, {"A": 106.0})
(False, True)
>>> t.act(100.0, 104.0), t.act(100.0, 106.0)
(False, True)
>>> print(t.tuned(acted=False), "|", t.tuned(acted=True, promised=10.0, found=4.0))
ε 6.25%, p 5% | ε 4%, p 6.25%

Source: jaqpot 4.4 and 5.4: ε between 5 and 8 %, p between 3 and 7 %, 5 % each for the weatherboards. Statistics are
windowed averages (adapt/recent.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from watersmeet.adapt.recent import drifted

STEP = 1.25
LOWEST, HIGHEST = 0.01, 0.3


@dataclass(frozen=True)
class Thresholds:
    """ε (error) and p (gain), as fractions."""

    error: float = 0.05
    gain: float = 0.05

    def analyse(self, before: Mapping[str, float], now: Mapping[str, float]) -> bool:
        """Whether any statistic has moved by more than ε."""
        return any(drifted(before.get(name, 0.0), value, self.error) for name, value in now.items())

    def act(self, in_use: float, promised: float) -> bool:
        """Whether what the analysis promises is more than p above what is in use."""
        return promised > in_use * (1 + self.gain)

    def tuned(self, acted: bool, promised: float = 0.0, found: float = 0.0) -> Thresholds:
        """The thresholds after an analysis. promised, found: the gain in results per second of an action."""
        error = self.error / STEP if acted else self.error * STEP
        gain = self.gain
        if acted:
            gain = gain / STEP if found >= promised * (1 - self.gain) else gain * STEP
        return replace(self, error=_within(error), gain=_within(gain))

    def __str__(self) -> str:
        return f"ε {self.error * 100:g}%, p {self.gain * 100:g}%"


def _within(value: float) -> float:
    return min(max(value, LOWEST), HIGHEST)
