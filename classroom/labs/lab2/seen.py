"""The tests of lab 2 that students see. They run in the grader's process and call your program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from classroom.labs.entries import intact, message
from classroom.labs.lab import Bench, Tests, expect
from classroom.labs.sandbox import Sandbox

SEEN = Tests(seen=True)


class Tools:
    """Lab 1, done."""

    def intact(self, data: bytes) -> int:
        """How many bytes from the front are whole, undamaged messages."""
        return intact(data)


def log_in(bench: Bench, directory: Path, segment_bytes: int = 100) -> tuple[Sandbox, Any]:
    """A process of the student's program with a log on that directory; close it with ``kill``."""
    tools = Tools()
    sandbox = bench.student(directory, objects={"tools": tools})
    sandbox.__enter__()
    return sandbox, sandbox.Log(str(directory), segment_bytes, tools)


def files(directory: Path) -> dict[str, bytes]:
    """What the student's log has written."""
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.kafka"))}


def name(offset: int) -> str:
    """The name of the file that begins at an offset."""
    return f"{offset:020}.kafka"


@SEEN.add(points=8, hint="f'{offset:020}.kafka'. Write bytes as they are: no count, no separator, no text mode.")
def a_file_is_named_by_its_first_offset(bench: Bench) -> None:
    """A new log has one empty file; after an append it holds exactly those bytes."""
    directory = bench.directory()
    _, log = log_in(bench, directory)
    expect(files(directory), {name(0): b""}, "the files of a new log")
    log.append(message(b"hello"))
    expect(files(directory), {name(0): message(b"hello")}, "the files after one append")


@SEEN.add(points=10, hint="append returns where the data begins; the end is that plus its length.")
def what_is_appended_can_be_read(bench: Bench) -> None:
    """append() returns offsets that read() understands; at the end there is nothing to read yet."""
    _, log = log_in(bench, bench.directory())
    one, two = message(b"one"), message(b"the second")
    expect([log.append(one), log.append(two), log.end()], [0, 12, 31], "two appends and the end")
    expect(log.read(0, 1000), one + two, "read(0, 1000)")
    expect(log.read(12, 1000), two, "read(12, 1000)")
    expect(log.read(12, 5), two[:5], "read(12, 5)")
    expect(log.read(31, 1000), b"", "read at the end")


@SEEN.add(points=10, hint="Look at the size of the last file before you write, not after.")
def a_full_file_is_followed_by_a_new_one(bench: Bench) -> None:
    """When the last file has segment_bytes or more, the next append begins a new one."""
    directory = bench.directory()
    _, log = log_in(bench, directory, segment_bytes=24)
    for _ in range(5):
        log.append(message(b"abc"))
    expect(log.segments(), [0, 24, 48], "segments() after five appends of 12 bytes with segment_bytes=24")
    expect([len(data) for data in files(directory).values()], [24, 24, 12], "the sizes of the files")
    expect(log.read(24, 12), message(b"abc"), "read(24, 12), the first message of the second file")


@SEEN.add(points=8, hint="int(name.split('.')[0]) is the first offset of a file; its size gives where it ends.")
def opening_finds_what_is_there(bench: Bench) -> None:
    """A log that is opened again, by another process, goes on where it was."""
    directory = bench.directory()
    first, log = log_in(bench, directory, segment_bytes=24)
    for _ in range(5):
        log.append(message(b"abc"))
    first.kill()
    _, log = log_in(bench, directory, segment_bytes=24)
    expect([log.segments(), log.end()], [[0, 24, 48], 60], "segments() and end() of the log opened again")
    expect(log.append(message(b"x")), 60, "the next append")
    expect(log.read(48, 100), message(b"abc") + message(b"x"), "read(48, 100)")


@SEEN.add(points=10, hint="os.truncate(path, length), with the length that tools.intact gives for the last file.")
def a_torn_tail_is_cut(bench: Bench) -> None:
    """Half a message at the end of the last file is cut off when the log is opened."""
    directory = bench.directory()
    (directory / name(0)).write_bytes(message(b"whole") + message(b"torn")[:-2])
    _, log = log_in(bench, directory)
    expect(log.end(), 14, "end() of a log whose second message is torn")
    expect(files(directory), {name(0): message(b"whole")}, "the file")
    expect(log.append(message(b"next")), 14, "the next append")
