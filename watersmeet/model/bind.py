"""Binding: a Query meets the columns of its streams. Names are resolved, types checked, predicates sorted by what they need.

After binding every operator has operands of one type (binding adds the casts that Spark's ANSI SQL would), every column
knows its stream and type, and WHERE has fallen into four parts: selections on one stream, equalities and comparisons between
expressions over one stream each, and residuals (anything else over two or more streams).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from watersmeet.errors import QueryError, nearest_name
from watersmeet.model.coerce import TIME_ARITHMETIC, cast, check_cast, same_type
from watersmeet.model.evaluate import like_form
from watersmeet.model.expr import (
    FLIPPED,
    NEGATED,
    And,
    Arithmetic,
    At,
    Between,
    Call,
    Cast,
    Column,
    Compare,
    Expr,
    InList,
    Like,
    Negate,
    Not,
    Or,
    rebuild,
    streams_of,
    type_of,
)  # fmt: skip
from watersmeet.model.functions import typed_call
from watersmeet.model.query import CHANGE, DEFAULT_TIMESTAMP, RESULT_TS, Query, Source
from watersmeet.model.types import BIGINT, DOUBLE, NULL, STRING, TIMESTAMP, Field, Schema
from watersmeet.model.window import Window


@dataclass(frozen=True)
class BoundSource:
    """One entry of FROM with its columns. `window` is None for a static table."""

    alias: str
    stream: str
    window: Window | None
    schema: Schema
    timestamp: str
    lateness_us: int = 0
    idle_us: int | None = None

    @property
    def static(self) -> bool:
        return self.window is None


@dataclass(frozen=True)
class Side:
    """An expression over the columns of one stream."""

    stream: str
    expr: Expr

    def __str__(self) -> str:
        return str(self.expr)


@dataclass(frozen=True)
class Comparison:
    """`left op right` between two streams, each side over one of them; op may be `=`."""

    op: str
    left: Side
    right: Side

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"

    def seen_from(self, stream: str) -> Comparison:
        """The same comparison with `stream` on the left."""
        return self if self.left.stream == stream else Comparison(FLIPPED[self.op], self.right, self.left)


@dataclass(frozen=True)
class BoundQuery:
    """A query whose names and types are settled.

    outputs: (name, expression) of each result column, stars expanded; what `added` says comes after them.
    selections: for each alias the predicates on it alone, in written order.
    equalities, comparisons: between two streams. residuals: the rest.
    chosen: with a LEFT JOIN, the selections of the preserved stream that WHERE has: a row that passes them comes out, joined or not.
    """

    query: Query
    sources: tuple[BoundSource, ...]
    outputs: tuple[tuple[str, Expr], ...]
    selections: Mapping[str, tuple[Expr, ...]]
    equalities: tuple[Comparison, ...]
    comparisons: tuple[Comparison, ...]
    residuals: tuple[Expr, ...]
    chosen: tuple[Expr, ...] = ()

    @property
    def preserved(self) -> str | None:
        return self.query.preserved

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(s.alias for s in self.sources)

    @property
    def results(self) -> Schema:
        """The columns of the results."""
        return Schema((*(Field(name, type_of(expr)) for name, expr in self.outputs), *added(self.query)))

    def source(self, alias: str) -> BoundSource:
        return next(s for s in self.sources if s.alias == alias)


def added(query: Query) -> tuple[Field, ...]:
    """The columns that results have besides the selected ones."""
    changes = (Field(CHANGE, STRING),) if query.emit == "CHANGES" else ()
    return (Field(RESULT_TS, TIMESTAMP), *changes)


def bind(query: Query, schemas: Mapping[str, Schema] | None = None) -> BoundQuery:
    """Bind a query to the schemas of its streams: those it declares, else those given by stream name."""
    sources = tuple(_source(query, s, schemas or {}) for s in query.sources)
    if len(sources) == 1 and query.emit == "ISTREAM":  # nothing looks into its window, and no one is told who leaves
        sources = (replace(sources[0], window=Window.range_us(0)),)
    binder = _Binder({s.alias: s.schema for s in sources})
    selections: dict[str, list[Expr]] = {s.alias: [] for s in sources}
    equalities: list[Comparison] = []
    comparisons: list[Comparison] = []
    residuals: list[Expr] = []
    chosen = _chosen(query, binder) if query.preserves else ()
    selections[sources[0].alias] += chosen
    for written in query.on if query.preserves else query.where:
        for conjunct in _conjuncts(binder.predicate(written)):
            used = streams_of(conjunct)
            if len(used) < 2:
                selections[next(iter(used), sources[0].alias)].append(conjunct)
                continue
            between = _between_two(conjunct)
            if between is None:
                residuals.append(conjunct)
            elif between.op == "=":
                equalities.append(between)
            else:
                comparisons.append(between)
    return BoundQuery(
        query, sources, _outputs(query, sources, binder), {a: tuple(s) for a, s in selections.items()},
        tuple(equalities), tuple(comparisons), tuple(residuals), chosen,
    )  # fmt: skip


def _chosen(query: Query, binder: _Binder) -> tuple[Expr, ...]:
    """The conditions of WHERE beside a LEFT JOIN: on the preserved stream alone."""
    made: list[Expr] = []
    for written in query.where:
        for conjunct in _conjuncts(binder.predicate(written)):
            if not streams_of(conjunct) <= {query.preserved}:
                hint = f"put it into ON; WHERE chooses rows of '{query.preserved}' before the LEFT JOIN"
                raise QueryError(f"WHERE names other streams than '{query.preserved}'", None, *_at(written), hint)
            made.append(conjunct)
    return tuple(made)


def _source(query: Query, source: Source, schemas: Mapping[str, Schema]) -> BoundSource:
    where = (None, *_place(source.at))
    declared = query.declaration(source.stream)
    if declared:
        return BoundSource(
            source.alias, source.stream, source.window, declared.schema, declared.timestamp, declared.lateness_us,
            declared.idle_us,
        )  # fmt: skip
    schema = schemas.get(source.stream)
    if schema is None:
        hint = nearest_name(source.stream, schemas)
        raise QueryError(
            f"unknown stream '{source.stream}'", *where, hint or "declare it with CREATE STREAM or pass it by name"
        )
    if source.window is None:
        return BoundSource(source.alias, source.stream, None, schema, DEFAULT_TIMESTAMP)
    for name in source.window.partition:
        if schema.find(name) is None:
            raise QueryError(f"'{source.stream}' has no column '{name}'", *where, nearest_name(name, schema.names))
    ts = schema.find(DEFAULT_TIMESTAMP)
    if ts is None or ts.type != TIMESTAMP:
        found = "has no timestamp column 'ts'" if ts is None else f"has a column 'ts' of type {ts.type}, not TIMESTAMP"
        times = [f.name for f in schema.fields if f.type == TIMESTAMP]
        hint = (
            f"say CREATE STREAM {source.stream} (...) TIMESTAMP {times[0]}"
            if times
            else "a stream needs a TIMESTAMP column"
        )
        raise QueryError(f"stream '{source.stream}' {found}", *where, hint)
    return BoundSource(source.alias, source.stream, source.window, schema, ts.name)


def _outputs(query: Query, sources: tuple[BoundSource, ...], binder: _Binder) -> tuple[tuple[str, Expr], ...]:
    """Names: the alias given, else the column's own name; a name that would occur twice gets its stream in front."""
    made: list[tuple[str, Expr, str, bool]] = []
    for output in query.select:
        if output.expr is None:
            for source in sources:
                if output.star in (None, source.alias):
                    made += [
                        (f.name, Column(source.alias, f.name, f.type), source.alias, False)
                        for f in source.schema.fields
                    ]
            continue
        expr = binder.expression(output.expr)
        if type_of(expr) == NULL:
            raise QueryError("SELECT NULL has no type", None, *_at(output.expr), "CAST(NULL AS BIGINT), for example")
        if output.name:
            made.append((output.name, expr, "", True))
        elif isinstance(expr, Column):
            assert expr.stream is not None
            made.append((expr.name, expr, expr.stream, False))
        else:
            made.append((str(output.expr), expr, "", True))
    folded = [name.lower() for name, *_ in made]
    result: list[tuple[str, Expr]] = []
    taken: set[str] = set()
    own = {field.name for field in added(query)}
    for name, expr, stream, given in made:
        clash = folded.count(name.lower()) > 1 or name.lower() in own
        final = f"{stream}_{name}" if clash and not given else name
        if final.lower() in taken or final.lower() in own:
            raise QueryError(
                f"two result columns are named '{final}'", None, *_at(expr), "give one another name with AS"
            )
        taken.add(final.lower())
        result.append((final, expr))
    return tuple(result)


