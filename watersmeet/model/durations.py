"""Lengths of time in microseconds, as text and back."""

from __future__ import annotations

from typing import Final

UNITS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}


def duration(us: int) -> str:
    """The length in the largest unit that leaves no fraction.

    >>> duration(90_000_000), duration(60_000_000), duration(1), duration(0)
    ('90 SECONDS', '1 MINUTE', '1 MICROSECOND', '0 SECONDS')
    """
    if us == 0:
        return "0 SECONDS"
    unit = max((u for u in UNITS if us % UNITS[u] == 0), key=UNITS.__getitem__)
    count = us // UNITS[unit]
    return f"{count} {unit}{'' if count == 1 else 'S'}"


def unit_us(word: str) -> int | None:
    """Microseconds of one unit by its name, singular, plural or short; None if there is no such unit.

    >>> unit_us("minutes"), unit_us("ms"), unit_us("fortnight")
    (60000000, 1000, None)
    """
    name = _SHORT.get(word.lower(), word.upper())
    return UNITS.get(name) or UNITS.get(name.removesuffix("S"))


_SHORT: Final = {
    "us": "MICROSECOND", "\u00b5s": "MICROSECOND", "\u03bcs": "MICROSECOND", "ms": "MILLISECOND", "s": "SECOND",
    "sec": "SECOND", "secs": "SECOND", "m": "MINUTE", "min": "MINUTE", "mins": "MINUTE",
    "h": "HOUR", "hr": "HOUR", "hrs": "HOUR", "d": "DAY",
}  # fmt: skip
