"""The tests of lab 3 that only the grader runs."""

from __future__ import annotations

from random import Random
from typing import Any

from classroom.labs.disk import Disk
from classroom.labs.entries import intact, message
from classroom.labs.lab import Bench, Failed, Tests, check, expect, refused
from classroom.labs.lab3.seen import opened
from classroom.labs.sandbox import StudentError

UNSEEN = Tests(seen=False)
_RUNS, _CUTS = 8, 3


@UNSEEN.add(points=20, limit_s=15.0)
def many_power_cuts(bench: Bench) -> None:
    """Messages, ticks, readers, crashes and power cuts at random: what a reader saw is there for ever."""
    for run in range(_RUNS):
        random = Random(f"{bench.seed}/cuts/{run}")
        disk = Disk(random)
        try:
            _live_through(bench, disk, random)
        except (Failed, StudentError) as error:
            bench.replays[f"power-cuts-{run}.txt"] = "\n".join([*disk.lines, f"FAILED: {error}"]) + "\n"
            raise Failed(f"run {run}: {error}; the transcript is replays/power-cuts-{run}.txt") from None


def _live_through(bench: Bench, disk: Disk, random: Random) -> None:
    seen = b""
    now = 0
    for _ in range(_CUTS):
        student, log = opened(bench, disk, n=random.randint(1, 6), ms=100)
        seen = _look(log, seen, disk)
        for _ in range(random.randint(0, 12)):
            now += random.choice((0, 1, 60, 150))
            if random.random() < 0.25:
                log.tick(now)
            else:
                log.append(message(random.randbytes(random.randint(0, 20))), now)
            if random.random() < 0.5:
                seen = _look(log, seen, disk)
        student.kill()
        disk.lines.append("kill -9")
        if random.random() < 0.7:
            disk.cut()
    _, log = opened(bench, disk)
    _look(log, seen, disk)


def _look(log: Any, seen: bytes, disk: Disk) -> bytes:
    """A reader reads all there is; what it saw before must be the beginning of it."""
    end = log.visible()
    got: bytes = log.read(0, 1 << 20)
    disk.lines.append(f"a reader sees {len(got)} bytes")
    expect(len(got), end, "the length of read(0, everything), compared with visible()")
    check(intact(got) == len(got), f"a reader sees {len(got)} bytes of which only {intact(got)} are whole messages")
    check(
        got.startswith(seen), f"a reader saw {len(seen)} bytes earlier, and what is there now does not begin with them"
    )
    return got


@UNSEEN.add(points=8)
def killed_and_then_the_power_goes(bench: Bench) -> None:
    """After kill -9 the page cache still has unflushed messages: shown only if opening has made them safe."""
    for _ in range(4):
        disk = Disk(bench.random)
        seen = b""
        for cut in (False, True):
            student, log = opened(bench, disk, n=100)
            seen = _look(log, seen, disk)
            for _ in range(3):
                log.append(message(bench.random.randbytes(30)), 0)
            student.kill()
            if cut:
                disk.cut()
        _look(opened(bench, disk)[1], seen, disk)


@UNSEEN.add(points=6)
def a_hole_in_the_tail(bench: Bench) -> None:
    """A power cut kept the third message and lost the second: only the first is left, and the next follows it."""
    disk = Disk(bench.random)
    one, two, three = (message(bench.random.randbytes(16)) for _ in range(3))
    disk.create("log")
    disk.append("log", one + bytes(len(two)) + three)
    _, log = opened(bench, disk)
    expect(log.visible(), len(one), "visible() with a hole after the first message")
    log.append(two, 0)
    log.tick(10_000)
    expect(log.read(0, 1000), one + two, "everything readable after one more message")
    expect(disk.read("log"), one + two, "the file")


@UNSEEN.add(points=8)
def no_more_flushes_than_needed(bench: Bench) -> None:
    """A hundred messages with flush_messages=10 take ten flushes, and opening takes at most three."""
    disk = Disk(bench.random)
    _, log = opened(bench, disk, n=10)
    check(disk.n_fsyncs <= 3, f"opening called fsync {disk.n_fsyncs} times; three are enough")
    before = disk.n_fsyncs
    for i in range(100):
        log.append(message(b"x"), i)
        log.tick(i)
    expect(disk.n_fsyncs - before, 10, "fsyncs for 100 messages with flush_messages=10")


@UNSEEN.add(points=4)
def flushed_by_time_under_steady_traffic(bench: Bench) -> None:
    """With a message every half of flush_ms, the first is flushed after flush_ms and not later."""
    _, log = opened(bench, Disk(bench.random), n=1000, ms=100)
    for i in range(2):
        log.append(message(b"x"), 50 * i)
        log.tick(50 * i)
    expect(log.visible(), 0, "visible() after 50 ms with flush_ms=100")
    log.append(message(b"x"), 99)
    log.tick(100)
    check(
        log.visible() >= 10, "the first message has waited flush_ms and is still not flushed: later messages put it off"
    )


@UNSEEN.add(points=8)
def a_failed_flush_is_final(bench: Bench) -> None:
    """After an fsync that failed nothing more becomes visible, and the log takes no more messages."""
    disk = Disk(bench.random)
    student, log = opened(bench, disk, n=3)
    for _ in range(3):
        log.append(message(b"safe"), 0)
    seen = _look(log, b"", disk)
    for _ in range(2):
        log.append(message(b"lost"), 0)
    disk.fails_next = True
    for _ in range(2):
        refused(lambda: log.append(message(b"lost"), 0), "DiskFailed", "append whose flush fails, and the one after it")
    refused(lambda: log.tick(10_000), "DiskFailed", "tick after a failed flush")
    expect(log.visible(), len(seen), "visible() after a failed flush")
    student.kill()
    disk.cut()
    _look(opened(bench, disk)[1], seen, disk)
