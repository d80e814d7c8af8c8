"""Expressions: what WHERE and SELECT are made of. Frozen, engine-free; `str` gives text that parses back to the same.

Each node may carry the place in the text it came from (`at`), for error messages; it does not take part in comparisons.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Final, TypeAlias

from watersmeet.model.durations import duration
from watersmeet.model.types import BOOLEAN, INTERVAL, NULL, Type, quoted, string_text


@dataclass(frozen=True)
class At:
    """A place in the query text, both counted from 1."""

    line: int
    column: int


Value: TypeAlias = "int | float | str | bool | Decimal | dt.date | dt.datetime | None"

ARITHMETIC: Final = ("+", "-", "*", "/", "%", "||")
COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Column:
    """`stream.name`; `stream` is the alias in FROM, None until it is resolved; `type` is None until it is bound."""

    stream: str | None
    name: str
    type: Type | None = None
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{quoted(self.stream)}.{quoted(self.name)}" if self.stream else quoted(self.name)


@dataclass(frozen=True)
class Literal:
    """A constant. The value of a TIMESTAMP is an aware datetime in UTC, that of an INTERVAL is microseconds (int)."""

    value: Value
    type: Type
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        v = self.value
        if v is None:
            return "NULL"
        if self.type == INTERVAL:
            assert isinstance(v, int)
            return f"INTERVAL {duration(v)}" if v >= 0 else f"(- INTERVAL {duration(-v)})"
        if isinstance(v, bool):
            return "TRUE" if v else "FALSE"
        if isinstance(v, dt.datetime):
            return f"TIMESTAMP '{v.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ', 'microseconds')}'"
        if isinstance(v, dt.date):
            return f"DATE '{v.isoformat()}'"
        if isinstance(v, str):
            return string_text(v)
        if isinstance(v, Decimal):
            return f"CAST('{v}' AS {self.type})"
        return repr(v)


@dataclass(frozen=True)
class Arithmetic:
    """`left op right`; op is one of + - * / % ||."""

    op: str
    left: Expr
    right: Expr
    type: Type | None = None
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.op} {_operand(self.right)}"


@dataclass(frozen=True)
class Negate:
    """`-operand`."""

    operand: Expr
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"-({self.operand})"


@dataclass(frozen=True)
class Cast:
    """`CAST(operand AS type)`; binding adds these so that both sides of an operator have one type."""

    operand: Expr
    type: Type
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type})"


@dataclass(frozen=True)
class Compare:
    """`left op right`; op is one of = <> < <= > >=."""

    op: str
    left: Expr
    right: Expr
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.op} {_operand(self.right)}"


@dataclass(frozen=True)
class Between:
    """`operand BETWEEN low AND high`."""

    operand: Expr
    low: Expr
    high: Expr
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.operand)} BETWEEN {_operand(self.low)} AND {_operand(self.high)}"


@dataclass(frozen=True)
class InList:
    """`operand IN (items)`."""

    operand: Expr
    items: tuple[Expr, ...]
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.operand)} IN ({', '.join(map(str, self.items))})"


@dataclass(frozen=True)
class Like:
    """`operand LIKE 'pattern'`: % any run, _ any one character, backslash escapes."""

    operand: Expr
    pattern: str
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.operand)} LIKE {string_text(self.pattern)}"


@dataclass(frozen=True)
class IsNull:
    """`operand IS NULL`."""

    operand: Expr
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.operand)} IS NULL"


@dataclass(frozen=True)
class Not:
    """`NOT operand`."""

    operand: Expr
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"NOT ({self.operand})"


@dataclass(frozen=True)
class And:
    """`item AND item ...`, at least two; none of them an And."""

    items: tuple[Expr, ...]
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return " AND ".join(f"({i})" if isinstance(i, Or | And) else str(i) for i in self.items)


@dataclass(frozen=True)
class Or:
    """`item OR item ...`, at least two; none of them an Or."""

    items: tuple[Expr, ...]
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return " OR ".join(f"({i})" if isinstance(i, Or | And) else str(i) for i in self.items)


@dataclass(frozen=True)
class Call:
    """`NAME(args)`, one of model/functions.py. CASE has its conditions and values in turn, then the value of ELSE."""

    name: str
    args: tuple[Expr, ...]
    type: Type | None = None
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.name != "CASE":
            return f"{self.name}({', '.join(map(str, self.args))})"
        pairs = zip(self.args[:-1:2], self.args[1:-1:2], strict=True)
        return f"CASE {' '.join(f'WHEN {c} THEN {v}' for c, v in pairs)} ELSE {self.args[-1]} END"


Expr: TypeAlias = (
    Column | Literal | Arithmetic | Negate | Cast | Call | Compare | Between | InList | Like | IsNull | Not | And | Or
)
PREDICATES: Final = (Compare, Between, InList, Like, IsNull, Not, And, Or)


def _operand(expr: Expr) -> str:
    """An operand of an operator: in parentheses unless it is atomic."""
    atomic = isinstance(expr, Column | Cast | Call) or (isinstance(expr, Literal) and not str(expr).startswith("-"))
    return str(expr) if atomic else f"({expr})"


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands, left to right."""
    found: list[Expr] = []
    for f in fields(expr):
        value = getattr(expr, f.name)
        if isinstance(value, _NODES):
            found.append(value)
        elif isinstance(value, tuple):
            found += [v for v in value if isinstance(v, _NODES)]
    return tuple(found)


_NODES = (Column, Literal, Arithmetic, Negate, Cast, Call, *PREDICATES)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The same node with `change` applied to each direct operand."""
    updates: dict[str, object] = {}
    for f in fields(expr):
        value = getattr(expr, f.name)
        if isinstance(value, _NODES):
            updates[f.name] = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], _NODES):
            updates[f.name] = tuple(change(v) for v in value)
    return replace(expr, **updates) if updates else expr  # type: ignore[arg-type]


def streams_of(expr: Expr) -> frozenset[str]:
    """The aliases that the expression mentions."""
    return frozenset(n.stream for n in walk(expr) if isinstance(n, Column) and n.stream is not None)


def type_of(expr: Expr) -> Type:
    """The type of a bound expression."""
    if isinstance(expr, PREDICATES):
        return BOOLEAN
    if isinstance(expr, Negate):
        return type_of(expr.operand)
    return expr.type or NULL
