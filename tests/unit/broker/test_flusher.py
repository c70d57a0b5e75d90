"""When a log is flushed, and who is told: with disk threads that work when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.python.failure import Failure

from kafka2011.broker.counters import Counters
from kafka2011.broker.flusher import Flusher
from kafka2011.clock import ManualClock
from kafka2011.errors import LogFailed
from kafka2011.failpoints import activate
from kafka2011.log.log import Log
from kafka2011.log.settings import LogSettings
from kafka2011.log.store import LogStore
from kafka2011.wire import encode_set


class Disk:
    """A pool whose threads do nothing until told; doubles as the reactor they report to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[bool, Any], None], Callable[[], Any]]] = []

    def callInThreadWithCallback(self, done: Callable[[bool, Any], None], work: Callable[..., Any], *_: Any) -> None:
        self.waiting.append((done, work))

    def callFromThread(self, call: Callable[..., Any], *args: Any) -> None:
        call(*args)

    def work(self) -> None:
        """Do the oldest piece of work."""
        done, work = self.waiting.pop(0)
        try:
            result = work()
        except Exception:
            done(False, Failure())
        else:
            done(True, result)


class World:
    """A store with two partitions, a flusher and its disk."""

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock()
        settings = LogSettings(num_partitions=2, flush_messages=3, flush_interval_ms=1000)
        self.store = LogStore(directory, settings, clock=self.clock)
        self.store.open()
        self.disk = Disk()
        self.counters = Counters()
        disk: Any = self.disk
        self.flusher = Flusher(disk, disk, self.counters, self.clock)
        self.told: list[int] = []
        self.flusher.on_flushed(lambda log: self.told.append(log.flushed_offset))
        self.log = self.store.get_or_create("t", 0)

    def append(self, n_messages: int = 1, log: Log | None = None) -> int:
        """Append messages of 11 bytes; return the end."""
        target = log or self.log
        _, end = target.append(encode_set([b"x"] * n_messages), n_messages)
        self.flusher.appended(target)
        return end


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_flushed_after_so_many_messages(world: World) -> None:
    """Below log.flush.interval nothing is flushed; at it a sync begins, whose end makes them visible (§3.1)."""
    world.append(2)
    assert world.disk.waiting == []
    world.append()
    assert len(world.disk.waiting) == 1
    assert world.log.flushed_offset == 0
    world.disk.work()

    assert world.log.flushed_offset == 33
    assert world.told == [33]
    assert sum(world.counters.flush_seconds.counts) == 1


def test_flushed_after_so_much_time(world: World) -> None:
    """The timer flushes a log whose last flush is long enough ago, and no log that has nothing to flush (§3.1)."""
    world.append()
    world.clock.advance(0.9)
    world.flusher.tick()
    assert world.disk.waiting == []
    world.clock.advance(0.1)
    world.flusher.tick()
    world.disk.work()
    assert world.log.flushed_offset == 11
    world.clock.advance(60)
    world.flusher.tick()

    assert world.disk.waiting == []


def test_one_sync_at_a_time_and_the_next_covers_the_rest(world: World) -> None:
    """While a sync runs no second one begins for that log; whatever arrived is covered by one more (group flush)."""
    world.append(3)
    for _ in range(10):
        world.append(3)
    assert len(world.disk.waiting) == 1
    other = world.store.get_or_create("t", 1)
    world.append(3, other)
    assert len(world.disk.waiting) == 2, "another log does not wait"
    world.disk.work()
    world.disk.work()
    world.disk.work()

    assert world.log.flushed_offset == world.log.end_offset == 33 * 11
    assert world.disk.waiting == []
    assert sum(world.counters.flush_seconds.counts) == 3


def test_those_who_wait_are_told_when_their_bytes_are_safe(world: World) -> None:
    """when_flushed fires at once for what is flushed, later for the rest, never too early (acknowledged produce)."""
    fired: list[str] = []
    end = world.append(3)
    world.flusher.when_flushed(world.log, end).addCallback(lambda _: fired.append("first"))
    done, work = world.disk.waiting.pop(0)
    result = work()  # the sync has covered the first set only
    later = world.append(3)
    world.flusher.when_flushed(world.log, later).addCallback(lambda _: fired.append("second"))
    done(True, result)
    assert fired == ["first"]
    world.disk.work()
    assert fired == ["first", "second"]
    world.flusher.when_flushed(world.log, end).addCallback(lambda _: fired.append("at once"))

    assert fired == ["first", "second", "at once"]


def test_a_failed_sync_is_final_for_its_log(world: World) -> None:
    """Those who wait get LogFailed, the mark stays, no further sync is tried on that log; others are flushed (§2.3)."""
    failures: list[Failure] = []
    end = world.append(3)
    world.flusher.when_flushed(world.log, end).addErrback(failures.append)
    world.flusher.flush(world.log)
    with activate("log.flush.before_fsync", "raise:EIO"):
        world.disk.work()
    assert [failure.check(LogFailed) for failure in failures] == [LogFailed]
    world.clock.advance(10)
    world.flusher.tick()
    assert world.disk.waiting == []
    assert (world.log.flushed_offset, world.counters.flush_failures) == (0, 1)
    other = world.store.get_or_create("t", 1)
    world.append(3, other)
    world.disk.work()

    assert other.flushed_offset == 33
