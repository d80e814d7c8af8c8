"""Brokers for tests: librdkafka's own mock cluster, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

PARTITIONS = 4  # of every topic of a mock cluster


class MockCluster:
    """A broker that lives as long as this object: topics come into being when they are written to."""

    options = ""

    def __init__(self) -> None:
        self.producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
        brokers = self.producer.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{b.host}:{b.port}" for b in brokers)
        self.location = f"FORMAT kafka OPTIONS ('kafka.bootstrap.servers' = '{self.servers}'{self.options})"

    def send(self, topic: str, rows: Iterable[Any], key: str | None = None, **message: Any) -> None:
        """Rows as JSON, bytes as they are; the key is one of the row's fields."""
        for number, row in enumerate(rows):
            value = row if isinstance(row, bytes) or row is None else json.dumps(row)
            given = {"key": str(row[key])} if key and isinstance(row, dict) else {}
            self.producer.produce(topic, value, partition=number % PARTITIONS, **given, **message)
            self.producer.poll(0)
        assert self.producer.flush(30) == 0

    def received(self, topic: str) -> list[tuple[bytes | None, Any]]:
        """All messages of a topic: key, and value as JSON."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "test", "enable.auto.commit": False, "log_level": 0}
        )
        found = []
        try:
            for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
                consumer.assign([TopicPartition(topic, partition, low)])
                for message in consumer.consume(high - low, timeout=30) if high > low else ():
                    assert message.error() is None
                    value = message.value()
                    assert isinstance(value, bytes)
                    found.append((message.key(), json.loads(value)))
        finally:
            consumer.close()
        return found
