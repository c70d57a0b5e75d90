"""Append, roll, flush, read, offsets before a time (docs/log.md to §2.4, §2.7, §11 Log)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import OffsetOutOfRange
from kafka2011.log import Log
from kafka2011.log.events import LogFlushed, SegmentRolled
from kafka2011.wire import EARLIEST, LATEST, decode_set, encode_set
from tests.unit.log.conftest import ENTRY, OpenStore


def starts(log: Log) -> list[int]:
    return [segment.start for segment in log.segments()]


def appended(log: Log, n: int) -> Log:
    for _ in range(n):
        log.append(ENTRY, 1)
    return log


def read_all(log: Log, fetch_size: int = 1000) -> list[bytes]:
    """What a consumer gets by successive reads from the first offset."""
    offset, payloads = log.first_offset, []
    while offset < log.flushed_offset:
        with log.read(offset, fetch_size) as piece:
            messages = decode_set(piece.read(), offset)
        payloads += [m.payload for m in messages]
        offset = messages[-1].next_offset
    return payloads


def test_worked_example(open_store: OpenStore) -> None:
    """Limit 100 and 12-byte entries give segments at 0, 108, 216 (docs/log.md)."""
    log = appended(open_store(file_size=100).get_or_create("t", 0), 20)
    log.flush()
    assert starts(log) == [0, 108, 216]
    assert log.end_offset == log.flushed_offset == 240
    assert sorted(os.listdir(log.directory)) == [f"{n:020d}.kafka" for n in (0, 108, 216)]


def test_size_based_roll(open_store: OpenStore) -> None:
    """A segment is rolled when it is strictly larger than the limit, before the append.

    See docs/log.md, docs/paper-vs-code.md.
    """
    log = open_store(file_size=10 * (len(ENTRY) - 1)).get_or_create("t", 0)
    appended(log, 10)
    assert len(starts(log)) == 1
    appended(log, 1)
    assert starts(log) == [0, 120]


def test_a_segment_exactly_at_the_limit_is_not_rolled(open_store: OpenStore) -> None:
    """Equal to the limit is not larger than it (docs/log.md)."""
    log = appended(open_store(file_size=24).get_or_create("t", 0), 3)
    assert starts(log) == [0]
    assert starts(appended(log, 1)) == [0, 36]


def test_time_based_roll(open_store: OpenStore, clock: ManualClock) -> None:
    """The age of a segment counts from its first append; an empty append rolls but starts no clock.

    See docs/paper-vs-code.md.
    """
    log = open_store(roll_ms=1000).get_or_create("t", 0)
    clock.advance(5)
    appended(log, 1)
    assert starts(log) == [0]
    clock.advance(1.5)
    log.append(b"", 0)
    assert starts(log) == [0, 12]
    clock.advance(5)
    appended(log, 1)
    assert starts(log) == [0, 12]
    clock.advance(1.5)
    appended(log, 1)
    assert starts(log) == [0, 12, 24]


def test_append_returns_where_the_set_lies(open_store: OpenStore) -> None:
    """The next message's offset is this one's plus its length (§3.1)."""
    log = open_store().get_or_create("t", 0)
    assert log.append(ENTRY, 1) == (0, 12)
    assert log.append(encode_set([b"abcd", b""]), 2) == (12, 36)
    assert log.append(b"", 0) == (36, 36)
    assert log.n_unflushed == 3


def test_only_flushed_bytes_are_visible(open_store: OpenStore) -> None:
    """Before the flush a written offset is out of range; after it, readable (§3.1, docs/log.md)."""
    log = appended(open_store().get_or_create("t", 0), 2)
    assert (log.flushed_offset, log.end_offset) == (0, 24)
    with log.read(0, 100) as piece:
        assert piece.size == 0
    with pytest.raises(OffsetOutOfRange):
        log.read(12, 100)
    assert log.offsets_before(LATEST, 5) == [0]
    assert log.flush() == 24
    with log.read(12, 100) as piece:
        assert piece.read() == ENTRY
    assert log.offsets_before(LATEST, 5) == [24, 0]


def test_lookup_table(open_store: OpenStore) -> None:
    """Below the first, at the end, above it, inside a message, across a segment (docs/log.md)."""
    log = appended(open_store(file_size=20).get_or_create("t", 0), 5)
    log.flush()
    assert starts(log) == [0, 24, 48]
    for offset in (-1, -(2**63), 61, 2**63 - 1):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 10)
    for offset, max_size, expected in (
        (60, 100, b""), (0, 100, ENTRY * 2), (0, 5, ENTRY[:5]), (5, 100, (ENTRY * 2)[5:]), (23, 100, ENTRY[-1:]),
        (24, 100, ENTRY * 2), (48, 100, ENTRY), (0, 0, b""), (0, -1, b""),
    ):  # fmt: skip
        with log.read(offset, max_size) as piece:
            assert piece.read() == expected


def test_many_segments_are_found_by_successive_reads(open_store: OpenStore) -> None:
    """A hundred messages over many segments come back whole and in order (docs/paper-vs-code.md)."""
    log = open_store(file_size=100).get_or_create("t", 0)
    payloads = [b"%d" % i for i in range(100)]
    for payload in payloads:
        log.append(encode_set([payload]), 1)
    log.flush()
    assert len(starts(log)) > 5
    assert read_all(log, 40) == payloads


def test_an_empty_segment_that_does_not_start_at_zero(open_store: OpenStore, tmp_path: Path) -> None:
    """For an empty segment at 1024: 1024 is the end, 0 and 1025 are out of range (docs/paper-vs-code.md)."""
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    (tmp_path / "data" / "t-0" / "1024.kafka").touch()
    log = open_store().get("t", 0)
    assert log is not None
    assert log.read(1024, 10).size == 0
    for offset in (0, 1025):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 10)
    assert log.append(ENTRY, 1) == (1024, 1036)


def test_flush_by_count_and_by_time(open_store: OpenStore, clock: ManualClock) -> None:
    """After so many messages or so much time, per topic if set; nothing to flush needs none (§3.1, docs/log.md)."""
    store = open_store(
        flush_messages=3, flush_interval_ms=1000, topic_flush_interval_ms={"slow": 5000}, num_partitions=2
    )
    log, slow = store.get_or_create("t", 0), store.get_or_create("slow", 1)
    assert not log.should_flush(clock.monotonic() + 100)
    log.append(ENTRY * 2, 2)
    slow.append(ENTRY, 1)
    assert not log.should_flush(clock.monotonic())
    log.append(ENTRY, 1)
    assert log.should_flush(clock.monotonic())
    log.flush()
    assert not log.should_flush(clock.monotonic())
    log.append(ENTRY, 1)
    clock.advance(1)
    assert log.should_flush(clock.monotonic())
    assert not slow.should_flush(clock.monotonic())
    clock.advance(4)
    assert slow.should_flush(clock.monotonic())


def test_flush_with_nothing_unflushed_is_a_no_op(open_store: OpenStore, clock: ManualClock) -> None:
    """Such a flush says nothing and does not touch the time of the last one (docs/log.md)."""
    store = open_store(flush_interval_ms=1000)
    log = store.get_or_create("t", 0)
    clock.advance(2)
    assert log.flush() == 0
    log.append(ENTRY, 1)
    assert log.should_flush(clock.monotonic())
    assert not [e for e in store.journal.since() if isinstance(e.event, LogFlushed)]


def test_one_flush_covers_every_segment_written_since(open_store: OpenStore, clock: ManualClock) -> None:
    """A roll does not wait for the disk; it asks for a flush, which moves the mark over all segments in order."""
    store = open_store(file_size=20)
    log = appended(store.get_or_create("t", 0), 2)
    assert not log.should_flush(clock.monotonic())
    appended(log, 3)
    assert log.should_flush(clock.monotonic())
    assert [s.flushed_size for s in log.segments()] == [0, 0, 0]
    assert log.flush() == 60
    assert [s.flushed_size for s in log.segments()] == [24, 24, 12]
    assert [e.event.start for e in store.journal.since() if isinstance(e.event, SegmentRolled)] == [24, 48]


def test_offsets_before(open_store: OpenStore, clock: ManualClock) -> None:
    """Latest, earliest, a time: the fact sheet's worked example (docs/log.md)."""
    log = open_store(file_size=100).get_or_create("t", 0)
    assert log.offsets_before(LATEST, 10) == log.offsets_before(EARLIEST, 10) == [0]
    before = clock.wall_ms()
    clock.advance(10)
    appended(log, 9)
    clock.advance(10)
    middle = clock.wall_ms()
    clock.advance(10)
    appended(log, 11)
    log.flush()
    after = clock.wall_ms()
    clock.advance(10)
    assert log.offsets_before(LATEST, 10) == [240, 216, 108, 0]
    assert log.offsets_before(LATEST, 2) == [240, 216]
    assert log.offsets_before(EARLIEST, 10) == [0]
    assert log.offsets_before(after, 10) == [216, 108, 0]
    assert log.offsets_before(middle, 10) == [0]
    assert log.offsets_before(before, 10) == []
    assert log.offsets_before(LATEST, 0) == []


