"""Query: the text as a value. Frozen, validated on construction; `str` gives text that parses back to the same query."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from watersmeet.errors import QueryError, nearest_name
from watersmeet.model.budget import Budget
from watersmeet.model.durations import duration
from watersmeet.model.expr import At, Expr, Or, streams_of, walk
from watersmeet.model.location import BadRows, Location
from watersmeet.model.origin import check_origin
from watersmeet.model.types import Schema, Type, quoted
from watersmeet.model.window import Window

DEFAULT_TIMESTAMP: Final = "ts"
RESULT_TS: Final = "result_ts"
CHANGE: Final = "change"  # with EMIT CHANGES: "insert" or "delete"


@dataclass(frozen=True)
class Declaration:
    """`CREATE STREAM` or `CREATE TABLE` (`static`): schema, place, what to do with bad rows, and for a stream its time.

    TIMESTAMP ... IN MILLISECONDS is kept by the schema: the column holds numbers since 1970 in that unit (`Field.unit`).
    """

    name: str
    schema: Schema
    location: Location | None = None
    static: bool = False
    timestamp: str = DEFAULT_TIMESTAMP
    lateness_us: int = 0
    idle_us: int | None = None
    bad_rows: BadRows = field(default=BadRows())
    at: At | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = (None, *_place(self.at))
        if not self.schema.fields:
            raise QueryError(f"'{self.name}' has no columns", *where)
        if self.location:
            for column in self.schema.fields:
                check_origin(column, self.location.format, where)
        if self.static:
            if self.lateness_us or self.idle_us is not None:
                raise QueryError(f"table '{self.name}' can't have LATENESS or IDLE", *where, "only streams have a time")
            return
        found = self.schema.find(self.timestamp)
        if found is None:
            raise QueryError(
                f"stream '{self.name}' has no column '{self.timestamp}' to be its timestamp", *where,
                nearest_name(self.timestamp, self.schema.names) + "; say TIMESTAMP <column> after FORMAT",
            )  # fmt: skip
        if found.type.name != "TIMESTAMP":
            raise QueryError(
                f"the timestamp column '{found.name}' of '{self.name}' is {found.type}, not TIMESTAMP", *where,
                "declare it TIMESTAMP; if it holds numbers, say which: TIMESTAMP " + quoted(found.name) + " IN MILLISECONDS",
            )  # fmt: skip
        object.__setattr__(self, "timestamp", found.name)
        if self.lateness_us < 0 or (self.idle_us is not None and self.idle_us < 0):
            raise QueryError(f"LATENESS and IDLE of '{self.name}' can't be negative", *where)

    def __str__(self) -> str:
        kind = "TABLE" if self.static else "STREAM"
        text = f"CREATE {kind} {quoted(self.name)} ({', '.join(map(str, self.schema.fields))})"
        if self.location:
            text += f" FROM {self.location}"
        if not self.static:
            text += f" TIMESTAMP {quoted(self.timestamp)}"
            if (unit := self.schema.unit(self.timestamp)) is not None:
                text += f" IN {unit}"
            if self.lateness_us:
                text += f" LATENESS {duration(self.lateness_us)}"
            if self.idle_us is not None:
                text += f" IDLE {duration(self.idle_us)}"
        return f"{text} {self.bad_rows}" if self.bad_rows.kept else text


@dataclass(frozen=True)
class Source:
    """One entry of FROM: `stream [window] AS alias`. `window` is None for a static table."""

    stream: str
    window: Window | None
    alias: str
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        window = f" {self.window}" if self.window else ""
        return f"{quoted(self.stream)}{window}" + (f" AS {quoted(self.alias)}" if self.alias != self.stream else "")


@dataclass(frozen=True)
class Output:
    """One entry of SELECT: an expression with its name if one was given, or `*` / `alias.*` (`expr` is None)."""

    expr: Expr | None
    name: str | None = None
    star: str | None = None
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.expr is None:
            return f"{quoted(self.star)}.*" if self.star else "*"
        return f"{self.expr} AS {quoted(self.name)}" if self.name else str(self.expr)


@dataclass(frozen=True)
class ShedTerm:
    """`alias WEIGHT w AT LEAST p PERCENT`: how dear this stream's tuples are, and the least fraction kept."""

    stream: str
    weight: float = 1.0
    at_least: float = 0.0
    at: At | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = (None, *_place(self.at))
        if not 0 < self.weight < float("inf"):
            raise QueryError(f"SHED: WEIGHT {self.weight} of '{self.stream}' must be above 0", *where)
        if not 0 <= self.at_least <= 1:
            raise QueryError(f"SHED: AT LEAST of '{self.stream}' must be 0 to 100 PERCENT", *where)

    def __str__(self) -> str:
        text = quoted(self.stream)
        if self.weight != 1:
            text += f" WEIGHT {_number(self.weight)}"
        if self.at_least:
            text += f" AT LEAST {(Decimal(repr(self.at_least)) * 100).normalize():f} PERCENT"
        return text


