"""CSV files: Arrow's reader; on its refusal a second, careful reading finds the bad rows, with their lines.

A header is expected unless the option header is 'false' (then the declared columns are taken in their order). An empty value,
quoted or not, is NULL, as in Spark's reader. Line breaks may occur inside quotes. A file of no bytes has no rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from watersmeet.data.bad_rows import Rejects
from watersmeet.data.conform import Convert, Piece, conform, converter, find_column
from watersmeet.data.files import read_options, unreadable
from watersmeet.data.place import Place
from watersmeet.data.schema import arrow_schema, arrow_type
from watersmeet.data.stored_file import StoredFile
from watersmeet.model.types import STRING, Field, Schema

OPTIONS = ("header", "sep", "delimiter", "quote", "nullValue")
_BLOCK_BYTES = 4 << 20
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_WIDTH = "a value that holds a separator or a line break must be in quotes"


def read_csv(
    file: StoredFile, schema: Schema | None, options: Mapping[str, str], timestamp: str | None, rejects: Rejects
) -> Iterator[pa.Table]:
    """One CSV file as a table in canonical types."""
    reader = _Reader(file, schema, read_options(options, OPTIONS, "csv", file.place), rejects)
    try:
        if file.size == 0:
            yield arrow_schema(schema or Schema(())).empty_table()
            return
        try:
            table, piece = reader.read(), Piece(file.place, True, reader.locate, rejects=rejects)
        except pa.ArrowInvalid as e:
            yield reader.carefully(e, timestamp)
            return
    except (OSError, pa.ArrowException, csv.Error) as e:
        raise unreadable(file.place, e, "CSV") from None
    yield conform(table, schema, piece, timestamp)


class _Reader:
    """One file with its options settled."""

    def __init__(self, file: StoredFile, schema: Schema | None, options: Mapping[str, str], rejects: Rejects) -> None:
        self.file, self.place, self.schema, self.rejects = file, file.place, schema, rejects
        self.header = _boolean(options.get("header", "true"), self.place)
        self.sep = _character(options.get("sep", options.get("delimiter", ",")), "sep", self.place)
        self.quote = _character(options.get("quote", '"'), "quote", self.place)
        self.null = options.get("nullvalue", "")
        if not self.header and schema is None:
            raise self.place.error(
                "a CSV file without a header needs declared columns", hint="CREATE STREAM ... or a schema"
            )

    def read(self) -> pa.Table:
        """The declared columns, read by Arrow as what they are; raises ArrowInvalid if any row can't be."""
        found = self.names()
        if self.header and not self.locate([1]):
            return pa.table({n: pa.nulls(0) for n in found})
        column_types = None
        if self.schema is not None:
            types = {n: arrow_type(f.type) for n, f in zip(self.wanted(found), self.schema.fields, strict=True)}
            # As text: times, where Arrow takes zones or no zones, not both; decimals, whose precision it does not check.
            late = {n for n, t in types.items() if pa.types.is_timestamp(t) or pa.types.is_decimal(t)}
            column_types = {n: pa.string() if n in late else t for n, t in types.items()}
        return self._arrow(found, column_types, pacsv.ReadOptions(block_size=_BLOCK_BYTES))

    def carefully(self, refused: pa.ArrowInvalid, timestamp: str | None) -> pa.Table:
        """Once more, all values as bytes: rows of another width are set aside, then each column is read, and bad values are found."""
        skipped: list[pacsv.InvalidRow] = []

        def skip(row: pacsv.InvalidRow) -> str:
            skipped.append(row)
            return "skip"

        found = self.names()
        schema = self.schema or Schema(tuple(Field(n, STRING) for n in dict.fromkeys(found)))
        whole = pacsv.ReadOptions(use_threads=False, block_size=min(max(self.file.size * 20, _BLOCK_BYTES), 1 << 30))
        table = self._arrow(found, dict.fromkeys(self.wanted(found), pa.binary()), whole, skip)
        unreadable = {
            row.number - int(self.header): (None, f"expected {row.expected_columns} columns, found {row.actual_columns}", _WIDTH)
            for row in skipped
        }  # fmt: skip
        numbers = [n for n in range(1, table.num_rows + len(skipped) + 1) if n not in unreadable]
        piece = Piece(self.place, True, self.locate, 0, self.rejects, numbers, unreadable, _value_parser)
        made = conform(table, schema, piece, timestamp)
        if self.schema is None:  # nothing is wrong with the values, so the file is
            raise refused
        return made

    def _arrow(
        self, found: list[str], column_types: Mapping[str, pa.DataType] | None, how: pacsv.ReadOptions, skip: Any = None
    ) -> pa.Table:
        if not self.header:
            how.column_names = found
        include = list(dict.fromkeys(self.wanted(found))) if self.schema is not None and self.header else None
        with self.file.stream() as source:
            return pacsv.read_csv(
                source,
                read_options=how,
                parse_options=pacsv.ParseOptions(
                    delimiter=self.sep, quote_char=self.quote, newlines_in_values=True, invalid_row_handler=skip
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types=column_types, include_columns=include, null_values=[self.null], strings_can_be_null=True,
                    true_values=_TRUE, false_values=_FALSE,
                ),
            )  # fmt: skip

    def names(self) -> list[str]:
        """The names of the file's columns."""
        if self.header:
            return self.header_names()
        assert self.schema is not None
        return list(self.schema.names)

    def wanted(self, found: list[str]) -> list[str]:
        """The file's names of the declared columns."""
        if self.schema is None or not self.header:
            return found
        return [found[find_column(found, f.name, self.place)] for f in self.schema.fields]

    def header_names(self) -> list[str]:
        """The names in the first line that is not blank."""
        with self.open_text() as text:
            names: list[str]
            for names in self.rows(text):
                if any("\udc80" <= c <= "\udcff" for name in names for c in name):
                    raise self.place.error("the header is not UTF-8 text")
                if names:
                    return names
        raise self.place.error(
            "is empty: not even a header line", hint="for files without one: OPTIONS ('header' = 'false')"
        )

    def locate(self, rows: Sequence[int]) -> dict[int, tuple[int | None, str | None]]:
        """The line on which each of these data rows begins, and its text; rows that are not there are left out."""
        wanted = set(rows)
        made: dict[int, tuple[int | None, str | None]] = {}
        with self.open_text() as text:
            lines: list[str] = []
            reader = self.rows(_noted(text, lines))
            number, begins = -int(self.header), 1
            for values in reader:
                if values:
                    number += 1
                    if number in wanted:
                        made[number] = begins, _printable("".join(lines))
                        if len(made) == len(wanted):
                            break
                begins = reader.line_num + 1
                lines.clear()
        return made

    def open_text(self) -> io.TextIOWrapper:
        raw = self.file.stream()
        return io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8-sig", errors="surrogateescape", newline="")

    def rows(self, text: Iterable[str]) -> Any:
        csv.field_size_limit(1 << 30)
        return csv.reader(text, delimiter=self.sep, quotechar=self.quote)


