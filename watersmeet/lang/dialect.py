"""The dialect: Spark's strings, names and comments, and the words that this language reserves."""

from __future__ import annotations

import re
from typing import Final

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from watersmeet.lang.grammar import Grammar
from watersmeet.lang.positions import Places, wrong
from watersmeet.lang.rules import WORD
from watersmeet.model.types import RESERVED

MAX_CHARACTERS: Final = 250_000

_TYPED = {
    "AND": TokenType.AND, "AS": TokenType.ALIAS, "BETWEEN": TokenType.BETWEEN, "FALSE": TokenType.FALSE, "IN": TokenType.IN,
    "IS": TokenType.IS, "LIKE": TokenType.LIKE, "NOT": TokenType.NOT, "NULL": TokenType.NULL, "OR": TokenType.OR,
    "TRUE": TokenType.TRUE,
}  # fmt: skip


class Watersmeet(Spark):
    """As in Spark 4, `name` is a name, 'text' and "text" are strings; all that is not reserved is an ordinary name."""

    IDENTIFIERS_CAN_START_WITH_DIGIT = False

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 (declared so by sqlglot)
        NUMERIC_LITERALS = {}  # noqa: RUF012
        HEX_STRINGS = []  # noqa: RUF012
        RAW_STRINGS = []  # noqa: RUF012
        COMMANDS = set()  # noqa: RUF012
        KEYWORDS = {  # noqa: RUF012
            "==": TokenType.EQ, "<>": TokenType.NEQ, "!=": TokenType.NEQ, "<=": TokenType.LTE, ">=": TokenType.GTE,
            "||": TokenType.DPIPE, "::": WORD, "<=>": WORD, "<<": WORD, ">>": WORD, "->": WORD,
            **dict.fromkeys(RESERVED, WORD), **_TYPED,
        }  # fmt: skip

    Parser = Grammar


Watersmeet.Tokenizer._COMMENTS.pop("{#", None)  # sqlglot adds the comments of a template language to every dialect


def tokenize(text: str, places: Places) -> list[Token]:
    """The tokens of the text; raises QueryError at the first thing that is no token of the language."""
    if len(text) > MAX_CHARACTERS:
        message = f"the text has {len(text):,} characters, more than {MAX_CHARACTERS:,}"
        raise wrong(
            message, places.at(0), "long lists of values belong in a table: CREATE TABLE ... FROM, and join with it"
        )
    if found := _FORBIDDEN.search(text):
        raise wrong(f"character U+{ord(found[0]):04X} can't be in a query", places.at(found.start()))
    tokenizer = Watersmeet.Tokenizer(dialect=Watersmeet)
    try:
        tokens = tokenizer.tokenize(text)
    except TokenError:
        start = tokenizer._core._start
        what, end = _ENDS.get(text[start], ("string", "'"))
        raise wrong(f"the {what} that begins here does not end", places.at(start), f"close it with {end}") from None
    for token in tokens:
        if token.token_type == TokenType.VAR and not token.text.isidentifier():
            odd = next((i for i, c in enumerate(token.text) if not f"_{c}".isidentifier()), 0)
            hint = "a name with it goes in back-quotes"
            raise wrong(f"unexpected character {token.text[odd]!r}", places.at(token.start + odd), hint)
    return tokens


_ENDS: Final = {'"': ("string", '"'), "`": ("name", "`"), "/": ("comment", "*/")}
_FORBIDDEN: Final = re.compile("[\0\ud800-\udfff]")