def _at(expr: Expr) -> tuple[int | None, int | None]:
    return _place(expr.at)


def _place(at: At | None) -> tuple[int | None, int | None]:
    return (at.line, at.column) if at else (None, None)


def _conjuncts(expr: Expr) -> list[Expr]:
    """AND split, BETWEEN over several streams as two comparisons, NOT of a comparison as its opposite."""
    if isinstance(expr, And):
        return [c for item in expr.items for c in _conjuncts(item)]
    if isinstance(expr, Between) and len(streams_of(expr)) > 1:
        low = Compare(">=", expr.operand, expr.low, expr.at)
        return [*_conjuncts(low), *_conjuncts(Compare("<=", expr.operand, expr.high, expr.at))]
    if isinstance(expr, Not) and isinstance(expr.operand, Compare):
        inner = expr.operand
        return [Compare(NEGATED[inner.op], inner.left, inner.right, inner.at)]
    if isinstance(expr, Not) and isinstance(expr.operand, Not):
        return _conjuncts(expr.operand.operand)
    return [expr]


def _between_two(expr: Expr) -> Comparison | None:
    if not isinstance(expr, Compare):
        return None
    left, right = streams_of(expr.left), streams_of(expr.right)
    if len(left) != 1 or len(right) != 1 or left == right:
        return None
    return Comparison(expr.op, Side(next(iter(left)), expr.left), Side(next(iter(right)), expr.right))


