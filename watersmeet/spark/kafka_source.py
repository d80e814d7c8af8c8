"""A topic as a streaming DataFrame: by Spark's own connector where the session has it, else by ours, on confluent-kafka.

Ours is a Python data source. Its offsets are {partition: offset} and live in Spark's checkpoint, so a batch that is run again after a
kill reads the same messages: each is joined exactly once. Either way the messages arrive raw and one decoder reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from watersmeet.data.bad_rows import Rejects
from watersmeet.data.kafka_client import Topic, library
from watersmeet.data.kafka_options import KafkaOptions
from watersmeet.data.messages import RAW, Decoder
from watersmeet.errors import DataError
from watersmeet.model.location import Location
from watersmeet.model.query import Declaration
from watersmeet.spark.plain_errors import plain_error

FORMAT: Final = "watersmeet_kafka"
# One option with all of them in it: client settings may hold passwords, and Spark shows no option whose name says "secret".
SETTINGS: Final = "secret_settings"


def topic_frame(session: SparkSession, declared: Declaration, place: Location) -> DataFrame:
    """The messages of a topic as a stream, raw: what `ReadMessages` takes."""
    options = KafkaOptions.source(place, declared.name)
    raw = _connector(session, options) if has_connector(session) else _ours(session, options, declared.name)
    return raw.select(*Decoder.of(declared).needs)


@dataclass(frozen=True)
class ReadMessages:
    """What workers do with raw messages."""

    declared: Declaration

    def tables(self, batches: Iterator[pa.RecordBatch], rejects: Rejects) -> Iterator[pa.Table]:
        """The rows of the messages, in canonical types."""
        decode = Decoder.of(self.declared)
        for batch in batches:
            yield pa.Table.from_batches([decode(batch, rejects)])


def has_connector(session: SparkSession) -> bool:
    """Whether this session has Spark's own connector. Asks no broker."""
    try:
        asked = (
            session.readStream.format("kafka").option("kafka.bootstrap.servers", "none:0").option("subscribe", "none")
        )
        return bool(asked.load().columns)
    except PySparkException as e:
        if "Failed to find" in str(e) and "kafka" in str(e):
            return False
        raise plain_error(e) from None
    except Py4JError as e:
        raise plain_error(e) from None


def _connector(session: SparkSession, options: KafkaOptions) -> DataFrame:
    reader = session.readStream.format("kafka").option("subscribe", options.topic).option("includeHeaders", "true")
    reader = reader.option("startingOffsets", "latest" if options.latest else "earliest")
    reader = reader.option("failOnDataLoss", str(options.fail_on_data_loss).lower())
    if options.max_offsets:
        reader = reader.option("maxOffsetsPerTrigger", str(options.max_offsets))
    for name, value in options.client.items():
        reader = reader.option(f"kafka.{name}", value)
    return reader.load()


def _ours(session: SparkSession, options: KafkaOptions, name: str) -> DataFrame:
    library()
    with Topic(options, name) as topic:  # what can't be reached is known before the query starts
        topic.bounds()
    session.dataSource.register(KafkaDataSource)
    told = json.dumps({**asdict(replace(options, client=dict(options.client))), "name": name})
    return session.readStream.format(FORMAT).option(SETTINGS, told).load()


class KafkaDataSource(DataSource):
    """A topic's messages, raw. Only streams: a whole topic as a table is read in process."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> T.StructType:
        return from_arrow_schema(RAW)

    def streamReader(self, schema: T.StructType) -> TopicReader:
        settings = json.loads(self.options[SETTINGS])
        return TopicReader(settings.pop("name"), KafkaOptions(**settings))


class Range(InputPartition):
    """Messages of one partition of a topic: from `start` up to `end`."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        super().__init__(partition)
        self.start, self.end = start, end


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are {partition: offset}, the keys as text, for Spark keeps them as JSON."""

    def __init__(self, name: str, options: KafkaOptions) -> None:
        self.name, self.options = name, options
        self._open: Topic | None = None
        self._target: dict[str, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}  # a consumer stays where it is

    def _bounds(self) -> dict[int, tuple[int, int]]:
        if self._open is None:
            self._open = Topic(self.options, self.name)
        return self._open.bounds()

    def initialOffset(self) -> dict[str, int]:
        return {str(p): end if self.options.latest else first for p, (first, end) in self._bounds().items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.options.max_offsets is None else ReadMaxRows(self.options.max_offsets)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {str(p): end for p, (_, end) in self._bounds().items()}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        ends = self._target or {str(p): end for p, (_, end) in self._bounds().items()}
        for partition, begin in start.items():
            if begin > ends.get(partition, -1):
                raise DataError(
                    f"{self.name} (topic {self.options.topic}): the checkpoint is at offset {begin} of partition {partition}, but the"
                    f" topic ends at {ends.get(partition, 'no such partition')}\n"
                    "  it was deleted and made again: start with a new checkpoint"
                )
        return limited(start, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else {**start, **ends}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        """A partition that was added meanwhile is read from its beginning."""
        ranges = [Range(int(p), start.get(p, 0), e) for p, e in end.items()]
        return [r for r in ranges if r.start < r.end]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        with Topic(self.options, self.name) as topic:
            yield from topic.read(partition.value, partition.start, partition.end)

    def stop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def limited(start: dict[str, int], ends: dict[str, int], most: int) -> dict[str, int]:
    """Ends that are at most `most` messages away, every partition getting its share of what waits.

    >>> limited({"0": 0, "1": 5}, {"0": 90, "1": 15}, 10)
    {'0': 9, '1': 6}
    >>> limited({"0": 0, "1": 0, "2": 4}, {"0": 1, "1": 1, "2": 5}, 2)
    {'0': 1, '1': 1, '2': 4}
    """
    waits = {p: end - start.get(p, 0) for p, end in ends.items()}
    total = sum(waits.values())
    if total <= most:
        return {**start, **ends}
    shares = {p: wait * most // total for p, wait in waits.items()}
    for p in sorted(waits, key=lambda p: shares[p] - waits[p])[: most - sum(shares.values())]:
        shares[p] += 1  # what rounding left over: there is always progress
    return {**start, **{p: start.get(p, 0) + shares[p] for p in ends}}
