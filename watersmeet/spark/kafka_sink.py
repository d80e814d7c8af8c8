"""Results to a topic: each row a message, its value a JSON object, its key the column that option 'key' names.

Spark runs a batch again whose end it did not see: a topic then has its results twice. That is at least once, as with Spark's own
connector. What is sent within a run is neither repeated nor reordered (an idempotent producer).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from watersmeet.data.kafka import as_messages, check_key
from watersmeet.data.kafka_client import Outbox, library
from watersmeet.data.kafka_options import KafkaOptions
from watersmeet.model.location import Location
from watersmeet.spark.kafka_source import SETTINGS, has_connector

FORMAT: Final = "watersmeet_kafka_sink"


def topic_writer(results: DataFrame, into: Location) -> Any:
    """A writer of a DataFrame's rows, streaming as the DataFrame is; ready but for its trigger and checkpoint, or for `save`."""
    options = KafkaOptions.sink(into)
    check_key(options, results.columns)
    messages = results.mapInArrow(AsMessages(options.key), "key BINARY, value BINARY")
    session = results.sparkSession
    start: Any = messages.writeStream if results.isStreaming else messages.write.mode("append")
    if has_connector(session):
        writer = start.format("kafka").option("topic", options.topic)
        for name, value in options.client.items():
            writer = writer.option(f"kafka.{name}", value)
        return writer
    library()
    session.dataSource.register(KafkaSink)
    told = json.dumps(asdict(replace(options, client=dict(options.client))))
    return start.format(FORMAT).option(SETTINGS, told)


@dataclass(frozen=True)
class AsMessages:
    """What workers do with results."""

    key: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(list(as_messages(batch, self.key)), names=["key", "value"])


class KafkaSink(DataSource):
    """Messages to a topic, by confluent-kafka."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(KafkaOptions(**json.loads(self.options[SETTINGS])))

    def writer(self, schema: T.StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(KafkaOptions(**json.loads(self.options[SETTINGS])))


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: KafkaOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return send(self.options, iterator)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: KafkaOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return send(self.options, iterator)


def send(options: KafkaOptions, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    """What a task does; it ends when the broker has all its messages."""
    outbox = Outbox(options)
    for batch in batches:
        outbox.send(batch.column("key"), batch.column("value"))
    outbox.flush()
    return WriterCommitMessage()
