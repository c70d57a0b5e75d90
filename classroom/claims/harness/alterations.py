"""What the authors decided against, built: each function changes one thing about a broker before it starts.

The claims set the broker as it is beside one that is altered. Some alterations only watch or hurry, and say so.

Paper: §3.1, the alternatives its paragraphs argue against.
"""

from __future__ import annotations

import gc
import os
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka2011.broker import sendfile, service
from kafka2011.log.log import Log
from kafka2011.log.segment import FileSlice, Segment
from kafka2011.log.segment_list import SegmentList
from kafka2011.log.store import LogStore
from kafka2011.wire import pure, walk

NOTES = "KAFKA2011CLAIMS_NOTES"
"""The variable that names the directory where an altered broker leaves notes."""
SYNCED, GC_SECONDS, READERS, RETAINED = "synced", "gc-seconds", "readers", "retained"
COPY_BYTES = 64 << 10
_ENTRY = struct.Struct(">qq")


def apply(name: str) -> None:
    """Alter this process."""
    ALTERATIONS[name]()


def _notes(name: str) -> Path:
    return Path(os.environ[NOTES]) / name


def copy() -> None:
    """Without sendfile: "read data … to an application buffer, copy application buffer to another kernel buffer"."""

    def send_some(self: Any) -> bool:
        connection, parts, left = self._transport.getHandle(), self._parts, sendfile.TURN_BYTES
        while parts and left > 0:
            part = parts[0]
            size = len(part) if isinstance(part, bytes) else part.size
            if isinstance(part, bytes):
                data = part[self._done :]
            else:
                data = os.pread(part.fd, min(size - self._done, COPY_BYTES), part.position + self._done)
            n = connection.send(data)
            if not isinstance(part, bytes):
                self._sent("copy", n)
            left -= n
            self._advance(n, size)
        return not parts

    sendfile.Outbox._send_some = send_some  # type: ignore[method-assign]


def exposed() -> None:
    """A message is exposed as soon as it is written, flushed or not."""

    def read(self: Log, offset: int, max_size: int) -> FileSlice:
        segment = self._segments.holding(offset)
        size = min(max_size, segment.end - offset)
        return segment.slice(offset - segment.start, size) if size > 0 else FileSlice(-1, 0, 0)

    Log.read = read  # type: ignore[method-assign]


def note_syncs() -> None:
    """Only watches: note after every fsync how long the file was then. What a power cut would leave is known so."""
    path, fsync = _notes(SYNCED), os.fsync

    def noting(fd: int) -> None:
        name, size = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd).st_size
        fsync(fd)
        with path.open("a") as notes:
            notes.write(f"{size} {name}\n")

    os.fsync = noting  # type: ignore[assignment]


def scan() -> None:
    """Without a search: the list of segments is walked from its beginning."""

    def holding(self: SegmentList, offset: int) -> Segment:
        found = self._segments[0]
        for segment in self._segments:
            if segment.start > offset:
                break
            found = segment
        return found

    SegmentList.holding = holding  # type: ignore[method-assign]


def index() -> None:
    """An id for each message, and an index from ids to positions beside every segment: 16 bytes a message."""
    append, last = Log.append, {"id": 0}

    def indexed(self: Log, data: bytes, n_messages: int) -> tuple[int, int]:
        start, end = append(self, data, n_messages)
        position, entries = 0, []
        while position < len(data):
            entries.append(_ENTRY.pack(last["id"], start + position))
            last["id"] += 1
            position += 4 + int.from_bytes(data[position : position + 4], "big")
        with open(self._segments.active.path.with_suffix(".index"), "ab") as file:
            file.write(b"".join(entries))
        return start, end

    Log.append = indexed  # type: ignore[method-assign]


def whole_index() -> None:
    """The same index, sorted and written anew every 500 messages: maintenance that grows with what is stored."""
    index()
    append, waiting = Log.append, Counter[Log]()

    def maintained(self: Log, data: bytes, n_messages: int) -> tuple[int, int]:
        found = append(self, data, n_messages)
        waiting[self] += n_messages
        while waiting[self] >= 500:
            waiting[self] -= 500
            path = self._segments.active.path.with_suffix(".index")
            entries = sorted(_ENTRY.iter_unpack(path.read_bytes()), reverse=True)
            path.with_suffix(".sorted").write_bytes(b"".join(_ENTRY.pack(*entry) for entry in entries))
        return found

    Log.append = maintained  # type: ignore[method-assign]


