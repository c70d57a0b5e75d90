"""Publish one message from the page, and say where it lies.

Paper: §3.1: nobody acknowledges anything, and a message is exposed to consumers only after it is flushed. So the page
looks at the end of the partition before and waits until its own bytes appear behind it.
"""

from __future__ import annotations

from typing import Any

from classroom.observatory.frames import Film, is_modern
from classroom.observatory.modern_messages import ModernPartition
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerPartition
from kafka2011.wire import LATEST, encode_set
from kafka2011.wire.message import Message, encode_message
from since2011.wire.records import Record

MOST_PAYLOAD = 8_000
PATIENCE_S = 5.0
_LOOK = 1 << 20


class NotPublished(Kafka2011Error):
    """The message cannot be published as asked for; nothing was sent."""


class Publisher:
    """Publish to the brokers that the newest frame shows. Thread: any; blocks until the message can be read."""

    def __init__(self, film: Film, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._film, self._clock = film, clock

    def publish(self, wish: dict[str, Any]) -> dict[str, Any]:
        """``{topic, partition, payload}`` → ``{said, link}``."""
        topic, partition, text = str(wish["topic"]), str(wish["partition"]), str(wish["payload"])
        payload = text.encode()
        place = _place(partition)
        broker = self._broker(topic, place)
        if broker.get("modern") and is_modern(self._log(topic, place)):
            return self._publish_modern(broker["modern"], topic, place, wish)
        if not payload:
            raise NotPublished("a message needs at least one byte here; write something")
        if len(payload) > MOST_PAYLOAD:
            raise NotPublished(f"the page publishes at most {MOST_PAYLOAD:,} bytes; `kafka2011 produce` takes more")
        with BrokerConnection(broker["host"], broker["port"], timeout_s=5) as connection:
            end = connection.offsets(topic, place.partition, LATEST)[0]
            connection.produce(topic, place.partition, encode_set([payload]))
            found = self._wait(connection, topic, place.partition, end, encode_message(Message(payload)))
        if found is None:
            said = f"sent to {topic} {place}; not flushed within {PATIENCE_S:.0f} s, so nobody can read it yet"
            return {"said": said, "link": {"topic": topic, "partition": str(place), "from": str(end)}}
        said = f"the message is at offset {found:,} of {topic} {place}, flushed and readable"
        return {"said": said, "link": {"topic": topic, "partition": str(place), "from": str(found)}}

    def _publish_modern(
        self, address: list[Any], topic: str, place: BrokerPartition, wish: dict[str, Any]
    ) -> dict[str, Any]:
        """A record with key and headers; without a value it is a tombstone. The broker acknowledges it."""
        key, text = str(wish.get("key", "")), str(wish["payload"])
        record = Record(
            0,
            self._clock.wall_ms(),
            key.encode() if key else None,
            None if wish.get("tombstone") else text.encode(),
            tuple((name.strip(), held.strip().encode()) for name, held in _headers(str(wish.get("headers", "")))),
        )
        offset = ModernPartition(address[0], address[1], topic, place.partition).produce(record)
        said = f"the record is at offset {offset:,} of {topic} {place}, acknowledged"
        return {"said": said, "link": {"topic": topic, "partition": str(place), "from": str(offset)}}

    def _log(self, topic: str, place: BrokerPartition) -> dict[str, Any]:
        log: dict[str, Any] = (self._film.at() or {"topics": {}})["topics"].get(topic, {}).get(str(place), {})
        return log

    def _broker(self, topic: str, place: BrokerPartition) -> dict[str, Any]:
        frame = self._film.at() or {"brokers": {}, "topics": {}}
        if str(place) not in frame["topics"].get(topic, {}):
            raise NotPublished(f"there is no partition {place} of {topic!r}; `kafka2011 topics create` makes a topic")
        broker: dict[str, Any] = frame["brokers"][str(place.broker_id)]
        if not broker["alive"]:
            raise NotPublished(f"broker {place.broker_id} is not registered; choose a partition of another one")
        return broker

    def _wait(
        self, connection: BrokerConnection, topic: str, partition: int, offset: int, entry: bytes
    ) -> int | None:
        """Where the entry begins, once it can be fetched: at ``offset`` or behind what others publish meanwhile."""
        deadline = self._clock.monotonic() + PATIENCE_S
        while self._clock.monotonic() < deadline:
            data = connection.fetch(topic, partition, offset, _LOOK)
            if (at := data.find(entry)) >= 0:
                return offset + at
            self._clock.sleep(0.1)
        return None


def _headers(text: str) -> list[tuple[str, str]]:
    """Lines of ``name: value``."""
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    return [(name, held) for name, _, held in pairs]


def _place(text: str) -> BrokerPartition:
    try:
        return BrokerPartition.parse(text)
    except ValueError as error:
        raise NotPublished(str(error)) from error
