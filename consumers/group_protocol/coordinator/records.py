"""Groups and offsets as records of ``__consumer_offsets`` (the bytes are in ``since2011.wire.group_records``)."""

from __future__ import annotations

from dataclasses import dataclass

from consumers.group_protocol.coordinator.group import ClassicGroup, State
from consumers.group_protocol.coordinator.member import Member
from consumers.group_protocol.coordinator.offset_book import CommittedOffset, OffsetBook
from consumers.group_protocol.coordinator.requests import Protocol
from consumers.group_protocol.coordinator.settings import Record
from kafka2011.types import TopicPartition
from since2011.wire.codec import Struct
from since2011.wire.group_records import GroupRecordType, decode_key, decode_value, encode_key, encode_value

_WITH_EXPIRY = 1
"""The version of an offset record that says itself when it is over."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key taken apart: which kind of record, of which group, about which partition or member."""

    type: GroupRecordType
    group: str
    partition: TopicPartition | None = None
    member: str = ""


def read_key(data: bytes) -> Key:
    """Take a key apart. Raises UnknownRecord for a kind that came after us, InvalidRequest for rubbish."""
    kind, fields = decode_key(data)
    if kind in (GroupRecordType.OFFSET, GroupRecordType.OLD_OFFSET):
        return Key(GroupRecordType.OFFSET, fields.group, TopicPartition(fields.topic, fields.partition))
    return Key(kind, fields.group, member=getattr(fields, "member", ""))


def group_key(group: str, kind: GroupRecordType = GroupRecordType.GROUP, member: str | None = None) -> bytes:
    return encode_key(kind, Struct(group=group, member=member))


def offset_record(group: str, partition: TopicPartition, committed: CommittedOffset | None) -> Record:
    """A commit, or with None the tombstone of one."""
    where = Struct(group=group, topic=partition.topic, partition=partition.partition)
    key = encode_key(GroupRecordType.OFFSET, where)
    if committed is None:
        return Record(key, None)
    fields = Struct(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_ms=committed.commit_ms,
        expire_ms=committed.expire_ms,
    )
    return Record(key, encode_value(GroupRecordType.OFFSET, fields, _WITH_EXPIRY if committed.expire_ms >= 0 else None))


def read_offset(value: bytes, order: int = -1) -> CommittedOffset:
    """Any version Kafka has written. Raises UnknownRecord, InvalidRequest."""
    found = decode_value(GroupRecordType.OFFSET, value)
    return CommittedOffset(found.offset, found.leader_epoch, found.metadata, found.commit_ms, found.expire_ms, order)


def group_record(group: ClassicGroup, assignments: dict[str, bytes] | None = None) -> Record:
    """The group as it stands, with ``assignments`` in place of the members' own."""
    members = [
        Struct(
            member=member.id,
            instance=member.instance,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_ms=member.rebalance_ms,
            session_ms=member.session_ms,
            subscription=member.metadata(group.protocol),
            assignment=member.assignment if assignments is None else assignments.get(member.id, b""),
        )
        for member in group.members.values()
    ]
    fields = Struct(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        state_ms=group.state_ms,
        members=members,
    )
    return Record(group_key(group.name), encode_value(GroupRecordType.GROUP, fields))


def read_group(name: str, value: bytes, book: OffsetBook) -> ClassicGroup:
    """The group a record describes: Stable with its members, or Empty without."""
    found = decode_value(GroupRecordType.GROUP, value)
    group = ClassicGroup(name, book, state_ms=found.state_ms)
    for each in found.members:
        protocols = (Protocol(found.protocol or "", each.subscription),)
        # Before version 1 there was one timeout for both.
        rebalance_ms = each.session_ms if each.rebalance_ms < 0 else each.rebalance_ms
        member = Member(
            each.member, each.instance, each.client_id, each.client_host, each.session_ms, rebalance_ms, protocols
        )
        member.assignment = each.assignment
        member.is_new = False
        group.add(member, found.protocol_type)
    group.protocol_type, group.protocol, group.leader = found.protocol_type, found.protocol, found.leader
    group.generation = found.generation
    group.state = State.STABLE if group.members else State.EMPTY
    return group
