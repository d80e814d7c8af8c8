"""Random queries of every construct, seeded: `wild` without declarations and without regard to types, `declared` well typed."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

from watersmeet.errors import QueryError
from watersmeet.model.bind import bind
from watersmeet.model.budget import Budget
from watersmeet.model.expr import (
    ARITHMETIC,
    COMPARISONS,
    And,
    Arithmetic,
    Between,
    Cast,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    children,
    walk,
)
from watersmeet.model.location import BadRows
from watersmeet.model.query import Declaration, Freshness, Location, Output, Overload, Query, ShedTerm, Source
from watersmeet.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    EPOCH_UNITS,
    INTERVAL,
    NULL,
    RESERVED,
    STRING,
    TIMESTAMP,
    Field,
    Origin,
    Schema,
    Type,
)
from watersmeet.model.window import Window

_PLAIN = """orders payments a b c id ts k v x1 _y Orders date time timestamp interval range rows partition stream table key
    format options emit select from where on group left cpu memory tuples weight at least percent shed wait direct evict using
    istream dstream into lateness idle cast case not null true unbounded by as end over day seconds values all any"""
_WORDS = _PLAIN.split()
_ODD = (
    "my stream",
    "a`b",
    "a.b",
    "naïve",
    "ключ",
    "a\nb",
    "1st",
    "it's",
    'say "x"',
    "a\\b",
    "-",
    "表",
    "--",
    "/*",
    ";",
)
_TEXTS = (
    "",
    "a",
    "it's",
    "a\\b",
    "50%",
    "x_y\\_z",
    "\\",
    "\\%",
    "\n\t",
    "a''b",
    '"',
    "\0",
    "é表\U0001f600",
    "--",
    "/*",
    "\\u0041",
)
COLUMN_TYPES = (BIGINT, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP, Type("DECIMAL", 10, 2))


class RandomQueries:
    """A stream of queries that one seed decides."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def wild(self) -> Query:
        """Any query that the model's constructors allow, in the form that the parser gives it."""
        sources = self._sources(None)
        aliases = [s.alias for s in sources]
        select = []
        for name in self._names(self.r.randint(1, 3)):
            star = self.r.choice([None, self.r.choice(aliases)])
            unnamed = self.r.random() < 0.4
            expr = self._wild(aliases, self.r.randint(0, 3))
            select.append(Output(None, star=star) if self._rarely() else Output(expr, None if unnamed else name))
        where = [self._wild(aliases, self.r.randint(1, 4)) for _ in range(self.r.randint(0, 3))]
        flat = [c for w in where for c in (w.items if isinstance(w, And) else (w,))]
        return self._query(select, sources, flat, ())

    def declared(self) -> Query:
        """A query over declared streams that binds."""
        while True:
            declarations = tuple(self._declaration(name) for name in self._names(self.r.randint(1, 3)))
            sources = self._sources(declarations)
            columns = [
                Column(s.alias, f.name, f.type)
                for s in sources
                for f in next(d for d in declarations if d.name == s.stream).schema.fields
            ]
            select = [
                Output(self._typed(columns, self.r.choice(COLUMN_TYPES), 2), name)
                for name in self._names(self.r.randint(1, 4))
            ]
            where = [self._predicate(columns, 2) for _ in range(self.r.randint(0, 3))]
            try:
                query = self._query(select, sources, [w for w in where if not isinstance(w, And)], declarations)
                bind(query)
            except QueryError:
                continue  # a clash of names, OR across streams
            return query

    # -- parts of a query

    def _rarely(self) -> bool:
        return self.r.random() < 0.15

    def _names(self, count: int) -> list[str]:
        """Different names, whatever their case."""
        found: dict[str, str] = {}
        while len(found) < count:
            name = self.r.choice(_ODD) if self._rarely() else self.r.choice(_WORDS)
            if self._rarely():
                name = self.r.choice(sorted(RESERVED)).lower()
            name += str(self.r.randint(0, 9)) * self.r.randint(0, 2)
            found.setdefault(name.lower(), name)
        return list(found.values())

    def _us(self) -> int:
        power: int = 10 ** self.r.randint(0, 9)
        return self.r.randint(0, 5000) * power * self.r.choice([1, 60, 3600, 86400])

    def _location(self) -> Location:
        options = {self.r.choice(_TEXTS): self.r.choice(_TEXTS) for _ in range(self.r.randint(0, 2))}
        return Location(self.r.choice(_TEXTS), self._names(1)[0], tuple(options.items()))

    def _declaration(self, name: str) -> Declaration:
        first, *names = self._names(self.r.randint(2, 4))
        location = self._location() if self.r.random() < 0.7 else None
        fields = [Field(n, self.r.choice(COLUMN_TYPES), origin=self._origin(location)) for n in names]
        if self.r.random() < 0.3:
            return Declaration(name, Schema(tuple(fields)), location, static=True, bad_rows=self._bad_rows())
        unit = self.r.choice([None, *EPOCH_UNITS])
        fields.insert(self.r.randint(0, len(fields)), Field(first, TIMESTAMP, unit))
        idle = self._us() if self.r.random() < 0.5 else None
        lateness = self._us() * self.r.randint(0, 1)
        return Declaration(name, Schema(tuple(fields)), location, False, first, lateness, idle, self._bad_rows())

    def _origin(self, location: Location | None) -> Origin | None:
        """Anything where rows are given by name; of a place only what its format has."""
        if location is not None or self.r.random() < 0.5:
            return None
        return Origin(tuple(self._names(self.r.randint(1, 3))), self.r.random() < 0.5)

    def _bad_rows(self) -> BadRows:
        action = self.r.choice(["FAIL", "FAIL", "SKIP", "INTO"])
        return BadRows(action, self._aside() if action == "INTO" else None)

    def _aside(self) -> Location:
        return Location(self.r.choice(_TEXTS), self._names(1)[0])

    def _window(self, names: list[str]) -> Window:
        kind = self.r.randint(0, 3)
        if kind == 0:
            return Window.range_us(self._us())
        if kind == 1:
            return Window.rows(self.r.choice([1, 7, 100, (1 << 31) - 1]))
        if kind == 2:
            return Window.rows(self.r.randint(1, 9), tuple(self.r.sample(names, self.r.randint(1, len(names)))))
        return Window.unbounded()

    def _sources(self, declarations: tuple[Declaration, ...] | None) -> list[Source]:
        made: list[Source] = []
        for alias in self._names(self.r.choice([2, 2, 3, 3, 4, 6])):
            if declarations is None:
                stream = alias if self.r.random() < 0.5 else self._names(1)[0]
                same = [source for source in made if source.stream == stream]
                windowed = same[0].window is not None if same else not made or self.r.random() < 0.9
                made.append(Source(stream, self._window(self._names(3)) if windowed else None, alias))
            else:
                declared = self.r.choice(declarations)
                window = None if declared.static else self._window(list(declared.schema.names))
                made.append(Source(declared.name, window, alias))
        return made

    def _query(
        self, select: list[Output], sources: list[Source], where: list[Expr], declarations: tuple[Declaration, ...]
    ) -> Query:
        windows = {s.alias: s.window for s in sources if s.window}
        fresh = self.r.sample(sorted(windows), self.r.randint(0, len(windows))) if self.r.random() < 0.3 else []
        preserves = bool(where) and sources[0].window is not None and self.r.random() < 0.2
        cut = self.r.randint(1, len(where)) if preserves else 0
        return Query(
            tuple(select),
            tuple(sources),
            tuple(where[cut:]),
            tuple(Freshness(a, windows[a].size + self._us()) for a in fresh),
            self._budget() if self.r.random() < 0.3 else None,
            self._overload(sorted(windows)) if self.r.random() < 0.4 and not preserves else Overload(),
            "ISTREAM" if preserves else self.r.choice(["ISTREAM", "DSTREAM", "CHANGES"]),
            self._location() if self.r.random() < 0.3 else None,
            declarations,
            preserves,
            tuple(where[:cut]),
            self._aside() if self.r.random() < 0.2 else None,
        )

    def _budget(self) -> Budget:
        cpu = self.r.choice([None, 1.0, 0.8, 1e-05, 123456.75, self.r.random() + 1e-9])
        amount = self.r.randint(1, 10 ** self.r.randint(1, 20)) * 1024 ** self.r.randint(0, 3)
        memory = self.r.choice([{}, {"memory_tuples": self.r.randint(1, 10**12)}, {"memory": amount}])
        return Budget(cpu, **memory)

    def _overload(self, streams: list[str]) -> Overload:
        shed, direct = self.r.choice([(True, False), (False, True), (False, False)])
        terms = [
            ShedTerm(s, self.r.choice([1.0, 2.0, 0.1, self.r.random() + 1e-9]), self.r.choice([0.0, 1.0, 0.07, self.r.random()]))
            for s in self.r.sample(streams, self.r.randint(0, len(streams)))
        ]  # fmt: skip
        evict = self.r.random() < 0.5
        using = self._names(1)[0] if evict and self.r.random() < 0.5 else None
        return Overload(shed, tuple(terms) if shed else (), direct, evict, using)

    # -- expressions

    def literal(self, kind: Type) -> Literal:
        r = self.r
        if kind == BIGINT:
            return Literal(r.choice([0, 1, -1, r.randint(-100, 100), (1 << 63) - 1, -(1 << 63)]), kind)
        if kind == DOUBLE:
            return Literal(r.choice([0.0, -0.0, 1.5, -2.25, 1e300, 5e-324, r.uniform(-1e6, 1e6), 1e16]), kind)
        if kind == STRING:
            return Literal(r.choice(_TEXTS), kind)
        if kind == BOOLEAN:
            return Literal(r.random() < 0.5, kind)
        if kind == DATE:
            return Literal(dt.date.fromordinal(r.randint(1, dt.date.max.toordinal())), kind)
        if kind == TIMESTAMP:
            day = dt.date.fromordinal(r.randint(1, dt.date.max.toordinal()))
            time = dt.time(r.randint(0, 23), r.randint(0, 59), r.randint(0, 59), r.choice([0, 1, 999_999, 500_000]))
            return Literal(dt.datetime.combine(day, time, dt.UTC), kind)
        if kind == INTERVAL:
            return Literal(self._us() * r.choice([1, -1]), kind)
        if kind.name == "DECIMAL":
            unscaled = r.randint(-(10**kind.precision) + 1, 10**kind.precision - 1)
            return Literal(Decimal(unscaled).scaleb(-kind.scale), kind)
        return Literal(None, NULL)

    def _wild(self, aliases: list[str], depth: int) -> Expr:
        r = self.r
        if depth == 0 or r.random() < 0.1:
            if r.random() < 0.6:
                return Column(r.choice([None, *aliases]), self._names(1)[0])
            kinds = (*COLUMN_TYPES, INTERVAL, NULL, Type("DECIMAL", 38, r.randint(0, 38)))
            return self.literal(r.choice(kinds))

        def sub() -> Expr:
            return self._wild(aliases, depth - 1)

        kind = r.randint(0, 11)
        if kind == 0:
            return Arithmetic(r.choice(ARITHMETIC), sub(), sub())
        if kind == 1:
            return Negate(sub())
        if kind == 2:
            target = r.choice(COLUMN_TYPES)
            inner = sub()
            text = isinstance(inner, Literal) and inner.type == STRING
            return Cast(inner, BIGINT if text else target)  # a text as DECIMAL is a literal
        if kind in (3, 4):
            return Compare(r.choice(COMPARISONS), sub(), sub())
        if kind == 5:
            return Between(sub(), sub(), sub())
        if kind == 6:
            return InList(sub(), tuple(sub() for _ in range(r.randint(1, 3))))
        if kind == 7:
            return Like(sub(), r.choice(_TEXTS))
        if kind == 8:
            return IsNull(sub())
        if kind == 9:
            return Not(sub())
        if kind == 10:
            items = [c for _ in range(r.randint(2, 3)) for c in _items(sub(), And)]
            return And(tuple(items))
        one = [r.choice(aliases)]
        items = [c for _ in range(r.randint(2, 3)) for c in _items(self._wild(one, depth - 1), Or)]
        return Or(tuple(items))

    def _typed(self, columns: list[Column], kind: Type, depth: int) -> Expr:
        """An expression of the type, unbound."""
        r = self.r
        fitting = [Column(c.stream, c.name) for c in columns if c.type == kind]
        if depth == 0 or kind.name in ("DATE", "DECIMAL") or r.random() < 0.2:
            return r.choice(fitting) if fitting and r.random() < 0.7 else self.literal(kind)

        def sub(of: Type) -> Expr:
            return self._typed(columns, of, depth - 1)

        if kind == BIGINT:
            if r.random() < 0.5:
                return Arithmetic(r.choice("+-*%"), sub(BIGINT), sub(BIGINT))
            return Negate(sub(BIGINT)) if r.random() < 0.5 else Cast(sub(DOUBLE), BIGINT)
        if kind == DOUBLE:
            if r.random() < 0.5:
                return Cast(sub(Type("DECIMAL", 10, 2)), DOUBLE)
            return Arithmetic(r.choice("+-*/%"), sub(BIGINT), sub(DOUBLE))
        if kind == STRING:
            return Arithmetic("||", sub(STRING), sub(STRING))
        if kind == TIMESTAMP:
            return Arithmetic(r.choice("+-"), sub(TIMESTAMP), self.literal(INTERVAL))
        return self._predicate(columns, depth)

    def _predicate(self, columns: list[Column], depth: int) -> Expr:
        r, kind = self.r, self.r.choice(COLUMN_TYPES)

        def sub(of: Type = kind) -> Expr:
            return self._typed(columns, of, depth - 1)

        made = r.randint(0, 6)
        if made <= 1:
            return Compare(r.choice(("=", "<>") if kind == BOOLEAN else COMPARISONS), sub(), sub())
        if made == 2 and kind != BOOLEAN:
            return Between(sub(), sub(), sub())
        if made == 3:
            return InList(sub(), tuple(sub() for _ in range(r.randint(1, 3))))
        if made == 4:
            return Like(sub(STRING), r.choice(_TEXTS))
        if made == 5:
            return IsNull(sub())
        if r.random() < 0.5:
            return Not(sub(BOOLEAN))
        return Or(tuple(c for _ in range(2) for c in _items(sub(BOOLEAN), Or)))


def _items(expr: Expr, kind: type[And | Or]) -> tuple[Expr, ...]:
    """A chain within a chain of the same kind is one chain."""
    return children(expr) if isinstance(expr, kind) else (expr,)


def constructs(query: Query) -> set[str]:
    """The names of all that the query is made of, to see that nothing was left out."""
    found = {type(n).__name__ for e in (*query.where, *(o.expr for o in query.select if o.expr)) for n in walk(e)}
    found |= {f"{n.type.name} literal" for e in query.where for n in walk(e) if isinstance(n, Literal)}
    found |= {s.window.kind for s in query.sources if s.window}
    found |= {"PARTITION" for s in query.sources if s.window and s.window.partition}
    found |= {"table" for s in query.sources if not s.window}
    found |= {"star" for o in query.select if not o.expr}
    found |= {w for w in ("shed", "direct", "evict", "using", "terms") if getattr(query.overload, w)}
    found |= {w for w in ("freshness", "budget", "into", "declarations") if getattr(query, w)}
    return found | {query.emit}
