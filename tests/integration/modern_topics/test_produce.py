"""Produce into modern topics at the wire level: bytes stored as they came, errors in real Kafka's order."""

from __future__ import annotations

import pytest

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import stamp
from tests.integration.since2011.wire_client import WireClient, produce_body
from tests.unit.since2011.server.test_batches import built, compressed
from tests.unit.since2011.vectors import V1, V7, V8_BARE


def produce(
    client: WireClient, topic: str, records: bytes, *, version: int = 9, acks: int = -1, index: int = 0
) -> Struct:
    """The partition's answer to one Produce."""
    body = produce_body(topic, records, acks=acks, partition=index)
    return client.ask(ApiKey.PRODUCE, version, body).topics[0].partitions[0]


def restamped(batch: bytes, attributes: int) -> bytes:
    """The same batch with other attributes and a CRC that fits."""
    changed = bytearray(batch)
    stamp(changed, attributes, int.from_bytes(batch[35:43], "big"))
    return bytes(changed)


PLAIN = built([b"a", b"b", b"c"])


def test_the_bytes_come_back(client: WireClient, topic: str) -> None:
    """D18: stored and served as received; only base offset and leader epoch, outside the CRC, are the broker's."""
    first, second = produce(client, topic, V1), produce(client, topic, PLAIN)
    records = client.fetch(topic, 0).records

    assert (first.error, first.base_offset, first.log_start, second.base_offset) == (0, 0, 0, 3)
    assert records[: len(V1)] == V1[:12] + (0).to_bytes(4, "big") + V1[16:]
    stored = records[len(V1) :]
    assert stored[:8] == (3).to_bytes(8, "big") and stored[16:] == PLAIN[16:]


@pytest.mark.parametrize("codec", sorted(V7))
def test_compressed_batches_are_not_opened(client: WireClient, topic: str, codec: str) -> None:
    """Sheet §12 V7, D18: a compressed batch of Kafka's own classes is stored as it is, whatever its codec."""
    batch = bytes.fromhex(V7[codec])

    assert produce(client, topic, batch).error == 0
    assert client.fetch(topic, 0).records[16:] == batch[16:]


@pytest.mark.parametrize("version", range(3, 12))
def test_every_version_is_answered(client: WireClient, topic: str, version: int) -> None:
    """Sheet §11.1: Produce 3 to 11, with exact offsets and the log's start."""
    found = [produce(client, topic, PLAIN, version=version) for _ in range(2)]

    assert [(one.error, one.base_offset, one.log_append_ms) for one in found] == [(0, 0, -1), (0, 3, -1)]


SHORT = V1[:60]
TOO_LARGE = built([b"x" * (1 << 20)])


@pytest.mark.parametrize(
    ("records", "version", "acks", "index", "error"),
    [
        (b"", 9, -1, 0, ErrorCode.INVALID_RECORD),
        (SHORT, 9, -1, 0, ErrorCode.INVALID_RECORD),
        (V1[:16] + b"\1" + V1[17:], 9, -1, 0, ErrorCode.INVALID_RECORD),
        (V1[:16] + b"\3" + V1[17:], 9, -1, 0, ErrorCode.CORRUPT_MESSAGE),
        (V1[:8] + (13).to_bytes(4, "big") + V1[12:], 9, -1, 0, ErrorCode.CORRUPT_MESSAGE),
        (V1[:-1] + b"\x55", 9, -1, 0, ErrorCode.CORRUPT_MESSAGE),
        (PLAIN + PLAIN, 9, -1, 0, ErrorCode.INVALID_RECORD),
        ((1).to_bytes(8, "big") + PLAIN[8:], 9, -1, 0, ErrorCode.INVALID_RECORD),
        (bytes.fromhex(V7["zstd"]), 6, -1, 0, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (PLAIN, 9, 2, 0, ErrorCode.INVALID_REQUIRED_ACKS),
        (PLAIN, 9, -1, 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PLAIN, 9, -1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOO_LARGE, 9, -1, 0, ErrorCode.MESSAGE_TOO_LARGE),
        (restamped(PLAIN, 0x20), 9, -1, 0, ErrorCode.INVALID_RECORD),
        (restamped(PLAIN, 0x10), 9, -1, 0, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (restamped(PLAIN, 0x06), 9, -1, 0, ErrorCode.CORRUPT_MESSAGE),
        (V8_BARE, 9, -1, 0, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        # Two things wrong: the first check of real Kafka's order answers.
        (restamped(PLAIN, 0x10), 9, 2, 7, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (PLAIN + PLAIN, 9, 2, 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PLAIN + PLAIN, 9, 2, 0, ErrorCode.INVALID_RECORD),
        (V1[:-1] + b"\x55", 9, 2, 0, ErrorCode.INVALID_REQUIRED_ACKS),
    ],
)
def test_bad_batches_are_refused_by_name(
    client: WireClient, topic: str, records: bytes, version: int, acks: int, index: int, error: ErrorCode
) -> None:
    """Sheet §1.4 with its corrections: each check its error, in real Kafka's order; nothing is stored of it."""
    assert produce(client, topic, PLAIN).error == 0
    answer = produce(client, topic, records, version=version, acks=acks, index=index)

    assert (ErrorCode(answer.error), answer.base_offset) == (error, -1)
    assert client.end(topic) == 3


def test_partitions_succeed_and_fail_separately(client: WireClient, topic: str) -> None:
    """Sheet §6.3: one bad partition costs itself."""
    rows = [Struct(index=0, records=PLAIN), Struct(index=5, records=PLAIN)]
    body = Struct(transactional_id=None, acks=-1, timeout_ms=1000, topics=[Struct(name=topic, partitions=rows)])
    found = client.ask(ApiKey.PRODUCE, 9, body).topics[0].partitions

    assert [(one.index, one.error) for one in found] == [(0, 0), (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_acks_0_has_no_answer_and_an_error_closes(broker: BrokerProcess, client: WireClient, topic: str) -> None:
    """Sheet §15.31: acks=0 is not answered; what cannot be appended closes the connection."""
    client.send(ApiKey.PRODUCE, 9, produce_body(topic, PLAIN, acks=0))
    assert client.end(topic) == 3
    client.send(ApiKey.PRODUCE, 9, produce_body(topic, V1[:-1] + b"\x55", acks=0))
    assert client.is_closed()


def test_a_duplicate_is_answered_with_its_first_offset(client: WireClient, topic: str) -> None:
    """Sheet §7.2: a producer's five newest batches are known; a gap is 45, an old epoch 47, a new one begins at 0."""
    batches = [built([b"v"], producer=(4711, 1, n)) for n in range(7)]
    assert [produce(client, topic, batch).base_offset for batch in batches] == list(range(7))
    again = [produce(client, topic, batch) for batch in batches]

    assert [one.error for one in again] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2 + [0] * 5
    assert [one.base_offset for one in again[2:]] == list(range(2, 7))
    refused = {
        (1, 9): ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        (0, 7): ErrorCode.INVALID_PRODUCER_EPOCH,
        (2, 3): ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
    for (epoch, sequence), error in refused.items():
        assert produce(client, topic, built([b"v"], producer=(4711, epoch, sequence))).error == error
    assert produce(client, topic, built([b"v"], producer=(4711, 2, 0))).base_offset == 7


def test_bombs_are_stored_unopened(client: WireClient, topic: str) -> None:
    """Bad input: what inflates to a hundred times its size costs the broker nothing, because it is not opened."""
    bomb = compressed(4, [b"\0" * 20_000_000])
    assert len(bomb) < 100_000
    assert produce(client, topic, bomb).error == 0
