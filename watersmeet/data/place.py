"""Place: which input an error speaks of, and the wording that all data errors share."""

from __future__ import annotations

from dataclasses import dataclass

from watersmeet.errors import DataError


@dataclass(frozen=True)
class Place:
    """A stream or table by name, and the file where it comes from one.

    >>> print(Place("orders", "data/orders.csv").error("'x' is not a BIGINT", row=3, line=4, column="id"))
    orders (data/orders.csv), row 3 (line 4), column 'id': 'x' is not a BIGINT
    >>> print(Place("orders").error("no column 'id'", hint="found: idd"))
    orders: no column 'id'
      found: idd
    """

    name: str
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.file})" if self.file else self.name

    def error(
        self,
        message: str,
        *,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
        hint: str = "",
    ) -> DataError:
        """The error at a row (1 for the first data row), the line of the file where it begins, and a column."""
        text = str(self)
        if row is not None:
            text += f", row {row}" + (f" (line {line})" if line is not None else "")
        elif line is not None:
            text += f", line {line}"
        if column is not None:
            text += f", column '{column}'"
        return DataError(f"{text}: {message}" + (f"\n  {hint}" if hint else ""))


def shown(value: object, width: int = 60) -> str:
    """A value for an error message, cut where it is long.

    >>> shown("abc"), shown("x" * 100, 10)
    ("'abc'", "'xxxxxxxxx...")
    """
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= width else text[:width] + "..."