class _Binder:
    """Resolves names and settles types, bottom up."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self.schemas = schemas

    def predicate(self, expr: Expr) -> Expr:
        bound = self.expression(expr)
        if type_of(bound).name not in ("BOOLEAN", "NULL"):
            raise QueryError(f"WHERE needs a condition, but {expr} is {type_of(bound)}", None, *_at(expr))
        return bound

    def expression(self, expr: Expr) -> Expr:
        if isinstance(expr, Column):
            return self.column(expr)
        bound = rebuild(expr, self.expression)
        try:
            return self.typed(bound)
        except QueryError as e:
            if e.line is None:
                raise QueryError(e.message, None, *_at(expr), e.hint) from None
            raise

    def column(self, column: Column) -> Column:
        if column.stream is not None:
            schema = self.schemas[column.stream]
            found = schema.find(column.name)
            if found is None:
                hint = nearest_name(column.name, schema.names)
                raise QueryError(f"'{column.stream}' has no column '{column.name}'", None, *_at(column), hint)
            return replace(column, name=found.name, type=found.type)
        owners = [(a, f) for a, s in self.schemas.items() if (f := s.find(column.name)) is not None]
        if not owners:
            every = {n: None for s in self.schemas.values() for n in s.names}
            raise QueryError(f"unknown column '{column.name}'", None, *_at(column), nearest_name(column.name, every))
        if len(owners) > 1:
            names = " or ".join(f"{a}.{f.name}" for a, f in owners)
            raise QueryError(f"column '{column.name}' is in several streams", None, *_at(column), f"write {names}")
        alias, field = owners[0]
        return replace(column, stream=alias, name=field.name, type=field.type)

    def typed(self, expr: Expr) -> Expr:
        if isinstance(expr, Arithmetic):
            return self.arithmetic(expr)
        if isinstance(expr, Compare):
            left, right = same_type(expr.left, expr.right, expr)
            if type_of(left).name == "BOOLEAN" and expr.op not in ("=", "<>"):
                raise QueryError(f"BOOLEAN values have no order: {expr}", hint="use = or <>")
            return replace(expr, left=left, right=right)
        if isinstance(expr, Between):
            low = same_type(expr.operand, expr.low, expr)
            high = same_type(expr.operand, expr.high, expr)
            if low[0] == high[0]:
                return Between(low[0], low[1], high[1], expr.at)
            return And((Compare(">=", *low, expr.at), Compare("<=", *high, expr.at)), expr.at)
        if isinstance(expr, InList):
            return self.in_list(expr)
        if isinstance(expr, Like):
            if type_of(expr.operand) not in (STRING, NULL):
                raise QueryError(f"LIKE needs a STRING, but {expr.operand} is {type_of(expr.operand)}")
            like_form(expr.pattern)
            return expr
        if isinstance(expr, Negate):
            if type_of(expr.operand).name not in ("BIGINT", "DOUBLE", "INTERVAL"):
                raise QueryError(f"can't negate {type_of(expr.operand)}: {expr.operand}")
            return expr
        if isinstance(expr, And | Or | Not):
            for item in expr.items if isinstance(expr, And | Or) else (expr.operand,):
                if type_of(item).name not in ("BOOLEAN", "NULL"):
                    raise QueryError(f"expected a condition, but {item} is {type_of(item)}", None, *_at(item))
            return expr
        if isinstance(expr, Cast):
            check_cast(expr)
        return typed_call(expr) if isinstance(expr, Call) else expr

    def in_list(self, expr: InList) -> Expr:
        """All in one type, as in Spark: `x IN (1, 0.5)` compares DOUBLE with DOUBLE throughout."""
        operand = expr.operand
        for item in expr.items:
            operand, _ = same_type(operand, item, expr)
        return InList(operand, tuple(same_type(operand, item, expr)[1] for item in expr.items), expr.at)

    def arithmetic(self, expr: Arithmetic) -> Expr:
        op, left, right = expr.op, type_of(expr.left), type_of(expr.right)
        if op == "||":
            if {left, right} <= {STRING, NULL}:
                return replace(expr, type=STRING)
            raise QueryError(f"|| joins strings, not {left} and {right}")
        kinds = (left.name, op, right.name)
        if kinds in TIME_ARITHMETIC:
            return replace(expr, type=TIME_ARITHMETIC[kinds])
        if "DECIMAL" in (left.name, right.name):
            raise QueryError(f"arithmetic on DECIMAL is not supported: {expr}", hint="CAST(... AS DOUBLE) first")
        for operand, kind in ((expr.left, left), (expr.right, right)):
            if not kind.numeric and kind != NULL:
                raise QueryError(f"can't compute {left} {op} {right}: {operand} is {kind}")
        if op != "/" and left in (BIGINT, NULL) and right in (BIGINT, NULL):
            return replace(expr, left=cast(expr.left, BIGINT), right=cast(expr.right, BIGINT), type=BIGINT)
        return replace(expr, left=cast(expr.left, DOUBLE), right=cast(expr.right, DOUBLE), type=DOUBLE)
