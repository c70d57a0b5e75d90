"""Grade one package: snapshot it, read it, run each test in a process of its own, add up the points.

The snapshot is the student's own modules and the given ones from here: a changed copy of the tests or of a given module
is simply not used. Two graders never meet: each has a directory of its own, and ports are the kernel's choice.
"""

from __future__ import annotations

import hashlib
import hmac
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from classroom.labs.lab import Bench, Failed, Lab, Test
from classroom.labs.sandbox import StudentError
from classroom.labs.static_check import objections

PRACTICE = "practice"
"""The key of whoever has none: the same numbers for everybody."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test."""

    test: Test
    passed: bool
    reason: str = ""
    seconds: float = 0.0
    said: str = ""
    replays: dict[str, str] = field(default_factory=dict)

    @property
    def points(self) -> int:
        """Points for this test: all or nothing."""
        return self.test.points if self.passed else 0


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one package."""

    lab: Lab
    student: str
    seed: int
    outcomes: tuple[Outcome, ...]
    refused: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def points(self) -> int:
        """All points together; nothing for a package that is not run."""
        return sum(outcome.points for outcome in self.outcomes)

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """What did not pass, in the order of the tests."""
        return tuple(outcome for outcome in self.outcomes if not outcome.passed)


def seed_of(student: str, lab: Lab, key: str = PRACTICE) -> int:
    """The numbers of one student's tests: known only to whoever has the key, and the same whenever it is asked."""
    text = f"{lab.number}/{student.strip().lower()}".encode()
    return int.from_bytes(hmac.digest(key.encode(), text, hashlib.sha256)[:4])


def grade(
    lab: Lab,
    package: Path,
    student: str,
    *,
    key: str = PRACTICE,
    seen_only: bool = False,
    jobs: int = 2,
) -> Report:
    """Run the tests of a lab on a package, ``jobs`` at a time: each has a process and a directory of its own."""
    began = time.monotonic()
    seed = seed_of(student, lab, key)
    tests = lab.seen() if seen_only else lab.tests
    with tempfile.TemporaryDirectory(prefix=f"kafka2011-lab{lab.number}-", ignore_cleanup_errors=True) as work:
        copied = Path(work) / "package"
        snapshot(lab, package, copied)
        refused = tuple(objections(copied, lab.refuses))
        if refused:
            return Report(lab, student, seed, tuple(Outcome(test, False, "not run") for test in tests), refused)
        scratch = Path(work) / "scratch"
        with ThreadPoolExecutor(jobs) as pool:
            outcomes = tuple(pool.map(lambda test: run(lab, test, copied, scratch, seed), tests))
    return Report(lab, student, seed, outcomes, seconds=time.monotonic() - began)


def snapshot(lab: Lab, package: Path, into: Path) -> None:
    """Copy the student's modules, and the given ones from here over them."""
    into.mkdir()
    for path in sorted(package.glob("*.py")):
        if path.is_file() and path.name != "seen.py" and not path.name.startswith("test"):
            shutil.copyfile(path, into / path.name, follow_symlinks=False)
    for name in lab.given:
        shutil.copyfile(lab.folder / "given" / f"{name}.py", into / f"{name}.py")


def run(lab: Lab, test: Test, package: Path, work: Path, seed: int) -> Outcome:
    """One test. Whatever is raised is a failed test: nothing a program answers can stop the grader."""
    began = time.monotonic()
    bench = Bench(lab, test, package, work, seed)
    try:
        test.run(bench)
    except (Failed, StudentError) as error:
        reason = str(error)
    except Exception as error:
        reason = f"your program's answer could not be used: {type(error).__name__}: {error}"
    else:
        return Outcome(test, True, seconds=time.monotonic() - began)
    finally:
        bench.close()
    return Outcome(test, False, reason, time.monotonic() - began, bench.said(), bench.replays)
