"""The brokers a load reads from: found through ZooKeeper, or given.

Paper: §3.2 (the broker registry). The Hadoop loader of Kafka 0.7 named brokers by address; that is possible as well
(docs/etl.md).
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from hadoop_etl.entries import read_entries
from hadoop_etl.errors import AnotherLog
from hadoop_etl.ledger import Mark
from hadoop_etl.marks import check_mark, make_mark, refusal
from hadoop_etl.modern import MODERN, ModernClient, ModernTopic, is_modern, read_batches
from hadoop_etl.split import Fetch
from kafka2011.client import BrokerConnection
from kafka2011.errors import (
    CannotConnect,
    ConfigError,
    ConnectionFailed,
    Kafka2011Error,
    OffsetOutOfRange,
    WrongPartition,
)
from kafka2011.producer.routing import parse_brokers
from kafka2011.types import BrokerAddress, BrokerPartition
from kafka2011.wire import EARLIEST, LATEST
from zk_registry.brokers import BrokerRegistry
from zk_registry.session import ZooKeeperSession

MOST_PARTITIONS = 10_000
MOST_SEGMENTS = 100_000
SAMPLE_SIZE = 1 << 20


class _Asked(BrokerConnection):
    """A connection that remembers a broker to be down: it is waited for once, not once per topic. Thread: one."""

    _refusal: str | None = None

    def write(self, *requests: bytes) -> None:
        if self._refusal is not None:
            raise CannotConnect(self._refusal)
        try:
            super().write(*requests)
        except CannotConnect as error:
            self._refusal = str(error)
            raise


class Cluster:
    """Brokers, topics and partitions at one moment. Thread: one."""

    def __init__(self, brokers: dict[int, BrokerAddress], partitions: dict[str, list[BrokerPartition]] | None) -> None:
        self.brokers = brokers
        self._partitions = partitions
        self._connections: dict[int, BrokerConnection] = {}
        self._modern: ModernClient | None = None
        self._modern_topics: dict[str, ModernTopic] = {}

    def add_modern(self, client: ModernClient) -> None:
        """Add the modern topics, as ``client`` finds them now."""
        self._modern, self._modern_topics = client, client.topics()
        self.brokers = {**self.brokers, MODERN: client.address}

    @classmethod
    def from_zookeeper(cls, connect: str) -> Cluster:
        """Read the broker registry once."""
        session = ZooKeeperSession(connect)
        session.start()
        try:
            registry = BrokerRegistry(session)
            return cls(registry.brokers(), {topic: registry.partitions(topic) for topic in registry.topics()})
        finally:
            session.close()

    @classmethod
    def from_brokers(cls, text: str) -> Cluster:
        """Take ``host:port`` or ``id:host:port,…``: several are told apart by their ids, never by their order."""
        brokers = parse_brokers(text)
        numbered = [re.match(r"\s*\d+:.+:", entry) is not None for entry in text.split(",") if entry.strip()]
        if len(brokers) > 1 and not all(numbered):
            named = ",".join(f"{broker.broker_id}:{broker.host}:{broker.port}" for broker in brokers)
            raise ConfigError(
                "several brokers need ids: a table knows partitions by broker id, and an order may change between two "
                f"loads. Write {named} (so they were counted until now), and keep each broker's id for good"
            )
        if len({broker.broker_id for broker in brokers}) < len(brokers):
            raise ConfigError(f"two brokers have the same id in {text}; every broker needs its own")
        return cls({broker.broker_id: broker for broker in brokers}, None)

    def topics(self) -> list[str]:
        """Every topic that ZooKeeper knows."""
        if self._partitions is None:
            raise ConfigError("with --broker the topics must be named (--topic); with --zookeeper they are found")
        return sorted({*self._partitions, *self._modern_topics})

    def is_registered(self, topic: str) -> bool:
        """Tell whether ZooKeeper knows the topic; False also means that ZooKeeper was not asked."""
        return topic in self._modern_topics or (self._partitions is not None and topic in self._partitions)

    def partitions(self, topic: str) -> list[BrokerPartition]:
        """The partitions of a topic on all brokers."""
        if topic in self._modern_topics:
            return [BrokerPartition(MODERN, number) for number in sorted(self._modern_topics[topic].leaders)]
        if self._partitions is not None:
            return self._partitions.get(topic, [])
        return [
            BrokerPartition(broker_id, number)
            for broker_id in sorted(self.brokers.keys() - {MODERN})
            for number in range(self._count(broker_id, topic))
        ]

    def address(self, broker_id: int) -> BrokerAddress:
        """Where a broker listens now."""
        try:
            return self.brokers[broker_id]
        except KeyError:
            raise ConnectionFailed(
                f"broker {broker_id} holds partitions to load but is not registered now; start it and run again"
            ) from None

    def first_offset(self, topic: str, part: BrokerPartition) -> int:
        """The oldest offset the broker still holds."""
        if is_modern(part):
            return self._client.offset(topic, part.partition, earliest=True)
        return self.connection(part.broker_id).offsets(topic, part.partition, EARLIEST)[0]

    def boundaries(self, topic: str, part: BrokerPartition) -> list[int]:
        """The flushed end and every segment start, newest first: offsets that are message boundaries for sure.

        Of a modern topic: the end of the committed records, and its beginning.
        """
        if is_modern(part):
            return [self._client.offset(topic, part.partition, earliest=False), self.first_offset(topic, part)]
        return self.connection(part.broker_id).offsets(topic, part.partition, LATEST, MOST_SEGMENTS)

    def offset_before(self, topic: str, part: BrokerPartition, time_ms: int) -> int | None:
        """The newest offset known to be older than a time, None if all are newer. By segments (docs/protocol.md)."""
        found = self.connection(part.broker_id).offsets(topic, part.partition, time_ms, 1)
        return found[0] if found else None

    def sample(self, topic: str, ranges: Mapping[BrokerPartition, tuple[int, int]]) -> list[bytes]:
        """Payloads from the beginning of each range (start and size), about a thousand in all."""
        found: list[bytes] = []
        for part, (start, size) in ranges.items():
            if size and len(found) < 1000 and is_modern(part):
                answer = self._client.fetch(topic, part.partition, start, SAMPLE_SIZE)
                entries, _ = read_batches(bytes(answer.records or b""), start, start + 1000, list(answer.aborted or []))
                found += [value for rows in entries.rows for value in rows.payload.to_pylist() if value is not None]
            elif size and len(found) < 1000:
                data = self.connection(part.broker_id).fetch(topic, part.partition, start, min(size, SAMPLE_SIZE))
                for rows in read_entries(data, start, at_end=False).rows:
                    found += rows.payload.slice(0, 1000).to_pylist()
        return found

    def make_mark(self, topic: str, part: BrokerPartition, first: int, end: int) -> Mark | None:
        """What the log will be known by: some of its bytes, or the id of a modern topic."""
        if is_modern(part):
            return Mark(0, 1, crc32(self._modern_topics[topic].id.bytes))
        return make_mark(self.fetch_from(topic, part), first, end)

    def check_mark(self, topic: str, part: BrokerPartition, mark: Mark | None, first: int, end: int) -> None:
        """Refuse a log that is not the one it was."""
        where = f"{topic} {part}"
        if not is_modern(part):
            check_mark(mark, self.fetch_from(topic, part), first, end, where)
        elif mark is not None and topic in self._modern_topics and mark != self.make_mark(topic, part, first, end):
            raise AnotherLog(refusal(where, "the topic has another id"))

    def fetch_from(self, topic: str, part: BrokerPartition) -> Fetch:
        """Bytes of a partition of 2011, by offset and size."""
        return partial(self.connection(part.broker_id).fetch, topic, part.partition)

    @property
    def _client(self) -> ModernClient:
        if self._modern is None:
            raise ConfigError("partitions of a modern topic are loaded with --modern HOST:PORT; name the modern port")
        return self._modern

    def connection(self, broker_id: int) -> BrokerConnection:
        """A connection to a broker, kept for the next question."""
        if broker_id not in self._connections:
            address = self.address(broker_id)
            self._connections[broker_id] = _Asked(address.host, address.port)
        return self._connections[broker_id]

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        if self._modern is not None:
            self._modern.close()

    def _count(self, broker_id: int, topic: str) -> int:
        """Ask a broker for partitions until it says there is none: 0.7 has no other way."""
        for number in range(MOST_PARTITIONS):
            try:
                self.connection(broker_id).fetch(topic, number, 0, 0)
            except WrongPartition:
                return number
            except OffsetOutOfRange:
                continue
        raise Kafka2011Error(f"broker {broker_id} claims more than {MOST_PARTITIONS} partitions of {topic}")


@contextmanager
def open_cluster(zookeeper: str | None, brokers: str | None, modern: str | None = None) -> Iterator[Cluster]:
    """The cluster by ZooKeeper or by addresses, with its modern topics if their port is named; closed afterwards."""
    if bool(zookeeper) == bool(brokers):
        raise ConfigError("name the brokers by --zookeeper or by --broker, one of the two")
    cluster = Cluster.from_zookeeper(zookeeper) if zookeeper else Cluster.from_brokers(brokers or "")
    try:
        if modern:
            cluster.add_modern(ModernClient.parse(modern))
        yield cluster
    finally:
        cluster.close()
