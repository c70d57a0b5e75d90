"""Records of the offsets log: bytes of keys and values.

Spec: modern-group-protocol §11. Every key starts with a record type, every value with its own version.

    type 1   group, topic, partition   -> v3: offset, leader epoch, metadata, commit time
    type 2   group                     -> v3: protocol type, generation, protocol, leader, time, members
    type 3   group                     -> group epoch (KIP-848)
    type 5   group, member             -> member subscription (KIP-848)
    type 6   group                     -> target epoch (KIP-848)
    type 7   group, member             -> target assignment (KIP-848)
    type 8   group, member             -> current assignment (KIP-848)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.member import Member
from consumers.group_protocol.coordinator.offset_book import CommittedOffset, OffsetBook
from consumers.group_protocol.coordinator.requests import Protocol
from consumers.group_protocol.coordinator.settings import Record
from consumers.group_protocol.primitives import Reader, Writer
from kafka2011.types import TopicPartition

OFFSET_VALUE_VERSION = 3
GROUP_VALUE_VERSION = 3


class RecordType(IntEnum):
    OLD_OFFSET = 0
    OFFSET = 1
    GROUP = 2
    CONSUMER_EPOCH = 3
    CONSUMER_MEMBER = 5
    CONSUMER_TARGET_EPOCH = 6
    CONSUMER_TARGET = 7
    CONSUMER_CURRENT = 8


@dataclass(frozen=True, slots=True)
class Key:
    """A key taken apart: which kind of record, of which group, about which partition or member."""

    type: RecordType
    group: str
    partition: TopicPartition | None = None
    member: str = ""


def read_key(data: bytes) -> Key:
    """Take a key apart; ValueError when it is none of ours."""
    reader = Reader(data)
    kind = RecordType(reader.i16())
    group = reader.string()
    if kind in (RecordType.OFFSET, RecordType.OLD_OFFSET):
        return Key(RecordType.OFFSET, group, TopicPartition(reader.string(), reader.i32()))
    if kind in (RecordType.CONSUMER_MEMBER, RecordType.CONSUMER_TARGET, RecordType.CONSUMER_CURRENT):
        return Key(kind, group, member=reader.string())
    return Key(kind, group)


def offset_key(group: str, partition: TopicPartition) -> bytes:
    writer = Writer().i16(RecordType.OFFSET).string(group)
    return writer.string(partition.topic).i32(partition.partition).bytes()


def group_key(group: str, kind: RecordType = RecordType.GROUP, member: str | None = None) -> bytes:
    writer = Writer().i16(kind).string(group)
    return (writer if member is None else writer.string(member)).bytes()


def offset_record(group: str, partition: TopicPartition, committed: CommittedOffset | None) -> Record:
    """A commit, or with None the tombstone of one."""
    key = offset_key(group, partition)
    if committed is None:
        return Record(key, None)
    writer = Writer().i16(OFFSET_VALUE_VERSION).i64(committed.offset).i32(committed.leader_epoch)
    return Record(key, writer.string(committed.metadata).i64(committed.commit_ms).bytes())


def read_offset(value: bytes) -> CommittedOffset:
    reader = Reader(value)
    version = reader.i16()
    if version != OFFSET_VALUE_VERSION:
        raise ValueError(f"offset record version {version}")
    return CommittedOffset(reader.i64(), reader.i32(), reader.string(), reader.i64())


def group_record(group: ClassicGroup, assignments: dict[str, bytes] | None = None) -> Record:
    """The group as it stands, with ``assignments`` in place of the members' own."""
    writer = Writer().i16(GROUP_VALUE_VERSION).string(group.protocol_type).i32(group.generation)
    writer.nullable(group.protocol).nullable(group.leader).i64(group.state_ms).i32(len(group.members))
    for member in group.members.values():
        writer.string(member.id).nullable(member.instance).string(member.client_id).string(member.client_host)
        writer.i32(member.rebalance_ms).i32(member.session_ms).blob(member.metadata(group.protocol))
        writer.blob(member.assignment if assignments is None else assignments.get(member.id, b""))
    return Record(group_key(group.name), writer.bytes())


def read_group(name: str, value: bytes, book: OffsetBook) -> ClassicGroup:
    """The group a record describes: Stable with its members, or Empty without."""
    reader = Reader(value)
    version = reader.i16()
    if version != GROUP_VALUE_VERSION:
        raise ValueError(f"group record version {version}")
    protocol_type, generation = reader.string(), reader.i32()
    protocol, leader, state_ms = reader.nullable(), reader.nullable(), reader.i64()
    group = ClassicGroup(name, book, state_ms=state_ms)
    for _ in range(reader.count()):
        member_id, instance, client_id, client_host = (
            reader.string(),
            reader.nullable(),
            reader.string(),
            reader.string(),
        )
        rebalance_ms, session_ms, metadata = reader.i32(), reader.i32(), reader.blob()
        member = Member(
            member_id, instance, client_id, client_host, session_ms, rebalance_ms, (Protocol(protocol or "", metadata),)
        )
        member.assignment = reader.blob()
        member.is_new = False
        group.add(member, protocol_type)
    group.protocol_type, group.protocol, group.leader = protocol_type, protocol, leader
    group.generation = generation
    group.state = State.STABLE if group.members else State.EMPTY
    return group
