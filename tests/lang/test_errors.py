"""Errors of the language: every message as it is shown, and the promise that nothing but QueryError comes out."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from watersmeet.errors import QueryError
from watersmeet.lang import parse
from watersmeet.lang.convert import MAX_DEPTH
from watersmeet.lang.dialect import MAX_CHARACTERS
from watersmeet.lang.refusals import OPERANDS, STATEMENTS, WORDS

HERE = Path(__file__).parent
JOIN = "SELECT a.k FROM a [ROWS 1], b [ROWS 1] WHERE "


def blocks(name: str) -> list[tuple[str, str]]:
    """(text, expected error) of a file; the lines of a text have > before them."""
    found = []
    for block in (HERE / name).read_text().split("\n\n"):
        lines = block.strip("\n").split("\n")
        text = [line.removeprefix(">").removeprefix(" ") for line in lines if line.startswith(">")]
        if text:
            found.append(("\n".join(text), "\n".join(line for line in lines if not line.startswith(">"))))
    return found


SYNTAX = blocks("errors_syntax.txt")
(DECLARATIONS, _), *BINDING = blocks("errors_binding.txt")


@pytest.mark.parametrize(("text", "expected"), SYNTAX, ids=range(len(SYNTAX)))
def test_error_of_syntax_is_shown_with_place_caret_and_hint(text: str, expected: str) -> None:
    with pytest.raises(QueryError) as e:
        parse(text)
    assert str(e.value) == expected
    assert e.value.text == text and e.value.line and e.value.column


@pytest.mark.parametrize(("text", "expected"), BINDING, ids=range(len(BINDING)))
def test_error_of_binding_is_shown_with_place_caret_and_hint(text: str, expected: str) -> None:
    with pytest.raises(QueryError) as e:
        parse(f"{DECLARATIONS}\n{text}")
    assert str(e.value) == expected


@pytest.mark.parametrize("word", sorted(WORDS))
def test_refused_word_after_a_whole_query_says_what_to_do_instead(word: str) -> None:
    with pytest.raises(QueryError, match="is not supported") as e:
        parse(f"SELECT x.k FROM a [ROWS 1] AS x, b [ROWS 1] AS y {word} z")
    assert e.value.hint == WORDS[word][1]


@pytest.mark.parametrize("word", sorted(OPERANDS))
def test_refused_word_as_an_operand_says_what_to_do_instead(word: str) -> None:
    with pytest.raises(QueryError, match="is not supported") as e:
        parse(f"SELECT {word} FROM a [ROWS 1], b [ROWS 1]")
    assert (e.value.column, e.value.hint) == (8, OPERANDS[word][1])


@pytest.mark.parametrize("word", sorted(STATEMENTS))
def test_refused_statement_says_what_to_do_instead(word: str) -> None:
    with pytest.raises(QueryError, match="is not supported") as e:
        parse(f"{word} x")
    assert (e.value.line, e.value.column, e.value.hint) == (1, 1, STATEMENTS[word][1])


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 100_000,
        "(" * 1000 + "a.k" + ")" * 1000 + " = 1",
        "NOT " * 2000 + "TRUE",
        "- " * 2000 + "1 = 1",
        "CAST(" * 500 + "a.k" + " AS BIGINT)" * 500 + " = 1",
        " + ".join(["a.k"] * 5000) + " = 1",
        "a.k IN (" * 300 + "1" + ")" * 300,
        "(a.k + " * 60 + "1" + ")" * 60 + " = 1",
    ],
    ids=["open", "parentheses", "not", "minus", "cast", "chain", "in", "sum"],
)
def test_deep_nesting_is_an_error_with_a_place(condition: str) -> None:
    with pytest.raises(QueryError, match=r"too deep|expected an expression") as e:
        parse(JOIN + condition)
    assert e.value.line == 1
    assert len(str(e.value)) < 1000


def test_deepest_expression_prints_and_parses_back() -> None:
    nots = "NOT " * (MAX_DEPTH // 2) + "a.flag"
    chain = " + ".join(["a.k"] * MAX_DEPTH) + " > b.k"
    for condition in (nots, chain, f"NOT ({nots[8:]})"):
        query = parse(JOIN + condition)
        assert parse(str(query)) == query


def test_long_chains_of_and_and_long_lists_are_fine() -> None:
    conjuncts = " AND ".join(f"a.k <> {i}" for i in range(3000))
    values = ", ".join(map(str, range(10_000)))
    query = parse(f"{JOIN}{conjuncts} AND b.k IN ({values})")
    assert len(query.where) == 3001
    assert parse(str(query)) == query


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT a\0", "line 1, column 9: character U+0000 can't be in a query"),
        ("SELECT '\ud800'", "line 1, column 9: character U+D800 can't be in a query"),
        ("x" * (MAX_CHARACTERS + 1), "line 1, column 1: the text has 250,001 characters, more than 250,000"),
        ("\x0b\x1c\u2028SELECT", "line 4, column 7: expected an expression, found the end of the text"),
        ("]", "line 1, column 1: expected CREATE STREAM, CREATE TABLE or SELECT, found ']'"),
        ("SELECT \x07", "line 1, column 8: unexpected character '\\x07'"),
        ("SELECT '" + "\\", "line 1, column 8: the string that begins here does not end"),
        (JOIN + "a.k = 1" + "0" * 6000, "line 1, column 52: 1" + "0" * 39 + " does not fit into a BIGINT"),
        (JOIN + "a.k = 1." + "0" * 6000 + "1.", "line 1, column 6055: expected FRESHNESS"),
        ("SELECT a.k FROM a [RANGE 1" + "0" * 6000 + " DAYS]", "line 1, column 26: 1" + "0" * 39 + " is not a number"),
        (JOIN + "a.d = CAST('" + "9" * 9000 + "' AS DECIMAL(5,2))", "line 1, column 52: 9999"),
        (JOIN + "a.t = TIMESTAMP '0001-01-01 00:00:00+14:00'", "line 1, column 52: '0001-01-01 00:00:00+14:00' is not"),
    ],
    ids=range(12),
)  # fmt: skip
def test_hostile_text_is_an_error_that_can_be_printed(text: str, message: str) -> None:
    with pytest.raises(QueryError) as e:
        parse(text)
    assert str(e.value).startswith(message)
    assert str(e.value).encode("utf-8")
    assert len(str(e.value)) < 20_000


def test_texts_as_long_as_allowed_are_read_in_time() -> None:
    size = MAX_CHARACTERS - 100
    assert len(parse(JOIN + " AND ".join(["a.k=1"] * (size // 10))).where) == size // 10
    escapes = "SELECT 'a\\" * (size // 10)
    for text in [
        escapes,
        f"SELECT {'x' * size}€",
        f"SELECT {'1' * size}",
        "1a" * (size // 2),
        "/*" * (size // 2),
        "[" * size,
    ]:
        with pytest.raises(QueryError) as e:
            parse(text)
        assert len(str(e.value)) < 1000


def test_parse_deep_in_the_stack_gives_a_query_or_an_error() -> None:
    def dig(left: int) -> None:
        if left:
            dig(left - 1)
        else:
            parse(JOIN + "NOT " * 20 + "a.flag")

    room = sys.getrecursionlimit() - len(inspect.stack()) - 60  # enough to begin, too little to end
    with pytest.raises(QueryError, match="the query nests too deep"):
        dig(room)


def test_of_a_long_line_only_the_part_around_the_place_is_shown() -> None:
    with pytest.raises(QueryError) as e:
        parse(JOIN + " AND ".join(["a.k = 1"] * 500) + " AND" + " AND a.k = 2" * 500)
    _, shown, caret = str(e.value).split("\n")
    assert len(shown) < 200
    assert shown[caret.index("^") :].startswith("AND a.k = 2") and shown[: caret.index("^")].endswith("a.k = 1 AND ")
