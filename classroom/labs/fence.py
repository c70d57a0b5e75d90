"""What a student's program may do: its own files, its own time and memory, the standard library, nothing else.

Three fences, one behind the other. The search path holds the standard library and the student's own package only. An
import hook names what is refused, so that the student reads a sentence and not "No module named". An audit hook, which
Python code cannot take away, refuses files outside the two directories, other processes and the network. The grader
does not rely on any of them for its verdict: expected answers are never in this process.

Runs inside the student's process; needs the standard library only.
"""

from __future__ import annotations

import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PRODUCT = frozenset(
    {"kafka2011", "zk_registry", "since2011", "consumers", "hadoop_etl", "classroom", "tests", "benchmarks"}
)
DANGEROUS = frozenset(
    {"ctypes", "_ctypes", "subprocess", "_posixsubprocess", "multiprocessing", "pty", "cffi", "sqlite3"}
)
"""Modules that would lead around the fences; no lab needs one."""

_NEVER = (
    "subprocess.",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.kill",
    "os.link",
    "os.symlink",
    "os.chdir",
    "os.fchdir",
    "os.chmod",
    "os.chown",
    "os.setxattr",
    "ctypes.",
    "code.__new__",
    "gc.get_",
    "pty.spawn",
    "resource.prlimit",
    "resource.setrlimit",
    "sqlite3.",
    "signal.pthread_kill",
    "syslog.",
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.getaddrinfo",
    "socket.gethostby",
)
_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.utime")
_LOOKS = ("os.listdir", "os.scandir")
_HARMLESS = ("/dev/null", "/dev/urandom")


class Refused(PermissionError):
    """The student's program tried something that labs do not allow."""


class Finder:
    """Refuse the product and what leads around the fences, by name."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        """Raise for a refused module; otherwise let the next finder look."""
        top = name.partition(".")[0]
        if top in PRODUCT:
            raise ImportError(f"{top} is not available in a lab: write it yourself, with the standard library only")
        if top in DANGEROUS:
            raise ImportError(f"{top} is not available in a lab; the task can be solved without it")


def limit(cpu_s: int, memory_bytes: int, file_bytes: int, open_files: int) -> None:
    """Let the kernel enforce time, memory and files; the limits cannot be raised again."""
    for kind, most in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most + 1 if kind == resource.RLIMIT_CPU else most))  # SIGXCPU, then SIGKILL


def close(package: str, scratch: str) -> None:
    """Put the fences up; they stay up as long as the process lives."""
    package, scratch = os.path.realpath(package), os.path.realpath(scratch)
    library = tuple(os.path.realpath(place) for place in sys.path)
    sys.path[:] = [package, *sys.path]
    sys.meta_path.insert(0, Finder())
    for name in [name for name in sys.modules if name.partition(".")[0] in DANGEROUS]:
        del sys.modules[name]
    sys.addaudithook(_guard((package, scratch, *library), scratch))


def _guard(readable: tuple[str, ...], scratch: str) -> Any:
    def within(path: Any, roots: tuple[str, ...]) -> bool:
        try:
            real = os.path.realpath(os.fsdecode(path))
        except TypeError:
            return False  # a bare file descriptor: nothing says where it leads
        return real in _HARMLESS or any(real == root or real.startswith(root + os.sep) for root in roots)

    def guard(event: str, details: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = details
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else mode != "r"
            if not within(path, (scratch,) if writes else readable):
                raise Refused(f"opening {path!r} is not allowed here; files of a lab are in the directory it is given")
        elif event.startswith(_NEVER):
            raise Refused(f"{event} is not allowed in a lab")
        elif event.startswith(_CHANGES):
            paths = [part for part in details if isinstance(part, str | bytes | os.PathLike)]
            if not paths or not all(within(path, (scratch,)) for path in paths):
                raise Refused(f"{event} outside the directory of the lab is not allowed")
        elif event.startswith(_LOOKS) and not within(details[0] or ".", readable):
            raise Refused(f"{event} of {details[0]!r} is not allowed in a lab")

    return guard
