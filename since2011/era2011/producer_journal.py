"""The idempotent producers' state on disk, beside the log it is about.

One small file per partition gets an entry *before* each batch of an idempotent producer is appended to the log. So
whatever happens, the two agree once the log has recovered its end E:

    entry begins at E or after  the batch never made it: the entry is cut off
    entry begins before E and   the first messages of the batch are there: the entry says how many bytes are missing,
    ends after it               and a retry writes those and no others
    entry ends at or before E   the batch is there: a retry is answered, not written
    no entry, same boot         there was no such batch: what a process wrote survives its death
    no entry, other boot        the machine went down and may have lost the entry: the partition is in doubt

An acknowledged (acks=all) batch has both files forced to disk, so doubt is only ever about batches that were not
acknowledged. Producer ids come in blocks that are on disk before the first one is used.

See docs/modern-port.md, docs/reliability.md.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import FlushFailed, LogError, LogFailed, LogFull
from kafka2011.failpoints import fail_point
from kafka2011.log.directory import NO_ROOM
from since2011.era2011.idempotence import Producers, RecentProducers, Written

_ENTRY = struct.Struct(">qhiiqqqqiI")
_COMPACT_FROM = 4_000
"""Entries in a file before it is worth writing it anew with only those that are remembered."""


class PartitionJournal:
    """The file of one partition and what it says. Thread: reactor, but ``sync`` from any."""

    def __init__(
        self,
        path: Path,
        log_end: int,
        *,
        same_boot: bool = True,
        clock: Clock = SYSTEM_CLOCK,
        expire_ms: int = 86_400_000,
        recent: RecentProducers | None = None,
    ) -> None:
        self._path = path
        self._clock = clock
        with _room_for(path):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        entries = _read(self._fd)
        kept = [_as_recovered(entry, log_end) for entry in entries if entry.start < log_end]
        unexplained = log_end > (kept[-1].end if kept else 0)
        self.producers = Producers(in_doubt=unexplained and not same_boot, expire_ms=expire_ms, recent=recent)
        for entry in kept:
            self.producers.note(entry)
        self._n_entries = self.n_noted = len(kept)
        self.failed: str | None = None
        """Why nothing can be noted any more, if so."""
        if kept != entries[: len(kept)]:
            self._rewrite(kept)
        # Also cuts off a torn last entry, and those the log has lost: the bytes there will mean something else soon.
        os.ftruncate(self._fd, len(kept) * _ENTRY.size)
        self.maybe_compact()

    def append(self, written: Written, append_to_log: Callable[[], None]) -> None:
        """Note ``written``, then let it happen; if that fails, take the note back."""
        if self.failed:
            raise LogFailed(f"{self.failed}; restart the broker")
        body = _pack(written)
        try:
            with _room_for(self._path):
                fail_point("producers.before_note")
                n_written = os.write(self._fd, body)
        except OSError as error:
            raise LogError(f"cannot note a producer's batch in {self._path} ({error}); nothing was appended") from error
        if n_written != len(body):
            os.ftruncate(self._fd, self._n_entries * _ENTRY.size)
            raise LogFull(f"no space to note a producer's batch in {self._path}; free some, then send it again")
        try:
            fail_point("producers.noted")
            append_to_log()
        except LogFailed:
            raise  # part of it may be there; nothing is appended any more, and the restart will tell
        except BaseException:
            os.ftruncate(self._fd, self._n_entries * _ENTRY.size)
            raise
        fail_point("producers.appended")
        self._n_entries += 1
        self.n_noted += 1
        self.producers.note(written)

    def sync(self) -> None:
        """Force the notes to disk. Blocks; call it off the reactor. A sync that fails is final."""
        try:
            fail_point("producers.before_fsync")
            os.fsync(self._fd)
        except OSError as error:
            self.failed = f"the disk failed during a sync of {self._path} ({error})"
            raise FlushFailed(f"{self.failed}; restart the broker") from error

    def maybe_compact(self) -> None:
        """Forget expired producers and write the file anew when most of it is no longer remembered."""
        self.producers.expire(self._clock.wall_ms())
        remembered = self.producers.remembered()
        if self._n_entries >= _COMPACT_FROM and 2 * len(remembered) <= self._n_entries:
            self._rewrite(remembered)

    def _rewrite(self, entries: list[Written]) -> None:
        fresh = self._path.with_suffix(".new")
        fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(b"".join(map(_pack, entries)))
        os.fsync(fd)
        os.replace(fresh, self._path)
        _sync_directory(self._path.parent)
        os.close(self._fd)
        self._fd, self._n_entries = fd, len(entries)

    def close(self) -> None:
        """Force everything to disk and close."""
        os.fsync(self._fd)
        os.close(self._fd)


def _as_recovered(entry: Written, log_end: int) -> Written:
    if entry.end <= log_end:
        return entry
    return replace(entry, end=log_end, missing=entry.missing + entry.end - log_end)


def _pack(written: Written) -> bytes:
    body = _ENTRY.pack(
        written.producer_id, written.epoch, written.first, written.last,
        written.offset, written.start, written.end, written.wall_ms,
        written.missing, 0,
    )[:-4]  # fmt: skip
    return body + zlib.crc32(body).to_bytes(4, "big")


def _read(fd: int) -> list[Written]:
    """Every entry up to the first that is cut short or damaged."""
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    entries = []
    for at in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
        *values, crc = _ENTRY.unpack_from(data, at)
        if zlib.crc32(data[at : at + _ENTRY.size - 4]) != crc:
            break
        entries.append(Written(*values))
    return entries


class ProducerNotes:
    """Whether the process before this one ended cleanly, and which producer ids it had given. Thread: reactor."""

    def __init__(self, path: Path, broker_id: int) -> None:
        self._path = path
        self._prefix = (broker_id & 0x7F_FFFF) << 40
        state: dict[str, Any] = {"next": 0, "boot": boot_id(), "clean": True}
        if path.exists():
            state = json.loads(path.read_text(encoding="utf-8"))
        self.same_boot = bool(state["clean"]) or state["boot"] == boot_id()
        """Whether everything written by the process before is certainly there."""
        self._reserved = int(state["next"])
        self._opened = False
        try:
            self.open()
        except LogFull:
            pass  # a full disk is no reason not to serve; nothing is noted before this is

    def open(self) -> None:
        """Note that this process writes now, once; LogFull while the disk has no room for that."""
        if not self._opened:
            self._save(clean=False)
            self._opened = True

    @property
    def reserved(self) -> int:
        """Above every id that releases before 1.2 have handed out here, which had their own numbering."""
        return self._prefix | self._reserved if self._reserved else 0

    def close(self) -> None:
        """Mark a clean end: nothing is in doubt at the next start."""
        self._save(clean=True)

    def _save(self, *, clean: bool) -> None:
        fresh = self._path.with_suffix(".new")
        with _room_for(self._path), open(fresh, "w", encoding="utf-8", opener=_private) as file:
            json.dump({"next": self._reserved, "boot": boot_id(), "clean": clean}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._path)
        _sync_directory(self._path.parent)


def _private(path: str, flags: int) -> int:
    """Open a file of nobody else's."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


@contextmanager
def _room_for(path: Path) -> Iterator[None]:
    """A disk without room is said to be that, to who wanted to write."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise LogFull(f"no room for {path} ({error.strerror}); free some, then try again") from error


def boot_id() -> str:
    """Changes when the machine restarts; while it stays, written pages survive the process that wrote them."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
