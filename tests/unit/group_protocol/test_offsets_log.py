"""The offsets log: placement, replay, compaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumers.group_protocol.coordinator.events import OffsetsDamaged
from consumers.group_protocol.coordinator.requests import OffsetCommit, OffsetFetch, OffsetToCommit
from consumers.group_protocol.coordinator.results import OffsetFetchResult
from consumers.group_protocol.coordinator.service import GroupCoordinator
from consumers.group_protocol.coordinator.settings import GroupSettings, Record
from consumers.group_protocol.offsets_log import OffsetsLog, java_hash, partition_of
from kafka2011.clock import ManualClock
from kafka2011.errors import LogCorrupt
from kafka2011.events import Journal
from kafka2011.failpoints import activate
from tests.unit.group_protocol.bench import SomeTopics


@pytest.mark.parametrize(
    ("group", "h", "partition"),
    [
        ("g", 103, 3),
        ("test", 3556498, 48),
        ("my-group", -1906497762, 12),
        ("group-1", 293427299, 49),
        ("console-consumer-12345", 158455506, 6),
        ("polygenelubricants", -2147483648, 0),
        ("", 0, 0),
        ("\U0001f600", 1772899, 49),
    ],
)
def test_a_group_lives_where_java_puts_it(group: str, h: int, partition: int) -> None:
    """abs(hash) % 50 with Java's string hash over UTF-16 units. Spec §11."""
    assert java_hash(group) == h
    assert partition_of(group) == partition


def values(log: OffsetsLog) -> dict[bytes, bytes | None]:
    return {record.key: record.value for record in log.replay()}


def test_the_last_record_of_each_key_is_replayed(tmp_path: Path) -> None:
    """Later wins, a tombstone erases, over a restart. Spec §11."""
    log = OffsetsLog(tmp_path)
    log.append("g", [Record(b"a", b"1"), Record(b"b", b"1")])
    position = log.append("g", [Record(b"a", b"2"), Record(b"b", None)])
    log.append("test", [Record(b"c", b"3")])
    assert log.unflushed() == [3, 48]
    assert log.flush(3) == position
    assert log.unflushed() == [48]
    log.close()
    again = OffsetsLog(tmp_path)
    assert values(again) == {b"a": b"2", b"c": b"3"}
    again.close()


def flood(log: OffsetsLog, n: int) -> None:
    for i in range(n):
        log.append("g", [Record(b"key-%d" % (i % 7), b"value-%d" % i)])
        if i % 5 == 0:
            log.flush(3)
    log.flush(3)


def test_compaction_keeps_the_log_small_and_loses_nothing(tmp_path: Path) -> None:
    """However many commits, the size stays bounded; what is live stays. Spec §11, §16."""
    log = OffsetsLog(tmp_path, min_garbage=4_000, file_size=1_000)
    flood(log, 600)
    assert log.size() < 10_000
    expected = {b"key-%d" % (i % 7): b"value-%d" % i for i in range(600)}
    assert values(log) == expected
    log.close()
    again = OffsetsLog(tmp_path)
    assert values(again) == expected
    again.close()


def test_tombstones_are_kept_for_a_while_and_then_dropped(tmp_path: Path) -> None:
    """Delete retention: a reader of the log has that long to learn of a deletion. Spec §16."""
    clock = ManualClock()
    log = OffsetsLog(tmp_path, clock=clock, min_garbage=2_000, file_size=500, delete_retention_ms=60_000)
    log.append("g", [Record(b"gone", b"x")])
    log.append("g", [Record(b"gone", None)])
    flood(log, 300)
    assert any(b"gone" in path.read_bytes() for path in tmp_path.glob("__consumer_offsets-3/*.kafka"))
    clock.advance(61)
    flood(log, 300)
    assert not any(b"gone" in path.read_bytes() for path in tmp_path.glob("__consumer_offsets-3/*.kafka"))
    log.close()


@pytest.mark.parametrize("place", ["offsets.compact.before_append", "offsets.compact.before_trim"])
def test_a_compaction_cut_short_changes_nothing(tmp_path: Path, place: str) -> None:
    """Whatever part of it was done, a restart finds the same records. Spec §16."""
    log = OffsetsLog(tmp_path, min_garbage=4_000, file_size=1_000)
    with activate(place, "raise:EIO"), pytest.raises(OSError, match="failpoint"):
        flood(log, 600)
    seen = values(log)
    log.close()
    again = OffsetsLog(tmp_path, min_garbage=4_000, file_size=1_000)
    assert values(again) == seen
    flood(again, 500)
    assert values(again) == seen | {b"key-%d" % (i % 7): b"value-%d" % i for i in range(500)}
    again.close()


def test_a_damaged_partition_is_not_mistaken_for_an_empty_one(tmp_path: Path) -> None:
    """Its groups are answered 15 until someone looks; the others are served."""
    log = OffsetsLog(tmp_path)
    for i in range(50):
        log.append("g", [Record(b"a", b"%d" % i)])
    log.flush(3)
    log.close()
    (segment,) = tmp_path.glob("__consumer_offsets-3/*.kafka")
    data = bytearray(segment.read_bytes())
    data[40] ^= 0xFF
    segment.write_bytes(bytes(data))
    journal = Journal()
    again = OffsetsLog(tmp_path, journal=journal)
    assert not again.is_available("g")
    assert again.is_available("test")
    assert any(isinstance(entry.event, OffsetsDamaged) for entry in journal.since())
    with pytest.raises(LogCorrupt, match="salvage"):
        again.append("g", [Record(b"a", b"x")])
    again.close()


def test_the_coordinator_over_the_real_log(tmp_path: Path) -> None:
    """Committed, flushed, answered; found again after a restart. Spec §11."""
    log = OffsetsLog(tmp_path)
    coordinator = GroupCoordinator(GroupSettings(), log, SomeTopics(t=1))
    assert coordinator.handle(1, OffsetCommit("g", -1, "", (OffsetToCommit("t", 0, 42),)), 0.0) == []
    (reply,) = [reply for number in log.unflushed() for reply in coordinator.flushed(log.flush(number), 0.0)]
    assert reply.token == 1
    log.close()
    again = OffsetsLog(tmp_path)
    restarted = GroupCoordinator(GroupSettings(), again, SomeTopics(t=1))
    restarted.load(again.replay(), 0.0)
    (answer,) = restarted.handle(2, OffsetFetch("g"), 0.0)
    assert isinstance(answer.response, OffsetFetchResult)
    assert answer.response.offsets[0].offset == 42
    again.close()