@dataclass(frozen=True)
class Overload:
    """What may be given up when no plan fits: nothing (WAIT), or any of EVICT and one of SHED and DIRECT."""

    shed: bool = False
    terms: tuple[ShedTerm, ...] = ()
    direct: bool = False
    evict: bool = False
    using: str | None = None

    def __post_init__(self) -> None:
        if self.shed and self.direct:
            raise QueryError("ON OVERLOAD: SHED and DIRECT both save CPU; choose one", hint="either can go with EVICT")
        if self.terms and not self.shed:
            raise QueryError("ON OVERLOAD: weights go with SHED")
        if self.using and not self.evict:
            raise QueryError("ON OVERLOAD: USING goes with EVICT")
        if len({t.stream for t in self.terms}) != len(self.terms):
            raise QueryError("ON OVERLOAD SHED names a stream twice")
        if self.using:
            object.__setattr__(self, "using", self.using.lower())

    @property
    def exact(self) -> bool:
        return not (self.shed or self.direct or self.evict)

    def __str__(self) -> str:
        parts = []
        if self.evict:
            parts.append("EVICT" + (f" USING {quoted(self.using)}" if self.using else ""))
        if self.shed:
            parts.append("SHED" + (f" ({', '.join(map(str, self.terms))})" if self.terms else ""))
        if self.direct:
            parts.append("DIRECT")
        return f"ON OVERLOAD {' AND '.join(parts) or 'WAIT'}"


@dataclass(frozen=True)
class Freshness:
    """`alias 12 MINUTES`: a result is emitted at most that long after its `alias` tuple's timestamp, or withheld."""

    stream: str
    limit_us: int
    at: At | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{quoted(self.stream)} {duration(self.limit_us)}"


