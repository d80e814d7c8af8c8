"""Where in the text: offsets become lines and columns, and an error without a place gets one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

from watersmeet.errors import QueryError
from watersmeet.model.expr import At


class Places:
    """The lines of a text; they end where `str.splitlines` says, so that the caret of an error stands right.

    >>> Places("SELECT *\\nFROM a").at(14)
    At(line=2, column=6)
    """

    def __init__(self, text: str) -> None:
        self._starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True)[:-1])]

    def at(self, offset: int) -> At:
        line = bisect_right(self._starts, offset)
        return At(line, offset - self._starts[line - 1] + 1)


def wrong(message: str, at: At, hint: str = "") -> QueryError:
    """An error at a place; `parse` adds the text."""
    return QueryError(message, None, at.line, at.column, hint)


@contextmanager
def placed(at: At) -> Iterator[None]:
    """Gives its place to an error that has none: those of the model's constructors."""
    try:
        yield
    except QueryError as e:
        if e.line is not None:
            raise
        raise wrong(e.message, at, e.hint) from None
