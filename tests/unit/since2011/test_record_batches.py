"""Record batches are byte for byte those of Apache Kafka 3.9 (the vectors are its own)."""

from __future__ import annotations

import cramjam
import pytest

from kafka2011.errors import InvalidMessage, InvalidMessageSize
from since2011.log.settings import LogConfig
from since2011.log.validation import InvalidRecord, InvalidTimestamp, Validator
from since2011.wire.record_batch import TRANSACTIONAL, assign, checked_header, headers, read_header
from since2011.wire.records import Marker, Record, decode_marker, decode_records, encode_marker, encode_records
from tests.unit.since2011.vectors import (
    V1,
    V2,
    V3,
    V4,
    V5_COMMIT,
    V6_ABORT,
    V7,
    V8_BARE,
    V9A,
    V9B,
    T,
)

RECORDS = [
    Record(0, T, b"k", b"v"),
    Record(1, T + 5, b"k2", None, (("h", b"x"), ("n", None))),
    Record(2, T - 3, None, b""),
]


def inflate(codec: int, data: bytes) -> bytes:
    opener = {1: cramjam.gzip, 3: cramjam.lz4, 4: cramjam.zstd}.get(codec)
    if opener is not None:
        return bytes(opener.decompress(data))
    out = b""
    data = data[16:]
    while data:
        size = int.from_bytes(data[:4], "big")
        out += bytes(cramjam.snappy.decompress_raw(data[4 : 4 + size]))
        data = data[4 + size :]
    return out


VALIDATOR = Validator(inflate, lambda codec, data: bytes(cramjam.gzip.compress(data)))


def test_keys_headers_timestamps_and_nulls_are_bytes_of_kafkas() -> None:
    """What Kafka's classes encode, ours decode, and encode again to the same bytes (docs/since-2011.md)."""
    header = checked_header(V1)

    assert list(decode_records(V1, header, inflate)) == RECORDS
    assert (header.leader_epoch, header.max_timestamp, header.next_offset) == (7, T + 5, 3)
    assert encode_records(RECORDS, leader_epoch=7) == V1


def test_sequences_wrap_to_zero() -> None:
    """After sequence 2147483647 comes 0 (docs/since-2011.md)."""
    header = checked_header(V2)
    records = [Record(n, T, key, value) for n, (key, value) in enumerate([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])]

    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, 2147483646)
    assert header.last_sequence == 0
    assert encode_records(records, producer_id=4711, producer_epoch=3, base_sequence=2147483646) == V2


def test_transactional_batches_and_markers() -> None:
    """Transactional data and both markers are Kafka's bytes (docs/since-2011.md)."""
    record = Record(0, T, b"a", b"1")
    data = encode_records([record], attributes=TRANSACTIONAL, producer_id=4711, producer_epoch=3, base_sequence=0)
    of = {"producer_id": 4711, "producer_epoch": 3, "timestamp": T, "leader_epoch": 5}

    assert data == V3
    assert encode_marker(Marker(True, 12), offset=50, **of) == V5_COMMIT
    assert encode_marker(Marker(False, 12), offset=51, **of) == V6_ABORT
    assert decode_marker(V5_COMMIT, read_header(V5_COMMIT)) == Marker(True, 12)
    assert decode_marker(V6_ABORT, read_header(V6_ABORT)) == Marker(False, 12)


@pytest.mark.parametrize("n_records", [-1, 2])
def test_a_marker_is_one_record(n_records: int) -> None:
    """A damaged control batch with none or several records is refused by name (issue 25, bad input)."""
    batch = bytearray(V5_COMMIT)
    batch[57:61] = n_records.to_bytes(4, "big", signed=True)
    with pytest.raises(InvalidMessage, match=f"{n_records} records, not 1"):
        decode_marker(batch, read_header(bytes(batch)))


@pytest.mark.parametrize("codec", V7)
def test_four_codecs_are_read(codec: str) -> None:
    """What Kafka compressed with each codec, is opened (docs/since-2011.md)."""
    batch = bytes.fromhex(V7[codec])
    found = list(decode_records(batch, checked_header(batch), inflate))

    assert found == [Record(n, T + n, b"k", b"a" * 32) for n in range(2)]


