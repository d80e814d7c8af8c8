"""Functions over whole Arrow columns (model/functions.py defines them row by row). COALESCE and CASE are in vector.py: they are lazy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.data import arrow_type
from watersmeet.model.expr import Call, Expr, Literal
from watersmeet.model.functions import PLAIN
from watersmeet.model.types import DOUBLE, TIMESTAMP


def applied(call: Call, args: list[pa.Array]) -> pa.Array:
    """The function's value for each row; NULL where the first argument is."""
    return _FUNCTIONS[call.name](call, args)


def _abs(call: Call, args: list[pa.Array]) -> pa.Array:
    (numbers,) = args
    if call.type == DOUBLE:
        return pc.abs(numbers)
    whole = numbers if pa.types.is_int64(numbers.type) else numbers.cast(pa.int64())
    made = pc.abs_checked(whole)
    return made if made.type == numbers.type else made.cast(numbers.type)


def _text(call: Call, args: list[pa.Array]) -> pa.Array:
    """Letters beyond ASCII go by Python's rules, which are Unicode's and Spark's (one letter may become two); each distinct text once."""
    texts = args[0].cast(pa.string())
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return {"LOWER": pc.ascii_lower, "UPPER": pc.ascii_upper}[call.name](texts)
    coded = texts.dictionary_encode()
    change = PLAIN[call.name]
    return pa.array([change(t) for t in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def _substring(call: Call, args: list[pa.Array]) -> pa.Array:
    place, *length = (_constant(a) for a in call.args[1:])
    coded = args[0].cast(pa.string()).dictionary_encode()
    texts = [PLAIN["SUBSTRING"](t, place, *length) for t in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _date_trunc(call: Call, args: list[pa.Array]) -> pa.Array:
    unit = str(_constant(call.args[0])).lower()
    made = pc.floor_temporal(args[-1].cast(pa.timestamp("us")), unit=unit, week_starts_monday=True)
    return made.cast(arrow_type(TIMESTAMP))


def _constant(expr: Expr) -> Any:
    assert isinstance(expr, Literal)
    return expr.value


_FUNCTIONS: Final[Mapping[str, Callable[[Call, list[pa.Array]], pa.Array]]] = {
    "ABS": _abs, "DATE_TRUNC": _date_trunc, "LOWER": _text, "SUBSTRING": _substring, "UPPER": _text,
}  # fmt: skip
