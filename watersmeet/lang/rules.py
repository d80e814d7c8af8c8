"""The small rules of the parser: names, strings, numbers, durations, types, lists, and what to say at a wrong token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Final, NoReturn, TypeVar

from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from watersmeet.errors import nearest_name
from watersmeet.lang import refusals
from watersmeet.lang.positions import Places, placed, wrong
from watersmeet.model.durations import UNITS, unit_us
from watersmeet.model.expr import At
from watersmeet.model.types import Type

_T = TypeVar("_T")

# The type of all reserved words but the operators': one that sqlglot's parser never asks for.
WORD: Final = TokenType.BLOCK_START
NAMES: Final = frozenset((TokenType.VAR, TokenType.IDENTIFIER))
_QUOTED: Final = frozenset((TokenType.STRING, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING))
_UNITS: Final = tuple(f"{unit}S" for unit in UNITS)
_TOO_LONG_US: Final = 1 << 62
_LONGEST_NUMBER: Final = 100  # characters
EXACT: Final = Context(prec=2 * _LONGEST_NUMBER)  # rounds none of the numbers that a text may hold


class Rules(SparkParser):
    """A parser over the tokens of one text. Each rule reads what it names, or raises QueryError at the first wrong token."""

    def begin(self, tokens: list[Token], text: str, places: Places) -> None:
        self.reset()
        self.sql = text
        self.places = places
        self.implicit: Token | None = None  # the last alias that was given without AS
        self._tokens, self._tokens_size, self._index = tokens, len(tokens), -1
        self._advance()

    def is_at(self, *kinds: TokenType) -> bool:
        return self._curr.token_type in kinds

    @property
    def here(self) -> At:
        if self._curr:
            return self.places.at(self._curr.start)
        if not self._prev:
            return At(1, 1)
        last = self.places.at(self._prev.end)
        return At(last.line, last.column + 1)

    # -- a wrong token

    def unexpected(
        self, *expected: str, hint: str = "", refused: Mapping[str, tuple[str, str]] = refusals.WORDS
    ) -> NoReturn:
        """The current token can't stand here: it is not supported, misspelt, or plainly wrong."""
        token, given = self._curr, self.implicit
        given = given if given is self._prev else None
        if given and (near := _nearest_word(given.text, expected)):
            raise wrong(f"unexpected {given.text}", self.places.at(given.start), near)
        word = "" if token.token_type in _QUOTED else token.text.upper()
        if word == "LEFT" and self._next.text.upper() in ("SEMI", "ANTI"):
            word = self._next.text.upper()
        if word in refused and not (token.token_type == WORD and _wants_name(expected)):
            what, instead = refused[word]
            raise wrong(f"{what} is not supported", self.here, instead)
        if token.token_type == TokenType.VAR:
            hint = _nearest_word(token.text, expected) or hint
        hint = hint or self._hint(token, given, expected)
        raise wrong(f"expected {_either(expected)}, found {_sign(self.shown(token))}", self.here, hint)

    def _hint(self, token: Token, given: Token | None, expected: Sequence[str]) -> str:
        if token.token_type == TokenType.DOT and self._prev.token_type == TokenType.STRING:
            return f"names go in back-quotes: `{self._prev.text}`; what is in other quotes is a string, as in Spark"
        if self._prev.token_type == TokenType.NUMBER and unit_us(token.text) is not None:
            return f"a length of time among conditions is INTERVAL {self._prev.text} {token.text}"
        if given and given.text.upper() in ("ROWS", "RANGE", "PARTITION", "UNBOUNDED"):
            return "a window stands in brackets: [ROWS 5]"
        if "," in expected and given:
            return f"is a comma missing before {given.text}?"
        if "," in expected and token.token_type in NAMES:
            return "is a comma missing?"
        if self._prev.token_type == TokenType.COMMA and token.text.upper() == "FROM":
            return "is there a comma too many?"
        if token.token_type == WORD and (_wants_name(expected) or "an expression" in expected):
            return f"{token.text} is a word of the language: to use it as a name, write `{token.text}`"
        if token.token_type == TokenType.STRING and _wants_name(expected):
            return f"names go in back-quotes: `{token.text}`; what is in other quotes is a string, as in Spark"
        return ""

    def shown(self, token: Token) -> str:
        if not token:
            return "the end of the text"
        source = self.sql[token.start : token.end + 1]
        return source if len(source) <= 40 else source[:37] + "..."

    # -- signs, words and lists

    def expect(self, kind: TokenType, sign: str, *others: str) -> None:
        if not self._match(kind):
            self.unexpected(*others, sign)

    def listed(self, rule: Callable[[], _T]) -> list[_T]:
        """rule {',' rule}"""
        found = [rule()]
        while self._match(TokenType.COMMA):
            found.append(rule())
        return found

    def parenthesized(self, rule: Callable[[], _T], what: str = "(") -> list[_T]:
        """'(' rule {',' rule} ')'"""
        self.expect(TokenType.L_PAREN, what)
        found = self.listed(rule)
        self.expect(TokenType.R_PAREN, ")", ",")
        return found

    def name(self, what: str = "a name", any_word: bool = False) -> str:
        """A name; where nothing else can stand (`any_word`) the reserved words are names too."""
        token = self._curr
        word = any_word and token and token.token_type not in _QUOTED and token.text.isidentifier()
        if token.token_type not in NAMES and not word:
            self.unexpected(what)
        if not token.text:
            raise wrong("a name can't be empty", self.here)
        self._advance()
        return token.text

    def string(self, what: str) -> str:
        if not self.is_at(TokenType.STRING):
            self.unexpected(what)
        self._advance()
        return self._prev.text

    # -- numbers

    def number(self, what: str) -> Decimal:
        at = self.here
        if not self.is_at(TokenType.NUMBER):
            self.unexpected(what)
        self._advance()
        return to_decimal(self._prev.text, at)

    def count(self, what: str) -> int:
        at, value = self.here, self.number(what)
        if not self._prev.text.isdecimal() or value >= _TOO_LONG_US:
            raise wrong(f"expected {what}, found {self.shown(self._prev)}", at)
        return int(value)

    def duration_us(self) -> int:
        """A number and a unit of time, in microseconds."""
        at = self.here
        return self.in_unit(self.number("a length of time such as 10 SECONDS"), at)

    def in_unit(self, amount: Decimal, at: At) -> int:
        """The unit of time that follows `amount`."""
        if not self.is_at(TokenType.VAR):
            self.unexpected(f"a unit of time after {amount}", hint=f"known: {', '.join(_UNITS)}")
        made = microseconds(amount, self._curr.text, at, self.here)
        self._advance()
        return made

    # -- types

    def datatype(self) -> Type:
        """name ['(' precision [',' scale] ')']"""
        at, name = self.here, self.name("a type", any_word=True)
        sizes = self.parenthesized(lambda: self.count("a whole number")) if self.is_at(TokenType.L_PAREN) else []
        with placed(at):
            return Type.parse(f"{name}({', '.join(map(str, sizes))})" if sizes else name)


