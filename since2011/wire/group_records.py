"""The records of ``__consumer_offsets``, as real Kafka writes them: bytes to values and back. No I/O.

A key begins with its type, a value with its own version; a key without a value says that what it names is gone.

    type 1   group, topic, partition    a committed offset (type 0: the same, written before 0.9)
    type 2   group                      a classic group and its members
    type 3   group                      a KIP-848 group: its epoch
    type 4   group                      the topics it reads, with their ids and numbers of partitions
    type 5   group, member              a member and its subscription
    type 6   group                      the epoch of its target assignment
    type 7   group, member              what a member shall own
    type 8   group, member              what a member owns, and how far it has come

Keys are never flexible; the values of types 3 to 8 always are, of types 1 and 2 from version 4 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from kafka2011.errors import InvalidRequest
from since2011.wire.codec.compiled import Read, Struct, Write, reader, writer
from since2011.wire.codec.primitives import Part, Reader
from since2011.wire.codec.schema import Structure, parse_fields

_PARTITIONS = "[{topic_id:uuid partitions:[i32]}]"


class GroupRecordType(IntEnum):
    """The type a key begins with."""

    OLD_OFFSET = 0
    OFFSET = 1
    GROUP = 2
    CONSUMER_EPOCH = 3
    CONSUMER_TOPICS = 4
    CONSUMER_MEMBER = 5
    CONSUMER_TARGET_EPOCH = 6
    CONSUMER_TARGET = 7
    CONSUMER_CURRENT = 8


@dataclass(frozen=True, slots=True)
class _Shape:
    key: Structure
    value: Structure
    written: int
    """The version we write."""
    last: int
    flexible: int


def _shape(key: str, value: str, *, written: int = 0, last: int = 0, flexible: int = 0) -> _Shape:
    return _Shape(parse_fields(key), parse_fields(value), written, last, flexible)


_OFFSET = _shape(
    "group:str topic:str partition:i32",
    "offset:i64 leader_epoch:i32@3+=-1 metadata:str commit_ms:i64 expire_ms:i64@1-1=-1",
    written=3,
    last=4,
    flexible=4,
)
_SHAPES = {
    GroupRecordType.OLD_OFFSET: _OFFSET,
    GroupRecordType.OFFSET: _OFFSET,
    GroupRecordType.GROUP: _shape(
        "group:str",
        "protocol_type:str generation:i32 protocol:str? leader:str? state_ms:i64@2+=-1 members:[{member:str "
        "instance:str?@3+ client_id:str client_host:str rebalance_ms:i32@1+=-1 session_ms:i32 subscription:bytes "
        "assignment:bytes}]",
        written=3,
        last=4,
        flexible=4,
    ),
    GroupRecordType.CONSUMER_EPOCH: _shape("group:str", "epoch:i32"),
    GroupRecordType.CONSUMER_TOPICS: _shape(
        "group:str", "topics:[{topic_id:uuid name:str n_partitions:i32 partitions:[{partition:i32 racks:[str]}]}]"
    ),
    GroupRecordType.CONSUMER_MEMBER: _shape(
        "group:str member:str",
        "instance:str? rack:str? client_id:str client_host:str topics:[str] regex:str? rebalance_ms:i32=-1 "
        "assignor:str?",
    ),
    GroupRecordType.CONSUMER_TARGET_EPOCH: _shape("group:str", "epoch:i32"),
    GroupRecordType.CONSUMER_TARGET: _shape("group:str member:str", f"partitions:{_PARTITIONS}"),
    GroupRecordType.CONSUMER_CURRENT: _shape(
        "group:str member:str",
        f"epoch:i32 previous_epoch:i32 state:i8 assigned:{_PARTITIONS} revoking:{_PARTITIONS}",
    ),
}


class UnknownRecord(InvalidRequest):
    """A record of a type, or a version of one, that is not known here."""


def encode_key(kind: GroupRecordType, fields: Struct) -> bytes:
    """The bytes of a key."""
    return _encode(int(kind), _key_writer(kind), fields)


def encode_value(kind: GroupRecordType, fields: Struct, version: int | None = None) -> bytes:
    """The bytes of a value, by default in the version real Kafka 3.9 writes."""
    number = _SHAPES[kind].written if version is None else version
    return _encode(number, _value_writer(kind, number), fields)


def decode_key(data: bytes) -> tuple[GroupRecordType, Struct]:
    """A key's type and fields. Raises UnknownRecord, InvalidRequest."""
    source = Reader(data)
    number = source.i16()
    try:
        kind = GroupRecordType(number)
    except ValueError:
        raise UnknownRecord(f"records of type {number} are not known here") from None
    fields: Struct = _key_reader(kind)(source)
    return kind, fields


def decode_value(kind: GroupRecordType, data: bytes) -> Struct:
    """The fields of a value. Raises UnknownRecord, InvalidRequest."""
    source = Reader(data)
    version = source.i16()
    if not 0 <= version <= _SHAPES[kind].last:
        raise UnknownRecord(f"version {version} of a {kind.name} record; 0 to {_SHAPES[kind].last} are known here")
    fields: Struct = _value_reader(kind, version)(source)
    return fields


def _encode(first: int, write: Write, fields: Struct) -> bytes:
    parts: list[Part] = [first.to_bytes(2, "big")]
    write(parts.append, fields)
    return b"".join(part for part in parts if isinstance(part, bytes))


@cache
def _key_reader(kind: GroupRecordType) -> Read:
    return reader(_SHAPES[kind].key, 0, False)


@cache
def _key_writer(kind: GroupRecordType) -> Write:
    return writer(_SHAPES[kind].key, 0, False)


@cache
def _value_reader(kind: GroupRecordType, version: int) -> Read:
    return reader(_SHAPES[kind].value, version, version >= _SHAPES[kind].flexible)


@cache
def _value_writer(kind: GroupRecordType, version: int) -> Write:
    return writer(_SHAPES[kind].value, version, version >= _SHAPES[kind].flexible)