@dataclass(frozen=True)
class Query:
    """A whole job: declarations, and one SELECT with what it demands and allows. `late`: where rows that come too late are written.

    Nothing is kept of how FROM was written: `A JOIN B ON p` is `A, B WHERE p`. But `A LEFT JOIN (B, C) ON p` preserves A, its first source:
    then `on` has all conditions of the join, and `where` those that choose rows of A before it.
    """

    select: tuple[Output, ...]
    sources: tuple[Source, ...]
    where: tuple[Expr, ...] = ()
    freshness: tuple[Freshness, ...] = ()
    budget: Budget | None = None
    overload: Overload = Overload()
    emit: str = "ISTREAM"
    into: Location | None = None
    declarations: tuple[Declaration, ...] = ()
    preserves: bool = False
    on: tuple[Expr, ...] = ()
    late: Location | None = None

    def __post_init__(self) -> None:
        self._check_sources()
        self._check_preserved()
        self._check_aliases()
        if not self.select:
            raise QueryError("SELECT names no columns")
        if self.emit not in EMITS:
            raise QueryError(f"EMIT {self.emit}", hint=f"EMIT {', '.join(EMITS[:-1])} or {EMITS[-1]}")

    def _check_sources(self) -> None:
        if not self.sources:
            raise QueryError("FROM names no stream")
        if len(self.sources) > MAX_SOURCES:
            raise QueryError(f"at most {MAX_SOURCES} streams in FROM, found {len(self.sources)}")
        declared = {d.name: d for d in self.declarations}
        if len(declared) != len(self.declarations):
            names = [d.name for d in self.declarations]
            twice = next(d for i, d in enumerate(self.declarations) if d.name in names[:i])
            raise QueryError(f"'{twice.name}' is declared twice", None, *_place(twice.at))
        seen: set[str] = set()
        for source in self.sources:
            where = (None, *_place(source.at))
            if source.alias in seen:
                raise QueryError(
                    f"'{source.alias}' occurs twice in FROM",
                    *where,
                    f"give one an alias: {source.stream} AS {source.alias}2",
                )
            seen.add(source.alias)
            if declared and source.stream not in declared:
                raise QueryError(f"unknown stream '{source.stream}'", *where, nearest_name(source.stream, declared))
            other = next(
                (
                    s
                    for s in self.sources
                    if s.stream == source.stream and (s.window is None) != (source.window is None)
                ),
                None,
            )
            if other is not None:
                raise QueryError(
                    f"'{source.stream}' occurs with and without a window", *where,
                    "with a window it is a stream, without one a table; it can't be both",
                )  # fmt: skip
            known = declared.get(source.stream)
            if known and known.static and source.window:
                raise QueryError(
                    f"'{source.stream}' is a table: it has no window", *where, f"write just {source.stream}"
                )
            if known and not known.static and not source.window:
                raise QueryError(
                    f"stream '{source.stream}' needs a window", *where,
                    f"for example {source.stream} [RANGE 10 MINUTES], [ROWS 100] or [UNBOUNDED]",
                )  # fmt: skip
            if known and source.window:
                for name in source.window.partition:
                    if known.schema.find(name) is None:
                        raise QueryError(
                            f"'{source.stream}' has no column '{name}'", *where, nearest_name(name, known.schema.names)
                        )
        if not any(s.window for s in self.sources):
            raise QueryError("at least one entry of FROM must be a stream with a window")

    def _check_preserved(self) -> None:
        first = self.sources[0]
        where = (None, *_place(first.at))
        if not self.preserves:
            if self.on:
                raise QueryError("conditions of ON stand in WHERE unless a LEFT JOIN has them")
            return
        if not self.on:
            raise QueryError("LEFT JOIN needs a condition", *where, "LEFT JOIN ... ON a.x = b.x")
        if first.window is None:
            hint = "its rows never leave; begin FROM with a stream and its window"
            raise QueryError(f"LEFT JOIN: '{first.alias}' is a table", *where, hint)
        if self.emit != "ISTREAM":
            hint = "unmatched rows come with EMIT ISTREAM; for what ends use a query without LEFT JOIN"
            raise QueryError(f"EMIT {self.emit} and LEFT JOIN do not go together", *where, hint)
        if not self.overload.exact:
            hint = "a row would be called unmatched because its partner was given up; use ON OVERLOAD WAIT"
            raise QueryError(f"{str(self.overload).partition(' (')[0]} and LEFT JOIN do not go together", *where, hint)

    def _check_aliases(self) -> None:
        aliases = [s.alias for s in self.sources]

        def known(name: str, what: str, at: At | None = None) -> None:
            if name not in aliases:
                raise QueryError(f"unknown stream '{name}' in {what}", None, *_place(at), nearest_name(name, aliases))

        for output in self.select:
            if output.star:
                known(output.star, "SELECT", output.at)
        for expr in [o.expr for o in self.select if o.expr is not None] + [*self.on, *self.where]:
            for node in walk(expr):
                stream = getattr(node, "stream", None)
                if stream is not None:
                    known(stream, "the query", node.at)
                if isinstance(node, Or) and len(streams_of(node)) > 1:
                    raise QueryError(
                        f"OR across streams ({', '.join(sorted(streams_of(node)))}) is not supported", None, *_place(node.at),
                        "OR on the columns of one stream is fine; otherwise run one query for each side and union the results",
                    )  # fmt: skip
        windows = {s.alias: s.window for s in self.sources}
        for fresh in self.freshness:
            known(fresh.stream, "FRESHNESS", fresh.at)
            window = windows[fresh.stream]
            if window is None:
                raise QueryError(f"FRESHNESS: '{fresh.stream}' is a table, not a stream", None, *_place(fresh.at))
            if window.kind == "RANGE" and fresh.limit_us < window.size:
                limit, size = duration(fresh.limit_us), duration(window.size)
                raise QueryError(
                    f"FRESHNESS of '{fresh.stream}' ({limit}) is shorter than its window ({size})", None, *_place(fresh.at),
                    "a result's member may be as old as its window when the result is made; shorten the window instead",
                )  # fmt: skip
        if len({f.stream for f in self.freshness}) != len(self.freshness):
            raise QueryError("FRESHNESS names a stream twice")
        for term in self.overload.terms:
            known(term.stream, "ON OVERLOAD SHED", term.at)
            if windows[term.stream] is None:
                raise QueryError(f"SHED: '{term.stream}' is a table; only streams can be shed", None, *_place(term.at))

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(s.alias for s in self.sources)

    @property
    def preserved(self) -> str | None:
        """The alias whose rows come out although nothing joins them (LEFT JOIN)."""
        return self.sources[0].alias if self.preserves else None

    def declaration(self, stream: str) -> Declaration | None:
        return next((d for d in self.declarations if d.name == stream), None)

    def __str__(self) -> str:
        lines = [f"{d};" for d in self.declarations]
        if lines:
            lines.append("")
        lines.append(f"SELECT {', '.join(map(str, self.select))}")
        if self.preserves:
            first, *rest = map(str, self.sources)
            lines.append(f"FROM {first} LEFT JOIN ({', '.join(rest)})\n  ON {_conjunction(self.on)}")
        else:
            lines.append(f"FROM {', '.join(map(str, self.sources))}")
        if self.where:
            lines.append(f"WHERE {_conjunction(self.where)}")
        if self.freshness:
            lines.append(f"FRESHNESS ({', '.join(map(str, self.freshness))})")
        if self.budget:
            lines.append(str(self.budget))
        if not self.overload.exact:
            lines.append(str(self.overload))
        if self.late:
            lines.append(f"LATE INTO {self.late}")
        lines.append(f"EMIT {self.emit}" + (f" INTO {self.into}" if self.into else ""))
        return "\n".join(lines) + ";"


MAX_SOURCES: Final = 32
EMITS: Final = ("ISTREAM", "DSTREAM", "CHANGES")


def _conjunction(conditions: tuple[Expr, ...]) -> str:
    return "\n  AND ".join(f"({c})" if isinstance(c, Or) else str(c) for c in conditions)


def _place(at: At | None) -> tuple[int | None, int | None]:
    return (at.line, at.column) if at else (None, None)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


__all__ = [
    "CHANGE", "DEFAULT_TIMESTAMP", "EMITS", "MAX_SOURCES", "RESULT_TS", "BadRows", "Declaration", "Freshness", "Location", "Output",
    "Overload", "Query", "ShedTerm", "Source", "Type",
]  # fmt: skip