def to_decimal(text: str, at: At) -> Decimal:
    """The number, exactly."""
    try:
        value = Decimal(text if len(text) <= _LONGEST_NUMBER else "NaN")
    except ArithmeticError:
        value = Decimal("NaN")
    if not value.is_finite():
        raise wrong(f"{text[:40]} is not a number", at)
    return value


def microseconds(amount: Decimal, unit: str, at: At, unit_at: At) -> int:
    """`amount` units of time.

    >>> microseconds(Decimal("0.5"), "seconds", At(1, 1), At(1, 5))
    500000
    """
    factor = unit_us(unit)
    if factor is None:
        near = nearest_name(unit, _UNITS if unit.lower().endswith("s") else UNITS)
        hint = near if near.startswith("did") else f"known: {', '.join(_UNITS)}"
        raise wrong(f"unknown unit of time '{unit}'", unit_at, hint)
    length = EXACT.multiply(amount, Decimal(factor)) if amount.copy_abs() < _TOO_LONG_US else amount
    if length.copy_abs() >= _TOO_LONG_US:
        raise wrong(f"{amount} {unit} is too long", at)
    if EXACT.remainder(length, Decimal(1)):
        raise wrong(f"{amount} {unit} is not a whole number of microseconds", at)
    return int(length)


def _nearest_word(word: str, expected: Sequence[str]) -> str:
    words = [w for e in expected for w in e.split() if w.isupper()]
    near = nearest_name(word, words) if words and len(word) > 2 and word.upper() not in words else ""
    return near if near.startswith("did") else ""


def _wants_name(expected: Sequence[str]) -> bool:
    return any(e.startswith("a name") for e in expected)


def _sign(text: str) -> str:
    return f"'{text}'" if len(text) == 1 and not text.isalnum() else text


def _either(expected: Sequence[str]) -> str:
    *first, last = map(_sign, expected)
    return f"{', '.join(first)} or {last}" if first else last
