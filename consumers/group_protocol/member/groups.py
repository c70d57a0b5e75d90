"""Modern groups seen from outside, for ``kafka2011 group``.

Spec: modern-group-protocol §1.5 (ListGroups, DescribeGroups, OffsetFetch, ListOffsets). Offsets are bytes here
too (§1.7).
"""

from __future__ import annotations

from collections.abc import Mapping

from consumers.group_protocol.codec import ApiKey, Struct
from consumers.group_protocol.member.cluster import Cluster, Topics, check
from consumers.group_protocol.subscription import decode_assignment, topics_of
from consumers.groups import GroupRow, PartitionRow
from kafka2011.types import TopicPartition
from zk_registry.brokers import BrokerRegistry
from zk_registry.session import ZooKeeperSession

_CLIENT = "kafka2011-group"
_LATEST = -1


class ModernGroups:
    """The groups of all brokers that speak today's protocol. Thread: one."""

    def __init__(self, addresses: list[tuple[str, int]]) -> None:
        self._cluster = Cluster(addresses, client_id=_CLIENT)

    @classmethod
    def open(cls, options: Mapping[str, str]) -> ModernGroups | None:
        """By ``modern`` (host:port), or by what brokers have published in ``zookeeper``."""
        if "modern" in options:
            host, _, port = options["modern"].rpartition(":")
            return cls([(host, int(port))])
        if "zookeeper" not in options:
            return None
        session = ZooKeeperSession(options["zookeeper"], connect_timeout_s=3.0)
        session.start()
        try:
            found = BrokerRegistry(session).modern_addresses()
        finally:
            session.close()
        return cls([(each.host, each.port) for each in found.values()]) if found else None

    def close(self) -> None:
        self._cluster.close()

    def groups(self) -> list[GroupRow]:
        """Every group of every broker."""
        rows = []
        for host, port in self._cluster.topics(()).brokers.values():
            connection = self._cluster.broker(host, port)
            answer = connection.ask(ApiKey.LIST_GROUPS, 2, Struct())
            check("listing groups", answer.error)
            names = [each.group for each in answer.groups]
            described = connection.ask(ApiKey.DESCRIBE_GROUPS, 4, Struct(groups=names)).groups if names else []
            for group in described:
                wanted = [topics_of(member.metadata) or frozenset() for member in group.members]
                topics = sorted(frozenset[str]().union(*wanted))
                rows.append(GroupRow(group.group, group.protocol or "modern", len(group.members), tuple(topics)))
            connection.close()
        return sorted(rows, key=lambda row: row.group)

    def describe(self, group: str) -> list[PartitionRow] | None:
        """Owner, committed offset and log end of every partition the group owns or has an offset of."""
        connection = self._cluster.coordinator(group)
        (found,) = connection.ask(ApiKey.DESCRIBE_GROUPS, 4, Struct(groups=[group])).groups
        check(f"describing group {group}", found.error)
        fetched = connection.ask(ApiKey.OFFSET_FETCH, 5, Struct(group=group, topics=None))
        connection.close()
        if found.state == "Dead":
            return None
        owners = {p: member.member for member in found.members for p in decode_assignment(member.assignment)}
        offsets = {TopicPartition(t.name, p.index): int(p.offset) for t in fetched.topics for p in t.partitions}
        partitions = sorted(owners.keys() | offsets.keys())
        ends = self._log_ends(partitions)
        return [PartitionRow(p.topic, str(p.partition), owners.get(p), offsets.get(p), ends.get(p)) for p in partitions]

    def _log_ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        topics: Topics = self._cluster.topics({p.topic for p in partitions})
        by_broker: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            if partition in topics.places:
                by_broker.setdefault(topics.places[partition].broker_id, []).append(partition)
        ends = {}
        for broker_id, wanted in by_broker.items():
            connection = self._cluster.broker(*topics.brokers[broker_id])
            rows = [Struct(name=p.topic, partitions=[Struct(index=p.partition, timestamp=_LATEST)]) for p in wanted]
            for topic in connection.ask(ApiKey.LIST_OFFSETS, 1, Struct(topics=rows)).topics:
                for each in topic.partitions:
                    if not each.error:
                        ends[TopicPartition(topic.name, each.index)] = int(each.offset)
            connection.close()
        return ends
