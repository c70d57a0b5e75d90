"""Chunks of a stream: many messages at once, consumed as a whole (issue 23, point 2)."""

from __future__ import annotations

import threading

import pytest

from consumers.chunk import Chunk
from consumers.fetcher import FetchedChunk
from consumers.stream import Stream, message_class
from kafka2011.types import TopicPartition
from kafka2011.wire import Codec, encode_set, read_set
from tests.unit.consumers.test_stream import SIZE, A, B, chunk, fed

pytestmark = pytest.mark.usefixtures("walker")


def taken(stream: Stream) -> list[bytes]:
    """The payloads of the chunks that are there."""
    stream.timeout_s = 0
    return [bytes(payload) for one in stream.chunks() for payload in one.payloads()]


def test_a_chunk_is_what_one_fetch_brought() -> None:
    """It knows its place, its offsets and how many messages it has, without making one of them (§3.1)."""
    stream = fed(5)
    one = next(stream.chunks())
    assert (one.topic, one.partition, len(one)) == ("t", A.partition, 5)
    assert (one.offset, one.next_offset) == (0, 5 * SIZE)
    assert [bytes(view) for view in one.payloads()] == [b"00", b"01", b"02", b"03", b"04"]
    assert [message.offset for message in one.messages] == [i * SIZE for i in range(5)]
    assert "5 messages" in repr(one)


def test_payloads_are_views_of_what_came() -> None:
    """Nothing is copied: a view's bytes are those of the fetch."""
    (view, *_) = next(fed(5).chunks()).payloads()
    assert isinstance(view, memoryview)
    assert view.readonly
    assert view.obj is not None


def test_the_chunk_in_hand_is_not_consumed_yet() -> None:
    """The position moves when the next chunk is asked for, so a crash delivers the whole chunk again (§3.3)."""
    stream = fed(5)
    stream.put(A, chunk(A, 5, 5))
    chunks = stream.chunks()
    assert stream.positions() == {A: 0}
    next(chunks)
    assert stream.positions() == {A: 0}
    next(chunks)
    assert stream.positions() == {A: 5 * SIZE}


def test_finish_counts_the_chunk_in_hand() -> None:
    """An explicit commit says that the chunk in hand is done (§3.3)."""
    stream = fed(5)
    next(stream.chunks())
    stream.finish()
    assert stream.positions() == {A: 5 * SIZE}


def test_messages_then_chunks_then_messages() -> None:
    """Either way of reading goes on where the other stopped; nothing is lost or comes twice."""
    stream = fed(5)
    stream.put(A, chunk(A, 5, 3))
    stream.put(A, chunk(A, 8, 2))
    stream.timeout_s = 0
    assert next(stream).payload == b"00"
    chunks = stream.chunks()
    assert stream.positions() == {A: 0}
    rest = next(chunks)
    assert [bytes(view) for view in rest.payloads()] == [b"01", b"02", b"03", b"04"]
    assert (rest.offset, rest.next_offset, stream.positions()) == (SIZE, 5 * SIZE, {A: SIZE})
    assert len(next(chunks)) == 3
    assert [message.payload for message in stream] == [b"08", b"09"]
    assert stream.positions() == {A: 10 * SIZE}


def test_a_chunk_that_was_not_taken_comes_as_messages() -> None:
    """Asking for chunks and then not taking one loses nothing."""
    stream = fed(3)
    stream.timeout_s = 0
    next(stream)
    stream.chunks()
    assert [message.payload for message in stream] == [b"01", b"02"]


def test_a_revoked_partition_drops_its_chunks() -> None:
    """What was queued when a partition was taken away is not handed out (§3.2)."""
    stream = fed(5)
    stream.add(B, 0)
    stream.put(B, chunk(B, 0, 2))
    stream.revoke([A])
    assert taken(stream) == [b"00", b"01"]


def test_a_rebalance_waits_for_the_chunk_in_hand() -> None:
    """The position of a partition that is taken away is the end of the chunk, once it is done (§3.2)."""
    stream = fed(5, timeout_s=0)
    chunks = stream.chunks()
    next(chunks)
    revoked = stream.revoke([A])
    got: list[object] = []
    waiter = threading.Thread(target=lambda: got.append(stream.settle(revoked, 60)))
    waiter.start()
    assert next(chunks, None) is None
    waiter.join(60)
    assert got == [{A: 5 * SIZE}]


def test_compressed_sets_come_as_messages() -> None:
    """A chunk of wrappers has the messages inside them (§4)."""
    data = encode_set([b"a", b"b"], codec=Codec.GZIP) + encode_set([b"c"])
    messages = read_set(data, 0, kind=message_class("t", A.partition))
    one = Chunk(FetchedChunk(TopicPartition("t", 0), messages, 0, len(data), len(data)), A.partition)
    assert [bytes(view) for view in one.payloads()] == [b"a", b"b", b"c"]
    assert len(one) == 3