def test_append_time_changes_two_fields_and_the_crc() -> None:
    """With LogAppendTime the stored batch is the sent one with flag, largest time and CRC anew (docs/since-2011.md)."""
    sent = encode_records(RECORDS)
    config = LogConfig(message_timestamp_type="LogAppendTime")
    stored = VALIDATOR.prepare(sent, config, T + 1000).data
    assign(stored, 100, 9)

    assert bytes(stored) == V4
    assert {record.timestamp for record in decode_records(V4, checked_header(V4), inflate)} == {T + 1000}


def test_a_batch_is_stored_as_it_came() -> None:
    """Nothing but base offset and leader epoch, which lie outside the CRC, is written into a batch (design D18)."""
    stored = VALIDATOR.prepare(V1, LogConfig(), T).data
    assign(stored, 41, 3)

    assert stored[:12] == (41).to_bytes(8, "big") + V1[8:12]
    assert stored[16:] == V1[16:]
    assert checked_header(stored).last_offset == 43


def test_what_the_cleaner_leaves() -> None:
    """A bare header, and a batch with a delete horizon, are Kafka's bytes (docs/since-2011.md)."""
    bare = encode_records(
        (),
        base_offset=100,
        last_offset_delta=4,
        base_timestamp=-1,
        max_timestamp=T + 9,
        leader_epoch=5,
        attributes=TRANSACTIONAL,
        producer_id=4711,
        producer_epoch=3,
        base_sequence=40,
    )
    header = checked_header(V9A)
    kept = [record for record in decode_records(V9A, header, inflate) if record.key == b"b"]
    horizon = encode_records(
        kept, base_offset=200, last_offset_delta=2, base_timestamp=T + 87_400_000, leader_epoch=5, attributes=0x40
    )

    assert bare == V8_BARE
    assert horizon == V9B
    assert [record.timestamp for record in decode_records(V9B, checked_header(V9B), inflate)] == [T + 7]


def test_damage_is_named() -> None:
    """A flipped bit anywhere under the CRC is found; a batch cut short is not whole (docs/since-2011.md)."""
    for place in range(21, len(V1)):
        damaged = bytearray(V1)
        damaged[place] ^= 1
        with pytest.raises((InvalidMessage, InvalidMessageSize)):
            checked_header(damaged)
    for size in range(len(V1)):
        with pytest.raises(InvalidMessageSize):
            checked_header(V1[:size])
    assert [position for position, _ in headers(V1 + V1[:-1])] == [0]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (encode_records(RECORDS, base_offset=5, last_offset_delta=2), "begins at offset 0"),
        (encode_records(RECORDS, last_offset_delta=7), "last offset delta 7"),
        (V5_COMMIT[:7] + b"\0" + V5_COMMIT[8:], "control batch from a client"),
        (encode_records(RECORDS, producer_id=1), "without an epoch or a sequence"),
    ],
)
def test_a_client_may_not_send_everything(batch: bytes, words: str) -> None:
    """What only brokers write, and headers that contradict themselves, are refused by name (docs/since-2011.md)."""
    with pytest.raises(InvalidRecord, match=words):
        VALIDATOR.prepare(batch, LogConfig(), T)


def test_topics_may_ask_for_more() -> None:
    """A compacted topic needs keys, a bounded one times in bounds; the guilty records are numbered.

    See docs/since-2011.md.
    """
    with pytest.raises(InvalidRecord) as keyless:
        VALIDATOR.prepare(V1, LogConfig(cleanup_policy=("compact",)), T)
    with pytest.raises(InvalidTimestamp) as early:
        VALIDATOR.prepare(V1, LogConfig(message_timestamp_before_max_ms=2), T)

    assert keyless.value.records == (2,)
    assert early.value.records == (2,)


def test_a_wrong_largest_timestamp_is_put_right_where_records_are_read() -> None:
    """Where a batch is opened anyway, its header's largest timestamp becomes the true one (docs/since-2011.md)."""
    lying = encode_records(RECORDS, max_timestamp=T + 999_999)
    stored = Validator(inflate, VALIDATOR.deflate, full=True).prepare(lying, LogConfig(), T).data

    assert checked_header(stored).max_timestamp == T + 5


def test_a_topic_with_a_codec_of_its_own_compresses_anew() -> None:
    """compression.type other than the producer's: same records, the topic's codec (docs/since-2011.md)."""
    stored = bytes(VALIDATOR.prepare(V1, LogConfig(compression_type="gzip"), T).data)
    header = checked_header(stored)

    assert header.codec == 1
    assert list(decode_records(stored, header, inflate)) == RECORDS
