"""Topics by way of confluent-kafka: their bounds, ranges of their messages as Arrow, and messages sent. No consumer group is used.

Offsets are kept by whoever reads (Spark's checkpoint), never by the broker. A range is read up to its end whatever lies between:
compaction and transactions leave offsets at which there is no message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from watersmeet.data.kafka_options import KafkaOptions
from watersmeet.data.messages import RAW
from watersmeet.data.place import Place
from watersmeet.errors import DataError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_ANSWER_SECONDS: Final = 15.0
_WAIT_SECONDS: Final = 0.5
_WAITS: Final = 120  # so many waits without a message: the broker does not deliver
_BATCH_MESSAGES: Final = 10_000
# Options of clients that we set; a job's own `kafka.` options come after them.
_CONSUMER: Final = {
    "group.id": "watersmeet", "enable.auto.commit": "false", "enable.auto.offset.store": "false", "enable.partition.eof": "true",
    "log_level": "0",
}  # fmt: skip
_PRODUCER: Final = {"enable.idempotence": "true", "acks": "all", "linger.ms": "20", "log_level": "0"}


def library() -> Any:
    """confluent_kafka, or how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise DataError("FORMAT kafka needs the package confluent-kafka\n  pip install 'watersmeet[kafka]'") from None
    return confluent_kafka


class Topic:
    """A topic as a reader sees it. Use it in `with`, or `close` it."""

    def __init__(self, options: KafkaOptions, name: str) -> None:
        self.options, self.place = options, Place(name, f"topic {options.topic}")
        reset = "error" if options.fail_on_data_loss else "earliest"
        self._consumer: Consumer = _made(
            library().Consumer, {**_CONSUMER, "auto.offset.reset": reset}, options, self.place
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def bounds(self) -> dict[int, tuple[int, int]]:
        """By partition: the first offset that is there, and the one after the last."""
        kafka = library()
        topic = self.options.topic
        try:
            found = self._consumer.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic]
            if found.error is not None:
                raise self.place.error(f"can't be read: {found.error.str()}", hint=f"asked {self.options.servers}")
            return {
                p: self._consumer.get_watermark_offsets(kafka.TopicPartition(topic, p), timeout=_ANSWER_SECONDS, cached=False)
                for p in sorted(found.partitions)
            }  # fmt: skip
        except kafka.KafkaException as e:
            raise self._unreachable(e) from None

    def read(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The messages of a partition from offset `start` up to `end`, which is not among them."""
        kafka = library()
        self._consumer.assign([kafka.TopicPartition(self.options.topic, partition, start)])
        at, idle = start, 0
        try:
            while at < end:
                found = self._consumer.consume(min(_BATCH_MESSAGES, end - at), timeout=_WAIT_SECONDS)
                idle = 0 if found else idle + 1
                if idle == _WAITS:
                    raise self.place.error(
                        f"partition {partition}: no message for {_WAIT_SECONDS * _WAITS:.0f} s, at offset {at} of {end}",
                        hint=f"is the broker at {self.options.servers} well?",
                    )
                kept = []
                for message in found:
                    error, offset = message.error(), message.offset() or 0
                    if error is None:
                        kept += [message] if offset < end else []
                        at = max(at, offset + 1)
                    elif error.code() == kafka.KafkaError._PARTITION_EOF:
                        at = max(at, offset)
                    elif error.code() == kafka.KafkaError._AUTO_OFFSET_RESET:
                        raise self.lost(partition, at, end)
                    else:
                        raise self.place.error(f"partition {partition}, offset {at}: can't be read: {error.str()}")
                if kept:
                    yield as_batch(kept)
        finally:
            self._consumer.unassign()

    def lost(self, partition: int, start: int, end: int) -> DataError:
        return self.place.error(
            f"partition {partition}: offsets from {start} on, of those up to {end}, are no longer there",
            hint="the broker has removed messages that were not read yet; option 'failOnDataLoss' = 'false' goes on without them",
        )

    def _unreachable(self, e: Exception) -> DataError:
        what = e.args[0].str() if e.args else str(e)
        return self.place.error(f"no answer from the broker: {what}", hint=f"asked {self.options.servers}")


def as_batch(messages: list[Any]) -> pa.RecordBatch:
    """Messages in the columns of RAW."""
    times = [m.timestamp() for m in messages]
    columns = [
        [m.key() for m in messages], [m.value() for m in messages], [m.topic() for m in messages],
        [m.partition() for m in messages], [m.offset() for m in messages],
        [None if kind == 0 or ms < 0 else ms * 1000 for kind, ms in times],
        [[{"key": k, "value": v} for k, v in m.headers() or ()] for m in messages],
    ]  # fmt: skip
    arrays = [pa.array(values, f.type) for values, f in zip(columns, RAW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RAW)


class Outbox:
    """Sends messages to a topic; `flush` returns when the broker has all of them.

    The client repeats what the broker did not acknowledge, and the broker drops what it has already (an idempotent producer).
    """

    def __init__(self, options: KafkaOptions) -> None:
        self.options, self.place = options, Place("output", f"topic {options.topic}")
        self._producer = _made(library().Producer, _PRODUCER, options, self.place)
        self._failed: list[str] = []
        self.sent = 0

    def send(self, keys: pa.Array, values: pa.Array) -> None:
        """Send one message for each value; they are on their way when this returns."""
        for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            while True:
                try:
                    self._producer.produce(self.options.topic, value=value, key=key, on_delivery=self._told)
                    break
                except BufferError:
                    self._producer.poll(_WAIT_SECONDS)
            self.sent += 1
        self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        left = self._producer.flush(_WAIT_SECONDS * _WAITS)
        self._check()
        if left:
            raise self.place.error(
                f"{left} messages could not be sent", hint=f"is the broker at {self.options.servers} well?"
            )

    def discard(self) -> None:
        """Forget what is not on its way yet; what was sent stays sent."""
        self._producer.purge()

    def _told(self, error: Any, _: object) -> None:
        if error is not None and len(self._failed) < 3:
            self._failed.append(str(error.str()))

    def _check(self) -> None:
        if self._failed:
            raise self.place.error(
                f"a message could not be sent: {self._failed[0]}", hint=f"asked {self.options.servers}"
            )


def _made(client: Any, ours: Mapping[str, str], options: KafkaOptions, place: Place) -> Any:
    kafka = library()
    try:
        return client({**ours, **options.client})
    except kafka.KafkaException as e:
        what = e.args[0].str() if e.args and hasattr(e.args[0], "str") else str(e)
        raise place.error(
            f"the Kafka client refuses its settings: {what}",
            hint="'kafka.' options have librdkafka's names, such as 'kafka.sasl.username'",
        ) from None
