"""When a log is flushed, and who is told: with disk threads that work when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.python.log import PythonLoggingObserver

from kafka2011.broker.counters import Counters
from kafka2011.broker.flusher import Flusher
from kafka2011.clock import ManualClock
from kafka2011.errors import FlushFailed, LogFailed
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


def test_a_mark_that_moves_while_waiters_are_told_fires_none_twice(world: World) -> None:
    """Issue 19 A2: the next sync's thread moves the mark while waiters are told; each is told once, nobody is lost."""
    fired: list[str] = []
    world.flusher.when_flushed(world.log, world.append(3)).addCallback(lambda _: the_next_sync_is_quick())
    second = world.append(3)
    for name in ("second", "third"):
        world.flusher.when_flushed(world.log, second).addCallback(lambda _, name=name: fired.append(name))
    done, work = world.disk.waiting.pop(0)
    first_end = world.log.end_offset // 2
    world.log.end_offset, end = first_end, world.log.end_offset  # the sync covers the first set only
    covered = work()
    world.log.end_offset = end
    results: list[Any] = []

    def the_next_sync_is_quick() -> None:
        results.append(world.disk.waiting[0][1]())

    done(True, covered)
    assert results == [end], "the mark has moved, and nobody was told yet"
    world.disk.waiting.pop(0)[0](True, results[0])

    assert fired == ["second", "third"]
    assert world.told == [end, end]


def test_a_cancelled_waiter_leaves_and_the_others_are_told(world: World) -> None:
    """Issue 19 A2: connections die and requests run out of time; whoever still waits is told, once, good or bad."""
    failures: list[Failure] = []
    fired: list[int] = []
    end = world.append(3)
    waiters = [world.flusher.when_flushed(world.log, end) for _ in range(4)]
    waiters[0].addCallback(lambda _: waiters[2].cancel())
    for number, waiter in enumerate(waiters):
        waiter.addCallbacks(lambda _, number=number: fired.append(number), failures.append)
    waiters[1].cancel()
    world.disk.work()
    assert fired == [0, 3]
    assert [failure.check(CancelledError) for failure in failures] == [CancelledError] * 2
    later = world.flusher.when_flushed(world.log, world.append(3))
    later.addErrback(failures.append)
    later.cancel()
    with activate("log.flush.before_fsync", "raise:EIO"):
        world.disk.work()

    assert len(failures) == 3


def test_a_callback_that_fails_keeps_no_other_from_being_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 19 A2: one broken listener is logged as an unhandled error; waiters and other listeners are told."""
    fired: list[str] = []

    def broken(_: Log) -> None:
        raise ZeroDivisionError("planted")

    world.flusher.on_flushed(broken)
    world.flusher.on_flushed(lambda _: fired.append("listener"))
    world.flusher.when_flushed(world.log, world.append(3)).addCallback(lambda _: fired.append("waiter"))
    observer = PythonLoggingObserver("twisted")
    observer.start()
    try:
        world.disk.work()
    finally:
        observer.stop()

    assert fired == ["waiter", "listener"]
    assert "Unhandled error" in caplog.text
    assert "planted" in caplog.text


def test_a_failed_log_is_not_waited_for(world: World) -> None:
    """Issue 19 A1: once a sync has failed, whoever asks later is told at once."""
    failures: list[Failure] = []
    end = world.append(3)
    with activate("log.flush.before_fsync", "raise:EIO"):
        world.disk.work()
    world.flusher.when_flushed(world.log, end).addErrback(failures.append)

    assert [failure.check(FlushFailed) for failure in failures] == [FlushFailed]
