"""Count a process's system calls, and the bytes each moves: ptrace, from Python, for one's own children, without root.

Slow (each call stops the process twice), so nothing is timed while it counts.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from classroom.claims.claim import CannotTell

_SEIZE, _INTERRUPT, _SYSCALL, _DETACH, _GET_INFO = 0x4206, 0x4207, 24, 17, 0x420E
_TRACE_SYSGOOD = 1
_ENTRY, _EXIT = 1, 2
_WALL = 0x40000000
_NAMES = {
    "x86_64": {0: "read", 1: "write", 17: "pread64", 18: "pwrite64", 40: "sendfile", 44: "sendto", 45: "recvfrom",
               46: "sendmsg", 47: "recvmsg", 232: "epoll_wait", 257: "openat", 3: "close", 74: "fsync"},
    "aarch64": {63: "read", 64: "write", 67: "pread64", 68: "pwrite64", 71: "sendfile", 206: "sendto", 207: "recvfrom",
                211: "sendmsg", 212: "recvmsg", 22: "epoll_wait", 56: "openat", 57: "close", 82: "fsync"},
}  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@dataclass(slots=True)
class Calls:
    """What was counted: calls by name, and the bytes they returned."""

    count: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)


def count_calls(pid: int, work: Callable[[], None]) -> Calls:
    """Count the calls of a process's first thread (a broker's network thread) while ``work()`` runs.

    Raises CannotTell where the kernel does not allow it (a sandbox, another processor).
    """
    names = _NAMES.get(platform.machine())
    if names is None:
        raise CannotTell(f"system calls are not known by number on {platform.machine()}")
    tracer = _Tracer(pid, names)
    tracer.start()
    tracer.ready.wait(10)
    if tracer.refused:
        raise CannotTell(f"this machine does not allow ptrace ({tracer.refused}); a container may need it allowed")
    try:
        work()
    finally:
        tracer.finish()
    return tracer.calls


class _Tracer(threading.Thread):
    """ptrace belongs to one thread, so there is one."""

    def __init__(self, pid: int, names: dict[int, str]) -> None:
        super().__init__(name="system calls", daemon=True)
        self.calls, self.refused, self.ready = Calls(), "", threading.Event()
        self._pid, self._names = pid, names
        self._ending = False
        self._info = ctypes.create_string_buffer(128)
        self._open: str | None = None

    def run(self) -> None:
        if self._ask(_SEIZE, 0, _TRACE_SYSGOOD) < 0:
            self.refused = os.strerror(ctypes.get_errno())
            self.ready.set()
            return
        self._ask(_INTERRUPT)
        self.ready.set()
        while True:
            try:
                _, status = os.waitpid(self._pid, _WALL)
            except ChildProcessError:
                return
            if not os.WIFSTOPPED(status):
                return
            number = os.WSTOPSIG(status)
            if number == signal.SIGTRAP | 0x80:
                self._note()
                number = 0
            elif status >> 16:  # an event of ptrace's own
                number = 0
            if self._ending:
                self._ask(_DETACH, 0, number)
                return
            self._ask(_SYSCALL, 0, number)

    def finish(self) -> None:
        """Let the process go."""
        self._ending = True
        if self.is_alive():
            os.kill(self._pid, signal.SIGCONT)  # does nothing to the process, and stops it for its tracer
        self.join(10)

    def _ask(self, request: int, address: int = 0, data: int = 0) -> int:
        found: int = _libc.ptrace(request, self._pid, ctypes.c_void_p(address), ctypes.c_void_p(data))
        return found

    def _note(self) -> None:
        _libc.ptrace(_GET_INFO, self._pid, ctypes.c_void_p(len(self._info)), self._info)
        kind, value = self._info.raw[0], struct.unpack_from("q", self._info.raw, 24)[0]
        if kind == _ENTRY:
            self._open = self._names.get(value, "other")
            self.calls.count[self._open] += 1
        elif kind == _EXIT and self._open is not None and value > 0:
            self.calls.moved[self._open] += value
