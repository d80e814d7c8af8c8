"""Values for random rows and literals: a type and a small number give a value, so that equal numbers meet across types.

Number 3 is 3 as BIGINT, 3.0 as DOUBLE, 3.00 as DECIMAL, the same day as DATE and (midnight) as TIMESTAMP: a join of a BIGINT
with a DOUBLE column finds partners. Strings hold what tends to break: the empty one, LIKE's own characters, quotes, two
characters whose UTF-16 order is not their UTF-8 order.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any, Final

from watersmeet.model.evaluate import DAY_US
from watersmeet.model.expr import Literal
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Type

START_DAY: Final = 20_454  # 2026-01-01
WORDS: Final = ("a", "b", "ab", "", "a%", "a_b", "é", "B", "𝄞", "\uff5e", "zebra", "it's", "back\\slash", "a b")


def plain_value(rng: Random, kind: Type, number: int) -> Any:
    """The value of a number in a type, in the plain form of model/evaluate.py; now and then an odd one beside it.

    >>> [plain_value(Random(1), kind, 3) for kind in (BIGINT, STRING, BOOLEAN, DATE)]
    [3, '', True, 20457]
    """
    odd = rng.random() < 0.08
    match kind.name:
        case "BIGINT":
            return number
        case "DOUBLE":
            if odd:
                return rng.choice((float("nan"), float("nan"), float("inf"), number + 0.5))
            return rng.choice((0.0, -0.0)) if number == 0 else float(number)
        case "STRING":
            return WORDS[number] if 0 <= number < len(WORDS) else f"w{number}"
        case "BOOLEAN":
            return number % 2 == 1
        case "DATE":
            return START_DAY + number
        case "TIMESTAMP":
            return (START_DAY + number) * DAY_US + (odd and 1)
        case _:
            return Decimal(number) + (Decimal("0.5") if odd and kind.scale else 0)


def literal(kind: Type, number: int) -> Literal:
    """A constant to compare a column of that type with (a DECIMAL is compared with a BIGINT)."""
    match kind.name:
        case "DOUBLE":
            return Literal(number + 0.5 if number % 3 == 0 else float(number), DOUBLE)
        case "STRING":
            return Literal(WORDS[number % len(WORDS)], STRING)
        case "BOOLEAN":
            return Literal(number % 2 == 1, BOOLEAN)
        case "DATE":
            return Literal(dt.date(2026, 1, 1) + dt.timedelta(days=number), DATE)
        case "TIMESTAMP":
            return Literal(dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=number), TIMESTAMP)
        case _:
            return Literal(number, BIGINT)