def test_a_file_in_the_way_of_a_roll_is_kept(open_store: OpenStore) -> None:
    """A roll never writes into, and never deletes, a file that is already there (KAFKA-654)."""
    log = appended(open_store(file_size=20).get_or_create("t", 0), 2)
    (log.directory / f"{24:020d}.kafka").write_bytes(b"who put this here")
    appended(log, 1)
    log.flush()
    assert read_all(log) == [b"ab"] * 3
    assert (log.directory / f"{24:020d}.kafka.stray").read_bytes() == b"who put this here"


def test_a_slice_outlives_its_segment(open_store: OpenStore, clock: ManualClock) -> None:
    """A segment deleted while it is being sent is sent to its end (docs/reliability.md)."""
    store = open_store(file_size=20, retention_ms=1000)
    log = appended(store.get_or_create("t", 0), 3)
    log.flush()
    with log.read(0, 100) as piece:
        clock.advance(5)
        store.apply_retention()
        assert log.first_offset > 0
        assert piece.read() == ENTRY * 2
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 100)


def test_a_segment_deleted_by_hand_is_out_of_range(open_store: OpenStore) -> None:
    """A reader that finds its file gone is told so, as after retention."""
    log = appended(open_store().get_or_create("t", 0), 1)
    log.flush()
    log.segments()[0].path.unlink()
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 10)


def test_reading_costs_no_descriptors(open_store: OpenStore) -> None:
    """Descriptors of slices go back when they are closed, and segments hold none for reading."""
    log = appended(open_store(file_size=10).get_or_create("t", 0), 40)
    log.flush()
    before = len(os.listdir("/proc/self/fd"))
    for offset in range(0, 480, 12):
        log.read(offset, 100).close()
    assert len(os.listdir("/proc/self/fd")) == before
