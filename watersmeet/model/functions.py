"""The functions of the language: what they take, what type they have, and what they are worth, row by row.

    COALESCE(a, b, ...)                     the first that is not NULL
    CASE WHEN c THEN v ... [ELSE v] END     the value of the first condition that is true; CASE x WHEN v ... compares x
    LOWER(s), UPPER(s), SUBSTRING(s, from [, length]), ABS(x), DATE_TRUNC('unit', ts)

They are Spark's. COALESCE and CASE look at an argument only where those before it did not settle the answer, so an error in one that is
skipped is no error. SUBSTRING counts characters from 1, from the end if `from` is negative. DATE_TRUNC works in UTC; weeks begin on Monday.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from watersmeet.errors import QueryError
from watersmeet.model.coerce import cast, same_type
from watersmeet.model.expr import Call, Expr, Literal, type_of
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, NULL, STRING, TIMESTAMP, Type

ARGUMENTS: Final[Mapping[str, tuple[int, int]]] = {
    "ABS": (1, 1), "COALESCE": (1, 1000), "DATE_TRUNC": (2, 2), "LOWER": (1, 1), "SUBSTRING": (2, 3), "UPPER": (1, 1),
}  # fmt: skip
SYNONYMS: Final[Mapping[str, str]] = {"SUBSTR": "SUBSTRING", "LCASE": "LOWER", "UCASE": "UPPER"}
UNITS: Final = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


def typed_call(call: Call) -> Call:
    """The call with its arguments in their types and a type of its own; its arguments are bound."""
    match call.name:
        case "COALESCE":
            values = _one_type(call.args, call)
            return replace(call, args=values, type=type_of(values[0]))
        case "CASE":
            for condition in call.args[:-1:2]:
                if type_of(condition) not in (BOOLEAN, NULL):
                    raise QueryError(f"WHEN needs a condition, but {condition} is {type_of(condition)}")
            values = _one_type((*call.args[1:-1:2], call.args[-1]), call)
            args = [cast(a, BOOLEAN) if k % 2 == 0 else values[k // 2] for k, a in enumerate(call.args[:-1])]
            return replace(call, args=(*args, values[-1]), type=type_of(values[0]))
        case "LOWER" | "UPPER":
            return replace(call, args=(_as(call.args[0], STRING, call),), type=STRING)
        case "SUBSTRING":
            for place in call.args[1:]:
                if not (isinstance(place, Literal) and place.type == BIGINT):
                    raise QueryError(f"SUBSTRING takes whole numbers for place and length, not {place}")
            return replace(call, args=(_as(call.args[0], STRING, call), *call.args[1:]), type=STRING)
        case "ABS":
            kind = type_of(call.args[0])
            if kind not in (BIGINT, DOUBLE, INTERVAL, NULL):
                raise QueryError(f"ABS needs a number, but {call.args[0]} is {kind}", hint="CAST(... AS DOUBLE) first")
            kind = BIGINT if kind == NULL else kind
            return replace(call, args=(cast(call.args[0], kind),), type=kind)
    unit = call.args[0]
    if not (isinstance(unit, Literal) and isinstance(unit.value, str) and unit.value.upper() in UNITS):
        raise QueryError(f"DATE_TRUNC does not know the unit {unit}", hint=f"one of {', '.join(map(repr, UNITS))}")
    moment = cast(call.args[1], TIMESTAMP) if type_of(call.args[1]) in (DATE, NULL) else call.args[1]
    return replace(call, args=(replace(unit, value=unit.value.upper()), _as(moment, TIMESTAMP, call)), type=TIMESTAMP)


def _as(expr: Expr, kind: Type, call: Call) -> Expr:
    if type_of(expr) == NULL:
        return cast(expr, kind)
    if type_of(expr) != kind:
        raise QueryError(f"{call.name} needs a {kind}, but {expr} is {type_of(expr)}")
    return expr


def _one_type(values: tuple[Expr, ...], call: Call) -> tuple[Expr, ...]:
    """All in the type in which Spark would compare them."""
    whole = values[0]
    for value in values[1:]:
        whole, _ = same_type(whole, value, call)
    return tuple(
        cast(value, type_of(whole)) if type_of(value) == NULL else same_type(whole, value, call)[1] for value in values
    )


def can_overflow(call: Call) -> bool:
    """Whether the function itself, its arguments apart, could stop the query."""
    return call.name == "ABS" and type_of(call) != DOUBLE


def substring(text: str, place: int, length: int | None) -> str:
    """
    >>> substring("water", 2, 3), substring("water", -3, None), substring("water", 0, 2), substring("water", -7, 4)
    ('ate', 'ter', 'wa', 'wa')
    """
    first = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    last = len(text) if length is None else first + length
    return text[max(first, 0) : max(last, 0)]


_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (UTC throughout)
_FIXED: Final = {
    "MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6, "DAY": 86400 * 10**6,
}  # fmt: skip


def date_trunc(unit: str, moment: int) -> int:
    """The beginning of the unit that a moment lies in; both in microseconds since 1970.

    >>> date_trunc("HOUR", -1) == -3600 * 10**6, date_trunc("MONTH", 40 * 86400 * 10**6) == 31 * 86400 * 10**6
    (True, True)
    """
    if unit in _FIXED:
        return moment // _FIXED[unit] * _FIXED[unit]
    day = (_EPOCH + dt.timedelta(microseconds=moment)).replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "WEEK":
        day -= dt.timedelta(days=day.weekday())
    else:
        months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[unit]
        day = day.replace(day=1, month=(day.month - 1) // months * months + 1)
    return (day - _EPOCH) // dt.timedelta(microseconds=1)


PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "ABS": abs,
    "DATE_TRUNC": date_trunc,
    "LOWER": str.lower,
    "SUBSTRING": lambda text, place, length=None: substring(text, place, length),
    "UPPER": str.upper,
}
"""The functions whose arguments are all looked at, from left to right until one is NULL."""
