"""Every construct of the language, and the value that it becomes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from watersmeet.errors import QueryError
from watersmeet.lang import parse
from watersmeet.model.budget import Budget
from watersmeet.model.expr import (
    Arithmetic,
    At,
    Column,
    Compare,
    IsNull,
    Like,
    Literal,
    Negate,
)
from watersmeet.model.location import BadRows
from watersmeet.model.query import Declaration, Freshness, Location, Output, Overload, Query, ShedTerm, Source
from watersmeet.model.types import (
    BIGINT,
    DOUBLE,
    RESERVED,
    STRING,
    TIMESTAMP,
    Field,
    Origin,
    Schema,
    Type,
    quoted,
)
from watersmeet.model.window import Window

SECOND = 1_000_000
AX, BX = Column("a", "x"), Column("b", "x")

JOB = """
    CREATE STREAM orders (id BIGINT, item BIGINT, price DOUBLE, ts TIMESTAMP) FROM 'data/orders' FORMAT parquet
      TIMESTAMP ts LATENESS 5 SECONDS IDLE 1 MINUTE;
    CREATE STREAM payments (order_id BIGINT, amount DOUBLE, ts TIMESTAMP) FROM 'data/payments' FORMAT parquet;
    CREATE TABLE items (item BIGINT, name STRING) FROM 'data/items.csv' FORMAT csv;

    SELECT o.item, i.name, p.amount
    FROM orders [RANGE 10 MINUTES] AS o, payments [RANGE 5 MINUTES] AS p, items AS i
    WHERE o.item = i.item AND o.id = p.order_id AND p.amount > o.price
    FRESHNESS (o 12 MINUTES, p 12 MINUTES)
    BUDGET (CPU 0.8, MEMORY 64 MB)
    ON OVERLOAD SHED (o WEIGHT 2 AT LEAST 10 PERCENT)      -- or DIRECT, EVICT [USING heeb], EVICT AND SHED, ...
    EMIT ISTREAM INTO 'out/' FORMAT parquet;
