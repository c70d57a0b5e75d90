"""A lab: a package with holes, tests that the student sees, tests that only the grader runs, points.

A test is a function of a ``Bench``. It runs in the grader's process and drives the student's program, which runs in
another one; it fails by raising ``Failed`` (through ``expect`` and ``check``) or by what the student's program raises.

    SEEN = Tests(seen=True)

    @SEEN.add(points=10, hint="The CRC is zlib.crc32 of the payload.")
    def one_message_by_hand(bench: Bench) -> None:
        \"\"\"encode() makes the eleven bytes of walk 0.\"\"\"
        with bench.student() as student:
            expect(student.encode(b"1"), bytes.fromhex("…"), "encode(b'1')")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from classroom.labs.sandbox import Limits, Sandbox, StudentError


class Failed(AssertionError):
    """The student's program did something else than the task says."""


@dataclass(frozen=True, slots=True)
class Test:
    """One test of a lab."""

    name: str
    title: str
    points: int
    seen: bool
    run: Callable[[Bench], None]
    hint: str
    limit_s: float


class Tests(list[Test]):
    """The tests of one file, in the order in which they are written there."""

    def __init__(self, *, seen: bool) -> None:
        super().__init__()
        self._seen = seen

    def add(
        self, points: int, hint: str = "", limit_s: float = 10.0
    ) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
        """Take a function as a test: its name and the first line of its docstring are the test's."""

        def take(run: Callable[[Bench], None]) -> Callable[[Bench], None]:
            title = (inspect.getdoc(run) or "").splitlines()[0]
            self.append(Test(run.__name__, title, points, self._seen, run, hint, limit_s))
            return run

        return take


@dataclass(frozen=True, slots=True)
class Lab:
    """One lab. ``folder`` holds ``README.md``, ``package/`` (the holes), ``given/`` and ``guide.md``."""

    number: int
    title: str
    section: str
    hours: str
    module: str
    """The student's module that the tests load."""
    tests: tuple[Test, ...]
    given: tuple[str, ...] = ()
    """Modules that are handed out whole; a changed copy of the student's is not used."""
    refuses: frozenset[str] = frozenset()
    """Functions that this lab does not allow beside those that none does, as ``module.name``."""
    options: dict[str, Any] = field(default_factory=dict)
    """How the student's process is made: ``made``, ``errors``, ``limits`` of ``Sandbox``."""

    @property
    def folder(self) -> Path:
        """Where the hand-out and the guide are."""
        return Path(__file__).with_name(f"lab{self.number}")

    @property
    def points(self) -> int:
        """What a program that passes everything gets."""
        return sum(test.points for test in self.tests)

    def seen(self) -> tuple[Test, ...]:
        """The tests a student may read and run."""
        return tuple(test for test in self.tests if test.seen)


class Bench:
    """What a test works with: the student's program, directories of its own, numbers that depend on the seed."""

    def __init__(self, lab: Lab, test: Test, package: Path, work: Path, seed: int) -> None:
        self.lab, self.test, self.seed = lab, test, seed
        self.random = Random(f"{seed}/{test.name}")
        self.replays: dict[str, str] = {}
        """Transcripts and pictures of what went wrong, by file name."""
        self._package, self._work = package, work
        self._sandboxes: list[Sandbox] = []

    def directory(self) -> Path:
        """A new empty directory that the student's program may write to, if it is given to ``student``."""
        made = self._work / f"{self.test.name}-{len(list(self._work.glob(f'{self.test.name}-*')))}"
        made.mkdir(parents=True)
        return made

    def student(self, scratch: Path | None = None, **options: Any) -> Sandbox:
        """The student's program in a new process."""
        settled = {"limits": Limits(), **self.lab.options, **options}
        settled["limits"] = replace(settled["limits"], wall_s=self.test.limit_s)
        sandbox = Sandbox(self._package, scratch or self.directory(), self.lab.module, given=self.lab.given, **settled)
        self._sandboxes.append(sandbox)
        return sandbox

    def close(self) -> None:
        """End every process of the student's that the test has started."""
        for sandbox in self._sandboxes:
            sandbox.kill()

    def said(self) -> str:
        """What the student's program printed, in all its processes."""
        return "".join(sandbox.said() for sandbox in self._sandboxes)


def check(condition: object, told: str) -> None:
    """Fail with a sentence for the student unless the condition holds."""
    if not condition:
        raise Failed(told)


def expect(got: object, wanted: object, what: str) -> None:
    """Fail unless both are equal; the student reads what was called, what came and what should have come."""
    if got != wanted:
        raise Failed(f"{what} gave {shown(got)}; it should be {shown(wanted)}")


def refused(call: Callable[[], object], kind: str, what: str) -> StudentError:
    """The call must raise an exception of that class."""
    try:
        got = call()
    except StudentError as error:
        if error.is_a(kind):
            return error
        raise Failed(f"{what} should raise {kind}; it raised {error}") from None
    raise Failed(f"{what} should raise {kind}; it returned {shown(got)}")


def shown(value: object) -> str:
    """A value for a sentence: long ones are cut."""
    text = f"{value.hex(' ')} (hex)" if isinstance(value, bytes) and len(value) <= 32 else repr(value)
    return text if len(text) <= 120 else f"{text[:80]} … {text[-30:]} ({len(text)} characters)"


def chunks(random: Random, sizes: Sequence[int], n: int) -> Iterator[bytes]:
    """``n`` random payloads whose lengths are drawn from ``sizes``."""
    for _ in range(n):
        yield random.randbytes(random.choice(sizes))
