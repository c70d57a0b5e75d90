"""Batches: what the application sends becomes exactly the requests of Kafka 0.7."""

from __future__ import annotations

import os

import pytest

from kafka2011.errors import MessageTooLarge
from kafka2011.producer.batch import (
    MAX_SET_SIZE,
    Batching,
    Item,
    Lane,
    PendingBatch,
    check_sizes,
    measure,
    payload_of,
    requests,
    sets,
)
from kafka2011.types import BrokerAddress
from kafka2011.wire import (
    Codec,
    FrameSplitter,
    Message,
    MessageSet,
    ProduceRequest,
    decode_set,
    encode_message,
    encode_set,
    parse_request,
    validate_set,
)

LANE = Lane(BrokerAddress(0, "127.0.0.1", 9092), "clicks", -1)


def batching(batch_size: int, codec: Codec = Codec.NONE, max_message_size: int = 1_000_000) -> Batching:
    return Batching(batch_size, codec, max_message_size)


def parsed(data: bytes) -> list[ProduceRequest]:
    found = [parse_request(frame) for frame in FrameSplitter(100 << 20).feed(data)]
    assert all(isinstance(request, ProduceRequest) for request in found)
    return found  # type: ignore[return-value]  # just checked


@pytest.mark.parametrize("batch_size", [1, 3, 50, 1000])
@pytest.mark.parametrize("kind", ["one length", "many lengths", "empty payloads", "messages of both formats"])
def test_requests_are_those_of_the_wire_module(batch_size: int, kind: str) -> None:
    """The fast way to encode gives the same bytes as the plain one, for every batch size (docs/protocol.md)."""
    items: list[Item] = {
        "one length": [os.urandom(200) for _ in range(601)],
        "many lengths": [os.urandom(i % 300) for i in range(601)],
        "empty payloads": [b""] * 40,
        "messages of both formats": [Message(b"old", magic=0), b"new", Message(b"x", magic=1)] * 20,
    }[kind]
    expected = b""
    for start in range(0, len(items), batch_size):
        data = b"".join(
            encode_message(item if isinstance(item, Message) else Message(item))
            for item in items[start : start + batch_size]
        )
        expected += ProduceRequest("clicks", -1, data).encode()

    assert b"".join(requests(PendingBatch(LANE, items), batching(batch_size))) == expected


def test_a_batch_holds_batch_size_messages() -> None:
    """Eleven messages in batches of five leave as five, five and one (docs/paper-vs-code.md)."""
    assert [n for _, n in sets([b"x"] * 11, batching(5))] == [5, 5, 1]


def test_a_batch_of_large_messages_is_halved() -> None:
    """No request grows beyond a bound because its messages are large."""
    items = [os.urandom(400_000) for _ in range(8)]
    found = list(sets(items, batching(200)))

    assert max(len(data) for data, _ in found) <= MAX_SET_SIZE
    assert [m.payload for data, _ in found for m in decode_set(data)] == items


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_a_compressed_batch_is_one_wrapper(codec: Codec) -> None:
    """With compression a batch travels as one message, opened again by the reader (§4, docs/protocol.md)."""
    items = [b"GET /in/some-profile %d" % i for i in range(100)]
    ((data, n),) = sets(items, batching(100, codec))

    assert n == 100
    assert validate_set(data).n_entries == 1
    assert len(data) < len(encode_set(items)) / 2
    assert [m.payload for m in decode_set(data)] == items


def test_what_compresses_too_well_is_sent_as_it_is() -> None:
    """A set the broker would take for a compression bomb is not compressed, so that it is not refused."""
    ((data, _),) = sets([bytes(3_000_000)], batching(1, Codec.GZIP, max_message_size=4_000_000))

    assert validate_set(data).largest_payload == 3_000_000


def test_a_wrapper_over_the_message_limit_is_not_used() -> None:
    """The outer payload must keep max.message.size (docs/log.md): incompressible batches go out plain."""
    items = [os.urandom(900) for _ in range(10)]
    ((data, _),) = sets(items, batching(10, Codec.SNAPPY, max_message_size=1000))

    assert data == encode_set(items)


def test_a_message_over_the_limit_is_refused_by_name() -> None:
    """A message over max.message.size is refused here, naming the limit; one of exactly that size passes."""
    check_sizes([b"x" * 10], 10)
    with pytest.raises(MessageTooLarge, match=r"11 bytes .* max.message.size = 10"):
        check_sizes([b"small", b"x" * 11], 10)


def test_what_may_be_sent() -> None:
    """A set, a message, bytes, and lists of either are all the same to the producer (§3)."""
    expected = [b"a", b"b"]
    for messages in (MessageSet([b"a", b"b"]), [b"a", b"b"], (b"a", Message(b"b")), [Message(b"a"), Message(b"b")]):
        items, size = measure(messages)
        assert ([payload_of(item) for item in items], size) == (expected, 2)
    assert measure(Message(b"abc")) == ([b"abc"], 3)
    assert measure([]) == ([], 0)


@pytest.mark.parametrize("wrong", ["text", ["text"], [1], 5, None, {"a": 1}])
def test_what_is_not_a_message_is_refused(wrong: object) -> None:
    """Text is not bytes: the error says how to encode it."""
    with pytest.raises(TypeError, match=r"encode\(\)|not iterable"):
        measure(wrong)  # type: ignore[arg-type]
