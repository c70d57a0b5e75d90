"""Look at a group from outside: who owns what, how far it got, how far behind it is.

Other kinds of groups are listed beside these through the entry-point group ``kafka2011.group_sources``: each entry is a
GroupSource class.

Paper: §3.2 (the registries), §4 (lag is what operators watch).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Protocol

from consumers.algorithm1.registries import View
from consumers.event_time import event_time
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerAddress, BrokerPartition
from kafka2011.wire import decode_set
from zk_registry import paths
from zk_registry.brokers import BrokerRegistry
from zk_registry.consumers import ConsumerRegistry, groups
from zk_registry.offsets import OffsetRegistry
from zk_registry.operations import Children, Delete, NoNode, NotEmpty, Registry
from zk_registry.owners import OwnerRegistry
from zk_registry.session import ZooKeeperSession

SOURCES = "kafka2011.group_sources"
_PEEK = 64 * 1024


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group of a listing."""

    group: str
    protocol: str
    members: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition as a group sees it. ``lag`` is in bytes: offsets are."""

    topic: str
    partition: str
    owner: str | None
    offset: int | None
    log_end: int | None
    lag_s: float | None = None
    """Age of the next message to read, where its payload is an event with a time of its own (§4)."""
    in_the_way: str | None = None
    """What an owner node says that belongs to no session: nobody can read the partition until somebody deletes it."""

    @property
    def lag(self) -> int | None:
        """Bytes between the stored offset and the end of the log."""
        return None if self.offset is None or self.log_end is None else self.log_end - self.offset


class GroupSource(Protocol):
    """Where groups of one kind are found. ``open`` gets the command's options by name (``zookeeper``)."""

    @classmethod
    def open(cls, options: Mapping[str, str]) -> GroupSource | None:
        """Connect; None if this kind is not there."""

    def groups(self) -> list[GroupRow]: ...

    def describe(self, group: str) -> list[PartitionRow] | None:
        """The partitions of a group; None if this source does not know the group."""

    def close(self) -> None: ...


def sources(options: Mapping[str, str]) -> Iterator[GroupSource]:
    """Every kind of group that can be reached, opened."""
    for entry in sorted(entry_points(group=SOURCES), key=lambda entry: entry.name):
        kind: type[GroupSource] = entry.load()
        source = kind.open(options)
        if source is not None:
            yield source


class ZooKeeperGroups:
    """The groups of Algorithm 1, as the registries show them. Thread: one."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.brokers = BrokerRegistry(registry)
        self._time_of = event_time(registry)
        self._session: ZooKeeperSession | None = None

    @classmethod
    def open(cls, options: Mapping[str, str]) -> ZooKeeperGroups | None:
        """Connect to ZooKeeper, if one was named."""
        if "zookeeper" not in options:
            return None
        session = ZooKeeperSession(options["zookeeper"], connect_timeout_s=3.0)
        session.start()
        opened = cls(session)
        opened._session = session
        return opened

    def close(self) -> None:
        """End the session, if it was opened here."""
        if self._session is not None:
            self._session.close()

    def groups(self) -> list[GroupRow]:
        """Every group that ever registered or stored an offset."""
        return [
            GroupRow(name, "algorithm1", len(self.members(name)), tuple(self.topics(name)))
            for name in groups(self.registry)
        ]

    def members(self, group: str) -> list[str]:
        """Ids of the living members."""
        return sorted(ConsumerRegistry(self.registry, group).members())

    def topics(self, group: str) -> list[str]:
        """Topics the group has offsets of, or members subscribed to."""
        names = set(OffsetRegistry(self.registry, group).topics())
        subscriptions = ConsumerRegistry(self.registry, group).members().values()
        if subscriptions:
            known = self.brokers.topics()
            names |= {name for s in subscriptions for name in (s.topics or known) if s.streams_of(name)}
        return sorted(names)

    def describe(self, group: str) -> list[PartitionRow] | None:
        """Owner, offset and end of the log of every partition of the group's topics."""
        if group not in groups(self.registry):
            return None
        rows = []
        with _Ends(self.brokers.brokers()) as ends:
            for topic in self.topics(group):
                stored = OffsetRegistry(self.registry, group).read_all(topic)
                owners = OwnerRegistry(self.registry, group).nodes(topic)
                for partition in sorted({*self.brokers.partitions(topic), *stored, *owners}):
                    end, offset = ends.of(topic, partition), stored.get(partition)
                    name, session = owners.get(partition, (None, 1))
                    row = PartitionRow(topic, str(partition), name if session else None, offset, end)
                    if not session:
                        row = replace(row, in_the_way=name)
                    if offset is not None and row.lag:
                        row = replace(row, lag_s=self._age_s(ends.payload(topic, partition, offset)))
                    rows.append(row)
        return rows

    def view(self, group: str) -> View:
        """What a member of the group would see now: two of these tell what changed (``reasons.difference``)."""
        return View(
            members=ConsumerRegistry(self.registry, group).members(),
            partitions={topic: self.brokers.partitions(topic) for topic in self.topics(group)},
            addresses=self.brokers.brokers(),
        )

    def _age_s(self, payload: bytes | None) -> float | None:
        """How old an event is; None if its payload says nothing of it: the bytes are lag enough."""
        time_ms = None if payload is None else self._time_of(payload)
        return None if time_ms is None else max(0.0, (SYSTEM_CLOCK.wall_ms() - time_ms) / 1000)

    def forget(self, group: str) -> None:
        """Delete the stored offsets: the group begins anew."""
        self._delete(f"{paths.group(group)}/offsets")

    def remove(self, group: str) -> None:
        """Delete everything of a group that has no members."""
        self._delete(paths.group(group))

    def _delete(self, path: str) -> None:
        try:
            for name in self.registry.perform(Children(path)):
                self._delete(f"{path}/{name}")
            self.registry.perform(Delete(path))
        except (NoNode, NotEmpty):
            pass  # gone, or in use again: both are somebody else's doing


class _Ends:
    """Ask brokers where partitions end; one that is away is asked once."""

    def __init__(self, brokers: Mapping[int, BrokerAddress]) -> None:
        self._connections = {
            broker: BrokerConnection(address.host, address.port, timeout_s=5.0, connect_timeout_s=1.0)
            for broker, address in brokers.items()
        }

    def __enter__(self) -> _Ends:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def of(self, topic: str, partition: BrokerPartition) -> int | None:
        """The offset after the last readable message; None if the broker is not there."""
        connection = self._connections.get(partition.broker_id)
        if connection is None:
            return None
        try:
            found = connection.offsets(topic, partition.partition)
            return found[0] if found else None
        except Kafka2011Error:
            # A listing says what it can; this column stays empty.
            self._connections.pop(partition.broker_id).close()
            return None

    def payload(self, topic: str, partition: BrokerPartition, offset: int) -> bytes | None:
        """The message at an offset; None if it cannot be had."""
        connection = self._connections.get(partition.broker_id)
        try:
            found = connection and decode_set(connection.fetch(topic, partition.partition, offset, _PEEK), offset)
        except Kafka2011Error:
            return None  # out of range, too large to peek at, or the broker went away
        return found[0].payload if found else None
