"""Modern groups seen from outside, for ``kafka2011 group``.

See docs/modern-port.md (ListGroups, DescribeGroups, OffsetFetch, ListOffsets). Offsets are bytes here
too (§1.7).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from consumers.group_protocol.subscription import decode_assignment, topics_of
from consumers.groups import GroupRow, PartitionRow
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerPartition, TopicPartition
from since2011.client.cluster import Cluster, Topics, check
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from zk_registry.brokers import BrokerRegistry
from zk_registry.session import ZooKeeperSession

_CLIENT = "kafka2011-group"
_LATEST = -1
_MOVING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
_PATIENCE_S = 10.0
_PAUSE_S = 0.1

StoredOffsets = dict[str, dict[BrokerPartition, int]]
"""Next offset to read by topic and partition: the same number in both worlds, because offsets are bytes in both."""


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
            answer = _patiently(partial(connection.ask, ApiKey.LIST_GROUPS, 2, Struct()), lambda found: found.error)
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
        body = Struct(groups=[group])
        described = self._ask_coordinator(group, ApiKey.DESCRIBE_GROUPS, 4, body, lambda row: row.groups[0].error)
        (found,) = described.groups
        check(f"describing group {group}", found.error)
        if found.state == "Dead":
            return None
        fetched = self._fetched(group)
        owners = {p: member.member for member in found.members for p in decode_assignment(member.assignment)}
        offsets = {TopicPartition(t.name, p.index): int(p.offset) for t in fetched.topics for p in t.partitions}
        partitions = sorted(owners.keys() | offsets.keys())
        ends = self._log_ends(partitions)
        return [PartitionRow(p.topic, str(p.partition), owners.get(p), offsets.get(p), ends.get(p)) for p in partitions]

    def offsets(self, group: str) -> StoredOffsets:
        """What the group has committed, by the registries' names of the partitions."""
        fetched = self._fetched(group)
        places = self._cluster.topics({topic.name for topic in fetched.topics}).places
        found: StoredOffsets = {}
        for topic in fetched.topics:
            for each in topic.partitions:
                place = places.get(TopicPartition(topic.name, each.index))
                if place is not None and each.offset >= 0:
                    found.setdefault(topic.name, {})[place] = int(each.offset)
        return found

    def store(self, group: str, offsets: StoredOffsets) -> None:
        """Commit for a group without members; raises GroupError if the coordinator refuses."""
        places = self._cluster.topics(offsets).places
        numbers = {(partition.topic, place): partition.partition for partition, place in places.items()}
        for topic, place in ((topic, place) for topic, stored in offsets.items() for place in stored):
            if (topic, place) not in numbers:
                raise Kafka2011Error(f"the modern port knows no {place} of {topic} yet; nothing was stored, try again")
        rows = [
            Struct(
                name=topic,
                partitions=[
                    Struct(index=numbers[topic, place], offset=offset, metadata="")
                    for place, offset in sorted(stored.items())
                ],
            )
            for topic, stored in offsets.items()
        ]
        self._commit(group, rows)

    def adopt(self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> int:
        """Commit offsets and notes by today's partition numbers, where the group has none yet; how many."""
        known = {TopicPartition(t.name, p.index) for t in self._fetched(group).topics for p in t.partitions}
        news = {partition: stored for partition, stored in offsets.items() if partition not in known}
        rows = [
            Struct(name=partition.topic, partitions=[Struct(index=partition.partition, offset=offset, metadata=note)])
            for partition, (offset, note) in sorted(news.items())
        ]
        if rows:
            self._commit(group, rows)
        return len(rows)

    def _commit(self, group: str, rows: list[Struct]) -> None:
        body = Struct(group=group, member="", instance=None, topics=rows)
        answer = self._ask_coordinator(group, ApiKey.OFFSET_COMMIT, 7, body, _first_error)
        for topic in answer.topics:
            for each in topic.partitions:
                check(f"storing the offset of {topic.name} {each.index} for {group}", each.error, "has it members?")

    def _fetched(self, group: str) -> Struct:
        body = Struct(group=group, topics=None)
        fetched = self._ask_coordinator(group, ApiKey.OFFSET_FETCH, 5, body, lambda row: row.error)
        check(f"fetching offsets of {group}", fetched.error)
        return fetched

    def _ask_coordinator(
        self, group: str, key: ApiKey, version: int, body: Struct, error: Callable[[Struct], int]
    ) -> Struct:
        def ask() -> Struct:
            connection = self._cluster.coordinator(group)
            try:
                return connection.ask(key, version, body)
            finally:
                connection.close()

        return _patiently(ask, error)

    def _log_ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        topics: Topics = self._cluster.topics({p.topic for p in partitions})
        by_broker: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            place = topics.places.get(partition)
            if place is not None and place.broker_id in topics.brokers:  # a broker that is away cannot say
                by_broker.setdefault(place.broker_id, []).append(partition)
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


def _first_error(committed: Struct) -> int:
    return next((each.error for topic in committed.topics for each in topic.partitions), 0)


def _patiently(ask: Callable[[], Struct], error: Callable[[Struct], int]) -> Struct:
    """Ask, and again for a while as long as the groups are moving to another coordinator."""
    deadline = SYSTEM_CLOCK.monotonic() + _PATIENCE_S
    while True:
        answer = ask()
        if error(answer) not in _MOVING or SYSTEM_CLOCK.monotonic() >= deadline:
            return answer
        SYSTEM_CLOCK.sleep(_PAUSE_S)
