"""One log, two eras: what is written on one port is read on the other. See docs/modern-port.md."""

from __future__ import annotations

import pytest
from kafka.record import MemoryRecords

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import decode_set, encode_set
from kafka2011.wire.message import Codec
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.wire_client import WireClient, fetch_body, produce_body
from tests.unit.since2011.server.test_batches import built, compressed
from tests.waiting import until

HEADER = 10
"""Bytes of a 2011 message before its payload."""


def records_of(answer: Struct) -> list[tuple[int, bytes]]:
    """(offset, value) of every record of a fetch answer, as kafka-python reads them."""
    assert answer.error == 0
    found, records = [], MemoryRecords(answer.records)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(record.offset, record.value or b"") for record in batch]
    return found


def publish(broker: BrokerProcess, client: WireClient, topic: str, data: bytes) -> None:
    """Publish on the 2011 port and wait until it can be read."""
    before = client.end(topic)
    with BrokerConnection(broker.host, broker.port) as old:
        old.produce(topic, 0, data)
    until(lambda: client.end(topic) >= max(before, 0) + len(data), "the messages are flushed")


def test_2011_messages_are_modern_records(broker: BrokerProcess, client: WireClient) -> None:
    """A record's offset is its message's last byte, so offset + 1 is the 2011 offset of the next one (§1.7)."""
    payloads = [b"one", b"", bytes(range(256))]
    publish(broker, client, "old", encode_set(payloads))

    records = records_of(client.fetch("old", 0))

    assert payloads == [value for _, value in records]
    ends = [m.next_offset for m in decode_set(encode_set(payloads))]
    assert ends == [offset + 1 for offset, _ in records]


def test_modern_records_are_2011_messages(broker: BrokerProcess, client: WireClient) -> None:
    """What a modern producer sends is fetched on the 2011 port, byte for byte; the first offset told is true (§1.7)."""
    payloads: list[bytes | None] = [b"new", b"newer" * 100, b""]
    answer = client.produce("new", payloads)

    with BrokerConnection(broker.host, broker.port) as old:
        messages = decode_set(old.fetch("new", 0, 0))

    assert payloads == [m.payload for m in messages]
    assert messages[0].next_offset - 1 == answer.base_offset
    assert [m.next_offset - 1 for m in messages] == [offset for offset, _ in records_of(client.fetch("new", 0))]


def test_fetch_finds_the_message_that_holds_any_offset(broker: BrokerProcess, client: WireClient) -> None:
    """Whatever offset is asked for, the answer begins with the message around it, never inside a payload (§1.7)."""
    forged = encode_set([b"forged"])
    payloads = [b"a" * 20, b"b" * 30 + forged + b"b" * 5, b"c" * 40]
    publish(broker, client, "seek", encode_set(payloads))
    messages = decode_set(encode_set(payloads))

    for message in messages:
        for offset in range(message.offset, message.next_offset):
            assert message.payload == records_of(client.fetch("seek", offset))[0][1]
    end = messages[-1].next_offset
    assert records_of(client.fetch("seek", end)) == []
    assert client.fetch("seek", end + 1).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch("seek", -1).error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_message_larger_than_asked_for_is_served(broker: BrokerProcess, client: WireClient) -> None:
    """At least one message is returned however small the limit, or a reader would stand still for ever (§19)."""
    publish(broker, client, "large", encode_set([b"x" * 50_000, b"y"]))

    assert [value for _, value in records_of(client.fetch("large", 0, max_bytes=100))] == [b"x" * 50_000]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_wrappers_are_opened_and_resumable(broker: BrokerProcess, client: WireClient, codec: Codec) -> None:
    """Messages in a 2011 wrapper get distinct offsets inside it: a reader may stop after any and go on (§1.7)."""
    topic, inner = f"wrapped-{codec.name}", [b"message number %d" % n for n in range(20)]
    publish(broker, client, topic, encode_set([b"before"]) + encode_set(inner, codec=codec) + encode_set([b"after"]))
    whole = records_of(client.fetch(topic, 0))

    assert [b"before", *inner, b"after"] == [value for _, value in whole]
    assert sorted({offset for offset, _ in whole}) == [offset for offset, _ in whole]
    for index, (offset, _) in enumerate(whole[:-1]):
        rest = [value for at, value in records_of(client.fetch(topic, offset + 1)) if at > offset]
        assert rest == [value for _, value in whole[index + 1 :]]


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_become_plain_messages(broker: BrokerProcess, client: WireClient, codec: int) -> None:
    """A modern compressed batch is opened: 2011 clients, which know neither lz4 nor zstd, read it (§1.7)."""
    topic, values = f"codec-{codec}", [b"v%d" % n * 10 for n in range(50)]
    answer = client.ask(ApiKey.PRODUCE, 7, produce_body(topic, compressed(codec, list(values))))
    assert answer.topics[0].partitions[0].error == 0

    with BrokerConnection(broker.host, broker.port) as old:
        assert values == [m.payload for m in decode_set(old.fetch(topic, 0, 0))]


