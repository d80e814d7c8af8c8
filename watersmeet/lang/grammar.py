"""The statements of a job: declarations, then one SELECT with its clauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot.tokenizer_core import Token, TokenType

from watersmeet.lang import refusals
from watersmeet.lang.declarations import Declarations
from watersmeet.lang.positions import Places, placed, wrong
from watersmeet.lang.rules import NAMES, WORD
from watersmeet.model.budget import BYTE_UNITS, Budget, parse_bytes
from watersmeet.model.expr import Expr
from watersmeet.model.location import Location
from watersmeet.model.query import (
    EMITS,
    Declaration,
    Freshness,
    Output,
    Overload,
    Query,
    ShedTerm,
    Source,
)
from watersmeet.model.window import Window

_CLAUSES: Final = ("WHERE", "FRESHNESS", "BUDGET", "ON OVERLOAD", "LATE INTO", "EMIT")
_ENDS: Final = (";", "the end")
_WINDOWS: Final = "[RANGE 10 MINUTES], [ROWS 100], [PARTITION BY k ROWS 1] or [UNBOUNDED]"


class Grammar(Declarations):
    """
    job         := {declaration ';'} select [';']
    declaration, aside, location := see declarations.py
    select      := SELECT output {',' output} FROM from {clause}
    output      := '*' | name '.' '*' | expression [[AS] name]
    source      := name [window] [[AS] name]            the window may also stand after the alias
    window      := '[' (RANGE duration | [RANGE] UNBOUNDED | [PARTITION BY name {',' name}] ROWS n) ']'
    from        := source {join} | source LEFT [OUTER] JOIN (source | '(' source {join} ')') ON condition
    join        := ',' source | [INNER | CROSS] JOIN source [ON condition]
    clause      := WHERE condition | FRESHNESS '(' name duration {',' ...} ')' | BUDGET '(' limit {',' limit} ')'
                 | ON OVERLOAD action {AND action} | LATE INTO aside | EMIT (ISTREAM | DSTREAM | CHANGES) [INTO location]
                                                        each at most once
    limit       := CPU number | MEMORY number (TUPLES | B | KB | MB | ...)
    action      := WAIT | DIRECT | EVICT [USING name] | SHED ['(' name [WEIGHT x] [AT LEAST x PERCENT] {',' ...} ')']
    """

    def job(self, tokens: list[Token], text: str, places: Places) -> Query:
        self.begin(tokens, text, places)
        declarations: list[Declaration] = []
        while self._match(TokenType.SEMICOLON):
            pass
        while self._match_text_seq("CREATE"):
            declarations.append(self.declaration())
            self._end_of_statement("FROM", "TIMESTAMP", "LATENESS", "IDLE", "ON BAD ROW")
        at = self.here
        if not self._match_text_seq("SELECT"):
            if not tokens:
                raise wrong("the query is empty", at, "it needs a SELECT ... FROM ...")
            self.unexpected("CREATE STREAM", "CREATE TABLE", "SELECT", refused=refusals.STATEMENTS)
        with placed(at):
            query = self._select(tuple(declarations))
        if self._match_text_seq("SELECT", advance=False):
            raise wrong("a job has one SELECT", self.here, "put the other into a job of its own")
        if self._match_text_seq("CREATE", advance=False):
            raise wrong("CREATE must come before SELECT", self.here)
        if self._curr:
            self.unexpected("the end of the text", refused=refusals.STATEMENTS)
        return query

    def _end_of_statement(self, *others: str) -> None:
        if self._curr and self._curr.token_type != TokenType.SEMICOLON:
            if self._curr.text.upper() in ("CREATE", "SELECT") and self._curr.token_type == WORD:
                raise wrong(f"expected ';', found {self._curr.text}", self.here, "a statement ends with ;")
            self.unexpected(*others, *_ENDS)
        while self._match(TokenType.SEMICOLON):
            pass

    # -- SELECT

    def _select(self, declarations: tuple[Declaration, ...]) -> Query:
        select = self.listed(self._output)
        if not self._match_text_seq("FROM"):
            self.unexpected(",", "FROM")
        sources, joined, preserves = self._from()
        found: dict[str, Any] = {}
        while clause := self._clause():
            self._once(found, *clause)
        if self._curr and self._curr.token_type != TokenType.SEMICOLON:
            left = [c for c in _CLAUSES if c not in found]
            self.unexpected(*((",", "JOIN") if not found and not preserves else ()), *left, *_ENDS)
        self._end_of_statement()
        emit, into = found.get("EMIT", ("ISTREAM", None))
        return Query(
            tuple(select), tuple(sources), (*(() if preserves else joined), *found.get("WHERE", ())),
            tuple(found.get("FRESHNESS", ())), found.get("BUDGET"), found.get("ON OVERLOAD", Overload()), emit, into, declarations,
            preserves, tuple(joined) if preserves else (), found.get("LATE INTO"),
        )  # fmt: skip

    def _output(self) -> Output:
        at = self.here
        if self._match(TokenType.STAR):
            return Output(None, at=at)
        if self._next.token_type == TokenType.DOT and self._index + 2 < self._tokens_size:
            if self._tokens[self._index + 2].token_type == TokenType.STAR:
                name = self.name("an expression")
                self._advance(2)
                return Output(None, star=name, at=at)
        return Output(self.one_expression(), self._alias(), at=at)

    def _alias(self) -> str | None:
        if self._match(TokenType.ALIAS):
            return self.name(any_word=True)
        if self.is_at(*NAMES) and not self._match_text_seq("LATE", "INTO", advance=False):
            self.implicit = self._curr
            return self.name()
        return None

    def _from(self) -> tuple[list[Source], list[Expr], bool]:
        """The sources, the conditions of ON in written order, and whether the first source is preserved.

        A JOIN B ON p is A, B WHERE p; A LEFT JOIN (B JOIN C ON p) ON q is A LEFT JOIN (B, C) ON p AND q.
        """
        sources, conditions = [self._source()], list[Expr]()
        if self._match_text_seq("LEFT", "JOIN") or self._match_text_seq("LEFT", "OUTER", "JOIN"):
            return self._left_join(sources)
        sources, conditions = self._joins(sources, conditions)
        return sources, conditions, False

    def _left_join(self, sources: list[Source]) -> tuple[list[Source], list[Expr], bool]:
        conditions = list[Expr]()
        subquery = self._next.text.upper() in ("SELECT", "WITH") and self._next.token_type not in NAMES
        if self.is_at(TokenType.L_PAREN) and not subquery:
            self._advance()
            others, conditions = self._joins([self._source()], conditions)
            self.expect(TokenType.R_PAREN, ")", ",", "JOIN")
            sources += others
        else:
            sources.append(self._source())
        if self._match_text_seq("ON", "OVERLOAD", advance=False) or not self._match_text_seq("ON"):
            self.unexpected("ON")
        conditions += self.conditions()
        if self._curr.text.upper() in ("LEFT", "INNER", "CROSS", "JOIN") or self.is_at(TokenType.COMMA):
            hint = "join all others in parentheses: a [...] LEFT JOIN (b [...] JOIN c [...] ON ...) ON ..."
            raise wrong("nothing can be joined behind a LEFT JOIN", self.here, hint)
        return sources, conditions, True

    def _joins(self, sources: list[Source], conditions: list[Expr]) -> tuple[list[Source], list[Expr]]:
        while True:
            if self._match(TokenType.COMMA):
                sources.append(self._source())
                continue
            kind = self._match_text_seq("INNER") or self._match_text_seq("CROSS")
            if not self._match_text_seq("JOIN"):
                if kind:
                    self.unexpected("JOIN")
                return sources, conditions
            sources.append(self._source())
            if not self._match_text_seq("ON", "OVERLOAD", advance=False) and self._match_text_seq("ON"):
                conditions += self.conditions()

    def _source(self) -> Source:
        at = self.here
        if self.is_at(TokenType.L_PAREN):
            subquery = self._next.text.upper() in ("SELECT", "WITH")
            parentheses = ("a join in parentheses", "join one after another")
            what, instead = refusals.WORDS["SELECT"] if subquery else parentheses
            raise wrong(f"{what} in FROM is not supported", at, instead)
        name = self.name("a name of a stream or table")
        if self.is_at(TokenType.DOT):
            hint = "pass it under a plain name; a name with a point in it goes in back-quotes"
            raise wrong("a stream has a plain name", self.here, hint)
        if self.is_at(TokenType.L_PAREN):
            what, instead = refusals.function(name, False)
            raise wrong(f"{what} in FROM is not supported", at, instead)
        window = self._window()
        alias = self._alias() or name
        if self.is_at(TokenType.L_BRACKET):
            if window:
                raise wrong(f"'{name}' has two windows", self.here)
            window = self._window()
        return Source(name, window, alias, at)

    def _window(self) -> Window | None:
        at = self.here
        if not self._match(TokenType.L_BRACKET):
            return None
        with placed(at):
            window = self._extent()
        if self._match_text_seq("SLIDE", advance=False):
            hint = "results are made as tuples arrive: the window slides with each"
            raise wrong("SLIDE is not supported", self.here, hint)
        self.expect(TokenType.R_BRACKET, "]")
        return window

    def _extent(self) -> Window:
        if self._match_text_seq("RANGE", "UNBOUNDED") or self._match_text_seq("UNBOUNDED"):
            return Window.unbounded()
        if self._match_text_seq("RANGE"):
            if self._match_text_seq("INTERVAL", advance=False):  # as an expression has it
                return Window.range_us(self.interval_us())
            return Window.range_us(self.duration_us())
        partition: list[str] = []
        if self._match_text_seq("PARTITION"):
            if not self._match_text_seq("BY"):
                self.unexpected("BY")
            partition = self.listed(lambda: self.name("a name of a column", any_word=True))
        if not self._match_text_seq("ROWS"):
            expected = (",", "ROWS") if partition else ("RANGE", "ROWS", "PARTITION BY", "UNBOUNDED")
            self.unexpected(*expected, hint=f"windows: {_WINDOWS}")
        return Window.rows(self.count("a number of rows"), tuple(partition))

    # -- the clauses after FROM

    def _clause(self) -> tuple[str, Callable[[], object]] | None:
        if self._match_text_seq("WHERE"):
            return "WHERE", self.conditions
        if self._match_text_seq("FRESHNESS"):
            return "FRESHNESS", lambda: self.parenthesized(self._freshness)
        if self._match_text_seq("BUDGET"):
            return "BUDGET", self._budget
        if self._match_text_seq("ON", "OVERLOAD"):
            return "ON OVERLOAD", self._overload
        if self._match_text_seq("LATE", "INTO"):
            return "LATE INTO", self._aside
        if self._match_text_seq("EMIT"):
            return "EMIT", self._emit
        return None

    def _freshness(self) -> Freshness:
        at = self.here
        return Freshness(self.name("a name of a stream"), self.duration_us(), at)

    def _budget(self) -> Budget:
        at = self.here
        limits: dict[str, Any] = {}
        self.expect(TokenType.L_PAREN, "(")
        if not self._match(TokenType.R_PAREN):
            self.listed(lambda: self._limit(limits))
            self.expect(TokenType.R_PAREN, ")", ",")
        with placed(at):
            tuples, size = limits.get("MEMORY", (None, None))
            return Budget(limits.get("CPU"), tuples, size)

    def _limit(self, limits: dict[str, Any]) -> None:
        if self._match_text_seq("CPU"):
            self._once(limits, "CPU", lambda: float(self.number("a number of cores")))
        elif self._match_text_seq("MEMORY"):
            self._once(limits, "MEMORY", self._memory)
        else:
            self.unexpected("CPU", "MEMORY", hint="for example BUDGET (CPU 0.8, MEMORY 64 MB)")

    def _memory(self) -> tuple[int | None, int | None]:
        at = self.here
        self.number("an amount of memory such as 64 MB or 5000 TUPLES")
        amount, unit = self._prev.text, self._curr.text.upper()
        if unit in ("TUPLES", "TUPLE"):
            self._retreat(self._index - 1)
            tuples = self.count("a whole number of tuples")
            self._advance()
            return tuples, None
        if self._curr.token_type != TokenType.VAR or unit not in BYTE_UNITS:
            self.unexpected("TUPLES", *BYTE_UNITS)
        self._advance()
        with placed(at):
            return None, parse_bytes(f"{amount} {unit}")

    def _overload(self) -> Overload:
        at = self.here
        actions: dict[str, Any] = {}
        self._action(actions)
        while self._match(TokenType.AND):
            self._action(actions)
        if "WAIT" in actions and len(actions) > 1:
            raise wrong("ON OVERLOAD: WAIT gives up nothing, so it stands alone", at)
        with placed(at):
            return Overload(
                "SHED" in actions, tuple(actions.get("SHED", ())), "DIRECT" in actions, "EVICT" in actions,
                actions.get("EVICT"),
            )  # fmt: skip

    def _action(self, actions: dict[str, Any]) -> None:
        if self._match_text_seq("WAIT"):
            self._once(actions, "WAIT", lambda: None)
        elif self._match_text_seq("DIRECT"):
            self._once(actions, "DIRECT", lambda: None)
        elif self._match_text_seq("EVICT"):
            self._once(actions, "EVICT", self._policy)
        elif self._match_text_seq("SHED"):
            listed = self.is_at(TokenType.L_PAREN)
            self._once(actions, "SHED", lambda: self.parenthesized(self._shed_term) if listed else [])
        else:
            self.unexpected("WAIT", "SHED", "DIRECT", "EVICT")

    def _policy(self) -> str | None:
        return self.name("a name of a policy such as heeb", any_word=True) if self._match_text_seq("USING") else None

    def _shed_term(self) -> ShedTerm:
        at = self.here
        name = self.name("a name of a stream")
        found: dict[str, float] = {}
        while True:
            if self._match_text_seq("WEIGHT"):
                self._once(found, "WEIGHT", lambda: float(self.number("a weight")))
            elif self._match_text_seq("AT"):
                self._once(found, "AT LEAST", self._share)
            else:
                return ShedTerm(name, found.get("WEIGHT", 1.0), found.get("AT LEAST", 0.0), at)

    def _share(self) -> float:
        if not self._match_text_seq("LEAST"):
            self.unexpected("LEAST")
        share = self.number("a percentage") / 100
        if not self._match_text_seq("PERCENT") and not self._match(TokenType.MOD):
            self.unexpected("PERCENT")
        return float(share)

    def _emit(self) -> tuple[str, Location | None]:
        kind = self._curr.text.upper()
        if not any(self._match_text_seq(word) for word in EMITS):
            hint = "ISTREAM: results as they come; DSTREAM: as they leave the window; CHANGES: both"
            self.unexpected(*EMITS, hint=hint)
        return kind, self._location() if self._match_text_seq("INTO") else None
