"""A disk for lab 3 that forgets what was not flushed: files in memory, power cuts, fsyncs that fail.

What a power cut leaves of a file is what a real one may leave: all that was there at the last successful fsync, and
of what was written since any part, sector by sector, with zeros where a sector did not make it. A file whose directory
was not flushed since it was made may be gone. After an fsync that failed the data is lost although the next fsync
succeeds, as on Linux.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

SECTOR = 8
_FILE = "log"


@dataclass(slots=True)
class File:
    """One file: what the page cache holds, what is on the plates."""

    content: bytes = b""
    durable: bytes = b""
    named: bool = False
    """Whether its name is on the plates."""


class Disk:
    """One disk under one log. Every operation is a line of the transcript."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._files: dict[str, File] = {}
        self.lines: list[str] = []
        self.n_fsyncs = 0
        self.fails_next = False

    # -- what the student's program may ask ----------------------------------------------------------------------

    def names(self) -> list[str]:
        """The files there are."""
        return sorted(self._files)

    def create(self, name: str) -> None:
        """An empty file; after a power cut it may be gone, unless the directory was flushed."""
        if name in self._files:
            raise OSError(17, f"{name} is there already")
        self._files[name] = File()
        self._note(f"create {name}")

    def read(self, name: str) -> bytes:
        """All that a running machine sees of a file, flushed or not."""
        return self._file(name).content

    def append(self, name: str, data: bytes) -> None:
        """Write at the end, into the page cache."""
        file = self._file(name)
        file.content += data
        self._note(f"append {len(data)} bytes to {name}, now {len(file.content)}")

    def truncate(self, name: str, length: int) -> None:
        """Cut a file; that, too, is on the plates only after an fsync."""
        file = self._file(name)
        file.content = file.content[:length]
        self._note(f"truncate {name} to {length}")

    def fsync(self, name: str) -> None:
        """Bring a file's bytes onto the plates, or raise OSError."""
        file = self._file(name)
        self.n_fsyncs += 1
        if self.fails_next:
            self.fails_next = False
            common = min(len(file.content), len(file.durable))
            file.durable = file.durable[:common] + bytes(len(file.content) - common)
            self._note(f"fsync {name} FAILS: what was written since the last one will never be on the plates")
            raise OSError(5, "Input/output error")
        if not (len(file.durable) == len(file.content) and self._is_lost(file)):
            file.durable = file.content
        self._note(f"fsync {name}: {len(file.content)} bytes are safe")

    def fsync_directory(self) -> None:
        """Bring the names of all files onto the plates."""
        for file in self._files.values():
            file.named = True
        self._note("fsync of the directory")

    # -- what the grader does -------------------------------------------------------------------------------------

    def cut(self) -> None:
        """The power goes and comes back."""
        for name, file in list(self._files.items()):
            if not file.named and self._random.random() < 0.7:
                del self._files[name]
                self._note(f"POWER CUT: {name} is gone, its name was never flushed")
                continue
            file.content = file.durable = self._left(file)
            file.named = True
            self._note(f"POWER CUT: {len(file.content)} bytes of {name} are left")

    def _left(self, file: File) -> bytes:
        safe = len(file.durable)
        if len(file.content) < safe:  # a truncation that was not flushed: done or not
            return self._random.choice((file.durable, file.content))
        length = self._random.randint(safe, len(file.content))
        left = bytearray(file.content[:length])
        left[:safe] = file.durable
        for start in range(safe, length, SECTOR):
            if self._random.random() < 0.4:
                left[start : start + SECTOR] = bytes(len(left[start : start + SECTOR]))
        return bytes(left)

    def _is_lost(self, file: File) -> bool:
        """Whether an fsync failed and nothing was written since: then a second one succeeds and saves nothing."""
        return file.durable != file.content

    def _file(self, name: str) -> File:
        if name not in self._files:
            raise OSError(2, f"there is no {name}")
        return self._files[name]

    def _note(self, text: str) -> None:
        self.lines.append(text)