def test_list_offsets_are_2011_offsets(broker: BrokerProcess, client: WireClient) -> None:
    """Earliest and latest are the log's own; a time is answered with a segment at or before it (§1.7)."""
    data = encode_set([b"x" * 100] * 3)
    publish(broker, client, "when", data)

    assert (0, len(data)) == (client.offset_at("when", -2), client.offset_at("when", -1))
    assert client.offset_at("when", 1) == 0
    assert client.offset_at("when", 1 << 45) == -1


def test_bad_batches_are_refused_and_nothing_is_written(client: WireClient) -> None:
    """A damaged, old, too large or control batch gets its code; the log does not grow (§20)."""
    good = built([b"x"])
    cases = {
        good[:-1]: ErrorCode.CORRUPT_MESSAGE,
        good[:16] + b"\x01" + good[17:]: ErrorCode.INVALID_RECORD,
        built([b"x" * 1_000_001]): ErrorCode.MESSAGE_TOO_LARGE,
    }
    for records, code in cases.items():
        answer = client.ask(ApiKey.PRODUCE, 8, produce_body("bad", records)).topics[0].partitions[0]
        assert (code, -1) == (answer.error, answer.base_offset)
        assert answer.error_message
    zstd = client.ask(ApiKey.PRODUCE, 6, produce_body("bad", compressed(4, [b"x"]))).topics[0].partitions[0]
    strange = client.ask(ApiKey.PRODUCE, 8, produce_body("bad", good, acks=2)).topics[0].partitions[0]

    assert (zstd.error, strange.error) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.INVALID_REQUIRED_ACKS)
    assert client.end("bad") == 0


def test_topics_are_created_by_those_who_may(client: WireClient) -> None:
    """Metadata creates a topic only if the client allows it, and never one with an impossible name (§1.5)."""

    def ask(name: str, *, create: bool) -> Struct:
        topic: Struct = client.ask(ApiKey.METADATA, 8, Struct(topics=[Struct(name=name)], auto_create=create)).topics[0]
        return topic

    assert ask("made", create=False).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask("../made", create=True).error == ErrorCode.INVALID_TOPIC
    assert ask("__consumer_offsets", create=True).error == ErrorCode.INVALID_TOPIC
    assert ((made := ask("made", create=True)).error, len(made.partitions)) == (0, 1)
    by_name = client.ask(ApiKey.METADATA, 12, Struct(topics=[Struct(name="made")], auto_create=False)).topics[0]
    asked = Struct(topics=[Struct(name=None, topic_id=by_name.topic_id)], auto_create=False)
    assert client.ask(ApiKey.METADATA, 12, asked).topics[0].name == "made"


def test_leader_epochs_are_checked(client: WireClient) -> None:
    """The epoch is 0 for ever; a client that knows a later one is mistaken about the broker (§17)."""
    client.produce("epoch", [b"x"])
    answer = client.ask(ApiKey.FETCH, 11, fetch_body("epoch", 0, epoch=3)).topics[0].partitions[0]
    asked = Struct(topics=[Struct(name="epoch", partitions=[Struct(index=0, current_epoch=0, epoch=0)])])
    row = client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, asked).topics[0].partitions[0]

    assert answer.error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (row.error, row.epoch, row.end_offset) == (0, 0, 11)
    assert len(records_of(client.fetch("epoch", 0))) == 1
