"""What the kernel says about a process, read from /proc: CPU, memory, disk. Needs no root for one's own processes."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MB = 1_000_000


def cpu_s(pid: int) -> float:
    """CPU seconds of a process's living threads, as exact as the scheduler counts them."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e9


def anonymous_bytes(pid: int) -> int:
    """Memory of the process itself: resident, and not pages of files."""
    return _field(Path(f"/proc/{pid}/status"), "RssAnon") << 10


@dataclass(frozen=True, slots=True)
class Io:
    """/proc/PID/io."""

    read_bytes: int
    """From the disk; what the page cache had does not count."""
    write_bytes: int
    """To be written to the disk."""

    def __sub__(self, other: Io) -> Io:
        return Io(self.read_bytes - other.read_bytes, self.write_bytes - other.write_bytes)


def io(pid: int) -> Io:
    """Bytes the process has moved from and to the disk so far."""
    path = Path(f"/proc/{pid}/io")
    return Io(_field(path, "read_bytes"), _field(path, "write_bytes"))


def machine() -> str:
    """The machine in half a line, for reports."""
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    memory = _field(Path("/proc/meminfo"), "MemTotal") / (1 << 20)
    name = names[0] if names else platform.machine()
    system = f"Linux {platform.release()}, Python {platform.python_version()}"
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GB, {system}"


def busy() -> str:
    """How many processes wanted a core in the last minute."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def spread_of(values: Sequence[float]) -> str:
    """The range of repeated measurements, in words."""
    return f"{min(values):.3g} to {max(values):.3g} in {len(values)} rounds, median {statistics.median(values):.3g}"


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    raise KeyError(f"{path} has no {name}")