class _Cached:
    """A message as an object, as brokers that cache messages keep them."""

    def __init__(self, offset: int, payload: bytes) -> None:
        self.offset, self.payload, self.headers = offset, payload, {"redelivered": False}


def cache() -> None:
    """Messages are cached in the process, as objects, besides in the page cache."""
    append, kept = Log.append, []

    def caching(self: Log, data: bytes, n_messages: int) -> tuple[int, int]:
        position = 0
        while position < len(data):
            after = position + 4 + int.from_bytes(data[position : position + 4], "big")
            kept.append(_Cached(self.end_offset + position, data[position + 10 : after]))
            position = after
        return append(self, data, n_messages)

    Log.append = caching  # type: ignore[method-assign]


def reader_state() -> None:
    """The broker keeps what each reader was given, message by message, in memory and on disk."""
    send = sendfile.Outbox.send
    readers: dict[int, dict[int, str]] = {}
    file = _notes(READERS).open("ab", buffering=0)

    def noting(self: Any, parts: Any) -> None:
        state = readers.setdefault(id(self), {})
        readers.setdefault(-id(self), {})[0] = self  # keeps the connection's number its own
        for part in parts:
            if isinstance(part, bytes):
                continue
            data, position = os.pread(part.fd, part.size, part.position), 0
            while position + 4 < len(data):
                state[part.position + position] = "delivered"
                position += 4 + int.from_bytes(data[position : position + 4], "big")
            file.write(_ENTRY.pack(id(self), part.position) * (1 + len(state) % 256))
            os.fsync(file.fileno())
        send(self, parts)

    sendfile.Outbox.send = noting  # type: ignore[method-assign]


def queue() -> None:
    """The contract of a queue: what was given out once is gone."""
    taken: dict[Log, int] = {}
    read = Log.read

    def taking(self: Log, offset: int, max_size: int) -> FileSlice:
        if offset < taken.get(self, 0):
            raise self._out_of_range(offset)
        found = read(self, offset, max_size)
        taken[self] = offset + found.size
        return found

    Log.read = taking  # type: ignore[method-assign]


def retention_at_once() -> None:
    """Only hurries: the first pass of retention comes at once, not after a minute; and notes that it has passed."""
    service.FIRST_RETENTION_S = 0.05
    apply_retention = LogStore.apply_retention

    def noting(self: LogStore) -> list[tuple[Log, int]]:
        deleted = apply_retention(self)
        _notes(RETAINED).touch()
        return deleted

    LogStore.apply_retention = noting  # type: ignore[method-assign]


def waits_for_readers() -> None:
    """Nothing is deleted before a reader has fetched it."""
    reached: dict[Log, int] = {}
    read, retain = Log.read, Log.retain

    def reading(self: Log, offset: int, max_size: int) -> FileSlice:
        found = read(self, offset, max_size)
        reached[self] = max(reached.get(self, 0), offset + found.size)
        return found

    def retaining(self: Log, **how: Any) -> int:
        read_up_to = reached.get(self, 0)
        how["at_most"] = min(how["at_most"], sum(segment.end <= read_up_to for segment in self._segments))
        return retain(self, **how)

    Log.read = reading  # type: ignore[method-assign]
    Log.retain = retaining  # type: ignore[method-assign]


def no_crc() -> None:
    """CRCs are not looked at, neither when a set comes in nor when a log is recovered."""

    def check(data: bytes | memoryview, pos: int, wrappers: bool, /) -> tuple[int, int, int]:
        found, largest, end = 0, 0, len(data)
        while pos + 10 <= end:
            size = int.from_bytes(data[pos : pos + 4], "big")
            if size < 6 or pos + 4 + size > end:
                break
            found, largest, pos = found + 1, max(largest, size - 6), pos + 4 + size
        return pos, found, largest

    walk.check = check
    pure.check = check


def gc_clock() -> None:
    """Only watches: how long the garbage collector ran, in a file."""
    begun, total, file = [0.0], [0.0], _notes(GC_SECONDS).open("wb", buffering=0)

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            begun[0] = time.thread_time()
        else:
            total[0] += time.thread_time() - begun[0]
            file.seek(0)
            file.write(f"{total[0]:.6f}".encode())

    gc.callbacks.append(note)


ALTERATIONS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (
        copy, exposed, note_syncs, scan, index, whole_index, cache, reader_state, queue, retention_at_once,
        waits_for_readers, no_crc, gc_clock,
    )
}  # fmt: skip
