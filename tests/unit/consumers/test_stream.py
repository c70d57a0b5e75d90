"""A stream: what counts as consumed, and what a stop in the middle leaves behind."""

from __future__ import annotations

import pickle
import threading
from random import Random

import pytest

from consumers.algorithm1.steps import Owned
from consumers.dedupe import ByKey, ByOffset
from consumers.fetcher import FetchedChunk
from consumers.simple import Checkpoint
from consumers.stream import Stream, StreamMessage, message_class
from kafka2011.errors import Kafka2011Error
from kafka2011.types import TopicPartition
from kafka2011.wire import Codec, MessageAndOffset, encode_set, read_set
from tests.unit.consumers.conftest import part
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("walker")

A, B = part(0), part(1)
SIZE = 12
"""Bytes of each of the test's messages: ten of header, two of payload."""


def chunk(owned: Owned, start: int, n_messages: int) -> FetchedChunk:
    """``n_messages`` messages from the ``start``-th on."""
    payloads = [b"%02d" % (i % 100) for i in range(start, start + n_messages)]
    data = encode_set(payloads)
    messages = read_set(data, start * SIZE, kind=message_class(owned.topic, owned.partition))
    source = TopicPartition(owned.topic, owned.partition.partition)
    return FetchedChunk(source, messages, start * SIZE, start * SIZE + len(data), len(data))


def fed(n_messages: int = 5, **options: float) -> Stream:
    stream = Stream("s", **options)  # type: ignore[arg-type]
    stream.add(A, 0)
    stream.put(A, chunk(A, 0, n_messages))
    return stream


def test_a_message_knows_where_it_came_from() -> None:
    """Payload, topic, partition, offset and next offset travel with each message (§3.3)."""
    message = next(fed())
    assert (message.payload, message.topic, message.partition) == (b"00", "t", A.partition)
    assert (message.offset, message.next_offset) == (0, SIZE)
    assert pickle.loads(pickle.dumps(message)).topic == "t"


def test_the_message_in_hand_is_not_consumed_yet() -> None:
    """The position moves when the next message is asked for, so a crash delivers the one in hand again (§3.3)."""
    stream = fed()
    assert stream.positions() == {A: 0}
    next(stream)
    assert stream.positions() == {A: 0}
    next(stream)
    assert stream.positions() == {A: SIZE}


def test_finish_counts_the_message_in_hand() -> None:
    """An explicit commit says that the message in hand is done (§3.3)."""
    stream = fed()
    next(stream)
    stream.finish()
    assert stream.positions() == {A: SIZE}
    next(stream)
    assert stream.positions() == {A: SIZE}


def test_finish_by_another_thread_does_not_count() -> None:
    """A commit in one thread does not declare another thread's message done."""
    stream = fed()
    next(stream)
    other = threading.Thread(target=stream.finish)
    other.start()
    other.join()
    assert stream.positions() == {A: 0}


def test_without_a_timeout_it_waits_and_with_one_it_ends_and_goes_on() -> None:
    """A stream ends only after an opted-in timeout, and can be read again afterwards (§3)."""
    stream = fed(2, timeout_s=0.01)
    assert [m.payload for m in stream] == [b"00", b"01"]
    stream.put(A, chunk(A, 2, 1))
    assert [m.payload for m in stream] == [b"02"]
    assert stream.positions() == {A: 3 * SIZE}


def test_a_loop_left_and_entered_again_misses_nothing() -> None:
    """``break`` and a second ``for`` go on with the next message."""
    stream = fed(5, timeout_s=0.01)
    seen = []
    for message in stream:
        seen.append(message.offset)
        if len(seen) == 2:
            break
    seen += [message.offset for message in stream]
    assert seen == [i * SIZE for i in range(5)]


