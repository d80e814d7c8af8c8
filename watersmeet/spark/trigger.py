"""When a streaming job takes the next batch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from watersmeet.errors import QueryError
from watersmeet.model.durations import unit_us

NOW: Final = "available-now"


@dataclass(frozen=True)
class Trigger:
    """interval_ms: a batch each so many milliseconds, for ever (0: as soon as the last is done). None: all that is there now, then the end.

    >>> Trigger.parse("1.5 seconds").options, Trigger.parse("available-now").options
    ({'processingTime': '1500 milliseconds'}, {'availableNow': True})
    """

    interval_ms: int | None

    @classmethod
    def parse(cls, text: str) -> Trigger:
        if text.strip().lower().replace("-", "") == "availablenow":
            return cls(None)
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", text)
        unit = unit_us(found[2]) if found else None
        if found is None or unit is None:
            raise QueryError(
                f"the trigger {text!r} is none",
                hint=f"for example '10 seconds' or '1 minute' (for ever), or {NOW} (what is there)",
            )
        return cls(round(float(found[1]) * unit / 1000))

    @property
    def options(self) -> dict[str, Any]:
        """For `DataStreamWriter.trigger`."""
        if self.interval_ms is None:
            return {"availableNow": True}
        return {"processingTime": f"{self.interval_ms} milliseconds"}
