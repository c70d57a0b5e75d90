"""What the machine itself can do: loopback, appending to a file, sendfile. Nothing here knows of messages.

The loops are a small C program, compiled when the benchmark begins; where there is no compiler, the same in Python.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.system import PATIENCE_S
from kafka2011.child import die_with_parent

MB = 1_000_000
WARM_BYTES = 64 * MB
"""The file that sendfile sends, and what a broker serves beside it."""
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Moved:
    """What one run of a loop did."""

    size: int
    seconds: float
    cpu_s: float

    @property
    def mb_per_s(self) -> float:
        return self.size / MB / self.seconds


class Loops:
    """The four loops of limits.c, each run in a process of its own."""

    def __init__(self, command: list[str], how: str) -> None:
        self._command = command
        self.how = how
        """``in C``, or why not: the table says it."""

    def loopback(self, size: int, piece: int) -> Moved:
        """Send ``size`` bytes over loopback TCP, ``piece`` a call."""
        return self._run("loopback", size, piece)

    def append(self, path: Path, size: int, piece: int, sync_every: int = 0) -> Moved:
        """Append to a file; sync it in a thread after every so many bytes (0: once at the end)."""
        return self._run("append", path, size, piece, sync_every)

    def sendfile(self, path: Path, size: int, piece: int) -> Moved:
        """Send a file again and again over loopback with sendfile(2), ``piece`` bytes a call."""
        return self._run("sendfile", path, size, piece)

    def fetch(self, port: int, topic: str, start: int, span: int, piece: int, size: int, ahead: int) -> Moved:
        """Fetch ``size`` bytes from a broker, walking over ``span`` bytes from ``start`` on, and only count them."""
        return self._run("fetch", port, topic, start, span, piece, size, ahead)

    def _run(self, *words: object) -> Moved:
        done = subprocess.run(
            [*self._command, *(str(word) for word in words)],
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
            preexec_fn=die_with_parent,
        )
        if done.returncode:
            raise RuntimeError(f"{words[0]}: {done.stderr.strip()[-300:]}")
        size, seconds, cpu_s = done.stdout.split()
        return Moved(int(size), float(seconds), float(cpu_s))


def make_loops(directory: Path, compiler: str | None = None) -> Loops:
    """Compile limits.c into ``directory``; without a compiler, or if it refuses, take the loops in Python."""
    found = compiler or os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    python = [sys.executable, str(_HERE / "limits_loops.py")]
    if found is None:
        return Loops(python, "in Python: no C compiler here")
    program = directory / "limits"
    command = [*found.split(), "-O2", "-pthread", str(_HERE / "limits.c"), "-o", str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except OSError as error:
        return Loops(python, f"in Python: {found} cannot be run ({error.strerror})")
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        return Loops(python, f"in Python: {Path(found).name} could not compile limits.c ({why[-120:]})")
    return Loops([str(program)], "in C")


def warm_file(directory: Path) -> Path:
    """A file in the page cache for sendfile to send."""
    path = directory / "warm"
    if not path.exists():
        with open(path, "wb") as file:
            file.write(os.urandom(WARM_BYTES))
            file.flush()
            os.fsync(file.fileno())
    return path


def measure_limits(loops: Loops, directory: Path, scale: float, rounds: int = 5) -> dict[str, float]:
    """MB a second of each limit: medians of rounds in which they take turns."""
    total = int(400 * MB * scale)
    warm = warm_file(directory)
    appended = directory / "append"

    def append() -> Moved:
        appended.unlink(missing_ok=True)
        return loops.append(appended, total, MB)

    work: dict[str, Callable[[], Moved]] = {
        "loopback, 1 MB sends": lambda: loops.loopback(total, MB),
        "loopback, 10 KB sends": lambda: loops.loopback(total, 10_000),
        "loopback, 226-byte sends": lambda: loops.loopback(total // 20, 226),
        "file append, 1 MB writes, one sync": append,
        "sendfile, 300 KB": lambda: loops.sendfile(warm, total, 300_000),
        "sendfile, 1 MB": lambda: loops.sendfile(warm, total, MB),
    }
    rates: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, loop in work.items():
            rates[name].append(loop().mb_per_s)
    appended.unlink(missing_ok=True)
    return {name: statistics.median(found) for name, found in rates.items()}
