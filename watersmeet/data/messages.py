"""Messages: what a topic carries, as declared columns and back. The value of a message is one JSON object in UTF-8.

A column is looked up in the value, by its own name or by FROM path, or (METADATA) in what Kafka adds: key, topic, partition, offset,
timestamp, headers. A message that can't be read is a bad row: it is named by topic, partition and offset. One decoder serves all
doors: this process, Spark's own connector, and ours. Columns go through Arrow whole; only where one fails are its values looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from watersmeet.data.bad_rows import Reject, Rejects
from watersmeet.data.conform import NO_TIME, Piece, conform, text_reason
from watersmeet.data.place import Place, shown
from watersmeet.data.rows import convert_value
from watersmeet.data.schema import arrow_schema, arrow_type
from watersmeet.errors import DataError
from watersmeet.model.query import Declaration
from watersmeet.model.types import Field, Schema

_UTC: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
# As Spark's connector has them.
RAW: Final = pa.schema(
    [
        ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp", _UTC), ("headers", HEADERS),
    ]
)  # fmt: skip
_REFUSED: Final = (pa.ArrowException, DataError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Decoder:
    """Messages of a stream, to rows of its declared columns. timestamp: the column in which NULL is an error.

    >>> from watersmeet.lang import parse
    >>> text = "CREATE TABLE t (id BIGINT FROM user.id, k STRING METADATA FROM key) FROM 'x' FORMAT kafka; SELECT * FROM t, a [ROWS 1]"
    >>> table = Decoder.of(parse("CREATE STREAM a (ts TIMESTAMP);" + text).declarations[1])
    >>> message = {"key": b"k1", "value": b'{"user": {"ID": 7}}', "topic": "x", "partition": 0, "offset": 3}
    >>> table(pa.RecordBatch.from_pylist([message], RAW), Rejects()).to_pylist()
    [{'id': 7, 'k': 'k1'}]
    """

    name: str
    fields: tuple[Field, ...]
    timestamp: str | None

    @classmethod
    def of(cls, declared: Declaration) -> Decoder:
        return cls(declared.name, declared.schema.fields, None if declared.static else declared.timestamp)

    @property
    def needs(self) -> list[str]:
        """The columns of RAW that are looked at."""
        metadata = {f.origin.path[0] for f in self.fields if f.origin and f.origin.metadata}
        return [n for n in RAW.names if n in ("value", "topic", "partition", "offset") or n in metadata]

    @property
    def reads_value(self) -> bool:
        return any(f.origin is None or not f.origin.metadata for f in self.fields)

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(Schema(self.fields))

    def __call__(self, batch: pa.RecordBatch, rejects: Rejects) -> pa.RecordBatch:
        """The rows of the messages that can be read; `rejects` takes the others, or stops at the first."""
        wrong: dict[int, tuple[str | None, str]] = {}
        parsed: dict[str, list[Any]] = {}
        if self.reads_value:
            parsed["value"] = _objects(batch.column("value").to_pylist(), "message", wrong)
        if any(f.origin and f.origin.metadata and f.origin.path[0] == "key" and _as_json(f) for f in self.fields):
            parsed["key"] = _parsed(batch.column("key").to_pylist(), "key", wrong)
        columns = [self._column(batch, field, parsed, wrong) for field in self.fields]
        if self.timestamp is not None:
            place = next(i for i, f in enumerate(self.fields) if f.name == self.timestamp)
            for row in pc.indices_nonzero(columns[place].is_null()).to_pylist() if columns[place].null_count else ():
                wrong.setdefault(row, (self.timestamp, NO_TIME))
        made = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if not wrong:
            return made
        rejects.take(self._reject(batch, row, *wrong[row]) for row in sorted(wrong))
        return made.filter(pa.array([row not in wrong for row in range(batch.num_rows)]))

    def _column(self, batch: pa.RecordBatch, field: Field, parsed: dict[str, list[Any]], wrong: _Wrong) -> pa.Array:
        origin = field.origin
        if origin is None or not origin.metadata:
            return typed(_within(parsed["value"], origin.path if origin else (field.name,), field, wrong), field, wrong)
        name, *inner = origin.path
        if name == "headers":
            return typed(_headers(batch.column("headers").to_pylist(), inner, field, wrong), field, wrong)
        if name == "key" and _as_json(field):
            return typed(_within(parsed["key"], tuple(inner), field, wrong), field, wrong)
        if name == "key":
            return typed(
                [_text(v, field, i, wrong) for i, v in enumerate(batch.column("key").to_pylist())], field, wrong
            )
        return batch.column(name).cast(arrow_type(field.type))

    def _reject(self, batch: pa.RecordBatch, row: int, column: str | None, reason: str) -> Reject:
        topic, partition, offset = (batch.column(n)[row].as_py() for n in ("topic", "partition", "offset"))
        value = batch.column("value")[row].as_py()
        return Reject(
            Place(self.name, f"topic {topic}, partition {partition}, offset {offset}"), reason, column=column,
            text=None if value is None else value.decode(errors="replace"),
            hint="ON BAD ROW SKIP or INTO 'path' in its declaration goes on without such messages",
        )  # fmt: skip


_Wrong = dict[int, tuple[str | None, str]]  # by row: the column if it is one, and the reason


def _as_json(field: Field) -> bool:
    """Whether a column of the key wants it parsed: a part of it, or a number. A STRING is the key's text as it is."""
    assert field.origin is not None
    return len(field.origin.path) > 1 or field.type.name != "STRING"