def test_messages_of_a_compressed_set_resume_at_the_set() -> None:
    """In the middle of a wrapper the position stays at the wrapper; after its last message it moves on.

    See docs/protocol.md.
    """
    data = encode_set([b"a", b"b", b"c"], codec=Codec.GZIP)
    stream = Stream("s")
    stream.add(A, 0)
    messages = read_set(data, 0, kind=message_class("t", A.partition))
    stream.put(A, FetchedChunk(TopicPartition("t", 0), messages, 0, len(data), len(data)))
    for _ in range(3):
        next(stream)
        assert stream.positions() == {A: 0}
    stream.timeout_s = 0.01
    assert next(stream, None) is None
    assert stream.positions() == {A: len(data)}


def test_a_stop_in_the_middle_drops_the_rest_and_tells_the_position() -> None:
    """Queued messages of a revoked partition are not delivered; other partitions go on (§3.2)."""
    stream = fed(5, timeout_s=0.01)
    stream.add(B, 0)
    stream.put(B, chunk(B, 0, 2))
    next(stream)
    stream.leave()
    positions = stream.settle(stream.revoke([A]), 0)

    assert positions == {A: 0}, "the message in hand is not finished"
    assert [(m.partition, m.offset) for m in stream] == [(B.partition, 0), (B.partition, SIZE)]


def test_a_stop_waits_a_moment_for_the_message_in_hand() -> None:
    """A member leaving in peace lets the application finish: nothing is delivered twice (§3.2)."""
    stream = fed(5)
    taken, ask = threading.Event(), threading.Event()
    seen: list[StreamMessage] = []

    def application() -> None:
        for message in stream:
            seen.append(message)
            taken.set()
            ask.wait(60)

    thread = threading.Thread(target=application, daemon=True)
    thread.start()
    taken.wait(60)
    revoked = stream.revoke([A])
    ask.set()
    positions = stream.settle(revoked, 60)
    stream.close()
    thread.join(60)

    assert positions == {A: SIZE}
    assert len(seen) == 1


def test_a_partition_that_comes_back_is_not_begun_with_the_message_in_hand() -> None:
    """A slow application keeps its message through a rebalance that gives it the same partition again."""
    stream = fed(3, timeout_s=0.01)
    in_hand = next(stream)
    revoked = stream.revoke([A])
    positions = stream.settle(revoked, 0)
    assert positions == {A: in_hand.offset}

    fetch_from = stream.add(A, positions[A])
    assert fetch_from == in_hand.next_offset
    assert stream.positions() == {A: in_hand.offset}, "still in hand, still not finished"
    stream.put(A, chunk(A, 1, 2))
    assert [m.offset for m in stream] == [SIZE, 2 * SIZE]
    assert stream.positions() == {A: 3 * SIZE}


