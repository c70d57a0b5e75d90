"""KIP-848 groups in the offsets log.

Spec: modern-group-protocol §11, record types 3 and 5-8. The keys are Kafka's; the values hold the same facts in the
plain encodings of this project, since nobody else reads them.
"""

from __future__ import annotations

from consumers.group_protocol.coordinator.records import Key, RecordType, group_key
from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.kip848.group import ConsumerGroup, ConsumerMember, MemberState, Partitions
from consumers.group_protocol.primitives import Reader, Writer
from kafka2011.types import TopicPartition

VERSION = 0
MEMBER_TYPES = (RecordType.CONSUMER_MEMBER, RecordType.CONSUMER_TARGET, RecordType.CONSUMER_CURRENT)


def epoch_record(group: ConsumerGroup) -> Record:
    value = Writer().i16(VERSION).i32(group.epoch).i64(group.state_ms)
    return Record(group_key(group.name, RecordType.CONSUMER_EPOCH), value.bytes())


def target_epoch_record(group: ConsumerGroup) -> Record:
    value = Writer().i16(VERSION).i32(group.target_epoch).string(group.assignor).bytes()
    return Record(group_key(group.name, RecordType.CONSUMER_TARGET_EPOCH), value)


def member_record(group: ConsumerGroup, member: ConsumerMember) -> Record:
    writer = Writer().i16(VERSION).nullable(member.instance).nullable(member.rack)
    writer.string(member.client_id).string(member.client_host).nullable(member.assignor).i32(member.rebalance_ms)
    writer.i32(len(member.topics))
    for topic in member.topics:
        writer.string(topic)
    return Record(group_key(group.name, RecordType.CONSUMER_MEMBER, member.id), writer.bytes())


def target_record(group: ConsumerGroup, member_id: str) -> Record:
    writer = _partitions(Writer().i16(VERSION), group.target.get(member_id, frozenset()))
    return Record(group_key(group.name, RecordType.CONSUMER_TARGET, member_id), writer.bytes())


def current_record(group: ConsumerGroup, member: ConsumerMember) -> Record:
    writer = Writer().i16(VERSION).i32(member.epoch).i32(member.previous_epoch).i16(member.state)
    _partitions(_partitions(writer, member.assigned), member.revoking)
    return Record(group_key(group.name, RecordType.CONSUMER_CURRENT, member.id), writer.bytes())


def member_tombstones(group: str, member_id: str) -> list[Record]:
    return [Record(group_key(group, kind, member_id), None) for kind in MEMBER_TYPES]


def group_tombstones(group: str) -> list[Record]:
    kinds = (RecordType.CONSUMER_EPOCH, RecordType.CONSUMER_TARGET_EPOCH)
    return [Record(group_key(group, kind), None) for kind in kinds]


def restore(group: ConsumerGroup, key: Key, value: bytes) -> None:
    """Let one record speak; they may come in any order."""
    reader = Reader(value)
    if (version := reader.i16()) != VERSION:
        raise ValueError(f"{key.type.name} record version {version}")
    if key.type is RecordType.CONSUMER_EPOCH:
        group.epoch, group.state_ms = reader.i32(), reader.i64()
    elif key.type is RecordType.CONSUMER_TARGET_EPOCH:
        group.target_epoch, group.assignor = reader.i32(), reader.string()
    elif key.type is RecordType.CONSUMER_TARGET:
        group.target[key.member] = _read_partitions(reader)
    else:
        _restore_member(group, key, reader)


def _restore_member(group: ConsumerGroup, key: Key, reader: Reader) -> None:
    member = group.members.setdefault(key.member, ConsumerMember(key.member))
    if key.type is RecordType.CONSUMER_CURRENT:
        member.epoch, member.previous_epoch = reader.i32(), reader.i32()
        member.state = MemberState(reader.i16())
        member.assigned, member.revoking = _read_partitions(reader), _read_partitions(reader)
        group.holders.update(dict.fromkeys(member.held, member.id))
        return
    member.instance, member.rack = reader.nullable(), reader.nullable()
    member.client_id, member.client_host = reader.string(), reader.string()
    member.assignor, member.rebalance_ms = reader.nullable(), reader.i32()
    member.topics = tuple(reader.string() for _ in range(reader.count()))
    group.add(member)


def _partitions(writer: Writer, partitions: Partitions) -> Writer:
    writer.i32(len(partitions))
    for partition in sorted(partitions):
        writer.string(partition.topic).i32(partition.partition)
    return writer


def _read_partitions(reader: Reader) -> Partitions:
    return frozenset(TopicPartition(reader.string(), reader.i32()) for _ in range(reader.count()))
