"""Binding: names resolved, types settled as Spark's ANSI SQL settles them, WHERE sorted by what each part needs."""

from __future__ import annotations

import pytest

import watersmeet as wm
from watersmeet.lang import parse
from watersmeet.model.bind import BoundQuery, bind
from watersmeet.model.expr import type_of
from watersmeet.model.types import BIGINT, STRING, TIMESTAMP, Field, Schema, Type

R = Schema((
    Field("a", BIGINT), Field("x", Type("DOUBLE")), Field("s", STRING), Field("day", Type("DATE")), Field("ok", Type("BOOLEAN")),
    Field("m", Type("DECIMAL", 10, 2)), Field("only_r", BIGINT), Field("ts", TIMESTAMP),
))  # fmt: skip
S = Schema((*R.fields[:6], Field("fine", Type("DECIMAL", 38, 30)), Field("only_s", BIGINT), Field("ts", TIMESTAMP)))


def bound(where: str = "", select: str = "R.a", sources: str = "R [ROWS 1], S [ROWS 1]") -> BoundQuery:
    condition = f" WHERE {where}" if where else ""
    return bind(parse(f"SELECT {select} FROM {sources}{condition}"), {"R": R, "S": S})


def test_bind_sorts_where_into_selections_equalities_comparisons_and_residuals() -> None:
    made = bound(
        "R.a = S.a AND R.a > 1 AND R.x < S.x AND S.s LIKE 'a%' AND R.a + S.a < 5 AND R.only_r = 3 AND R.a <> S.a"
    )
    assert {alias: list(map(str, s)) for alias, s in made.selections.items()} == {
        "R": ["R.a > 1", "R.only_r = 3"],
        "S": ["S.s LIKE 'a%'"],
    }
    assert list(map(str, made.equalities)) == ["R.a = S.a"]
    assert list(map(str, made.comparisons)) == ["R.x < S.x", "R.a <> S.a"]
    assert list(map(str, made.residuals)) == ["(R.a + S.a) < 5"]


@pytest.mark.parametrize(
    ("where", "comparisons"),
    [
        ("R.a BETWEEN S.a - 1 AND S.a + 1", ["R.a >= S.a - 1", "R.a <= S.a + 1"]),
        ("NOT R.a < S.a", ["R.a >= S.a"]),
        ("NOT NOT R.a < S.a", ["R.a < S.a"]),
        ("5 < S.a AND R.a + 1 >= S.a", ["R.a + 1 >= S.a"]),
        ("(R.a < S.a AND R.a <> S.only_s)", ["R.a < S.a", "R.a <> S.only_s"]),
    ],
)
def test_bind_takes_between_and_not_apart(where: str, comparisons: list[str]) -> None:
    assert list(map(str, bound(where).comparisons)) == comparisons


def test_bind_sees_a_comparison_from_either_side() -> None:
    (comparison,) = bound("R.a < S.only_s").comparisons
    assert str(comparison.seen_from("S")) == "S.only_s > R.a"
    assert comparison.seen_from("R") is comparison


def test_bind_gives_a_predicate_without_columns_to_the_first_stream() -> None:
    assert list(map(str, bound("1 = 2").selections["R"])) == ["1 = 2"]


@pytest.mark.parametrize(
    ("where", "bound_as"),
    [
        ("R.a = S.x", "CAST(R.a AS DOUBLE) = S.x"),
        ("R.m = S.a", "CAST(R.m AS DECIMAL(22,2)) = CAST(S.a AS DECIMAL(22,2))"),
        ("R.m = S.x", "CAST(R.m AS DOUBLE) = S.x"),
        ("R.day = S.ts", "CAST(R.day AS TIMESTAMP) = S.ts"),
        ("R.a / 2 = S.a", "CAST(R.a AS DOUBLE) / 2.0 = CAST(S.a AS DOUBLE)"),
        ("R.a % 2 = S.a", "R.a % 2 = S.a"),
        ("R.a + R.x = S.x", "CAST(R.a AS DOUBLE) + R.x = S.x"),
    ],
)
def test_bind_brings_both_sides_to_one_type(where: str, bound_as: str) -> None:
    assert [str(e) for e in bound(where).equalities] == [bound_as]


