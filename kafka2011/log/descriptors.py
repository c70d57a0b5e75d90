"""How many segment files are open for writing: as many as the process can spare, the last written ones.

A file per topic, kept open from its first message on, would let a thousand topics use up all a process may open
(``ulimit -n``), and then nobody can connect or read. So a file that was not written to for the longest time is closed,
and opened again when its turn comes. Flushing needs no open file: a sync through any descriptor covers the whole file.
"""

from __future__ import annotations

import os
import resource
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

_FEWEST = 16


class Writable(Protocol):
    """What is opened: something with a path. The descriptor is the table's business."""

    path: Path


class OpenFile:
    """A descriptor, and how many use it at this moment."""

    __slots__ = ("fd", "is_over", "n_users")

    def __init__(self, fd: int) -> None:
        self.fd, self.n_users, self.is_over = fd, 0, False


class Descriptors:
    """At most ``most`` files open for writing, beside those in use at this moment. Thread: any."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        # The first is the one not used for the longest time.
        self._open: OrderedDict[Writable, OpenFile] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def take(self, file: Writable, flags: int, mode: int = 0o600) -> OpenFile:
        """Open the file with ``flags`` unless it is open already. It is not closed before it is given back."""
        with self._lock:
            held = self._open.get(file)
            if held is not None:
                held.n_users += 1
                self._open.move_to_end(file)
                return held
            held = self._open[file] = OpenFile(os.open(file.path, flags, mode))
            held.n_users = 1
            self._close_the_unused()
            return held

    def give_back(self, held: OpenFile) -> None:
        """Done with it, for now."""
        with self._lock:
            held.n_users -= 1
            if held.is_over and not held.n_users:
                os.close(held.fd)

    def close(self, file: Writable) -> None:
        """Close the file now, or when whoever uses it is done."""
        with self._lock:
            self._close(file)

    def _close_the_unused(self) -> None:
        for file in list(self._open) if len(self._open) > self.most else ():
            if len(self._open) <= self.most:
                break
            if not self._open[file].n_users:
                self._close(file)

    def _close(self, file: Writable) -> None:
        held = self._open.pop(file, None)
        if held is not None:
            held.is_over = True
            if not held.n_users:
                os.close(held.fd)


def spare_files() -> int:
    """A quarter of what the process may open: half is for connections, the rest for reading and for others."""
    return max(_FEWEST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


WRITING = Descriptors(spare_files())
"""Of this process, since that is whose files are counted."""
