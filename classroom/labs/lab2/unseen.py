"""The tests of lab 2 that only the grader runs."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from classroom.labs.entries import intact, message
from classroom.labs.lab import Bench, Tests, check, expect, refused
from classroom.labs.lab2.seen import files, log_in, name

UNSEEN = Tests(seen=False)
_FILES, _READS = 1000, 600


def some_sets(random: Random, n: int) -> list[bytes]:
    """Message sets of one to three messages."""
    return [
        b"".join(message(random.randbytes(random.randint(0, 30))) for _ in range(random.randint(1, 3)))
        for _ in range(n)
    ]


def written(directory: Path, sets: list[bytes], segment_bytes: int) -> dict[str, bytes]:
    """Write the files that a log should have after appending those sets."""
    made, at = {0: b""}, 0
    for data in sets:
        last = max(made)
        if len(made[last]) >= segment_bytes:
            last = at
            made[last] = b""
        made[last] += data
        at += len(data)
    for base, data in made.items():
        (directory / name(base)).write_bytes(data)
    return {name(base): data for base, data in made.items()}


@UNSEEN.add(points=12)
def reading_from_any_offset(bench: Bench) -> None:
    """Whatever the offset and the size, read() gives the bytes of one file, up to its end at most."""
    directory = bench.directory()
    sets = some_sets(bench.random, 60)
    wanted = written(directory, sets, 150)
    whole = b"".join(wanted.values())
    bases = [int(one.split(".")[0]) for one in wanted] + [len(whole)]
    _, log = log_in(bench, directory, 150)
    offsets = [*bases[:-1], *(base - 1 for base in bases[1:]), *(bench.random.randrange(len(whole)) for _ in range(80))]
    for offset in offsets:
        size = bench.random.choice((1, 7, 64, 100_000))
        end = min(next(base for base in bases if base > offset), offset + size)
        expect(log.read(offset, size), whole[offset:end], f"read({offset}, {size}) with files at {bases[:-1]}")


@UNSEEN.add(points=6)
def offsets_out_of_range(bench: Bench) -> None:
    """Before the first offset and behind the end there is nothing: OutOfRange with the offset."""
    directory = bench.directory()
    written(directory, some_sets(bench.random, 20), 100)
    _, log = log_in(bench, directory)
    end, first = log.end(), log.segments()[2]
    expect(log.read(end, 10), b"", "read at the end")
    log.delete_before(first)
    for offset in (end + 1, end + 1000, first - 1, 0, -1):
        error = refused(lambda offset=offset: log.read(offset, 10), "OutOfRange", f"read({offset}, 10)")  # type: ignore[misc]
        expect(error.values, (offset,), "the offset in OutOfRange")


@UNSEEN.add(points=12, limit_s=15.0)
def killed_at_any_time(bench: Bench) -> None:
    """After kill -9 everything appended is there; whatever the tail then looks like, the whole messages are kept."""
    directory, random = bench.directory(), bench.random
    whole = b""
    for turn in range(6):
        student, log = log_in(bench, directory, 120)
        expect(log.end(), len(whole), f"end() after crash {turn}")
        for data in some_sets(random, random.randint(1, 8)):
            expect(log.append(data), len(whole), "append")
            whole += data
        student.kill()
        found = files(directory)
        expect(b"".join(found.values()), whole, "all files together after kill -9")
        last = max(found)
        tail = found[last]
        spoilt = random.choice(
            (tail[: random.randint(0, len(tail))], tail + random.randbytes(9), tail + b"\0\0\0\7\0half")
        )
        (directory / last).write_bytes(spoilt)
        whole = whole[: int(last.split(".")[0]) + intact(spoilt)]


@UNSEEN.add(points=6)
def damage_deep_inside_is_left(bench: Bench) -> None:
    """A flipped bit in an earlier file is not the business of opening: nothing is cut, nothing is deleted."""
    directory = bench.directory()
    made = written(directory, some_sets(bench.random, 30), 100)
    victim = bench.random.choice(sorted(made)[:-1])
    spoilt = bytearray(made[victim])
    spoilt[bench.random.randrange(len(spoilt))] ^= 4
    (directory / victim).write_bytes(bytes(spoilt))
    (directory / "notes.txt").write_text("not a segment")
    _, log = log_in(bench, directory)
    expect(
        files(directory), made | {victim: bytes(spoilt)}, "the files after opening a log with a damaged earlier file"
    )
    expect(log.read(int(victim.split(".")[0]), 10**6), bytes(spoilt), "read of the damaged file")
    check((directory / "notes.txt").exists(), "a file that is no segment was deleted")


@UNSEEN.add(points=8)
def old_files_go(bench: Bench) -> None:
    """delete_before() takes only files that end at or before the offset, and never the last one."""
    directory = bench.directory()
    made = written(directory, some_sets(bench.random, 40), 100)
    bases = [int(one.split(".")[0]) for one in made]
    _, log = log_in(bench, directory)
    expect(log.delete_before(bases[1] - 1), [], f"delete_before({bases[1] - 1}), inside the first file")
    expect(log.delete_before(bases[2]), bases[:2], f"delete_before({bases[2]}), where the third file begins")
    expect(log.segments(), bases[2:], "segments() afterwards")
    expect(sorted(files(directory)), sorted(made)[2:], "the files afterwards")
    expect(log.delete_before(10**9), bases[2:-1], "delete_before(a billion)")
    expect(log.segments(), bases[-1:], "segments() afterwards")
    end = log.end()
    expect(log.append(message(b"x")), end, "an append afterwards")


@UNSEEN.add(points=4)
def a_missing_file_is_named(bench: Bench) -> None:
    """If a file in the middle is gone, opening raises Gap with the offset at which it should begin."""
    directory = bench.directory()
    made = written(directory, some_sets(bench.random, 30), 100)
    gone = bench.random.choice(sorted(made)[1:-1])
    (directory / gone).unlink()
    error = refused(lambda: log_in(bench, directory), "Gap", f"opening a log without {gone}")
    expect(error.values, (int(gone.split(".")[0]),), "the offset in Gap")


@UNSEEN.add(points=6, limit_s=20.0)
def thousands_of_segments(bench: Bench) -> None:
    """With 1,000 files a read costs hardly more than with two: one search, no listing, no walk over the files."""
    few, many = (_cost_of_reads(bench, n) for n in (2, _FILES))
    check(
        many < 3 * few + 0.1,
        f"{_READS} reads took {many:.2f} s of processor time with {_FILES} files, {few:.2f} s with two; "
        "a search in a sorted list costs nearly the same",
    )


def _cost_of_reads(bench: Bench, n: int) -> float:
    """Processor time of reads from a log of ``n`` files."""
    directory, one = bench.directory(), message(b"abc")
    for i in range(n):
        (directory / name(12 * i)).write_bytes(one)
    student, log = log_in(bench, directory, 12)
    before = _cpu_s(student.pid)
    for _ in range(_READS):
        expect(log.read(12 * bench.random.randrange(n), 12), one, f"read of one message among {n} files")
    return _cpu_s(student.pid) - before


def _cpu_s(pid: int) -> float:
    """Processor time that a process has used, as the kernel counts it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0  # no /proc on this system; the limit of the test is left
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