@pytest.mark.parametrize(
    ("where", "bound_as"),
    [
        ("R.x > 1", "R.x > 1.0"),
        ("R.day > '2026-01-02'", "R.day > DATE '2026-01-02'"),
        ("R.ts > '2026-01-02'", "R.ts > TIMESTAMP '2026-01-02 00:00:00.000000'"),
        ("R.a IN (1, 2.5)", "CAST(R.a AS DOUBLE) IN (1.0, 2.5)"),
        ("R.a IN (1, NULL)", "R.a IN (1, NULL)"),
        ("R.a = NULL", "R.a = NULL"),
        ("R.day IN ('2026-01-02', NULL)", "R.day IN (DATE '2026-01-02', NULL)"),
        ("R.a BETWEEN 1 AND 2.5", "R.a >= 1 AND CAST(R.a AS DOUBLE) <= 2.5"),
    ],
)
def test_bind_brings_constants_to_the_type_of_the_column(where: str, bound_as: str) -> None:
    assert " AND ".join(map(str, bound(where).selections["R"])) == bound_as


@pytest.mark.parametrize(
    ("where", "message", "hint"),
    [
        ("R.s = 5", "can't compare STRING with BIGINT", "both sides must be numbers"),
        ("R.s = S.a", "can't compare STRING with BIGINT", "both sides must be numbers"),
        ("R.ok = 1", "can't compare BOOLEAN with BIGINT", ""),
        ("R.ok < S.ok", "no order", "use = or <>"),
        ("R.m + 1 > 2", "arithmetic on DECIMAL is not supported", "CAST"),
        ("R.s + 1 > 2", "can't compute STRING", ""),
        ("R.s || R.a = 'x'", "joins strings", ""),
        ("R.ts + 1 > R.ts", "can't compute TIMESTAMP", ""),
        ("R.day + R.day > R.day", "can't compute DATE", ""),
        ("R.a LIKE 'x'", "LIKE needs a STRING", ""),
        (r"R.s LIKE 'a\\b'", "a backslash must stand before", ""),
        ("-R.s = 'x'", "can't negate STRING", ""),
        ("R.a", "WHERE needs a condition", ""),
        ("NOT R.a", "expected a condition", ""),
        ("CAST(R.s AS BIGINT) = 1", "can't cast STRING to BIGINT", ""),
        ("R.day = 'tomorrow'", "'tomorrow' is not a DATE", "for example"),
        ("S.fine = R.a", "more than 38 digits", "CAST one side AS DOUBLE"),
        ("R.b = 1", "'R' has no column 'b'", "known|did you mean"),
        ("only_q = 1", "unknown column 'only_q'", "did you mean 'only_"),
        ("a = 1", "column 'a' is in several streams", r"write R\.a or S\.a"),
    ],
)
def test_bind_refuses(where: str, message: str, hint: str) -> None:
    with pytest.raises(wm.QueryError, match=message) as refused:
        bound(where)
    assert not hint or refused.match(hint)
    assert refused.value.line == 1


def test_bind_finds_columns_whatever_their_case_and_without_a_stream_where_only_one_has_it() -> None:
    made = bound("R.A = 1 AND ONLY_S = 2")
    assert [str(e) for e in made.selections["R"]] == ["R.a = 1"]
    assert [str(e) for e in made.selections["S"]] == ["S.only_s = 2"]


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("R.only_r, S.only_s", ["only_r", "only_s"]),
        ("R.a, S.a, S.only_s", ["R_a", "S_a", "only_s"]),
        ("R.a AS k, S.a AS l", ["k", "l"]),
        ("R.*", list(R.names)),
        ("R.a + 1", ["R.a + 1"]),
    ],
)
def test_bind_names_result_columns(select: str, names: list[str]) -> None:
    assert [name for name, _ in bound(select=select).outputs] == names


