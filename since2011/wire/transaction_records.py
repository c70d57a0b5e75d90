"""The records of ``__transaction_state``, as real Kafka writes them: bytes to values and back. No I/O.

    key     version:i16 = 0, transactional id
    value   version:i16 = 0, producer id, epoch, timeout, state:i8, partitions by topic (null in state Empty),
            last change, start

Version 1 of a value says the same in the flexible encoding; brokers without ZooKeeper may write it. A key without a
value says that the transactional id is forgotten.
"""

from __future__ import annotations

from functools import cache

from kafka2011.errors import InvalidRequest
from since2011.wire.codec.compiled import Read, Struct, Write, reader, writer
from since2011.wire.codec.primitives import Part, Reader
from since2011.wire.codec.schema import parse_fields

_KEY = parse_fields("transactional_id:str")
_VALUE = parse_fields(
    "producer_id:i64 epoch:i16 timeout_ms:i32 state:i8 partitions:[{topic:str ids:[i32]}]? update_ms:i64 start_ms:i64"
)
_WRITTEN, _FLEXIBLE = 0, 1


class UnknownTransactionRecord(InvalidRequest):
    """A record of a version that is not known here."""


def encode_transaction_key(transactional_id: str) -> bytes:
    """The bytes of a key."""
    return _encode(_key_writer(), Struct(transactional_id=transactional_id))


def encode_transaction(fields: Struct) -> bytes:
    """The bytes of a value, in the version real Kafka 3.9 writes."""
    return _encode(_value_writer(), fields)


def decode_transaction_key(data: bytes) -> str:
    """The transactional id. Raises UnknownTransactionRecord, InvalidRequest."""
    source = Reader(data)
    _check(source.i16(), _WRITTEN)
    found: str = _key_reader()(source).transactional_id
    return found


def decode_transaction(data: bytes) -> Struct:
    """The fields of a value. Raises UnknownTransactionRecord, InvalidRequest."""
    source = Reader(data)
    version = source.i16()
    _check(version, _FLEXIBLE)
    fields: Struct = _value_reader(version == _FLEXIBLE)(source)
    return fields


def _check(version: int, last: int) -> None:
    if not 0 <= version <= last:
        raise UnknownTransactionRecord(f"version {version} of a transaction's record; 0 to {last} are known here")


def _encode(write: Write, fields: Struct) -> bytes:
    parts: list[Part] = [_WRITTEN.to_bytes(2, "big")]
    write(parts.append, fields)
    return b"".join(part for part in parts if isinstance(part, bytes))


@cache
def _key_reader() -> Read:
    return reader(_KEY, 0, False)


@cache
def _key_writer() -> Write:
    return writer(_KEY, 0, False)


@cache
def _value_reader(flexible: bool) -> Read:
    return reader(_VALUE, 0, flexible)


@cache
def _value_writer() -> Write:
    return writer(_VALUE, 0, False)
