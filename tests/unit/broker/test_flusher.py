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
        self.waiting: list[Callable[[], None]] = []
        self.calls: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []

    def callLater(self, delay: float, call: Callable[[], None]) -> None:
        self.later.append((round(delay, 6), call))

    def step(self) -> float:
        """Let the next timer strike; return how long that took."""
        delay, call = self.later.pop(0)
        call()
        return delay

    def callInThread(self, work: Callable[[], None]) -> None:
        self.waiting.append(work)

    def callFromThread(self, call: Callable[..., Any], *args: Any) -> None:
        self.calls.append(call)

    def sync(self) -> None:
        """Let the oldest thread work until it has nothing more to do; the reactor has not looked yet."""
        self.waiting.pop(0)()

    def tell(self) -> None:
        """The reactor looks."""
        while self.calls:
            self.calls.pop(0)()

    def work(self) -> None:
        """Sync and tell."""
        self.sync()
        self.tell()


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
        self.flusher = Flusher(disk, disk, self.counters, self.clock, n_threads=2, early_s=0.002)
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
    while world.disk.waiting:
        world.disk.work()

    assert world.log.flushed_offset == world.log.end_offset == 33 * 11
    assert world.disk.waiting == []
    assert sum(world.counters.flush_seconds.counts) == 3


def test_hundreds_of_logs_are_one_job_and_one_wake_up(world: World, tmp_path: Path) -> None:
    """Flushing many logs takes as many threads as there are, and the reactor is woken once (issue 23, point 4)."""
    settings = LogSettings(num_partitions=300, flush_messages=3, flush_interval_ms=1000)
    store = LogStore(tmp_path / "many", settings, clock=world.clock)
    store.open()
    for partition in range(300):
        world.append(1, store.get_or_create("t", partition))
    world.clock.advance(1)
    world.flusher.tick()
    assert len(world.disk.waiting) == 2
    world.disk.sync()
    assert len(world.disk.calls) == 1
    world.disk.tell()
    world.disk.work()
    assert all(log.flushed_offset == 11 for log in store.logs())
    assert world.told == [11] * 300
    store.close()


def test_a_reader_at_the_flushed_end_makes_a_flush_early(world: World) -> None:
    """One message is flushed at once where somebody waits for it, and not where nobody does (issue 23, point 6)."""
    world.append()
    assert world.disk.later == []
    world.flusher.wanted(world.log)
    assert world.disk.step() == 0
    world.disk.work()
    assert world.log.flushed_offset == 11
    other = world.store.get_or_create("t", 1)
    world.append(1, other)
    assert world.disk.later == []
    world.append()
    assert world.disk.step() == 0.002, "the syncs for readers keep their pace"
    world.disk.work()
    assert world.log.flushed_offset == 22


def test_a_burst_is_one_early_flush(world: World) -> None:
    """What arrives until the next step is covered by one sync (group commit)."""
    world.flusher.wanted(world.log)
    for _ in range(2):
        world.append()
    world.disk.step()
    world.disk.work()
    assert (world.log.flushed_offset, world.disk.later, world.disk.waiting) == (22, [], [])


def test_a_reader_that_left_is_forgotten(world: World) -> None:
    """After a second without a fetch at the end, the two thresholds of the paper alone decide again (§3.1)."""
    world.flusher.wanted(world.log)
    world.clock.advance(0.9)
    world.append()
    world.disk.step()
    world.disk.work()
    world.clock.advance(0.2)
    world.append()
    assert (world.disk.later, world.disk.waiting) == ([], [])


def test_many_eager_readers_share_one_pace(world: World, tmp_path: Path) -> None:
    """However many partitions are read at their end, only a few are flushed early at each step."""
    store = LogStore(tmp_path / "many", LogSettings(num_partitions=9, flush_messages=99), clock=world.clock)
    store.open()
    for partition in range(9):
        log = store.get_or_create("t", partition)
        world.flusher.wanted(log)
        world.append(1, log)
    steps = []
    while world.disk.later:
        steps.append(world.disk.step())
        while world.disk.waiting:
            world.disk.work()
        steps.append(sum(log.flushed_offset > 0 for log in store.logs()))
    assert steps == [0, 4, 0.002, 8, 0.002, 9]
    store.close()


def test_settled_when_nothing_is_in_flight(world: World) -> None:
    """A stop waits for every sync that has begun, also for the one that must follow it."""
    settled: list[str] = []
    world.flusher.settle().addCallback(lambda _: settled.append("at once"))
    world.append(3)
    world.append(3)
    world.flusher.settle().addCallback(lambda _: settled.append("later"))
    world.disk.work()
    assert settled == ["at once"]
    world.disk.work()
    assert settled == ["at once", "later"]


def test_those_who_wait_are_told_when_their_bytes_are_safe(world: World) -> None:
    """when_flushed fires at once for what is flushed, later for the rest, never too early (acknowledged produce)."""
    fired: list[str] = []
    end = world.append(3)
    world.flusher.when_flushed(world.log, end).addCallback(lambda _: fired.append("first"))
    world.disk.sync()  # it has covered the first set only
    later = world.append(3)
    world.flusher.when_flushed(world.log, later).addCallback(lambda _: fired.append("second"))
    world.disk.tell()
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
    first_end = world.log.end_offset // 2
    world.log.end_offset, end = first_end, world.log.end_offset  # the sync covers the first set only
    world.disk.sync()
    world.log.end_offset = end
    marks: list[int] = []

    def the_next_sync_is_quick() -> None:
        world.disk.sync()
        marks.append(world.log.flushed_offset)
        assert fired == []

    world.disk.tell()
    assert marks == [end], "the mark has moved, and nobody was told yet"

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


def test_a_callback_that_fails_keeps_no_other_from_being_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
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
