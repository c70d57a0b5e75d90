"""The records of the offsets topic have real Kafka's bytes (docs/since-2011.md, vectors V16 to V19 of Kafka 3.9)."""

from __future__ import annotations

import uuid

import pytest

from kafka2011.errors import InvalidRequest
from since2011.wire.codec import Struct
from since2011.wire.group_records import (
    GroupRecordType,
    UnknownRecord,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from tests.unit.since2011.vectors import T

Kind = GroupRecordType
TOPIC_ID = uuid.UUID("0123456789abcdef0fedcba987654321")
MEMBER = Struct(
    member="m1",
    instance=None,
    client_id="c",
    client_host="/127.0.0.1",
    rebalance_ms=300_000,
    session_ms=45_000,
    subscription=b"\1\2",
    assignment=b"\3",
)
KEYS = [
    (Kind.OFFSET, Struct(group="g", topic="t", partition=2), "000100016700017400000002"),
    (Kind.GROUP, Struct(group="g"), "0002000167"),
    (Kind.CONSUMER_EPOCH, Struct(group="g"), "0003000167"),
    (Kind.CONSUMER_CURRENT, Struct(group="g", member="m"), "000800016700016d"),
]
VALUES = [
    (
        Kind.OFFSET,
        Struct(offset=42, leader_epoch=5, metadata="m", commit_ms=T, expire_ms=-1),
        "0003000000000000002a0000000500016d0000018bcfe56800",
    ),
    (
        Kind.GROUP,
        Struct(protocol_type="consumer", generation=7, protocol="range", leader="m1", state_ms=T, members=[MEMBER]),
        "00030008636f6e73756d657200000007000572616e676500026d310000018bcfe568000000000100026d31ffff000163000a2f3132372e3"
        "02e302e31000493e00000afc80000000201020000000103",
    ),
    (
        Kind.GROUP,
        Struct(protocol_type="consumer", generation=8, protocol=None, leader=None, state_ms=T, members=[]),
        "00030008636f6e73756d657200000008ffffffff0000018bcfe5680000000000",
    ),
    (Kind.CONSUMER_EPOCH, Struct(epoch=9), "00000000000900"),
    (
        Kind.CONSUMER_CURRENT,
        Struct(
            epoch=9,
            previous_epoch=8,
            state=0,
            assigned=[Struct(topic_id=TOPIC_ID, partitions=[0, 1])],
            revoking=[],
        ),
        "0000000000090000000800020123456789abcdef0fedcba987654321030000000000000001000100",
    ),
]


@pytest.mark.parametrize(("kind", "fields", "text"), KEYS)
def test_keys_are_kafkas(kind: GroupRecordType, fields: Struct, text: str) -> None:
    """A key has Kafka's bytes and is read back (docs/since-2011.md)."""
    assert encode_key(kind, fields).hex() == text
    assert decode_key(bytes.fromhex(text)) == (kind, fields)


@pytest.mark.parametrize(("kind", "fields", "text"), VALUES)
def test_values_are_kafkas(kind: GroupRecordType, fields: Struct, text: str) -> None:
    """A value has Kafka's bytes and is read back (docs/since-2011.md)."""
    assert encode_value(kind, fields).hex() == text
    assert decode_value(kind, bytes.fromhex(text)) == fields


def test_older_versions_are_read() -> None:
    """An offset that says itself when it is over is version 1; version 0 knows neither epoch nor end.

    See docs/since-2011.md.
    """
    found = decode_value(Kind.OFFSET, bytes.fromhex("0001000000000000002a00016d0000018bcfe568000000018bcfe56801"))

    assert found == Struct(offset=42, leader_epoch=-1, metadata="m", commit_ms=T, expire_ms=T + 1)
    assert encode_value(Kind.OFFSET, found, 1).hex() == "0001000000000000002a00016d0000018bcfe568000000018bcfe56801"
    assert decode_value(Kind.OFFSET, bytes.fromhex("0000000000000000002a00016d0000018bcfe56800")).expire_ms == -1


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"\0\1\0\5ab", b"\0\2\xff\xff"])
def test_rubbish_is_refused(data: bytes) -> None:
    """A key that ends early or has no group is named, never guessed at (issue 25, bad input)."""
    with pytest.raises(InvalidRequest):
        decode_key(data)


def test_what_came_after_us_is_named() -> None:
    """A type of record, or a version, that is not known is told apart from damage (docs/since-2011.md)."""
    with pytest.raises(UnknownRecord, match="type 15"):
        decode_key(b"\0\x0f\0\1g")
    with pytest.raises(UnknownRecord, match="version 9"):
        decode_value(Kind.OFFSET, b"\0\x09")