"""


def select(clauses: str, sources: str = "a [ROWS 1], b [ROWS 1]") -> Query:
    return parse(f"SELECT * FROM {sources} {clauses}")


def test_job_of_the_design() -> None:
    query = parse(JOB)
    orders = Schema((Field("id", BIGINT), Field("item", BIGINT), Field("price", DOUBLE), Field("ts", TIMESTAMP)))
    payments = Schema((Field("order_id", BIGINT), Field("amount", DOUBLE), Field("ts", TIMESTAMP)))
    items = Schema((Field("item", BIGINT), Field("name", STRING)))
    assert query == Query(
        select=(Output(Column("o", "item")), Output(Column("i", "name")), Output(Column("p", "amount"))),
        sources=(
            Source("orders", Window.range_us(600 * SECOND), "o"),
            Source("payments", Window.range_us(300 * SECOND), "p"),
            Source("items", None, "i"),
        ),
        where=(
            Compare("=", Column("o", "item"), Column("i", "item")),
            Compare("=", Column("o", "id"), Column("p", "order_id")),
            Compare(">", Column("p", "amount"), Column("o", "price")),
        ),
        freshness=(Freshness("o", 720 * SECOND), Freshness("p", 720 * SECOND)),
        budget=Budget(cpu=0.8, memory=64_000_000),
        overload=Overload(shed=True, terms=(ShedTerm("o", 2.0, 0.1),)),
        emit="ISTREAM",
        into=Location("out/", "parquet"),
        declarations=(
            Declaration("orders", orders, Location("data/orders", "parquet"), False, "ts", 5 * SECOND, 60 * SECOND),
            Declaration("payments", payments, Location("data/payments", "parquet")),
            Declaration("items", items, Location("data/items.csv", "csv"), static=True),
        ),
    )
    assert parse(str(query)) == query


# -- FROM


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("[RANGE 10 SECONDS]", Window.range_us(10 * SECOND)),
        ("[range 1 second]", Window.range_us(SECOND)),
        ("[RANGE 0.5 SECONDS]", Window.range_us(SECOND // 2)),
        ("[RANGE 1e3 ms]", Window.range_us(SECOND)),
        ("[RANGE 7 MICROSECONDS]", Window.range_us(7)),
        ("[RANGE 7 us]", Window.range_us(7)),
        ("[RANGE 7 µs]", Window.range_us(7)),
        ("[RANGE 7µs]", Window.range_us(7)),
        ("[RANGE 2 MILLISECONDS]", Window.range_us(2000)),
        ("[RANGE 2 min]", Window.range_us(120 * SECOND)),
        ("[RANGE 2 MINUTES]", Window.range_us(120 * SECOND)),
        ("[RANGE 2h]", Window.range_us(7200 * SECOND)),
        ("[RANGE 1 HOUR]", Window.range_us(3600 * SECOND)),
        ("[RANGE 1 DAY]", Window.range_us(86400 * SECOND)),
        ("[RANGE 0 DAYS]", Window.range_us(0)),
        ("[ROWS 5]", Window.rows(5)),
        ("[PARTITION BY k ROWS 2]", Window.rows(2, ("k",))),
        ("[PARTITION BY k, `l m` ROWS 2]", Window.rows(2, ("k", "l m"))),
        ("[UNBOUNDED]", Window.unbounded()),
        ("[RANGE UNBOUNDED]", Window.unbounded()),
        ("[RANGE INTERVAL '30' MINUTE]", Window.range_us(30 * 60 * 10**6)),
        ("[RANGE INTERVAL 1 HOUR 30 MINUTES]", Window.range_us(90 * 60 * 10**6)),
        ("", None),
    ],
)
def test_window(text: str, window: Window | None) -> None:
    assert select("", f"a {text}, b [ROWS 1]").sources[0].window == window
    assert select("", f"a AS x {text}, b [ROWS 1]").sources[0] == Source("a", window, "x")


def test_sources_with_and_without_alias() -> None:
    query = select("", "a [ROWS 1], a [ROWS 2] AS b, c [ROWS 3] d, `e f` [ROWS 4], g h")
    assert [(s.stream, s.alias) for s in query.sources] == [
        ("a", "a"),
        ("a", "b"),
        ("c", "d"),
        ("e f", "e f"),
        ("g", "h"),
    ]


def test_join_on_is_comma_and_where_in_written_order() -> None:
    written = "a [ROWS 1] JOIN b [ROWS 1] ON a.x = b.x AND a.y > 1 INNER JOIN c ON c.z = b.z CROSS JOIN d, e JOIN f"
    query = select("WHERE f.w = e.w", written)
    assert query == select(
        "WHERE a.x = b.x AND a.y > 1 AND c.z = b.z AND f.w = e.w", "a [ROWS 1], b [ROWS 1], c, d, e, f"
    )


def test_join_without_on_before_on_overload() -> None:
    assert select("ON OVERLOAD SHED", "a [ROWS 1] JOIN b [ROWS 1]").overload == Overload(shed=True)


# -- SELECT


def test_outputs() -> None:
    query = parse(
        "SELECT *, a.*, x, a.x AS y, a.x z, a.x + 1, 'q' AS `select`, a.order AS group FROM a [ROWS 1], b [ROWS 1]"
    )
    one = Arithmetic("+", AX, Literal(1, BIGINT))
    assert query.select == (
        Output(None), Output(None, star="a"), Output(Column(None, "x")), Output(AX, "y"), Output(AX, "z"), Output(one),
        Output(Literal("q", STRING), "select"), Output(Column("a", "order"), "group"),
    )  # fmt: skip


def test_places_are_kept() -> None:
    query = parse("SELECT a.x\nFROM a [ROWS 1],\n  b [ROWS 1]\nWHERE a.x = 1\n  AND NOT (b.x > 2)")
    assert query.select[0].at == At(1, 8)
    assert query.sources[1].at == At(3, 3)
    assert [w.at for w in query.where] == [At(4, 7), At(5, 12)]


def test_comments_and_blanks_are_ignored() -> None:
    text = (
        "-- head\nSELECT/* a /* nested */ b */a.x--end\r\nFROM a[ROWS 1]/**/,b[ROWS 1]WHERE a.x=1/*+ no hint */;-- tail"
    )
    assert parse(text) == parse("SELECT a.x FROM a [ROWS 1], b [ROWS 1] WHERE a.x = 1")


# -- clauses


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(CPU 0.5)", Budget(cpu=0.5)),
        ("(CPU 2, MEMORY 64 MB)", Budget(cpu=2.0, memory=64_000_000)),
        ("(MEMORY 1.5 GiB, CPU 1)", Budget(cpu=1.0, memory=3 << 29)),
        ("(MEMORY 64MB)", Budget(memory=64_000_000)),
        ("(MEMORY 9007199254740993 B)", Budget(memory=9007199254740993)),
        ("(MEMORY 5000 TUPLES)", Budget(memory_tuples=5000)),
        ("()", Budget()),
    ],
)
def test_budget(text: str, wanted: Budget) -> None:
    query = select(f"BUDGET {text}")
    assert query.budget == wanted
    assert parse(str(query)) == query


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("WAIT", Overload()),
        ("SHED", Overload(shed=True)),
        ("DIRECT", Overload(direct=True)),
        ("EVICT", Overload(evict=True)),
        ("EVICT USING HEEB", Overload(evict=True, using="heeb")),
        ("EVICT AND SHED", Overload(shed=True, evict=True)),
        ("DIRECT AND EVICT USING prob", Overload(direct=True, evict=True, using="prob")),
        ("SHED (a)", Overload(shed=True, terms=(ShedTerm("a"),))),
        ("SHED (a WEIGHT 2, b AT LEAST 7 PERCENT)", Overload(True, (ShedTerm("a", 2.0), ShedTerm("b", 1.0, 0.07)))),
        ("SHED (b AT LEAST 12.5% WEIGHT 0.5)", Overload(True, (ShedTerm("b", 0.5, 0.125),))),
    ],
)
def test_overload(text: str, wanted: Overload) -> None:
    query = select(f"ON OVERLOAD {text}")
    assert query.overload == wanted
    assert parse(str(query)) == query


def test_emit() -> None:
    assert select("EMIT DSTREAM").emit == "DSTREAM"
    assert select("EMIT CHANGES").emit == "CHANGES"
    assert select("EMIT ISTREAM INTO 'o''ut' FORMAT JSON").into == Location("o'ut", "json")
    options = "OPTIONS ('sep' = ';', 'nl' = '\\n')"
    assert select(f"EMIT ISTREAM INTO 'out' FORMAT csv {options}").into == Location(
        "out", "csv", (("sep", ";"), ("nl", "\n"))
    )


def test_clauses_in_any_order() -> None:
    clauses = ["WHERE a.x = 1", "FRESHNESS (a 5 MINUTES)", "BUDGET (CPU 1)", "ON OVERLOAD SHED", "EMIT DSTREAM"]
    wanted = select(" ".join(clauses))
    for i in range(len(clauses)):
        assert select(" ".join([*clauses[i:], *clauses[:i]])) == wanted
        assert select(" ".join(reversed([*clauses[i:], *clauses[:i]]))) == wanted


# -- declarations


def declaration(text: str) -> Declaration:
    other = "CREATE STREAM other (ts TIMESTAMP);"
    query = parse(f"{other} CREATE {text}; SELECT * FROM other [ROWS 1] AS p, other [ROWS 1] AS q")
    assert parse(str(query)) == query
    return query.declarations[1]


def test_declarations() -> None:
    schema = Schema((Field("k", BIGINT), Field("ts", TIMESTAMP)))
    assert declaration("STREAM s (k INT, ts TIMESTAMP)") == Declaration("s", schema)
    times = ["TIMESTAMP ts", "LATENESS 5 SECONDS", "IDLE 1 MINUTE", "FROM 'x' FORMAT csv OPTIONS ('header' = 'true')"]
    place = Location("x", "csv", (("header", "true"),))
    wanted = Declaration("s", schema, place, False, "ts", 5 * SECOND, 60 * SECOND)
    for i in range(4):
        assert declaration(f"STREAM s (k INT, ts TIMESTAMP) {' '.join([*times[i:], *times[:i]])}") == wanted
    assert declaration("TABLE s (k INT, ts TIMESTAMP)") == Declaration("s", schema, static=True)
    skips = replace(wanted, bad_rows=BadRows("SKIP"))
    assert declaration(f"STREAM s (k INT, ts TIMESTAMP) {' '.join(times)} ON BAD ROW SKIP") == skips
    assert declaration("STREAM s (k INT, ts TIMESTAMP) ON BAD ROW FAIL") == Declaration("s", schema)
    kept = declaration("TABLE s (k INT, ts TIMESTAMP) ON BAD ROW INTO 'bad'").bad_rows
    assert kept == BadRows("INTO", Location("bad", "json")) and kept.kept
    assert declaration("TABLE s (k INT) ON BAD ROW INTO 'bad.csv'").bad_rows.into == Location("bad.csv", "csv")
    for written in ("milliseconds", "MILLISECOND"):
        numbers = declaration(f"STREAM s (k INT, ts TIMESTAMP) TIMESTAMP ts IN {written} LATENESS 5 SECONDS")
        assert (numbers.schema.unit("TS"), numbers.lateness_us) == ("MILLISECONDS", 5 * SECOND)
    named = declaration("STREAM `my s` (`a b` DECIMAL(10, 2), order STRING, At TIMESTAMP) TIMESTAMP at")
    assert (named.name, named.timestamp, named.schema.names) == ("my s", "At", ("a b", "order", "At"))
    assert named.schema.fields[0].type == Type("DECIMAL", 10, 2)


def test_columns_say_where_they_lie() -> None:
    made = declaration(
        "STREAM s (id BIGINT FROM user.`a.b`, k STRING METADATA FROM key, offset BIGINT METADATA, trace STRING METADATA FROM headers.trace,"
        " ts TIMESTAMP) FROM 'topic' FORMAT kafka"
    )
    origins = [
        Origin(("user", "a.b")),
        Origin(("key",), True),
        Origin(("offset",), True),
        Origin(("headers", "trace"), True),
        None,
    ]
    assert [f.origin for f in made.schema.fields] == origins
    assert declaration(str(made).removeprefix("CREATE ")) == made
    for column, message in {
        "ts TIMESTAMP METADATA FROM tiemstamp": "FORMAT kafka has no metadata 'tiemstamp'",
        "ts TIMESTAMP METADATA FROM timestamp.x": "FORMAT kafka has no metadata 'timestamp.x'",
        "ts TIMESTAMP METADATA FROM offset": "column 'ts': the offset of a message is BIGINT, not TIMESTAMP",
    }.items():
        with pytest.raises(QueryError, match=message):
            declaration(f"STREAM s ({column}) FROM 'x' FORMAT kafka")
    with pytest.raises(QueryError, match="FORMAT csv has neither nested fields nor metadata"):
        declaration("STREAM s (ts TIMESTAMP FROM a.b) FROM 'x' FORMAT csv")


def test_late_rows_have_a_place() -> None:
    for text in ("a [ROWS 1], b [ROWS 1]", "a [ROWS 1] AS c, b [ROWS 1]", "a [ROWS 1], b [ROWS 1] WHERE a.x = b.x"):
        query = parse(f"SELECT * FROM {text} LATE INTO 'late' EMIT DSTREAM")
        assert (query.late, query.emit) == (Location("late", "json"), "DSTREAM") and parse(str(query)) == query
    assert parse("SELECT late.x FROM a [ROWS 1] late, b [ROWS 1]").aliases == ("late", "b")


def test_semicolons_may_be_many_or_missing_at_the_end() -> None:
    declared = "CREATE STREAM a (x BIGINT, ts TIMESTAMP)"
    wanted = parse(f"{declared};SELECT p.x FROM a [ROWS 1] AS p, a [ROWS 1] AS q;")
    assert parse(f";;{declared};;SELECT p.x FROM a [ROWS 1] AS p, a [ROWS 1] AS q;;\n;") == wanted
    assert parse(f"{declared};SELECT p.x FROM a [ROWS 1] AS p, a [ROWS 1] AS q") == wanted


def test_query_stays_unbound_although_names_and_types_are_checked() -> None:
    query = parse(JOB)
    assert all(o.expr is None or (isinstance(o.expr, Column) and o.expr.type is None) for o in query.select)


# -- names

_CONTEXTUAL = """ROWS RANGE PARTITION BY UNBOUNDED STREAM TABLE TIMESTAMP LATENESS IDLE FORMAT OPTIONS CPU MEMORY TUPLES WEIGHT
    AT LEAST PERCENT SHED WAIT DIRECT EVICT ISTREAM DSTREAM CHANGES CAST DATE TIME ZONE SECONDS DAY KEY INDEX END OVER ALL ANY EXISTS
    VALUES OFFSET FETCH WINDOW FILTER SORT CLUSTER SET SHOW VIEW COLUMN COMMENT FIRST LAST COUNT SUM IF NEXT ROW"""
CONTEXTUAL = _CONTEXTUAL.split()


@pytest.mark.parametrize("word", [*sorted(RESERVED), *CONTEXTUAL])
def test_any_word_is_a_name_wherever_names_stand(word: str) -> None:
    for name in (word.lower(), quoted(word)):
        bare = name.strip("`")
        column = Column(bare, bare)
        query = Query(
            select=(Output(Column(None, bare), bare), Output(column), Output(None, star=bare)),
            sources=(
                Source(bare, Window.rows(1, (bare,)), bare),
                Source("s", Window.rows(1), "t"),
                Source("u", None, "u"),
            ),
            where=(
                Compare("=", column, Column("t", bare)),
                IsNull(Negate(Column(None, bare))),
                Like(Column(None, bare), "x"),
            ),
            freshness=(Freshness(bare, SECOND),),
            overload=Overload(True, (ShedTerm(bare, 2.0),), evict=True, using=bare),
            into=Location("out", bare),
        )
        assert parse(str(query)) == query


def test_words_that_are_not_reserved_need_no_quotes() -> None:
    for word in CONTEXTUAL:
        query = parse(
            f"SELECT {word} AS {word} FROM {word} [PARTITION BY {word} ROWS 1], b [ROWS 1] WHERE {word}.{word} > 1"
        )
        assert query.where == (Compare(">", Column(word, word), Literal(1, BIGINT)),)


def test_import_is_light() -> None:
    """The language needs its own packages and the tokenizer of sqlglot."""
    script = """
import sys
before = set(sys.modules)
import watersmeet.lang
loaded = set(sys.modules) - before
print(len(loaded), *{m.split(".")[0] for m in loaded} - sys.stdlib_module_names)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    number, *others = done.stdout.split()
    assert {"sqlglot", "watersmeet"} <= set(others) <= {"sqlglot", "sqlglotc", "watersmeet", "mypy_extensions"}
    assert int(number) < 250
