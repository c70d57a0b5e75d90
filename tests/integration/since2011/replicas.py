"""What lies in the logs of a replicated partition, and who leads it, for tests that compare replicas."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kafka2011.errors import ConnectionFailed
from since2011.client.connection import ModernConnection
from since2011.wire.codec import NO_UUID, ApiKey, Struct
from since2011.wire.record_batch import BatchHeader, headers


class Seen(NamedTuple):
    """A partition as a broker tells of it."""

    leader: int
    isr: frozenset[int]


def batches_of(directory: Path) -> list[tuple[BatchHeader, bytes]]:
    """Every batch of a partition's log, in order, with its bytes."""
    found = []
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        for position, header in headers(data):
            found.append((header, data[position : position + header.size]))
    return found


def _metadata(address: str, topics: list[Struct] | None) -> Struct | None:
    host, _, port = address.rpartition(":")
    try:
        connection = ModernConnection(host, int(port), client_id="test", timeout_s=20)
    except ConnectionFailed:
        return None
    try:
        return connection.ask(ApiKey.METADATA, 9, Struct(topics=topics, auto_create=False))
    except ConnectionFailed:
        return None
    finally:
        connection.close()


def seen(address: str, topic: str, index: int = 0) -> Seen | None:
    """One partition as the broker at ``address`` sees it; None while it does not, or does not answer."""
    answer = _metadata(address, [Struct(name=topic, topic_id=NO_UUID)])
    for each in [] if answer is None else answer.topics:
        for partition in each.partitions:
            if partition.index == index:
                return Seen(partition.leader, frozenset(partition.isr))
    return None


def brokers_seen(address: str) -> set[int]:
    """The living brokers, as the one at ``address`` sees them."""
    answer = _metadata(address, [])
    return set() if answer is None else {broker.id for broker in answer.brokers}
