"""What a job may use: CPU in cores, memory in tuples or bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from watersmeet.errors import QueryError


@dataclass(frozen=True)
class Budget:
    """`cpu`: cores (seconds of work per second). `memory_tuples` or `memory` (bytes, or text such as "64 MB").

    >>> Budget(cpu=0.8, memory="64 MB")
    Budget(cpu=0.8, memory_tuples=None, memory=64000000)
    >>> print(Budget(cpu=0.8, memory="64 MB"))
    BUDGET (CPU 0.8, MEMORY 64 MB)
    """

    cpu: float | None = None
    memory_tuples: int | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.memory, str):
            object.__setattr__(self, "memory", parse_bytes(self.memory))
        if self.cpu is not None and not 0 < self.cpu < float("inf"):
            raise QueryError(f"BUDGET: CPU {self.cpu} must be above 0")
        if self.memory_tuples is not None and self.memory is not None:
            raise QueryError("BUDGET: give memory in tuples or in bytes, not both")
        for amount in (self.memory_tuples, self.memory):
            if amount is not None and not (isinstance(amount, int) and amount > 0):
                raise QueryError(f"BUDGET: MEMORY {amount} must be above 0")

    @property
    def memory_bytes(self) -> int | None:
        assert not isinstance(self.memory, str)
        return self.memory

    def __str__(self) -> str:
        parts = []
        if self.cpu is not None:
            parts.append(f"CPU {self.cpu!r}")
        if self.memory_tuples is not None:
            parts.append(f"MEMORY {self.memory_tuples} TUPLES")
        if self.memory_bytes is not None:
            parts.append(f"MEMORY {bytes_text(self.memory_bytes)}")
        return f"BUDGET ({', '.join(parts)})"


BYTE_UNITS: Final = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}  # fmt: skip


def parse_bytes(text: str) -> int:
    """
    >>> parse_bytes("64 MB"), parse_bytes("1.5GiB")
    (64000000, 1610612736)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if not found or found[2].upper() not in BYTE_UNITS:
        raise QueryError(f"can't read the amount of memory {text!r}", hint="for example 64 MB, 512 KiB or 2 GB")
    return round(Fraction(found[1]) * BYTE_UNITS[found[2].upper()])


def bytes_text(amount: int) -> str:
    """The amount in the largest unit that leaves no fraction.

    >>> bytes_text(64_000_000), bytes_text(1 << 30), bytes_text(7)
    ('64 MB', '1 GiB', '7 B')
    """
    names = {"KIB": "KiB", "MIB": "MiB", "GIB": "GiB", "TIB": "TiB"}
    unit = max((u for u in BYTE_UNITS if amount % BYTE_UNITS[u] == 0), key=BYTE_UNITS.__getitem__)
    return f"{amount // BYTE_UNITS[unit]} {names.get(unit, unit)}"
