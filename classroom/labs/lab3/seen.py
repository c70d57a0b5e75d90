"""The tests of lab 3 that students see. They run in the grader's process and call your program."""

from __future__ import annotations

from typing import Any

from classroom.labs.disk import Disk
from classroom.labs.entries import message
from classroom.labs.lab import Bench, Tests, check, expect
from classroom.labs.lab2.seen import Tools
from classroom.labs.sandbox import Sandbox

SEEN = Tests(seen=True)
_ELEVEN = message(b"42")
"""A message of eleven bytes."""


def opened(bench: Bench, disk: Disk, n: int = 5, ms: int = 1000) -> tuple[Sandbox, Any]:
    """The student's log on a disk, in a new process: flushed after ``n`` messages or ``ms`` milliseconds."""
    tools = Tools()
    sandbox = bench.student(objects={"disk": disk, "tools": tools})
    sandbox.__enter__()
    return sandbox, sandbox.FlushedLog(disk, tools, n, ms)


@SEEN.add(points=8, hint="Keep two numbers: the end of what is written and the end of what is flushed.")
def nothing_is_visible_before_a_flush(bench: Bench) -> None:
    """Four messages of five are written, and readers see none of them."""
    disk = Disk(bench.random)
    _, log = opened(bench, disk)
    for i in range(4):
        expect(log.append(_ELEVEN, 0), 11 * i, f"the offset of message {i}")
    expect(log.visible(), 0, "visible() with four messages waiting of five")
    expect(disk.read("log"), 4 * _ELEVEN, "the file, as a running machine sees it")


@SEEN.add(
    points=10, hint="Flush inside append, after writing, when the number of waiting messages reaches flush_messages."
)
def flushed_after_so_many_messages(bench: Bench) -> None:
    """The fifth message brings all five to the readers, and the tenth the next five."""
    _, log = opened(bench, Disk(bench.random))
    for i in range(1, 13):
        log.append(_ELEVEN, 0)
        expect(log.visible(), 55 * (i // 5), f"visible() after {i} messages")


@SEEN.add(points=10, hint="Remember when the oldest waiting message came; it is the one that decides.")
def flushed_after_so_much_time(bench: Bench) -> None:
    """A message that has waited flush_ms is flushed by the next tick, and an idle log is left alone."""
    disk = Disk(bench.random)
    _, log = opened(bench, disk)
    log.append(_ELEVEN, 100)
    log.tick(1099)
    expect(log.visible(), 0, "visible() after 999 of 1000 ms")
    log.tick(1100)
    expect(log.visible(), 11, "visible() after 1000 ms")
    before = disk.n_fsyncs
    log.tick(5000)
    expect(disk.n_fsyncs, before, "fsyncs after a tick with nothing waiting")


@SEEN.add(points=6, hint="Cut the range at visible() before you read.")
def a_reader_sees_only_what_is_flushed(bench: Bench) -> None:
    """read() ends at visible(), however much is asked for."""
    _, log = opened(bench, Disk(bench.random))
    for _ in range(7):
        log.append(_ELEVEN, 0)
    expect(log.read(0, 10_000), 5 * _ELEVEN, "read(0, 10000) with 5 messages flushed of 7")
    expect(log.read(44, 5), _ELEVEN[:5], "read(44, 5)")
    expect(log.read(55, 100), b"", "read at visible()")


@SEEN.add(
    points=12,
    hint="After making the file, flush the directory, or the file itself may be gone. Then read the file, and cut it.",
)
def one_power_cut(bench: Bench) -> None:
    """Seven messages, five flushed, the power goes: five are there, and what is written next follows them."""
    disk = Disk(bench.random)
    student, log = opened(bench, disk)
    for _ in range(7):
        log.append(_ELEVEN, 0)
    student.kill()
    disk.cut()
    _, log = opened(bench, disk)
    end = log.visible()
    check(
        end in (55, 66, 77),
        f"after the power cut visible() is {end}; five messages were flushed, two more may have survived",
    )
    expect(log.read(0, 1000), end // 11 * _ELEVEN, "everything readable after the power cut")
    expect(log.append(_ELEVEN, 0), end, "the offset of the next message")
