"""The options of FORMAT kafka, with the names that Spark's connector gives them, so that a job file suits either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from watersmeet.data.place import Place
from watersmeet.errors import nearest_name
from watersmeet.model.location import Location

SERVERS: Final = "kafka.bootstrap.servers"
_SOURCE: Final = (SERVERS, "startingOffsets", "failOnDataLoss", "maxOffsetsPerTrigger")
_SINK: Final = (SERVERS, "key")
_INSTEAD: Final = {
    "subscribe": "the topic is the path: FROM 'orders' FORMAT kafka",
    "topic": "the topic is the path: INTO 'orders' FORMAT kafka",
    "subscribepattern": "a stream reads one topic: declare one stream for each",
    "assign": "a stream reads all partitions of its topic",
    "includeheaders": "a column asks for them: trace STRING METADATA FROM headers.trace",
}


@dataclass(frozen=True)
class KafkaOptions:
    """A topic, and how to reach and read or write it.

    client: settings of the Kafka client, without `kafka.` in front.
    latest: a new job begins at the end of the topic, not at its beginning.
    max_offsets: how many messages a batch may have on Spark. key: the column that a sink's messages have as their key.
    """

    topic: str
    client: Mapping[str, str]
    latest: bool = False
    fail_on_data_loss: bool = True
    max_offsets: int | None = None
    key: str | None = None

    @property
    def servers(self) -> str:
        return self.client["bootstrap.servers"]

    @classmethod
    def source(cls, place: Location, name: str) -> KafkaOptions:
        """The options of a stream or table called `name`."""
        given = _known(place, Place(name), _SOURCE)
        start = given.get("startingoffsets", "earliest").lower()
        if start not in ("earliest", "latest"):
            raise Place(name).error(f"startingOffsets '{start}'", hint="earliest (unless you say otherwise) or latest")
        limit = given.get("maxoffsetspertrigger")
        if limit is not None and not (limit.isascii() and limit.isdecimal() and int(limit) > 0):
            raise Place(name).error(f"maxOffsetsPerTrigger '{limit}'", hint="a whole number of messages above 0")
        keep = given.get("failondataloss", "true").lower()
        if keep not in ("true", "false"):
            raise Place(name).error(f"failOnDataLoss '{keep}'", hint="true or false")
        return cls(place.path, _client(given), start == "latest", keep == "true", int(limit) if limit else None)

    @classmethod
    def sink(cls, place: Location) -> KafkaOptions:
        given = _known(place, Place("output"), _SINK)
        return cls(place.path, _client(given), key=given.get("key"))


def _known(place: Location, where: Place, known: tuple[str, ...]) -> dict[str, str]:
    """Options by lower-case name, those of the client as they are; refuses what neither the format nor a client has."""
    made: dict[str, str] = {}
    folded = {k.lower() for k in known}
    for name, value in place.options:
        if name.lower() in _INSTEAD:
            raise where.error(f"FORMAT kafka has no option '{name}'", hint=_INSTEAD[name.lower()])
        if name.lower() in folded:
            made[name.lower()] = value
        elif name.startswith("kafka."):
            made[name] = value
        else:
            hint = nearest_name(name, (*known, "kafka.*"))
            raise where.error(f"FORMAT kafka has no option '{name}'", hint=hint)
    if not place.path:
        raise where.error("FORMAT kafka needs a topic", hint="the path names it: 'orders' FORMAT kafka")
    if not made.get(SERVERS):
        raise where.error(
            "FORMAT kafka needs to know a broker", hint=f"OPTIONS ('{SERVERS}' = 'host:9092') names one or more"
        )
    return made


def _client(given: Mapping[str, str]) -> dict[str, str]:
    return {k.removeprefix("kafka."): v for k, v in given.items() if k.startswith("kafka.")}
