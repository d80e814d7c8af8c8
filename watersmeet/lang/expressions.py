"""The expression rules of the parser: sqlglot climbs the precedences; the operands, and what must be stricter, are here.

sqlglot's own rules for operands accept the union of some thirty dialects. Ours know columns, literals, CAST and
parentheses, and say so at the first token that is something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite, nan
from typing import Final, NoReturn

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from watersmeet.lang import convert, refusals
from watersmeet.lang.convert import TOO_LARGE, Leaf
from watersmeet.lang.positions import wrong
from watersmeet.lang.rules import EXACT, NAMES, WORD, Rules, microseconds, to_decimal
from watersmeet.model.coerce import time_literal
from watersmeet.model.expr import At, Column, Expr, Literal, Value
from watersmeet.model.functions import ARGUMENTS, SYNONYMS
from watersmeet.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, NULL, STRING, TIMESTAMP, Type

_MAX_NESTING: Final = convert.MAX_DEPTH + 8


class Expressions(Rules):
    """Adds expressions to the small rules."""

    # The operators that the language has, out of sqlglot's. As in Spark, = and < bind alike, from left to right.
    EQUALITY = {}  # noqa: RUF012
    COMPARISON = {**SparkParser.COMPARISON, TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ}  # noqa: RUF012
    UNARY_PARSERS = {t: SparkParser.UNARY_PARSERS[t] for t in (TokenType.PLUS, TokenType.DASH, TokenType.NOT)}  # noqa: RUF012
    RANGE_PARSERS = {  # noqa: RUF012 (declared so by sqlglot)
        t: SparkParser.RANGE_PARSERS[t] for t in (TokenType.BETWEEN, TokenType.IN, TokenType.IS, TokenType.LIKE)
    }
    nesting = 0

    def one_expression(self) -> Expr:
        return convert.expression(self._parse_disjunction())

    def conditions(self) -> list[Expr]:
        """The conjuncts of a condition."""
        return convert.conjuncts(self._parse_disjunction())

    # -- the rules that sqlglot's own rules call

    def expression(self, instance: exp.Expr, token: object = None, comments: object = None) -> exp.Expr:  # type: ignore[override]
        return instance  # sqlglot would look for missing operands and keep the comments: here none is missing

    def _parse_disjunction(self) -> exp.Expr:
        made = super()._parse_disjunction()
        assert made is not None
        return made

    def _parse_bitwise(self) -> exp.Expr | None:
        """Between comparisons and + there is only ||."""
        made = self._parse_term()
        while self._match(TokenType.DPIPE):
            made = exp.DPipe(this=made, expression=self._parse_term())
        return made

    def _parse_unary(self) -> exp.Expr | None:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise wrong("the expression nests too deep", self.here, convert.TOO_DEEP)
        made = super()._parse_unary()
        self.nesting -= 1
        return made

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr:
        """An operand: column, literal, CAST, or an expression in parentheses."""
        at, token, kind = self.here, self._curr, self._curr.token_type
        if kind in NAMES:
            return self._named()
        if kind == TokenType.L_PAREN:
            return self._parse_paren()
        if kind == TokenType.DOT and self._next.token_type == TokenType.NUMBER:
            self._advance(2)
            return self._numeric("." + self._prev.text, at)
        if self._next.token_type == TokenType.L_PAREN and token.text.upper() in ("LEFT", "RIGHT"):
            self._refuse_function(token.text, at)
        if token.text.upper() == "CASE" and kind == WORD:
            return self._case()
        if token.text.upper() == "INTERVAL" and kind == WORD:
            return self._interval()
        if kind not in _LITERALS:
            self.unexpected("an expression", refused=refusals.OPERANDS)
        self._advance()
        if kind == TokenType.NUMBER:
            return self._numeric(token.text, at)
        if kind == TokenType.STRING:
            if self.is_at(TokenType.STRING):
                raise wrong("two strings side by side", self.here, "join them with ||, or separate them with a comma")
            return _leaf(token.text, STRING, at)
        return _leaf(*_CONSTANTS[kind], at)

    def _parse_paren(self) -> exp.Expr:
        self._advance()
        self._refuse_subquery()
        made = exp.Paren(this=self._parse_disjunction())
        if self.is_at(TokenType.COMMA):
            raise wrong("a row of values is not supported", self.here, "compare column by column, with AND between")
        self.expect(TokenType.R_PAREN, ")")
        return made

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        low = self._parse_bitwise()
        self.expect(TokenType.AND, "AND and the upper bound of BETWEEN")
        return exp.Between(this=this, low=low, high=self._parse_bitwise())

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        def item() -> exp.Expr:
            self._refuse_subquery()
            return self._parse_disjunction()

        return exp.In(this=this, expressions=self.parenthesized(item, "( and a list of values"))

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr:
        negated = self._match(TokenType.NOT)
        if not self._match(TokenType.NULL):
            expected = "NULL" if negated else "NULL or NOT NULL"
            self.unexpected(expected, hint="for other values use = and <>", refused=refusals.AFTER_IS)
        made = exp.Is(this=this, expression=exp.Null())
        return exp.Not(this=made) if negated else made

    def _parse_at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
        if self._match_text_seq("AT", "TIME", "ZONE", advance=False):
            hint = "timestamps are in UTC: add or subtract an INTERVAL, or shift them before the join"
            raise wrong("AT TIME ZONE is not supported", self.here, hint)
        return this

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        if self._match_text_seq("ESCAPE", advance=False):
            self.unexpected("the end of LIKE")
        return this

    # -- operands

    def _named(self) -> exp.Expr:
        """What begins with a name: a column, DATE '...', TIMESTAMP '...', CAST(...)."""
        at, token, following = self.here, self._curr, self._next.token_type
        word = token.text.upper() if token.token_type == TokenType.VAR else ""
        if following == TokenType.L_PAREN:
            if word in ARGUMENTS or word in SYNONYMS:
                return self._function(SYNONYMS.get(word, word))
            return self._cast() if word == "CAST" else self._refuse_function(token.text, at)
        if following == TokenType.STRING and word in _TIMES:
            self._advance(2)
            return Leaf(this=time_literal(self._prev.text, _TIMES[word], at))
        parts = [self.name()]
        while self._match(TokenType.DOT):
            if self.is_at(TokenType.STAR):
                raise wrong("* can't be part of an expression", self.here)
            if self._next.token_type == TokenType.L_PAREN:
                self._refuse_function(self._curr.text, at)
            parts.append(self.name("a name of a column", any_word=True))
        if self.is_at(TokenType.L_BRACKET):
            hint = "windows stand after the streams in FROM; arrays and maps: take the element out before the join"
            raise wrong("unexpected [", self.here, hint)
        if len(parts) > 2:
            hint = "a column is stream.column; a name with a point in it goes in back-quotes"
            raise wrong(f"'{'.'.join(parts)}' has too many parts", at, hint)
        return Leaf(this=Column(parts[0] if len(parts) == 2 else None, parts[-1], at=at))

    def _refuse_subquery(self) -> None:
        if self._match_text_seq("SELECT", advance=False) or self._match_text_seq("WITH", advance=False):
            what, instead = refusals.WORDS["SELECT"]
            raise wrong(f"{what} is not supported", self.here, instead)

    def _refuse_function(self, name: str, at: At) -> NoReturn:
        """The current token is the function's name; its arguments are skipped to see whether OVER follows them."""
        depth, i = 0, self._index + 1
        while i < self._tokens_size:
            kind = self._tokens[i].token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            i += 1
            if depth == 0:
                break
        over = i < self._tokens_size and self._tokens[i].text.upper() == "OVER"
        what, instead = refusals.function(name, over)
        raise wrong(f"{what} is not supported", at, instead)

    def _cast(self) -> exp.Expr:
        at = self.here
        self._advance(2)
        operand = self._parse_disjunction()
        self.expect(TokenType.ALIAS, "AS and a type")
        target = self.datatype()
        self.expect(TokenType.R_PAREN, ")")
        inner = operand.this if isinstance(operand, Leaf) else None
        if target.name == "DECIMAL" and isinstance(inner, Literal) and inner.type == STRING:
            return _leaf(_decimal(str(inner.value), target, at), target, at)
        return convert.Conversion(this=operand, to=target, at=at)

    def _function(self, name: str) -> exp.Expr:
        at = self.here
        self._advance()
        args = self.parenthesized(self._parse_disjunction, "( and arguments")
        least, most = ARGUMENTS[name]
        if not least <= len(args) <= most:
            takes = str(least) if least == most else f"{least} or more" if most > 9 else f"{least} or {most}"
            raise wrong(f"{name} takes {takes} arguments, not {len(args)}", at)
        return convert.Function(this=name, expressions=args, at=at)

    def _case(self) -> exp.Expr:
        """CASE WHEN c THEN v ... [ELSE v] END, or CASE x WHEN y THEN v ...: x = y is then the condition."""
        at = self.here
        self._advance()
        subject = None if self._match_text_seq("WHEN", advance=False) else self._parse_disjunction()
        args: list[exp.Expr] = []
        while self._match_text_seq("WHEN"):
            condition = self._parse_disjunction()
            args.append(condition if subject is None else exp.EQ(this=subject, expression=condition))
            if not self._match_text_seq("THEN"):
                self.unexpected("THEN and a value")
            args.append(self._parse_disjunction())
        if not args:
            self.unexpected("WHEN and a condition")
        args.append(self._parse_disjunction() if self._match_text_seq("ELSE") else _leaf(None, NULL, at))
        if not self._match_text_seq("END"):
            self.unexpected("WHEN", "ELSE", "END")
        return convert.Function(this="CASE", expressions=args, at=at)

    def _interval(self) -> Leaf:
        """INTERVAL 5 SECONDS | INTERVAL '5' SECOND | INTERVAL '5 seconds' | INTERVAL 1 HOUR 30 MINUTES"""
        at = self.here
        self._advance()
        if self.is_at(TokenType.STRING):
            return _leaf(self._quoted_interval(self.string("a length of time").split(), at), INTERVAL, at)
        sign = -1 if self._match(TokenType.DASH) else 1
        total = self.duration_us()
        while self.is_at(TokenType.NUMBER):
            total += self.duration_us()
        return _leaf(sign * total, INTERVAL, at)

    def interval_us(self) -> int:
        """An INTERVAL where only a length of time can stand, in microseconds."""
        made: int = self._interval().this.value
        return made

    def _quoted_interval(self, words: Sequence[str], at: At) -> int:
        if len(words) == 1:
            return self.in_unit(to_decimal(words[0], at), at)
        if len(words) == 2:
            return microseconds(to_decimal(words[0], at), words[1], at, at)
        raise wrong("can't read the interval", at, "for example INTERVAL '5' SECONDS, or INTERVAL '5 seconds'")

    def _numeric(self, text: str, at: At) -> Leaf:
        if self.is_at(TokenType.VAR) and self._is_connected():
            hint = "numbers have no suffix; a blank goes before a name"
            raise wrong(f"{text}{self._curr.text} is not a number", at, hint)
        if text.isdecimal():
            if len(text) > 40 or int(text) > 1 << 63:
                raise wrong(f"{text[:40]} does not fit into a BIGINT", at, TOO_LARGE)
            return _leaf(int(text), BIGINT, at)
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not isfinite(value):
            raise wrong(f"{text[:40]} is not a number that a DOUBLE can hold", at)
        return _leaf(value, DOUBLE, at)


_CONSTANTS: Final[dict[TokenType, tuple[Value, Type]]] = {
    TokenType.NULL: (None, NULL),
    TokenType.TRUE: (True, BOOLEAN),
    TokenType.FALSE: (False, BOOLEAN),
}
_LITERALS: Final = frozenset((TokenType.NUMBER, TokenType.STRING, *_CONSTANTS))
_TIMES: Final = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP}


def _leaf(value: Value, kind: Type, at: At) -> Leaf:
    return Leaf(this=Literal(value, kind, at))


def _decimal(text: str, kind: Type, at: At) -> Decimal:
    """A CAST of text to DECIMAL is a decimal literal: the only way to write one exactly."""
    value = to_decimal(text.strip(), at)
    limit = 10 ** (kind.precision - kind.scale)
    step = Decimal(1).scaleb(-kind.scale)
    rounded = value.quantize(step, ROUND_HALF_UP, EXACT) if value.copy_abs() < limit else value
    if rounded.copy_abs() >= limit:
        raise wrong(f"{text} does not fit into {kind}", at)
    return rounded
