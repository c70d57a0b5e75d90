"""One segment of a modern log: batches back to back, and beside them what finds them.

The batches are stored as they came (base offset and leader epoch written in). An entry is added to the indexes whenever
more than ``index.interval.bytes`` were appended since the last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kafka2011.errors import InvalidMessage, InvalidMessageSize, WireError
from kafka2011.failpoints import fail_point
from since2011.log.files import INDEX, LOG, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX, file_name
from since2011.log.indexes import OffsetIndex, TimeIndex, TxnIndex
from since2011.log.open_files import Handle, LogFile
from since2011.log.settings import LogConfig
from since2011.wire.record_batch import HEADER_SIZE, BatchHeader, checked_header, read_header

MAX_RELATIVE_OFFSET = 2**31 - 1
_READ_AHEAD = 64 << 10


class StoredBatch(NamedTuple):
    """A batch's header and where it lies in its segment."""

    position: int
    header: BatchHeader

    @property
    def end(self) -> int:
        return self.position + self.header.size


class Segment:
    """The files of one segment, open. Thread: one; ``read`` any."""

    def __init__(self, directory: Path, base_offset: int, config: LogConfig, *, suffix: str = "") -> None:
        self.directory, self.base_offset, self.suffix = directory, base_offset, suffix
        self.config = config
        self.path = self._path(LOG)
        self._file = LogFile(self.path)
        limit = config.segment_index_bytes
        self.index = OffsetIndex(self._path(INDEX), base_offset, limit)
        self.time_index = TimeIndex(self._path(TIME_INDEX), base_offset, limit)
        self.txn_index = TxnIndex(self._path(TXN_INDEX))
        self.size = _size_of(self.path)
        self._unsynced = False
        self._since_entry = 0
        self._largest: tuple[int, int] = (-1, base_offset)
        """The largest timestamp and the last offset of the batch that had it."""
        self._first_timestamp: int | None = None

    def _path(self, kind: str) -> Path:
        return self.directory / (file_name(self.base_offset, kind) + self.suffix)

    @property
    def paths(self) -> list[Path]:
        """The segment's files, the log first; not all of them need exist."""
        return [self._path(kind) for kind in SEGMENT_SUFFIXES]

    def rename(self, suffix: str) -> None:
        """Give the files another suffix, the log first; whoever has one of them open goes on reading."""
        old = self.paths
        self.suffix = suffix
        self.path = self._path(LOG)
        for before, after in zip(old, self.paths, strict=True):
            with suppress(FileNotFoundError):
                os.rename(before, after)
                fail_point("modern.segment.between_renames")
        self._file.path = self.path
        self.index.path, self.time_index.path, self.txn_index.path = self.paths[1:]

    def remove(self) -> None:
        """Delete the files."""
        self.close()
        for path in self.paths:
            path.unlink(missing_ok=True)

    def load_indexes(self) -> None:
        """Read what closed files say. Raises LogCorrupt: then they are to be built anew."""
        self.index.load()
        self.time_index.load()
        self.txn_index.load(self.base_offset)
        self._largest = self.time_index.last

    def create(self) -> None:
        """Make the files of a new segment."""
        self._file.create()
        self._unsynced = True
        self.index.load()
        self.time_index.load()

    def open(self) -> Handle:
        """The log file; keep the handle as long as you use its descriptor."""
        return self._file.open()

    # -- writing ------------------------------------------------------------------------------------------------

    def append(self, data: bytes | bytearray, last_offset: int, largest: tuple[int, int]) -> None:
        """Write batches; ``largest`` is their largest timestamp and the last offset of the batch that has it."""
        position, handle = self.size, self._file.open()
        self._unsynced = True
        try:
            fail_point("modern.append.before_write")
            written = os.pwrite(handle.fd, data, position)
            while written < len(data):
                written += os.pwrite(handle.fd, data[written:], position + written)
            fail_point("modern.append.after_write")
        except OSError:
            os.ftruncate(handle.fd, position)
            raise
        self.size = position + len(data)
        if largest[0] > self._largest[0]:
            self._largest = largest
        if self._since_entry > self.config.index_interval_bytes:
            self.index.append(last_offset, position)
            self.time_index.maybe_append(*self._largest)
            self._since_entry = 0
        self._since_entry += len(data)

    def should_roll(self, n_bytes: int, last_offset: int, max_timestamp: int, roll_ms: int, now_ms: int) -> bool:
        """Whether an append of ``n_bytes`` ending at ``last_offset`` belongs into the next segment.

        Times are those of records: how long after the segment's first batch this one was stamped. There is no timer.
        """
        if self.size == 0:
            return last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        first = self.first_timestamp()
        waited = max_timestamp - first if first >= 0 and max_timestamp >= 0 else now_ms - self.created_ms()
        return (
            self.size > self.config.segment_bytes - n_bytes
            or waited > roll_ms
            or self.index.full
            or self.time_index.full
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        )

    def finish(self) -> None:
        """Write the last time entry, when the segment is closed or another becomes the active one."""
        self.time_index.maybe_append(*self._largest)

    def flush(self) -> None:
        """Force everything to disk."""
        fail_point("modern.flush.before_fsync")
        if self._unsynced:
            # Before the call: what is appended meanwhile may not be covered by it.
            self._unsynced = False
            os.fsync(self._file.open().fd)
        self.index.sync()
        self.time_index.sync()
        self.txn_index.sync()

    def truncate(self, offset: int) -> int:
        """Cut off the batch that holds ``offset`` and everything after it; the offset at which the segment ends now."""
        found = self.find(offset)
        if found is not None:
            self.cut(found.position)
            offset = min(offset, found.header.base_offset)
        self.index.truncate(offset)
        self.time_index.truncate(offset)
        self.txn_index.truncate(offset)
        self._largest = self.time_index.last
        for stored in self.batches(self.index.position_of(self._largest[1])):
            self._saw(stored.header)
        self._since_entry = self.size - (self.index.positions[-1] if self.index.positions else 0)
        return offset

    def cut(self, position: int) -> None:
        """Cut the log file at ``position``; the indexes are the caller's business."""
        os.ftruncate(self._file.open().fd, position)
        self._unsynced = True
        self.size = position
        if position == 0:
            self._first_timestamp = None

    def close(self) -> None:
        """Let go of the files."""
        self.index.close()
        self.time_index.close()
        self.txn_index.close()
        self._file.close()

    # -- rebuilding ---------------------------------------------------------------------------------------------

    def forget_indexes(self) -> None:
        """Empty all three, before ``noted`` fills them again batch by batch."""
        for kind in (INDEX, TIME_INDEX, TXN_INDEX):
            self._path(kind).unlink(missing_ok=True)
        limit = self.config.segment_index_bytes
        self.index.close()
        self.time_index.close()
        self.txn_index.close()
        self.index = OffsetIndex(self._path(INDEX), self.base_offset, limit)
        self.time_index = TimeIndex(self._path(TIME_INDEX), self.base_offset, limit)
        self.txn_index = TxnIndex(self._path(TXN_INDEX))
        self.index.load()
        self.time_index.load()
        self._largest, self._since_entry = (-1, self.base_offset), 0

    def noted(self, stored: StoredBatch) -> None:
        """Index one batch that is in the file."""
        self._saw(stored.header)
        last_entry = self.index.positions[-1] if self.index.positions else 0
        if stored.position - last_entry > self.config.index_interval_bytes and not self.index.full:
            self.index.append(stored.header.last_offset, stored.position)
            self.time_index.maybe_append(*self._largest)
        self._since_entry = stored.end - (self.index.positions[-1] if self.index.positions else 0)

    def _saw(self, header: BatchHeader) -> None:
        if header.max_timestamp > self._largest[0]:
            self._largest = (header.max_timestamp, header.last_offset)

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the log file."""
        handle = self._file.open()
        return os.pread(handle.fd, size, position)

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
        """Headers of the batches from ``position`` on; ends quietly at a partial one. Raises WireError on rubbish."""
        end = self.size if end is None else min(end, self.size)
        buffer, begin = b"", position
        while end - position >= HEADER_SIZE:
            at = position - begin
            if len(buffer) - at < HEADER_SIZE:
                buffer, begin, at = self.read(position, min(_READ_AHEAD, end - position)), position, 0
            header = read_header(buffer, at)
            if position + header.size > end:
                return
            yield StoredBatch(position, header)
            position += header.size

    def checked_batches(self) -> Iterator[tuple[StoredBatch, bytes]]:
        """Every batch with its bytes, CRC checked; raises WireError at the first that is none, also a partial one."""
        position = 0
        while position < self.size:
            head = self.read(position, HEADER_SIZE)
            if len(head) < HEADER_SIZE:
                raise InvalidMessageSize(f"{self.path.name}: {len(head)} bytes are left at {position}, not a batch")
            header = read_header(head)
            if header.size > self.size - position:
                raise InvalidMessageSize(f"{self.path.name}: the batch at {position} is not whole")
            data = self.read(position, header.size)
            checked_header(data)
            if not 0 <= header.base_offset - self.base_offset <= header.last_offset - self.base_offset:
                raise InvalidMessage(f"{self.path.name}: a batch of offset {header.base_offset} at {position}")
            yield StoredBatch(position, header), data
            position += header.size

    def find(self, offset: int) -> StoredBatch | None:
        """The first batch whose last offset is ``offset`` or beyond."""
        for stored in self.batches(self.index.position_of(offset)):
            if stored.header.last_offset >= offset:
                return stored
        return None

    def last_batch(self) -> StoredBatch | None:
        """The last whole batch."""
        found = None
        for stored in self.batches(self.index.positions[-1] if self.index.positions else 0):
            found = stored
        return found

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp in it; -1 if no record has one."""
        return self._largest[0]

    @property
    def largest_timestamp_offset(self) -> int:
        """The last offset of the batch that has it."""
        return self._largest[1]

    def retention_timestamp(self, now_ms: int) -> int:
        """By which its age is judged: the largest timestamp, or the file's own time.

        A header is the producer's word. One beyond the clock counts as the time of the last append: a lie must not hold
        a segment for ever.
        """
        if self.largest_timestamp < 0:
            return self.modified_ms()
        return self.largest_timestamp if self.largest_timestamp <= now_ms else min(now_ms, self.modified_ms())

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 if there is none."""
        if self._first_timestamp is None:
            try:
                first = next(self.batches(), None)
            except WireError:
                first = None
            if first is None:
                return -1
            self._first_timestamp = first.header.max_timestamp
        return self._first_timestamp

    def modified_ms(self) -> int:
        """When the file was last written."""
        return os.stat(self.path).st_mtime_ns // 1_000_000

    def created_ms(self) -> int:
        """When the segment was begun, as well as the file system can tell."""
        return os.stat(self.path).st_ctime_ns // 1_000_000


def _size_of(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
