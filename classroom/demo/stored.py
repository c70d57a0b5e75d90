"""What the brokers hold of a topic, read message by message; what cannot be read is named, and reading goes on.

Paper: §3.1 (reading by offset), §3.3 (a CRC with every message).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from classroom.cluster.cluster import Cluster
from classroom.demo.deliveries import Place
from classroom.demo.events import SCHEMAS
from kafka2011.client import BrokerConnection
from kafka2011.errors import InvalidMessage, InvalidMessageSize
from kafka2011.wire import decode_set, readable_bytes
from kafka2011.wire.message import LENGTH
from kafka2011.wire.offsets import EARLIEST, LATEST
from zk_registry.brokers import BrokerRegistry
from zk_registry.session import ZooKeeperSession


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes from ``offset`` up to ``end`` of a partition that cannot be read."""

    topic: str
    partition: str
    offset: int
    end: int
    reason: str

    def holds(self, place: Place) -> bool:
        """True if this message was there before the damage."""
        return place[:2] == (self.topic, self.partition) and self.offset <= place[2] < self.end

    def __str__(self) -> str:
        return (
            f"{self.topic} {self.partition}: the {self.end - self.offset:,} bytes at offset {self.offset:,} cannot be "
            f"read ({self.reason}); on the page: #browse?topic={self.topic}&partition={self.partition}"
            f"&from={self.offset}"
        )


@dataclass(slots=True)
class Stored:
    """Every readable message, and every place that cannot be read."""

    messages: set[Place] = field(default_factory=set)
    damaged: list[Damage] = field(default_factory=list)

    def read(self, topic: str, partition: str, offset: int, end: int, fetch: Callable[[int], bytes]) -> None:
        """Read one partition from ``offset`` to ``end``; ``fetch`` gives the bytes from an offset on."""
        while offset < end:
            data = fetch(offset)
            try:
                messages = decode_set(data, offset)
            except (InvalidMessage, InvalidMessageSize) as error:
                good = readable_bytes(data)
                if not good:
                    # The reason counts bytes from where the fetch began; the place is said as an offset.
                    reason = str(error).removeprefix("the entry at byte 0 ")
                    beyond = _beyond(data, offset) or end
                    self.damaged.append(Damage(topic, partition, offset, beyond, reason))
                    offset = beyond
                    continue
                messages = decode_set(data[:good], offset)
            if not messages:
                return
            self.messages.update((topic, partition, message.offset) for message in messages)
            offset = messages[-1].next_offset


def stored_messages(cluster: Cluster) -> Stored:
    """Every flushed message of the activity topics, read from the brokers by offset (§3.1)."""
    session = ZooKeeperSession(cluster.zookeeper)
    session.start()
    try:
        registry = BrokerRegistry(session)
        brokers = registry.brokers()
        places = [(topic, partition) for topic in SCHEMAS for partition in registry.partitions(topic)]
    finally:
        session.close()
    stored = Stored()
    for topic, partition in places:
        address, number = brokers[partition.broker_id], partition.partition
        with BrokerConnection(address.host, address.port) as connection:
            first = connection.offsets(topic, number, EARLIEST)[0]
            end = connection.offsets(topic, number, LATEST)[0]
            stored.read(topic, str(partition), first, end, partial(connection.fetch, topic, number))
    return stored


def _beyond(data: bytes, offset: int) -> int | None:
    """Where the next entry begins, if the length of this one can be believed."""
    size = 4 + int(LENGTH.unpack_from(data)[0]) if len(data) >= 4 else 0
    return offset + size if 4 < size <= len(data) else None
