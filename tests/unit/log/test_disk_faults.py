"""What each disk fault leads to (docs/reliability.md), injected at failpoints."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kafka2011.errors import LogFailed, LogFull
from kafka2011.failpoints import activate
from kafka2011.log import log as log_module
from kafka2011.log import segment as segment_module
from kafka2011.log.directory import CLEAN_SHUTDOWN
from kafka2011.log.events import DiskFailed, DiskFull, DiskRoomAgain, LogEvent
from tests.unit.log.conftest import ENTRY, OpenStore
from tests.unit.log.test_log import appended, read_all
from tests.waiting import until


@pytest.mark.parametrize("step", ["log.append.before_write", "log.append.after_write", "log.roll.before_create"])
@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EFBIG"])
def test_a_full_disk_refuses_and_recovers(open_store: OpenStore, step: str, error: str) -> None:
    """Nothing of the append stays, reads go on, and without a restart the log goes on when there is room again."""
    store = open_store(file_size=20)
    log = appended(store.get_or_create("t", 0), 2)
    log.flush()
    with activate(step, f"raise:{error}"):
        for _ in range(2):
            with pytest.raises(LogFull) as caught:
                log.append(ENTRY, 1)
            assert caught.value.retriable
        assert read_all(log) == [b"ab"] * 2
        assert log.end_offset == 24
        assert sum(path.stat().st_size for path in log.directory.iterdir()) == 24
    assert log.append(ENTRY, 1) == (24, 36)
    log.flush()
    assert read_all(log) == [b"ab"] * 3
    told = [type(e.event) for e in store.journal.since() if isinstance(e.event, (DiskFull, DiskRoomAgain))]
    assert told == [DiskFull, DiskRoomAgain]


def test_short_writes_go_on_where_they_stopped(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that took a few bytes is continued, not begun again (KAFKA-309)."""
    pwrite = os.pwrite
    monkeypatch.setattr(segment_module.os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data[:5]), at))
    log = open_store().get_or_create("t", 0)
    appended(log, 3)
    log.flush()
    assert read_all(log) == [b"ab"] * 3


