"""What can go wrong, as the user sees it: every error that Watersmeet raises on purpose is one of these."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_WIDEST = 160  # of a longer line an error shows only what is around the place


class WatersmeetError(Exception):
    """Base of all errors that are about the user's query, data or budget, and not about a fault in Watersmeet."""


class QueryError(WatersmeetError):
    """The query text is wrong: says what, where (line, column, a caret below the place), and what to do instead.

    >>> print(QueryError("unknown stream 'ordrs'", "SELECT * FROM ordrs", 1, 15, "did you mean 'orders'?"))
    line 1, column 15: unknown stream 'ordrs'
      SELECT * FROM ordrs
                    ^
      did you mean 'orders'?
    """

    def __init__(
        self, message: str, text: str | None = None, line: int | None = None, column: int | None = None, hint: str = ""
    ) -> None:
        self.message, self.text, self.line, self.column, self.hint = message, text, line, column, hint
        super().__init__(self._full())

    def _full(self) -> str:
        lines = [self.message]
        if self.line is not None and self.column is not None:
            lines = [f"line {self.line}, column {self.column}: {self.message}"]
            source = self.text.splitlines() if self.text else []
            if 0 < self.line <= len(source):
                shown, before = source[self.line - 1], self.column - 1
                if len(shown) > _WIDEST:
                    cut = max(0, before - _WIDEST // 2)
                    shown, before = f"...{shown[cut : cut + _WIDEST]}...", before - cut + 3
                blank = "".join(c if c == "\t" else " " for c in shown[:before])
                lines += [f"  {shown}", f"  {blank}^"]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def at(self, text: str) -> QueryError:
        """The same error with the text it speaks of, so that the line and a caret can be shown."""
        return QueryError(self.message, text, self.line, self.column, self.hint)


class BudgetWarning(UserWarning):
    """A run can't be both exact and within its budget: says what is given up, or that it may fall behind."""


class QueryWarning(UserWarning):
    """A query is valid, but perhaps not what is meant."""


class DataError(WatersmeetError):
    """The data does not fit the query: names file, row and column where they are known."""


class PlanError(WatersmeetError):
    """A plan's text or tree is not valid, or does not belong to the query."""


class StateError(WatersmeetError):
    """Stored state can't be used: another query's, another layout's, or damaged. Names the difference."""


class NoQualifiedPlan(WatersmeetError):
    """No plan fits the budget and the query does not allow approximation."""

    def __init__(
        self,
        message: str,
        *,
        cpu_bound: float | None = None,
        memory_bound: float | None = None,
        nearest: tuple[object, ...] = (),
        proven: bool = False,
    ) -> None:
        self.cpu_bound, self.memory_bound, self.nearest, self.proven = cpu_bound, memory_bound, nearest, proven
        super().__init__(message)


def nearest_name(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known.

    >>> nearest_name("ordrs", ["orders", "payments"])
    "did you mean 'orders'?"
    >>> nearest_name("xyz", ["orders", "payments"])
    'known: orders, payments'
    """
    names = list(known)
    folded = {n.lower(): n for n in names}
    close = get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    if close:
        return f"did you mean '{folded[close[0]]}'?"
    return f"known: {', '.join(names)}" if names else ""
