"""The broker registry: who is alive, where, with how many partitions of which topic.

Paper: §3.2, "the broker registry contains the broker's host name and port, and the set of topics and partitions stored
on it".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from kafka2011.events import Journal
from kafka2011.types import BrokerAddress, BrokerPartition, is_legal_name
from zk_registry import paths
from zk_registry.events import NodeIgnored
from zk_registry.operations import Children, Exists, Get, NoNode, Registry
from zk_registry.partition_numbering import PartitionRows

Watcher = Callable[[str], None]

MAX_PARTITIONS = 100_000
_HOST = re.compile(r"[A-Za-z0-9._-]{1,255}\Z")


def encode_broker(host: str, port: int, started_ms: int) -> bytes:
    """The text of a broker's node. No colon may be in the host: readers split at colons."""
    return f"{host}-{started_ms}:{host}:{port}".encode()


def parse_broker(name: str, value: bytes) -> BrokerAddress | None:
    """Read ``/brokers/ids/<name>``; None if it is not a broker."""
    number = _number(name.encode("utf-8", "replace"), (1 << 31) - 1)
    fields = value[:1000].decode("utf-8", "replace").split(":")
    if number is None or len(fields) < 3:
        return None
    port = _number(fields[2].encode("utf-8", "replace"), 65535)
    if port is None or _HOST.match(fields[1]) is None:
        return None
    return BrokerAddress(number, fields[1], port)


def parse_partition_count(value: bytes) -> int | None:
    """Read ``/brokers/topics/<topic>/<broker id>``; None if it is not a count."""
    return _number(value.strip(), MAX_PARTITIONS)


def _number(text: bytes, most: int) -> int | None:
    return int(text) if 0 < len(text) <= 10 and text.isdigit() and int(text) <= most else None


class BrokerRegistry:
    """What brokers wrote, as one reader sees it now. Thread: as its registry.

    With a ``watcher`` each read leaves one-shot watches on everything it looked at, so that the watcher is called when
    the answer may have changed. What cannot be read is passed over, once with an event.
    """

    def __init__(self, registry: Registry, *, journal: Journal | None = None) -> None:
        self._registry, self._journal = registry, journal or Journal()
        self._ignored: set[str] = set()

    def brokers(self, watcher: Watcher | None = None) -> dict[int, BrokerAddress]:
        """The living brokers by id, in numeric order."""
        found = []
        for name in self._children(paths.BROKER_IDS, watcher):
            path = f"{paths.BROKER_IDS}/{name}"
            value = self._value(path, watcher)
            address = None if value is None else parse_broker(name, value)
            if address is not None:
                found.append(address)
            elif value is not None:
                self._ignore(path, "not <creator>:<host>:<port>")
        return {address.broker_id: address for address in sorted(found)}

    def topics(self, watcher: Watcher | None = None) -> list[str]:
        """Every topic a broker ever announced."""
        return [name for name in self._children(paths.BROKER_TOPICS, watcher) if is_legal_name(name)]

    def partition_counts(self, topic: str, watcher: Watcher | None = None) -> dict[int, int]:
        """How many partitions of ``topic`` each broker has, by broker id."""
        found = {}
        for name in self._children(paths.topic(topic), watcher):
            path = f"{paths.topic(topic)}/{name}"
            value = self._value(path, watcher)
            broker = _number(name.encode("utf-8", "replace"), (1 << 31) - 1)
            count = None if value is None else parse_partition_count(value)
            if broker is not None and count is not None:
                found[broker] = count
            elif value is not None:
                self._ignore(path, "not a number of partitions on a broker")
        return dict(sorted(found.items()))

    def partitions(self, topic: str, watcher: Watcher | None = None) -> list[BrokerPartition]:
        """Every partition of ``topic`` on all brokers, in numeric order; empty if nobody announced the topic."""
        return _partitions(self.partition_counts(topic, watcher).items())

    def row(self, topic: str, watcher: Watcher | None = None) -> tuple[BrokerPartition, ...]:
        """The partitions of ``topic`` as today's clients number them, those of brokers that are away included."""
        return PartitionRows(self._registry).extended(topic, self.partitions(topic, watcher))

    def modern_addresses(self, watcher: Watcher | None = None) -> dict[int, BrokerAddress]:
        """Where the brokers that also speak today's protocol listen for it."""
        found = {}
        for name in self._children(paths.MODERN, watcher):
            value = self._value(f"{paths.MODERN}/{name}", watcher)
            address = None if value is None else parse_broker(name, b":" + value)
            if address is not None:
                found[address.broker_id] = address
            elif value is not None:
                self._ignore(f"{paths.MODERN}/{name}", "not <host>:<port>")
        return dict(sorted(found.items()))

    def _children(self, path: str, watcher: Watcher | None) -> tuple[str, ...]:
        while True:
            try:
                names: tuple[str, ...] = self._registry.perform(Children(path, watcher is not None), watcher)
                return names
            except NoNode:
                # Not there yet: the watch that tells of its creation is one on its existence.
                if watcher is None or self._registry.perform(Exists(path, True), watcher) is None:
                    return ()

    def _value(self, path: str, watcher: Watcher | None) -> bytes | None:
        try:
            value: bytes = self._registry.perform(Get(path, watcher is not None), watcher).value
        except NoNode:
            # Gone since its parent was listed; the watch on the parent has seen it.
            return None
        return value

    def _ignore(self, path: str, reason: str) -> None:
        if path not in self._ignored:
            self._ignored.add(path)
            self._journal.emit(NodeIgnored(path=path, reason=reason))


def _partitions(counts: Iterable[tuple[int, int]]) -> list[BrokerPartition]:
    return [BrokerPartition(broker, n) for broker, count in sorted(counts) for n in range(count)]
