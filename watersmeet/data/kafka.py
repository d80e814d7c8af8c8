"""Topics in this process: read up to where they end when the run starts, and results sent as they are made."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from watersmeet.data.bad_rows import Rejects
from watersmeet.data.encode import json_objects, key_texts
from watersmeet.data.kafka_client import Outbox, Topic
from watersmeet.data.kafka_options import KafkaOptions
from watersmeet.data.messages import Decoder
from watersmeet.data.place import Place
from watersmeet.errors import nearest_name
from watersmeet.model.location import Location
from watersmeet.model.query import Declaration


def read_topic(declared: Declaration, rejects: Rejects) -> pa.Table:
    """All messages that are in the topic now, as rows of the declared columns."""
    assert declared.location is not None
    options, decode = KafkaOptions.source(declared.location, declared.name), Decoder.of(declared)
    made: list[pa.RecordBatch] = []
    with Topic(options, declared.name) as topic:
        for partition, (first, end) in topic.bounds().items():
            start = end if options.latest else first
            made += [decode(batch, rejects) for batch in topic.read(partition, start, end)]
    return pa.Table.from_batches(made, decode.schema)


def check_key(options: KafkaOptions, columns: list[str]) -> None:
    """Refuse a key that is no column of the results."""
    if options.key is not None and options.key not in columns:
        raise Place("output", f"topic {options.topic}").error(
            f"the results have no column '{options.key}' to be the key", hint=nearest_name(options.key, columns)
        )


def as_messages(batch: pa.RecordBatch, key: str | None) -> tuple[pa.Array, pa.Array]:
    """Results as keys (NULL without a key) and values, which are JSON objects."""
    keys = pa.nulls(batch.num_rows, pa.binary()) if key is None else key_texts(batch.column(key)).cast(pa.binary())
    return keys, json_objects(batch.schema.names, batch.columns).cast(pa.binary())


class TopicWriter:
    """Takes batches of one schema and sends each row as a message; after `close` the broker has all of them.

    What was sent stays sent, also if the run fails: a topic has no "all or nothing".
    """

    def __init__(self, location: Location, schema: pa.Schema) -> None:
        self._options = KafkaOptions.sink(location)
        check_key(self._options, schema.names)
        self._outbox = Outbox(self._options)
        self.files: list[Path] = []
        self.size_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._outbox.send(*as_messages(batch, self._options.key))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._outbox.flush()
        else:
            self._outbox.discard()