def test_every_message_once_and_in_order_through_a_hundred_stops() -> None:
    """However a stop falls between two messages, going on from the told position loses and repeats nothing (§3.2)."""
    n_messages, random = 3000, Random(5)
    stream = Stream("s")
    seen: list[int] = []

    def application() -> None:
        for message in stream:
            seen.append(message.offset // SIZE)

    thread = threading.Thread(target=application, daemon=True)
    thread.start()
    position: int | None = 0
    while len(seen) < n_messages:
        start = stream.add(A, position)
        assert start is not None
        at = start // SIZE
        while at < n_messages and random.random() < 0.9:
            step = min(random.randint(1, 20), n_messages - at)
            stream.put(A, chunk(A, at, step))
            at += step
        if at >= n_messages:
            until(lambda: len(seen) >= n_messages, "the last message is delivered")
        position = stream.settle(stream.revoke([A]), 60)[A]
    stream.close()
    thread.join(60)

    assert seen == list(range(n_messages))


def test_an_error_surfaces_at_its_place_and_does_not_move_the_position() -> None:
    """What cannot be read is raised in the stream after the good messages; others can still be read (§3.3)."""
    stream = fed(1, timeout_s=0.01)
    stream.put(A, Kafka2011Error("poison at 12"))
    stream.add(B, 0)
    stream.put(B, chunk(B, 0, 1))
    assert next(stream).payload == b"00"
    with pytest.raises(Kafka2011Error, match="poison at 12"):
        next(stream)
    assert stream.positions()[A] == SIZE
    assert next(stream).partition == B.partition


def test_a_reset_moves_the_position_without_a_message() -> None:
    """An offset moved by the reset policy is committed even if nothing was delivered from there."""
    stream = Stream("s", timeout_s=0.01)
    stream.add(A, None)
    assert stream.positions() == {}
    stream.put(A, FetchedChunk(TopicPartition("t", 0), [], 500, 500, 0))
    assert next(stream, None) is None
    assert stream.positions() == {A: 500}


def test_nothing_comes_out_while_held() -> None:
    """While ownership cannot be assumed nothing is delivered; afterwards it goes on where it was (§3.2)."""
    stream = fed(3, timeout_s=0.01)
    assert next(stream).offset == 0
    stream.hold()
    result: list[int] = []
    thread = threading.Thread(target=lambda: result.extend(m.offset for m in stream), daemon=True)
    thread.start()
    thread.join(0.2)
    assert result == []
    stream.release()
    thread.join(60)
    assert result == [SIZE, 2 * SIZE]


def test_a_full_queue_says_so_and_tells_when_there_is_room() -> None:
    """Prefetch is bounded: a full stream asks for a pause and calls back when half of it is read."""
    stream = Stream("s", room=10 * SIZE, timeout_s=0.01)
    rooms: list[bool] = []
    stream.on_room = lambda: rooms.append(True)
    stream.add(A, 0)
    assert stream.put(A, chunk(A, 0, 6)) is False
    assert stream.put(A, chunk(A, 6, 6)) is True
    next(stream)
    assert not rooms or len(rooms) == 1
    assert len(list(stream)) == 11
    assert rooms == [True]


def test_close_ends_the_iteration_and_a_failure_is_raised() -> None:
    """A closed consumer ends its streams; one that failed tells the application why instead of waiting for ever."""
    stream = fed(3)
    next(stream)
    stream.close()
    assert next(stream, None) is None
    failed = Stream("f")
    failed.close(Kafka2011Error("no such thing"))
    with pytest.raises(Kafka2011Error, match="no such thing"):
        next(failed)


def test_duplicates_are_dropped_by_offset() -> None:
    """An application that stores positions with its results sees each message once (§3.3)."""
    fresh = ByOffset({A: SIZE})
    messages = list(fed(4, timeout_s=0.01))
    assert [fresh(m) for m in [*messages[:3], *messages]] == [False, True, True, False, False, False, True]
    assert (fresh.dropped, fresh.positions) == (4, {A: 4 * SIZE})


def test_duplicates_are_dropped_by_key() -> None:
    """A unique key within the message serves as well, as far as the memory of keys reaches (§3.3)."""
    fresh = ByKey(lambda message: message.payload, remember=2)
    messages = list(fed(3, timeout_s=0.01))
    assert [fresh(m) for m in [messages[0], messages[0], messages[1], messages[2], messages[0]]] == [
        True, False, True, True, True,
    ]  # fmt: skip


def test_the_checkpoint_is_the_smallest_unflushed_offset() -> None:
    """A consumer with its own store restarts from the smallest offset not flushed there (§3.1)."""
    checkpoint = Checkpoint(0)
    messages = [MessageAndOffset((b"", i * 10, i * 10 + 10, 1)) for i in range(4)]
    assert checkpoint.offset == 0
    for message in messages:
        checkpoint.took(message)
    checkpoint.flushed(messages[1])
    checkpoint.flushed(messages[3])
    assert checkpoint.offset == 0
    checkpoint.flushed(messages[0])
    assert checkpoint.offset == 20
    checkpoint.flushed(messages[2])
    assert checkpoint.offset == 40
