"""Declarations: CREATE STREAM and CREATE TABLE, with the place, the time and the bad rows of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from sqlglot.tokenizer_core import TokenType

from watersmeet.lang.expressions import Expressions
from watersmeet.lang.positions import placed, wrong
from watersmeet.model.location import BadRows, Location, suffix_format
from watersmeet.model.query import DEFAULT_TIMESTAMP, Declaration
from watersmeet.model.types import EPOCH_UNITS, Field, Origin, Schema

_CONSTRAINTS: Final = ("NOT", "NULL", "PRIMARY", "UNIQUE", "DEFAULT", "COMMENT", "GENERATED", "REFERENCES")


_BAD_ROWS: Final = "FAIL stops the run, SKIP counts the row and goes on, INTO 'path' also writes it there"


class Declarations(Expressions):
    """
    declaration := CREATE (STREAM | TABLE) name '(' column {',' column} ')' {property}
    column      := name type [FROM path | METADATA [FROM path]]
    path        := name {'.' name}
    property    := FROM location | TIMESTAMP name [IN unit] | LATENESS duration | IDLE duration
                 | ON BAD ROW (FAIL | SKIP | INTO aside)
    location    := string FORMAT name [OPTIONS '(' string '=' string {',' string '=' string} ')']
    aside       := string [FORMAT name]                 by the path's suffix, else json
    """

    def _once(self, seen: dict[str, Any], word: str, rule: Callable[[], object]) -> None:
        """Reads what follows `word`, which has been read; refuses a second one."""
        if word in seen:
            raise wrong(f"{word} is given twice", self.places.at(self._prev.start))
        seen[word] = rule()

    def declaration(self) -> Declaration:
        static = self._match_text_seq("TABLE")
        if not static and not self._match_text_seq("STREAM"):
            self.unexpected("STREAM", "TABLE", hint="CREATE STREAM name (column type, ...) or CREATE TABLE ...")
        at, name = self.here, self.name("a name for the stream or table")
        fields: dict[str, Field] = {}
        self.parenthesized(lambda: self._field(fields))
        found: dict[str, Any] = {}
        while True:
            if self._match_text_seq("FROM"):
                self._once(found, "FROM", self._location)
            elif not static and self._match_text_seq("TIMESTAMP"):
                self._once(found, "TIMESTAMP", self._timestamp)
            elif not static and self._match_text_seq("LATENESS"):
                self._once(found, "LATENESS", self.duration_us)
            elif not static and self._match_text_seq("IDLE"):
                self._once(found, "IDLE", self.duration_us)
            elif self._match_text_seq("ON", "BAD", "ROW"):
                self._once(found, "ON BAD ROW", self._bad_rows)
            else:
                break
        if static and self._curr.text.upper() in ("TIMESTAMP", "LATENESS", "IDLE"):
            hint = "only streams have a time: CREATE STREAM"
            raise wrong(f"a table has no {self._curr.text.upper()}", self.here, hint)
        timestamp, unit = found.get("TIMESTAMP", (DEFAULT_TIMESTAMP, None))
        if unit and (key := timestamp.lower()) in fields:
            fields[key] = replace(fields[key], unit=unit) if fields[key].type.name == "TIMESTAMP" else fields[key]
        with placed(at):
            return Declaration(
                name, Schema(tuple(fields.values())), found.get("FROM"), static, timestamp, found.get("LATENESS", 0),
                found.get("IDLE"), found.get("ON BAD ROW", BadRows()), at,
            )  # fmt: skip

    def _timestamp(self) -> tuple[str, str | None]:
        """The column, and in which unit it counts the time since 1970, if it holds numbers."""
        column = self.name("a name: the timestamp column", any_word=True)
        if not self._match(TokenType.IN):
            return column, None
        unit = self._curr.text.upper()
        if unit.removesuffix("S") + "S" not in EPOCH_UNITS:
            self.unexpected(*EPOCH_UNITS, hint="the unit in which the column's numbers count the time since 1970")
        self._advance()
        return column, unit.removesuffix("S") + "S"

    def _bad_rows(self) -> BadRows:
        for action in ("FAIL", "SKIP"):
            if self._match_text_seq(action):
                return BadRows(action)
        if not self._match_text_seq("INTO"):
            self.unexpected(
                "FAIL", "SKIP", "INTO", hint=_BAD_ROWS, refused=dict.fromkeys(("IGNORE", "DROP"), ("IGNORE", _BAD_ROWS))
            )
        return BadRows("INTO", self._aside())

    def _aside(self) -> Location:
        """A place for rows that are no results; JSON lines hold any of them."""
        path = self.string("a path in quotes")
        if self._match_text_seq("FORMAT"):
            return Location(path, self.name("a format such as json, csv or parquet", any_word=True))
        return Location(path, suffix_format(path) or "json")

    def _field(self, fields: dict[str, Field]) -> None:
        at, name = self.here, self.name("a name for the column", any_word=True)
        if name.lower() in fields:
            raise wrong(f"column '{name}' is declared twice", at)
        fields[name.lower()] = Field(name, self.datatype(), origin=self._origin(name))
        if self._curr.text.upper() in _CONSTRAINTS:
            raise wrong("constraints on columns are not supported", self.here, "a column is a name and a type")

    def _origin(self, name: str) -> Origin | None:
        metadata = bool(self._match_text_seq("METADATA"))
        if not self._match_text_seq("FROM"):
            return Origin((name,), metadata) if metadata else None
        path = [self.name("a name: where in a message the value lies", any_word=True)]
        while self._match(TokenType.DOT):
            path.append(self.name("a name within it", any_word=True))
        return Origin(tuple(path), metadata)

    def _location(self) -> Location:
        path = self.string("a path in quotes")
        if not self._match_text_seq("FORMAT"):
            self.unexpected("FORMAT", hint="for example FORMAT parquet")
        form = self.name("a format such as parquet, csv or json", any_word=True)
        options: dict[str, str] = {}
        if self._match_text_seq("OPTIONS"):
            self.parenthesized(lambda: self._option(options))
        return Location(path, form, tuple(options.items()))

    def _option(self, options: dict[str, str]) -> None:
        at, key = self.here, self.string("an option in quotes, such as 'header' = 'true'")
        if key in options:
            raise wrong(f"option '{key}' is given twice", at)
        self.expect(TokenType.EQ, "=")
        options[key] = self.string("the option's value in quotes")
