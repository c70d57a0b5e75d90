"""KIP-848 groups as records of ``__consumer_offsets``: types 3 to 8, with topics by their ids.

A restart, or the next coordinator, makes the group again from them; they may come in any order.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.records import Key, group_key
from consumers.group_protocol.coordinator.settings import Record, Topics
from consumers.group_protocol.kip848.group import ConsumerGroup, ConsumerMember, MemberState, Partitions
from kafka2011.types import TopicPartition
from since2011.wire.codec import Struct
from since2011.wire.group_records import GroupRecordType, decode_value, encode_value

OF_MEMBERS = (GroupRecordType.CONSUMER_CURRENT, GroupRecordType.CONSUMER_TARGET, GroupRecordType.CONSUMER_MEMBER)
OF_GROUPS = (GroupRecordType.CONSUMER_TARGET_EPOCH, GroupRecordType.CONSUMER_TOPICS, GroupRecordType.CONSUMER_EPOCH)


def epoch_record(group: ConsumerGroup) -> Record:
    return _record(group, GroupRecordType.CONSUMER_EPOCH, Struct(epoch=group.epoch))


def topics_record(group: ConsumerGroup, topics: Topics) -> Record:
    """What the next target is computed from."""
    rows = [
        Struct(topic_id=topics.topic_id(topic), name=topic, n_partitions=count, partitions=[])
        for topic, count in sorted(group.partition_counts.items())
    ]
    return _record(group, GroupRecordType.CONSUMER_TOPICS, Struct(topics=rows))


def target_epoch_record(group: ConsumerGroup) -> Record:
    return _record(group, GroupRecordType.CONSUMER_TARGET_EPOCH, Struct(epoch=group.target_epoch))


def member_record(group: ConsumerGroup, member: ConsumerMember) -> Record:
    fields = Struct(
        instance=member.instance,
        rack=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=list(member.topics),
        rebalance_ms=member.rebalance_ms,
        assignor=member.assignor,
    )
    return _record(group, GroupRecordType.CONSUMER_MEMBER, fields, member.id)


def target_record(group: ConsumerGroup, member_id: str, topics: Topics) -> Record:
    rows = _by_id(group.target.get(member_id, frozenset()), topics)
    return _record(group, GroupRecordType.CONSUMER_TARGET, Struct(partitions=rows), member_id)


def current_record(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Record:
    fields = Struct(
        epoch=member.epoch,
        previous_epoch=member.previous_epoch,
        state=int(member.state),
        assigned=_by_id(member.assigned, topics),
        revoking=_by_id(member.revoking, topics),
    )
    return _record(group, GroupRecordType.CONSUMER_CURRENT, fields, member.id)


def member_tombstones(group: str, member_id: str) -> list[Record]:
    return [Record(group_key(group, kind, member_id), None) for kind in OF_MEMBERS]


def group_tombstones(group: str) -> list[Record]:
    return [Record(group_key(group, kind), None) for kind in OF_GROUPS]


def restore(group: ConsumerGroup, key: Key, value: bytes, topics: Topics) -> None:
    """Let one record speak; they may come in any order."""
    found = decode_value(key.type, value)
    if key.type is GroupRecordType.CONSUMER_EPOCH:
        group.epoch = found.epoch
    elif key.type is GroupRecordType.CONSUMER_TARGET_EPOCH:
        group.target_epoch = found.epoch
    elif key.type is GroupRecordType.CONSUMER_TARGET:
        group.target[key.member] = _by_name(found.partitions, topics)
    elif key.type in (GroupRecordType.CONSUMER_MEMBER, GroupRecordType.CONSUMER_CURRENT):
        _restore_member(group, key, found, topics)


def _restore_member(group: ConsumerGroup, key: Key, found: Struct, topics: Topics) -> None:
    member = group.members.setdefault(key.member, ConsumerMember(key.member))
    if key.type is GroupRecordType.CONSUMER_CURRENT:
        member.epoch, member.previous_epoch, member.state = found.epoch, found.previous_epoch, MemberState(found.state)
        member.assigned, member.revoking = _by_name(found.assigned, topics), _by_name(found.revoking, topics)
        group.holders.update(dict.fromkeys(member.held, member.id))
        return
    member.instance, member.rack = found.instance, found.rack
    member.client_id, member.client_host = found.client_id, found.client_host
    member.assignor, member.rebalance_ms = found.assignor, found.rebalance_ms
    member.topics = tuple(found.topics)
    group.add(member)


def _record(group: ConsumerGroup, kind: GroupRecordType, fields: Struct, member: str | None = None) -> Record:
    return Record(group_key(group.name, kind, member), encode_value(kind, fields))


def _by_id(partitions: Partitions, topics: Topics) -> list[Struct]:
    rows: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        rows.setdefault(partition.topic, []).append(partition.partition)
    return [Struct(topic_id=topics.topic_id(topic), partitions=numbers) for topic, numbers in rows.items()]


def _by_name(rows: list[Struct], topics: Topics) -> Partitions:
    """Of topics that are gone nothing is left to own."""
    named = ((topics.topic_name(row.topic_id), row.partitions) for row in rows)
    return frozenset(TopicPartition(name, n) for name, numbers in named if name is not None for n in numbers)
