"""Retention: what is deleted, and what never is (§3.1 Stateless broker, docs/log.md)."""

from __future__ import annotations

import os

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import OffsetOutOfRange
from kafka2011.failpoints import activate
from kafka2011.log import LogSettings, LogStore
from kafka2011.log.events import HousekeepingFailed, RetentionHeld, SegmentsDeleted
from kafka2011.log.retention import oversize
from tests.unit.log.conftest import ENTRY, OpenStore
from tests.unit.log.test_log import appended, starts

WEEK_S = 7 * 24 * 3600


def test_expired_segments_go(open_store: OpenStore, clock: ManualClock) -> None:
    """Everything aged leaves one empty segment at the end offset, and the log goes on from there.

    See docs/paper-vs-code.md.
    """
    store = open_store(file_size=100)
    log = appended(store.get_or_create("t", 0), 20)
    log.flush()
    clock.advance(WEEK_S + 1)
    assert store.apply_retention() == [(log, 3)]
    assert starts(log) == [240]
    assert log.read(240, 10).size == 0
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 10)
    assert log.append(ENTRY, 1) == (240, 252)


def test_an_empty_last_segment_is_kept(open_store: OpenStore, clock: ManualClock) -> None:
    """A log always has a segment, and its age starts again (docs/log.md)."""
    store = open_store()
    log = store.get_or_create("t", 0)
    clock.advance(WEEK_S + 1)
    assert store.apply_retention() == []
    assert starts(log) == [0]
    assert log.segments()[0].mtime_ms == clock.wall_ms()


def test_young_segments_stay(open_store: OpenStore, clock: ManualClock) -> None:
    """Seven days are kept, whether read or not; the oldest go first (§3.1)."""
    store = open_store(file_size=20, topic_retention_ms={"short": 1000})
    log, short = appended(store.get_or_create("t", 0), 2), appended(store.get_or_create("short", 0), 2)
    clock.advance(3600)
    appended(log, 2)
    appended(short, 2)
    log.flush()
    short.flush()
    assert [(lost.topic, n) for lost, n in store.apply_retention()] == [("short", 1)]
    clock.advance(WEEK_S - 1800)
    assert [(lost.topic, n) for lost, n in store.apply_retention()] == [("t", 1), ("short", 1)]
    assert starts(log) == [24]
    events = [e.event for e in store.journal.since() if isinstance(e.event, SegmentsDeleted)]
    assert [(e.topic, e.first_offset, e.rule) for e in events] == [
        ("short", 24, "age"), ("t", 24, "age"), ("short", 48, "age"),
    ]  # fmt: skip


def test_retention_by_size(open_store: OpenStore) -> None:
    """A hundred segments of ten, limit fifty messages and ten bytes: six remain (docs/paper-vs-code.md)."""
    store = open_store(file_size=10 * (len(ENTRY) - 1), retention_size=50 * len(ENTRY) + 10)
    log = appended(store.get_or_create("t", 0), 1000)
    log.flush()
    assert len(starts(log)) == 100
    store.apply_retention()
    assert len(starts(log)) == 6
    assert log.size >= 50 * len(ENTRY) + 10


def test_size_rule_keeps_at_least_the_limit() -> None:
    """What stays is never less than the limit; a negative limit is none (docs/log.md)."""
    assert oversize([10, 10, 10], 20) == 1
    assert oversize([10, 10, 10], 21) == 0
    assert oversize([10, 10, 10], 0) == 3
    assert oversize([10, 10, 10], -1) == 0


def test_unflushed_segments_stay(open_store: OpenStore, clock: ManualClock) -> None:
    """Nothing above the flushed mark is ever deleted."""
    store = open_store(file_size=20, retention_ms=1000, retention_size=0)
    log = appended(store.get_or_create("t", 0), 5)
    clock.advance(10)
    assert store.apply_retention() == []
    assert starts(log) == [0, 24, 48]


def test_a_clock_that_leaps_deletes_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Eight days too many at once are not believed for an hour; a clock set right again costs nothing (rel. §2.3)."""

    class Leaping(ManualClock):
        leap_ms = 0

        def wall_ms(self) -> int:
            return super().wall_ms() + self.leap_ms

    clock = Leaping()
    store = LogStore(tmp_path_factory.mktemp("d"), LogSettings(file_size=20), clock=clock)
    store.open()
    log = appended(store.get_or_create("t", 0), 5)
    log.flush()
    clock.leap_ms = 8 * 24 * 3_600_000
    for _ in range(3):
        assert store.apply_retention() == []
        clock.advance(60)
    assert len([e for e in store.journal.since() if isinstance(e.event, RetentionHeld)]) == 1
    clock.leap_ms = 0
    assert store.apply_retention() == []
    clock.leap_ms = 8 * 24 * 3_600_000
    assert store.apply_retention() == []
    clock.advance(3601)
    assert store.apply_retention() == [(log, 3)]
    store.close()


def test_one_pass_deletes_only_so_many(open_store: OpenStore, clock: ManualClock) -> None:
    """Deletions per pass are bounded (docs/reliability.md)."""
    store = open_store(file_size=10, retention_ms=1000, max_deletes_per_pass=4)
    log = appended(store.get_or_create("t", 0), 10)
    log.flush()
    clock.advance(10)
    assert store.apply_retention() == [(log, 4)]
    assert log.first_offset == 48


def test_a_file_that_cannot_be_deleted_is_reported(open_store: OpenStore, clock: ManualClock) -> None:
    """The offsets are gone, the failure is told, and the file goes at the next start (delete-with-IOException)."""
    store = open_store(file_size=20, retention_ms=1000)
    log = appended(store.get_or_create("t", 0), 3)
    log.flush()
    clock.advance(10)
    with activate("log.retention.before_unlink", "raise:EACCES"):
        store.apply_retention()
    assert log.first_offset == 36
    assert [e for e in store.journal.since() if isinstance(e.event, HousekeepingFailed)]
    assert len(os.listdir(log.directory)) == 3
    store.close()
    again = open_store(file_size=20, retention_ms=1000).get("t", 0)
    assert again is not None
    assert starts(again) == [36]
    assert len(os.listdir(log.directory)) == 1


def test_retention_works_on_a_full_disk(open_store: OpenStore, clock: ManualClock) -> None:
    """Deleting needs no room: a checkpoint that cannot be written does not stop it (docs/reliability.md)."""
    store = open_store(file_size=20, retention_ms=1000)
    log = appended(store.get_or_create("t", 0), 3)
    log.flush()
    clock.advance(10)
    with activate("log.checkpoint.before_rename", "raise:ENOSPC"), activate("log.roll.before_create", "raise:ENOSPC"):
        assert store.apply_retention() == [(log, 1)]
    assert starts(log) == [24]
