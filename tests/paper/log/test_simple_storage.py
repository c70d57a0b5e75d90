"""§3.1, Simple storage and Stateless broker, sentence by sentence, on the log itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import OffsetOutOfRange
from kafka2011.log import Log, LogSettings, LogStore
from kafka2011.wire import Message, decode_set, encode_message, encode_set

SEVEN_DAYS_S = 7 * 24 * 3600


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[LogStore]:
    settings = LogSettings(file_size=1000, flush_messages=10, flush_interval_ms=2000, num_partitions=2)
    store = LogStore(tmp_path, settings, clock=clock)
    store.open()
    yield store
    store.close()


@pytest.fixture
def log(store: LogStore) -> Log:
    return store.get_or_create("topic1", 0)


def publish(log: Log, *payloads: bytes) -> None:
    log.append(encode_set(payloads), len(payloads))


def test_each_partition_is_a_logical_log(store: LogStore, tmp_path: Path) -> None:
    """§3.1: "Each partition of a topic corresponds to a logical log." """
    publish(store.get_or_create("topic1", 0), b"a")
    publish(store.get_or_create("topic1", 1), b"b", b"c")
    assert [log.end_offset for log in store.logs()] == [11, 22]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["topic1-0", "topic1-1"]


def test_segments_of_about_the_same_size(log: Log) -> None:
    """§3.1: "a log is implemented as a set of segment files of approximately the same size." """
    for _ in range(100):
        publish(log, b"x" * 90)
    sizes = [segment.size for segment in log.segments()]
    assert len(sizes) == 10
    assert all(1000 <= size <= 1100 for size in sizes[:-1])


def test_append_goes_to_the_last_segment(log: Log) -> None:
    """§3.1: "the broker simply appends the message to the last segment file." """
    for _ in range(30):
        before = log.segments()
        publish(log, b"x" * 90)
        after = log.segments()
        assert [segment.size for segment in after[: len(before) - 1]] == [segment.size for segment in before[:-1]]
        assert after[-1].start + after[-1].size == log.end_offset


def test_flush_after_a_number_of_messages_or_a_time(log: Log, clock: ManualClock) -> None:
    """§3.1: "we flush the segment files to disk only after a configurable number of messages ... or a certain amount of
    time has elapsed." """
    publish(log, *[b"x"] * 9)
    assert not log.should_flush(clock.monotonic())
    publish(log, b"x")
    assert log.should_flush(clock.monotonic())
    log.flush()
    publish(log, b"x")
    assert not log.should_flush(clock.monotonic())
    clock.advance(2)
    assert log.should_flush(clock.monotonic())


def test_exposed_only_after_the_flush(log: Log) -> None:
    """§3.1: "A message is only exposed to the consumers after it is flushed." """
    publish(log, b"hello")
    assert log.read(0, 100).size == 0
    log.flush()
    with log.read(0, 100) as piece:
        assert [m.payload for m in decode_set(piece.read())] == [b"hello"]


def test_ids_increase_but_are_not_consecutive(log: Log) -> None:
    """§3.1: "To compute the id of the next message, we have to add the length of the current message to its id." """
    payloads = [b"a", b"bb" * 20, b"", b"ccc"]
    publish(log, *payloads)
    log.flush()
    with log.read(0, 1000) as piece:
        messages = decode_set(piece.read(), 0)
    expected = 0
    for message, payload in zip(messages, payloads, strict=True):
        assert message.offset == expected
        expected += Message(payload).size
        assert message.next_offset == expected


def test_the_segment_is_found_in_the_sorted_list(log: Log) -> None:
    """§3.1, Figure 2: "The broker locates the segment file where the requested message resides by searching the offset
    list." """
    for number in range(50):
        publish(log, b"%090d" % number)
    log.flush()
    assert [segment.start for segment in log.segments()] == [0, 1100, 2200, 3300, 4400]
    for number in (0, 9, 10, 11, 25, 49):
        with log.read(number * 100, 100) as piece:
            assert decode_set(piece.read())[0].payload == b"%090d" % number


def test_deleted_after_seven_days_read_or_not(store: LogStore, log: Log, clock: ManualClock) -> None:
    """§3.1: "A message is automatically deleted if it has been retained in the broker longer than a certain
    period." """
    publish(log, b"old")
    log.flush()
    clock.advance(SEVEN_DAYS_S)
    store.apply_retention()
    assert log.first_offset == 0
    clock.advance(1)
    store.apply_retention()
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 100)
    publish(log, b"new")
    log.flush()
    with log.read(log.first_offset, 100) as piece:
        assert [m.offset for m in decode_set(piece.read(), log.first_offset)] == [len(encode_message(Message(b"old")))]


def test_a_consumer_can_rewind(log: Log) -> None:
    """§3.1: "a consumer can deliberately rewind back to an old offset and re-consume data." """
    publish(log, b"a", b"b")
    log.flush()
    reads = []
    for _ in range(2):
        with log.read(0, 100) as piece:
            reads.append(piece.read())
    assert reads[0] == reads[1] != b""
