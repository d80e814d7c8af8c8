"""Column types: the seven that a stream may have, and INTERVAL and NULL, which only expressions have.

Integers of any width are BIGINT and floats of any width are DOUBLE (docs/internals/decisions.md says why). Timestamps are microseconds
since 1970 in UTC, intervals are microseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from watersmeet.errors import QueryError, nearest_name


@dataclass(frozen=True)
class Type:
    """A column type; `precision` and `scale` are for DECIMAL only.

    >>> Type.parse("decimal(10, 2)")
    Type(name='DECIMAL', precision=10, scale=2)
    >>> str(Type.parse("int"))
    'BIGINT'
    """

    name: str
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            raise QueryError(f"unknown type {self.name}", hint=f"known: {', '.join(KNOWN)}")
        if self.name == "DECIMAL" and not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise QueryError(
                f"DECIMAL({self.precision},{self.scale}) is not possible",
                hint="precision 1 to 38, scale 0 to the precision",
            )

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})" if self.name == "DECIMAL" else self.name

    @property
    def numeric(self) -> bool:
        return self.name in ("BIGINT", "DOUBLE", "DECIMAL")

    @classmethod
    def parse(cls, text: str) -> Type:
        found = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", text)
        if not found:
            raise QueryError(f"unknown type {text!r}", hint=f"known: {', '.join(KNOWN)}")
        name = SYNONYMS.get(found[1].upper(), found[1].upper())
        if name == "DECIMAL":
            return cls(name, int(found[2] or 10), int(found[3] or 0))
        if found[2] and name != "STRING":
            raise QueryError(f"type {name} takes no length")
        if name not in KNOWN:
            raise QueryError(f"unknown type {text!r}", hint=nearest_name(name, KNOWN))
        return cls(name)


KNOWN: Final = ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL")
_NAMES: Final = (*KNOWN, "INTERVAL", "NULL")
SYNONYMS: Final = {
    "INT": "BIGINT", "INTEGER": "BIGINT", "LONG": "BIGINT", "SMALLINT": "BIGINT", "SHORT": "BIGINT", "TINYINT": "BIGINT",
    "BYTE": "BIGINT", "FLOAT": "DOUBLE", "REAL": "DOUBLE", "VARCHAR": "STRING", "CHAR": "STRING", "TEXT": "STRING",
    "BOOL": "BOOLEAN", "NUMERIC": "DECIMAL", "DEC": "DECIMAL", "TIMESTAMP_NTZ": "TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP",
    "DATETIME": "TIMESTAMP",
}  # fmt: skip

BIGINT: Final = Type("BIGINT")
DOUBLE: Final = Type("DOUBLE")
STRING: Final = Type("STRING")
BOOLEAN: Final = Type("BOOLEAN")
DATE: Final = Type("DATE")
TIMESTAMP: Final = Type("TIMESTAMP")
INTERVAL: Final = Type("INTERVAL")
NULL: Final = Type("NULL")


# The units in which numbers may count the time since 1970, and how many of each make a second.
EPOCH_UNITS: Final = {"SECONDS": 1, "MILLISECONDS": 10**3, "MICROSECONDS": 10**6, "NANOSECONDS": 10**9}


@dataclass(frozen=True)
class Origin:
    """Where a column's value lies, if not under its own name: in the message, or (`metadata`) in what its carrier adds to it.

    >>> print(Origin(("user", "id")), "|", Origin(("key",), metadata=True))
    FROM user.id | METADATA FROM key
    """

    path: tuple[str, ...]
    metadata: bool = False

    def __str__(self) -> str:
        return f"{'METADATA ' * self.metadata}FROM {'.'.join(map(quoted, self.path))}"


@dataclass(frozen=True)
class Field:
    """One column of a stream or a table. unit: the column holds numbers of it since 1970, which are read as a TIMESTAMP.

    origin: where its value lies, if not under its name.
    """

    name: str
    type: Type
    unit: str | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and (self.type.name != "TIMESTAMP" or self.unit not in EPOCH_UNITS):
            raise QueryError(
                f"column '{self.name}': {self.type} IN {self.unit}", hint=f"TIMESTAMP IN {', '.join(EPOCH_UNITS)}"
            )

    def __str__(self) -> str:
        return f"{quoted(self.name)} {self.type}" + (f" {self.origin}" if self.origin else "")


@dataclass(frozen=True)
class Schema:
    """The declared columns in their declared order; names are found whatever their case, as in Spark."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for field in self.fields:
            if field.name.lower() in seen:
                raise QueryError(f"column '{field.name}' is declared twice")
            seen.add(field.name.lower())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {f.name.lower(): f for f in self.fields}

    def find(self, name: str) -> Field | None:
        return self._by_name.get(name.lower())

    def unit(self, name: str) -> str | None:
        """The unit of a column that holds numbers for timestamps."""
        found = self.find(name)
        return found.unit if found else None


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(name: str) -> str:
    """A name as the language writes it: bare where it can be, in back-quotes where it must.

    >>> quoted("orders"), quoted("my stream"), quoted("select")
    ('orders', '`my stream`', '`select`')
    """
    if _PLAIN.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def string_text(value: str) -> str:
    """A string as the language writes it: in single quotes, quotes doubled, backslashes escaped.

    >>> print(string_text("it's"))
    'it''s'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\u0000") + "'"


# The words that cannot be a bare name, because each may follow one. All other words of the language are ordinary names.
_RESERVED = """AND ANTI AS BETWEEN BUDGET CASE COLLATE CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DISTINCT DIV
    EMIT ESCAPE EXCEPT FALSE FRESHNESS FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE
    LIMIT LOCALTIMESTAMP MINUS NATURAL NOT NULL ON OR ORDER OUTER OVERLOAD PIVOT QUALIFY REGEXP RIGHT RLIKE SELECT SEMI
    TABLESAMPLE TRUE UNION UNPIVOT USING WHERE WITH"""
RESERVED: Final = frozenset(_RESERVED.split())