def _noted(text: Iterable[str], lines: list[str]) -> Iterator[str]:
    for line in text:
        lines.append(line)
        yield line


def _printable(text: str) -> str:
    """Bytes that are no text as \\xff."""
    return text.rstrip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _value_parser(field: Field) -> Convert:
    """How a column of bytes is read: as Arrow's CSV reader would have."""
    if field.type.name == "STRING":
        return lambda c: c.cast(pa.string())
    if field.type.name in ("TIMESTAMP", "DECIMAL"):
        convert = converter(pa.string(), field, True)
        assert convert is not None
        return lambda c: convert(c.cast(pa.string()))
    return lambda c: _parsed(c.cast(pa.string()), arrow_type(field.type))


def _parsed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of text through Arrow's CSV reader; NULL stays NULL."""
    valid = column.drop_null()
    if len(valid) == 0:
        return pa.chunked_array([pa.nulls(len(column), kind)])
    sink = pa.BufferOutputStream()
    quoted = pacsv.WriteOptions(include_header=False, quoting_style="all_valid")
    pacsv.write_csv(pa.table({"v": valid}), sink, quoted)
    data = sink.getvalue()
    read = pacsv.read_csv(
        pa.BufferReader(data),
        read_options=pacsv.ReadOptions(column_names=["v"], use_threads=False, block_size=max(data.size, 1)),
        parse_options=pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pacsv.ConvertOptions(
            column_types={"v": kind}, null_values=[], true_values=_TRUE, false_values=_FALSE
        ),
    ).column("v")
    if len(valid) == len(column):
        return read
    there = column.is_valid().to_numpy()
    return read.take(pa.array(np.cumsum(there) - 1, mask=~there))


def _boolean(text: str, place: Place) -> bool:
    if text.lower() not in ("true", "false"):
        raise place.error(f"option 'header' is {text!r}", hint="'true' or 'false'")
    return text.lower() == "true"


def _character(text: str, option: str, place: Place) -> str:
    text = {"\\t": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise place.error(f"option '{option}' is {text!r}", hint="one ASCII character")
    return text
