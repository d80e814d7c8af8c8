"""CSV files: Arrow's reader, and on its refusal a second, single-threaded look that finds the row and the line.

A header is expected unless the option header is 'false' (then the declared columns are taken in their order). An empty value,
quoted or not, is NULL, as in Spark's reader. Line breaks may occur inside quotes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from watersmeet.data.conform import Piece, check_timestamps, conform, find_column
from watersmeet.data.files import read_options, unreadable
from watersmeet.data.place import Place, shown
from watersmeet.data.schema import arrow_schema, arrow_type
from watersmeet.errors import DataError
from watersmeet.model.types import Schema

OPTIONS = ("header", "sep", "delimiter", "quote", "nullValue")
_BLOCK_BYTES = 4 << 20


def read_csv(
    file: Path, place: Place, schema: Schema | None, options: Mapping[str, str], timestamp: str | None
) -> pa.Table:
    """One CSV file as a table in canonical types."""
    reader = _Reader(file, place, schema, read_options(options, OPTIONS, "csv", place))
    try:
        try:
            table = reader.read()
        except pa.ArrowInvalid as e:
            raise reader.explain(e) from None
    except (OSError, pa.ArrowException, csv.Error) as e:
        raise unreadable(place, e, "CSV") from None
    piece = Piece(place, text=True, line_of=reader.line_of)
    table = conform(table, schema, piece)
    if timestamp is not None:
        check_timestamps(table, timestamp, piece)
    return table


class _Reader:
    """One file with its options settled."""

    def __init__(self, file: Path, place: Place, schema: Schema | None, options: Mapping[str, str]) -> None:
        self.file, self.place, self.schema = file, place, schema
        self.header = _boolean(options.get("header", "true"), place)
        self.sep = _character(options.get("sep", options.get("delimiter", ",")), "sep", place)
        self.quote = _character(options.get("quote", '"'), "quote", place)
        self.null = options.get("nullvalue", "")
        if not self.header and schema is None:
            raise place.error(
                "a CSV file without a header needs declared columns", hint="CREATE STREAM ... or a schema"
            )

    def read(self, **how: Any) -> pa.Table:
        if self.file.stat().st_size == 0:
            if self.header:
                raise self.place.error(
                    "is empty: not even a header line", hint="for files without one: OPTIONS ('header' = 'false')"
                )
            return arrow_schema(self.schema or Schema(())).empty_table()
        names = None
        if not self.header:
            assert self.schema is not None
            names = list(self.schema.names)
        else:
            found = self.header_names()
        column_types, include = None, None
        if self.schema is not None:
            included = names or [found[find_column(found, f.name, self.place)] for f in self.schema.fields]
            types = {n: arrow_type(f.type) for n, f in zip(included, self.schema.fields, strict=True)}
            # As text: times, where Arrow takes zones or no zones, not both; decimals, whose precision it does not check.
            late = {n for n, t in types.items() if pa.types.is_timestamp(t) or pa.types.is_decimal(t)}
            column_types = {n: pa.string() if n in late else t for n, t in types.items()}
            include = list(dict.fromkeys(included)) if self.header else None
        if self.header and self._row(1) is None:
            return pa.table({n: pa.nulls(0) for n in found})
        with pa.input_stream(str(self.file), compression="detect") as source:
            return pacsv.read_csv(
                source,
                read_options=pacsv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES, **how),
                parse_options=pacsv.ParseOptions(delimiter=self.sep, quote_char=self.quote, newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(
                    column_types=column_types, include_columns=include, null_values=[self.null], strings_can_be_null=True,
                    true_values=["true", "True", "TRUE"], false_values=["false", "False", "FALSE"],
                ),
            )  # fmt: skip

    def header_names(self) -> list[str]:
        """The names in the first line that is not blank."""
        with self.open_text() as text:
            names: list[str]
            for names in self.rows(text):
                if any("\udc80" <= c <= "\udcff" for name in names for c in name):
                    raise self.place.error("the header is not UTF-8 text")
                if names:
                    return names
        raise self.place.error("is empty: not even a header line")

    def explain(self, refused: pa.ArrowInvalid) -> DataError:
        """What is wrong and where: read once more on one thread, which makes Arrow count the rows."""
        try:
            self.read(use_threads=False)
            message = str(refused)
        except pa.ArrowInvalid as e:
            message = str(e)
        at = re.search(r"Row #(\d+)", message)
        if at is None:
            return unreadable(self.place, refused, "CSV")
        row = int(at[1]) - int(self.header)
        line = self.line_of(row)
        count = re.search(r"Expected (\d+) columns, got (\d+)", message)
        if count:
            return self.place.error(
                f"expected {count[1]} columns, found {count[2]}", row=row, line=line,
                hint="a value that holds a separator or a line break must be in quotes",
            )  # fmt: skip
        column = re.search(r"In CSV column #(\d+)", message)
        position = int(column[1]) if column else -1
        names = self.header_names() if self.header else list(self.schema.names if self.schema else ())
        name = names[position] if 0 <= position < len(names) else None
        if "UTF8" in message:
            return self.place.error("is not UTF-8 text", row=row, line=line, column=name)
        field = self.schema.find(name) if self.schema and name else None
        value = self.value(row, position)
        if field is None or value is None:
            return self.place.error(message.rpartition(": ")[2], row=row, line=line, column=name)
        return self.place.error(f"{shown(value)} is not a {field.type}", row=row, line=line, column=field.name)

    def line_of(self, row: int) -> int | None:
        """The line on which a data row begins."""
        found = self._row(row)
        return found[0] if found else None

    def value(self, row: int, position: int) -> str | None:
        found = self._row(row)
        return found[1][position] if found and 0 <= position < len(found[1]) else None

    def _row(self, wanted: int) -> tuple[int, list[str]] | None:
        with self.open_text() as text:
            reader = self.rows(text)
            number, begins = -int(self.header), 1
            for values in reader:
                if values:
                    number += 1
                    if number == wanted:
                        return begins, values
                begins = reader.line_num + 1
        return None

    def open_text(self) -> io.TextIOWrapper:
        raw = pa.input_stream(str(self.file), compression="detect")
        return io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8-sig", errors="surrogateescape", newline="")

    def rows(self, text: io.TextIOWrapper) -> Any:
        csv.field_size_limit(1 << 30)
        return csv.reader(text, delimiter=self.sep, quotechar=self.quote)


def _boolean(text: str, place: Place) -> bool:
    if text.lower() not in ("true", "false"):
        raise place.error(f"option 'header' is {text!r}", hint="'true' or 'false'")
    return text.lower() == "true"


def _character(text: str, option: str, place: Place) -> str:
    text = {"\\t": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise place.error(f"option '{option}' is {text!r}", hint="one ASCII character")
    return text
