"""Recent: the average of the last W measurements, which is the estimate of any statistic here.

>>> rate = Recent(3)
>>> for x in (1.0, 2.0, 6.0, 7.0): rate.add(x)
>>> rate.mean, rate.full
(5.0, True)

Source: a-caching, Table 1 (W; 10 by default in 7.1); jaqpot 4.4 uses windowed averages too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

W = 10  # measurements


class Recent:
    """The last `size` measurements of one statistic."""

    def __init__(self, size: int = W, values: Iterable[float] = ()) -> None:
        self.values: deque[float] = deque(values, maxlen=size)

    def add(self, value: float) -> None:
        self.values.append(value)

    @property
    def mean(self) -> float:
        """The estimate; 0 before the first measurement."""
        return sum(self.values) / len(self.values) if self.values else 0.0

    @property
    def full(self) -> bool:
        return len(self.values) == self.values.maxlen


def drifted(before: float, now: float, by: float) -> bool:
    """Whether a statistic has changed by more than this fraction of what it was.

    >>> drifted(10, 12, 0.2), drifted(10, 12.5, 0.2), drifted(0, 0, 0.2), drifted(0, 1, 0.2)
    (False, True, False, True)
    """
    return abs(now - before) > by * abs(before)