def test_a_short_write_that_then_fails_is_cut_back(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five bytes and then no room: the five bytes go again (docs/reliability.md)."""
    pwrite = os.pwrite
    log = appended(open_store().get_or_create("t", 0), 1)
    with monkeypatch.context() as patch, activate("log.append.short_write", "raise:ENOSPC"):
        patch.setattr(segment_module.os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data[:5]), at))
        with pytest.raises(LogFull):
            log.append(ENTRY, 1)
    assert log.segments()[0].path.stat().st_size == 12
    appended(log, 1)
    log.flush()
    assert read_all(log) == [b"ab"] * 2


@pytest.mark.parametrize(("step", "error"), [("log.append.before_write", "EIO"), ("log.append.before_write", "EROFS")])
def test_a_failed_write_ends_the_partition(open_store: OpenStore, step: str, error: str) -> None:
    """After EIO nothing more is written on that descriptor; flushed data stays readable, other partitions run."""
    store = open_store(num_partitions=2)
    log = appended(store.get_or_create("t", 0), 1)
    log.flush()
    with activate(step, f"raise:{error}"), pytest.raises(LogFailed, match="restart"):
        log.append(ENTRY, 1)
    with pytest.raises(LogFailed):
        log.append(ENTRY, 1)
    assert read_all(log) == [b"ab"]
    assert store.get_or_create("t", 1).append(ENTRY, 1) == (0, 12)


def test_a_cut_back_that_fails_ends_the_partition(open_store: OpenStore) -> None:
    """If a partial write cannot be taken back, nothing may be appended after it."""
    log = open_store().get_or_create("t", 0)
    full, stuck = (activate(f"log.append.{step}", "raise:ENOSPC") for step in ("before_write", "before_cut_back"))
    with full, stuck, pytest.raises(LogFailed):
        log.append(ENTRY, 1)
    with pytest.raises(LogFailed):
        log.append(ENTRY, 1)


@pytest.mark.parametrize("step", ["log.flush.before_fsync", "log.flush.after_fsync"])
def test_a_failed_sync_is_final(open_store: OpenStore, step: str) -> None:
    """The visible mark never moves again, no retry calls it flushed, and no clean marker is left (fsyncgate)."""
    store = open_store()
    log = appended(store.get_or_create("t", 0), 1)
    log.flush()
    appended(log, 1)
    with activate(step, "raise:EIO"), pytest.raises(LogFailed):
        log.flush()
    for _ in range(2):
        with pytest.raises(LogFailed):
            log.flush()
    with pytest.raises(LogFailed):
        log.append(ENTRY, 1)
    assert (log.flushed_offset, log.end_offset) == (12, 24)
    assert not log.should_flush(1e9)
    assert read_all(log) == [b"ab"]
    assert [e.event.step for e in store.journal.since() if isinstance(e.event, DiskFailed)] == ["flush"]
    store.close()
    assert not (store.directory / CLEAN_SHUTDOWN).exists()


def test_a_flush_covers_what_was_appended_when_it_began(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appends go on during a sync; the mark moves to where the log ended when the sync began (§3.1)."""
    log = appended(open_store().get_or_create("t", 0), 2)
    began, go_on, fsync = threading.Event(), threading.Event(), os.fsync

    def slow(fd: int) -> None:
        began.set()
        assert go_on.wait(60)
        fsync(fd)

    monkeypatch.setattr(segment_module.os, "fsync", slow)
    flusher = threading.Thread(target=log.flush)
    flusher.start()
    assert began.wait(60)
    appended(log, 3)
    assert (log.flushed_offset, log.end_offset) == (0, 60)
    go_on.set()
    flusher.join(60)
    assert (log.flushed_offset, log.n_unflushed) == (24, 3)
    assert log.flush() == 60


def test_many_threads_may_flush(open_store: OpenStore) -> None:
    """Flushing from several threads while one appends keeps every message and ends at the end."""
    log = open_store(file_size=200).get_or_create("t", 0)
    stop = threading.Event()

    def flush() -> None:
        while not stop.is_set():
            log.flush()

    threads = [threading.Thread(target=flush) for _ in range(3)]
    for thread in threads:
        thread.start()
    appended(log, 500)
    until(lambda: log.flushed_offset == log.end_offset, "everything is flushed")
    stop.set()
    for thread in threads:
        thread.join(60)
    assert read_all(log) == [b"ab"] * 500
    assert log.n_unflushed == 0


def test_every_event_names_its_partition(open_store: OpenStore) -> None:
    """What happens to a log is told with topic and partition."""
    store = open_store()
    appended(store.get_or_create("t", 0), 1).flush()
    told = [e.event for e in store.journal.since() if isinstance(e.event, LogEvent)]
    assert {(event.topic, event.partition) for event in told} == {("t", 0)}


def test_a_new_topic_is_durable_before_it_is_visible(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating waits for no disk; the first flush syncs file, directory and data directory before the mark (§3.1)."""
    synced: list[str] = []
    store = open_store(file_size=20)

    def sync(path: Path) -> None:
        synced.append(f"{path.name} at {log.flushed_offset}")

    monkeypatch.setattr(log_module, "sync_directory", sync)
    log = appended(store.get_or_create("t", 0), 1)
    assert synced == []
    log.flush()
    assert synced == ["t-0 at 0", "data at 0"]
    appended(log, 1).flush()
    assert len(synced) == 2
    appended(log, 1).flush()
    assert synced[2:] == ["t-0 at 24"]
    assert len(log.segments()) == 2


@pytest.mark.parametrize("hit", [1, 2])
def test_a_new_topic_whose_names_cannot_be_synced_shows_nothing(open_store: OpenStore, hit: int) -> None:
    """When the sync of either directory fails, nothing of the topic becomes visible, ever (docs/reliability.md)."""
    log = appended(open_store().get_or_create("t", 0), 1)
    with activate("log.flush.before_directory_sync", f"raise:EIO@{hit}"), pytest.raises(LogFailed):
        log.flush()
    with pytest.raises(LogFailed):
        log.flush()
    assert (log.flushed_offset, log.end_offset) == (0, 12)
