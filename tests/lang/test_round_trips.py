"""Queries print as text and parse back to the same query; any other text gives QueryError and nothing else."""

from __future__ import annotations

import random

import pytest

from tests.lang.random_queries import RandomQueries, constructs
from watersmeet.errors import QueryError
from watersmeet.lang import parse
from watersmeet.model.query import Query
from watersmeet.model.types import RESERVED

_CONSTRUCTS = """And Or Not Compare Between InList Like IsNull Arithmetic Negate Cast Column Literal RANGE ROWS UNBOUNDED
    PARTITION table star shed terms direct evict using freshness budget into declarations ISTREAM DSTREAM"""
KINDS = ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL", "INTERVAL", "NULL")


@pytest.mark.parametrize(("seed", "queries"), [(7, 2_500), pytest.param(8, 20_000, marks=pytest.mark.long)])
def test_round_trip_of_random_queries(seed: int, queries: int) -> None:
    made, seen = RandomQueries(seed=seed), set[str]()
    for i in range(queries):
        query = made.wild() if i % 2 else made.declared()
        seen |= constructs(query)
        text = str(query)
        again = parse(text)
        assert again == query, f"query {i}:\n{text}\ncame back as\n{again}"
    assert seen >= {*_CONSTRUCTS.split(), *(f"{k} literal" for k in KINDS)}


def accepted(text: str) -> Query | None:
    """The query if the text is one; else the error must be well made."""
    try:
        return parse(text)
    except QueryError as e:
        error = e
    assert error.text is not None and error.line is not None and error.column is not None, repr(text)
    lines = error.text.splitlines() or [""]
    assert 1 <= error.line <= len(lines) and 1 <= error.column <= len(lines[error.line - 1]) + 1, repr(text)
    assert str(error).encode("utf-8"), repr(text)
    return None


def test_3_000_random_byte_strings_give_a_query_or_an_error() -> None:
    r = random.Random(11)
    signs = b"'\"`()[]{};,.*/-+<>=!|%\\0123456789eE \n\r\t"
    words = (
        *sorted(RESERVED),
        "a",
        "o.x",
        "[ROWS 1]",
        "RANGE",
        "SECONDS",
        "STREAM",
        "BIGINT",
        "CPU",
        "MEMORY",
        "'x'",
        "1.5",
    )
    for _ in range(3000):
        kind, size, start = (
            r.randint(0, 2),
            r.randint(0, 60),
            r.choice(["", "SELECT ", "CREATE STREAM s (", "SELECT * FROM a["]),
        )
        if kind == 0:
            text = r.randbytes(size).decode("utf-8", "surrogateescape")
        elif kind == 1:
            text = bytes(r.choice(signs) if r.random() < 0.7 else r.randint(1, 255) for _ in range(size)).decode(
                "latin-1"
            )
        else:
            text = r.choice(["", " "]).join(r.choices(words, k=size))
        accepted(start + text)


def test_2_000_mutated_queries_give_a_query_or_an_error() -> None:
    made, r = RandomQueries(seed=13), random.Random(13)
    texts = [str(made.wild() if i % 2 else made.declared()) for i in range(500)]
    survivors = 0
    for i in range(2000):
        text = texts[i % len(texts)]
        for _ in range(r.choice([1, 1, 2, 5])):
            text = mutated(text, texts[r.randrange(len(texts))], r)
        query = accepted(text)
        if query is not None:
            survivors += 1
            assert parse(str(query)) == query, text
    assert 50 < survivors < 1950, "mutations should break many queries but not all"


def mutated(text: str, other: str, r: random.Random) -> str:
    start = r.randrange(len(text) + 1)
    end = min(len(text), start + r.choice([1, 1, 3, 20]))
    kind = r.randint(0, 6)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return text[:start] + r.choice("'\"`()[];,.*-0aA \n\\\0\ud800é") + text[start:]
    if kind == 2:
        return text[:end] + text[start:end] + text[end:]
    if kind == 3:
        return text[:start] + other[start:]
    words = text.split(" ")
    i, j = r.randrange(len(words)), r.randrange(len(words))
    if kind == 4:
        words[i], words[j] = words[j], words[i]
    elif kind == 5:
        words[i] = r.choice(sorted(RESERVED))
    else:
        del words[i]
    return " ".join(words)