def test_bind_expands_a_star_and_puts_the_stream_before_names_that_clash() -> None:
    names = [name for name, _ in bound(select="*").outputs]
    assert names == [
        "R_a", "R_x", "R_s", "R_day", "R_ok", "R_m", "only_r", "R_ts", "S_a", "S_x", "S_s", "S_day", "S_ok", "S_m", "fine",
        "only_s", "S_ts",
    ]  # fmt: skip


@pytest.mark.parametrize("select", ["R.a AS k, S.a AS k", "R.a AS result_ts", "R.a AS k, S.a AS K"])
def test_bind_refuses_result_columns_of_one_name(select: str) -> None:
    with pytest.raises(wm.QueryError, match="two result columns are named"):
        bound(select=select)


@pytest.mark.parametrize(
    ("select", "kind"),
    [
        ("R.a + 1", "BIGINT"),
        ("R.a / 1", "DOUBLE"),
        ("R.a * 1.5", "DOUBLE"),
        ("R.s || S.s", "STRING"),
        ("R.a < S.a", "BOOLEAN"),
        ("R.ts - S.ts", "INTERVAL"),
        ("R.ts + INTERVAL 1 DAY", "TIMESTAMP"),
        ("CAST(R.day AS TIMESTAMP)", "TIMESTAMP"),
        ("R.m", "DECIMAL(10,2)"),
        ("-R.x", "DOUBLE"),
        ("CAST(NULL AS DATE)", "DATE"),
        ("R.ok", "BOOLEAN"),
        ("R.a IS NULL", "BOOLEAN"),
    ],
)
def test_bind_knows_the_type_of_every_output(select: str, kind: str) -> None:
    ((_, expr),) = bound(select=f"{select} AS v").outputs
    assert str(type_of(expr)) == kind


def test_bind_refuses_null_without_a_type() -> None:
    with pytest.raises(wm.QueryError, match="SELECT NULL has no type"):
        bound(select="NULL AS v")


def test_bind_takes_streams_by_name_and_declarations_first() -> None:
    text = "CREATE STREAM R (k BIGINT, at TIMESTAMP) TIMESTAMP at LATENESS 2 SECONDS IDLE 1 MINUTE; CREATE TABLE S (k BIGINT);"
    made = bind(parse(text + " SELECT R.k FROM R [ROWS 1], S WHERE R.k = S.k"), {"R": R, "S": S})
    stream, table = made.sources
    assert (stream.timestamp, stream.lateness_us, stream.idle_us, stream.static) == ("at", 2_000_000, 60_000_000, False)
    assert table.static and table.schema.names == ("k",)
    assert made.aliases == ("R", "S") and made.source("S") is table


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ("R [ROWS 1], Q [ROWS 1]", "unknown stream 'Q'"),
        ("R [PARTITION BY k ROWS 1], S [ROWS 1]", "'R' has no column 'k'"),
    ],
)
def test_bind_refuses_sources(sources: str, message: str) -> None:
    with pytest.raises(wm.QueryError, match=message):
        bound(select="1 AS one", sources=sources)


def test_bind_refuses_a_stream_without_a_time() -> None:
    no_time = Schema((Field("a", BIGINT), Field("seen", TIMESTAMP)))
    with pytest.raises(wm.QueryError, match="has no timestamp column 'ts'") as refused:
        bind(parse("SELECT 1 AS one FROM R [ROWS 1], S [ROWS 1]"), {"R": no_time, "S": S})
    assert refused.match("TIMESTAMP seen")
    wrong = Schema((Field("ts", BIGINT),))
    with pytest.raises(wm.QueryError, match="'ts' of type BIGINT, not TIMESTAMP"):
        bind(parse("SELECT 1 AS one FROM R [ROWS 1], S [ROWS 1]"), {"R": wrong, "S": S})


def test_bind_refuses_one_name_as_stream_and_as_table() -> None:
    with pytest.raises(wm.QueryError, match="occurs with and without a window"):
        parse("SELECT a.x FROM R [ROWS 1] AS a, R AS b WHERE a.x = b.x")
