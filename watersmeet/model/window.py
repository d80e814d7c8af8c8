"""Windows: which tuples of a stream take part at a moment (docs/semantics.md, "Windows")."""

from __future__ import annotations

from dataclasses import dataclass

from watersmeet.errors import QueryError
from watersmeet.model.durations import duration
from watersmeet.model.types import quoted


@dataclass(frozen=True)
class Window:
    """RANGE (`size` in microseconds), ROWS (`size` rows, for each value of `partition` if given), or UNBOUNDED.

    >>> print(Window.range_us(600_000_000), Window.rows(5), Window.rows(2, ("k",)), Window.unbounded())
    [RANGE 10 MINUTES] [ROWS 5] [PARTITION BY k ROWS 2] [UNBOUNDED]
    """

    kind: str
    size: int = 0
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("RANGE", "ROWS", "UNBOUNDED"):
            raise QueryError(
                f"unknown kind of window {self.kind}", hint="RANGE, ROWS, PARTITION BY ... ROWS or UNBOUNDED"
            )
        if self.kind == "RANGE" and not 0 <= self.size < 1 << 62:
            raise QueryError("a RANGE window needs a length of zero or more")
        if self.kind == "ROWS" and not 1 <= self.size < 1 << 31:
            raise QueryError(f"ROWS {self.size}: a ROWS window holds at least one row and at most 2,147,483,647")
        if self.kind == "UNBOUNDED" and self.size:
            raise QueryError("an UNBOUNDED window has no size")
        if self.partition and self.kind != "ROWS":
            raise QueryError("PARTITION BY goes with ROWS")

    @classmethod
    def range_us(cls, size_us: int) -> Window:
        return cls("RANGE", size_us)

    @classmethod
    def rows(cls, count: int, partition: tuple[str, ...] = ()) -> Window:
        return cls("ROWS", count, partition)

    @classmethod
    def unbounded(cls) -> Window:
        return cls("UNBOUNDED")

    def __str__(self) -> str:
        if self.kind == "RANGE":
            return f"[RANGE {duration(self.size)}]"
        if self.kind == "ROWS":
            by = f"PARTITION BY {', '.join(map(quoted, self.partition))} " if self.partition else ""
            return f"[{by}ROWS {self.size}]"
        return "[UNBOUNDED]"
