"""Memory for caches: pages go to the caches that save most for each byte, until there are none left.

The idea: the priority of a cache is its net benefit divided by the bytes that it is expected to need. In order of priority each gets what
it needs, in whole pages; the last may get less, and holds less. A cache that gets no page is not used.

>>> wanted = [Want("RS", net=90.0, bytes=3 * PAGE), Want("ST", net=80.0, bytes=PAGE), Want("RT", net=-1.0, bytes=PAGE)]
>>> allocate(wanted, budget=3 * PAGE) == {"ST": PAGE, "RS": 2 * PAGE}
True

Source: a-caching, Section 5.
Departs from the paper in: caches whose net benefit is not positive get nothing (the paper does not select them in the first place).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PAGE: Final = 4096  # bytes


@dataclass(frozen=True)
class Want:
    """A cache that was selected: its net benefit per unit time, and the bytes it is expected to need."""

    name: str
    net: float
    bytes: int

    @property
    def priority(self) -> float:
        """Net benefit for each byte."""
        return self.net / max(self.bytes, 1)


def allocate(wanted: Iterable[Want], budget: int | None) -> dict[str, int]:
    """Bytes by name, in whole pages, never more than the budget in all (None: no limit)."""
    left = None if budget is None else budget // PAGE
    given: dict[str, int] = {}
    for want in sorted(wanted, key=lambda w: (-w.priority, w.name)):
        if want.net <= 0:
            continue
        pages = max(1, -(-want.bytes // PAGE))
        if left is not None:
            pages = min(pages, left)
            left -= pages
        if pages:
            given[want.name] = pages * PAGE
    return given
