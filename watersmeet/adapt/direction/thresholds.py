"""When to analyse and when to act: the error threshold ε and the performance threshold p.

    statistics differ by more than ε from those of the last decision      → analyse (another thread)
    the analysis promises more than p above what is in use                → act

>>> t = Thresholds(error=0.05, gain=0.05)
>>> t.analyse({"A": 100.0}, {"A": 104.0}), t.analyse({"A": 100.0}, {"A": 106.0})
(False, True)
>>> t.act(100.0, 104.0), t.act(100.0, 106.0)
(False, True)
>>> print(t)
ε 5%, p 5%

Source: jaqpot 4.4 and 5.4: ε between 5 and 8 %, p between 3 and 7 %, 5 % each for the weatherboards. Statistics are
windowed averages (adapt/recent.py). Thresholds that tune themselves, its future work, did not win:
experiments/jaqpot/tuned.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from watersmeet.adapt.recent import drifted


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

    def __str__(self) -> str:
        return f"ε {self.error * 100:g}%, p {self.gain * 100:g}%"