def _objects(values: list[bytes | None], what: str, wrong: _Wrong) -> list[Any]:
    """Each value as an object; {} where it is none, which is noted."""
    found = _parsed(values, what, wrong)
    for row, value in enumerate(found):
        if type(value) is not dict:
            if row not in wrong:
                kind = (
                    "a tombstone: the message has no value"
                    if values[row] is None
                    else f"expected a JSON object, found {shown(value)}"
                )
                wrong[row] = (None, kind)
            found[row] = {}
    return found


def _parsed(values: list[bytes | None], what: str, wrong: _Wrong) -> list[Any]:
    made: list[Any] = []
    for row, value in enumerate(values):
        try:
            made.append(None if value is None else json.loads(str(value, "utf-8-sig"), parse_float=Decimal))
        except UnicodeDecodeError:
            wrong.setdefault(row, (None, f"the {what} is not UTF-8 text"))
            made.append(None)
        except (ValueError, RecursionError) as e:
            where = (
                f"{e.msg} at character {e.pos + 1}"
                if isinstance(e, json.JSONDecodeError)
                else "a number too long, or too deep"
            )
            wrong.setdefault(row, (None, f"the {what} is not JSON: {where}"))
            made.append(None)
    return made


def _within(objects: Sequence[Any], path: tuple[str, ...], field: Field, wrong: _Wrong) -> list[Any]:
    """What lies at a path in each object; NULL where it leads nowhere."""
    found = list(objects)
    for depth, name in enumerate(path):
        for row, value in enumerate(found):
            if type(value) is dict:
                found[row] = value[name] if name in value else _in_other_case(value, name, field, row, wrong)
            elif value is not None:
                wrong.setdefault(
                    row, (field.name, f"'{'.'.join(path[:depth]) or 'key'}' is {shown(value)}, not an object")
                )
                found[row] = None
    return found


def _in_other_case(value: dict[str, Any], name: str, field: Field, row: int, wrong: _Wrong) -> Any:
    close = [key for key in value if key.lower() == name.lower()]
    if len(close) > 1:
        wrong.setdefault(row, (field.name, f"'{name}' may be {' or '.join(map(repr, close))}"))
    return value[close[0]] if len(close) == 1 else None


def _headers(rows: list[Any], inner: list[str], field: Field, wrong: _Wrong) -> list[Any]:
    """One header's text (the last of its name), or all of them as a JSON list of [name, text]."""
    made: list[Any] = []
    for row, headers in enumerate(rows):
        pairs = [
            (h["key"], _text(h["value"], field, row, wrong)) for h in headers or () if not inner or h["key"] == inner[0]
        ]
        if inner:
            made.append(pairs[-1][1] if pairs else None)
        else:
            made.append(json.dumps(pairs, ensure_ascii=False))
    return made


def _text(value: bytes | None, field: Field, row: int, wrong: _Wrong) -> str | None:
    try:
        return None if value is None else str(value, "utf-8")
    except UnicodeDecodeError:
        wrong.setdefault(row, (field.name, f"{shown(value)} is not UTF-8 text"))
        return None


def typed(values: list[Any], field: Field, wrong: _Wrong) -> pa.Array:
    """The values in the column's type; NULL, and noted, where one does not fit."""
    try:
        return _whole(values, field)
    except _REFUSED:
        pass
    made = []
    for row, value in enumerate(values):
        try:
            made.append(convert_value(value, field))
        except ValueError:
            reason, hint = text_reason(value, field)
            wrong.setdefault(row, (field.name, f"{reason}; {hint}" if hint else reason))
            made.append(None)
    return pa.array(made, arrow_type(field.type))


def _whole(values: list[Any], field: Field) -> pa.Array:
    """The whole column at once; refuses what needs a closer look. Never takes what `convert_value` would refuse."""
    kind, final = field.type.name, arrow_type(field.type)
    if field.unit is not None or kind == "DECIMAL":
        raise ValueError(kind)
    if kind in ("STRING", "TIMESTAMP", "DATE"):
        text = pa.array(values, pa.string())
        if kind == "STRING":
            return text
        table = conform(
            pa.table({field.name: text}), Schema((Field(field.name, field.type),)), Piece(Place(""), text=True)
        )
        return table.column(0).combine_chunks()
    if kind == "DOUBLE":
        values = [float(v) if type(v) is Decimal else v for v in values]
    found = pa.array(values)  # booleans and numbers don't mix here, and no text becomes a number
    if found.type not in (final, pa.null()) and (kind, found.type) != ("DOUBLE", pa.int64()):
        raise ValueError(kind)
    return found.cast(final)
