"""Commits and groups as keyed records in a log: ``__consumer_offsets``, 50 partitions of 2011 messages.

Spec: modern-group-protocol §11, §16. The same segments, flush and recovery serve the paper's topics and this one; it
only has a store of its own, so that nobody produces into it by name and retention by age never touches it.

A message holds one record: time written, key, value (null = tombstone). Later records win. Compaction appends what is
still live to the end of the log and, once that is flushed, deletes the older segments: offsets of a byte-addressed
log cannot be renumbered, but a prefix can always go. Whatever is left after a crash in between says the same twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from consumers.group_protocol.coordinator.events import OffsetsDamaged
from consumers.group_protocol.coordinator.settings import LogPosition, Record
from consumers.group_protocol.primitives import Reader, Writer
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import LogCorrupt, LogError, WireError
from kafka2011.events import Journal
from kafka2011.failpoints import fail_point
from kafka2011.log.log import Log
from kafka2011.log.settings import LogSettings
from kafka2011.log.store import LogStore
from kafka2011.wire import decode_set, encode_set

TOPIC = "__consumer_offsets"
N_PARTITIONS = 50
FILE_SIZE = 1024 * 1024
MIN_GARBAGE = 4 * FILE_SIZE
"""A partition is compacted when it has this much to gain, and at least as much as is live."""
DELETE_RETENTION_MS = 24 * 3_600_000
"""How long compaction keeps tombstones, so that whoever reads the log learns of the deletion."""
_BATCH = 1000
_FOREVER = 1 << 62


def java_hash(text: str) -> int:
    """Java's String.hashCode: 31·h + each UTF-16 unit, as a signed 32-bit number."""
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        h = (31 * h + (units[i] << 8) + units[i + 1]) & 0xFFFFFFFF
    return h - (1 << 32) if h >= 1 << 31 else h


def partition_of(group: str) -> int:
    """The partition that holds a group: abs(hash) % 50, where abs(-2³¹) is 0 as in Java."""
    h = java_hash(group)
    return 0 if h == -(1 << 31) else abs(h) % N_PARTITIONS


class OffsetsLog:
    """Append records, flush, replay, compact.

    Thread: one, except ``flush``, which may block and runs anywhere, but only once at a time per partition.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock = SYSTEM_CLOCK,
        journal: Journal | None = None,
        min_garbage: int = MIN_GARBAGE,
        delete_retention_ms: int = DELETE_RETENTION_MS,
        file_size: int = FILE_SIZE,
    ) -> None:
        """Open the log in ``directory`` and read it; recovery is the store's."""
        self._clock = clock
        self._min_garbage, self._delete_retention_ms = min_garbage, delete_retention_ms
        # Retention keeps at least this many bytes; only ``_trim`` sets it, for one partition at a time.
        self._keep = {TOPIC: _FOREVER}
        self._trimming = threading.Lock()
        settings = LogSettings(
            num_partitions=N_PARTITIONS, file_size=file_size, roll_ms=_FOREVER, topic_retention_size=self._keep
        )
        self._store = LogStore(directory, settings, clock=clock, journal=journal)
        self._store.open()
        self._partitions: dict[int, _Partition] = {}
        self._damaged = {where.partition for where in self._store.offline}
        for log in self._store.logs():
            try:
                self._partitions[log.partition] = _Partition(log)
            except (WireError, ValueError) as error:
                self._damaged.add(log.partition)
                self._store.journal.emit(OffsetsDamaged(partition=log.partition, error=str(error)))

    def close(self) -> None:
        """Flush and close."""
        self._store.close()

    def is_available(self, group: str) -> bool:
        """False when the group's partition is damaged and offline, or its disk has failed: its offsets are unknown."""
        number = partition_of(group)
        partition = self._partitions.get(number)
        return number not in self._damaged and not (partition and partition.log.failed)

    def append(self, group: str, records: Sequence[Record]) -> LogPosition:
        """Write ``records`` to the group's partition; they are durable once ``flush`` returned a position this far."""
        number = partition_of(group)
        if number in self._damaged:
            raise LogCorrupt(
                f"partition {number} of the offsets log is damaged; stop the broker and use `kafka2011 log salvage` on "
                f"{self._store.directory / TOPIC}-{number}"
            )
        partition = self._partitions.get(number)
        if partition is None:
            partition = self._partitions[number] = _Partition(self._store.get_or_create(TOPIC, number))
        end = partition.append(records, self._clock.wall_ms())
        if partition.garbage > max(self._min_garbage, partition.live_size):
            try:
                partition.compact(self._clock.wall_ms() - self._delete_retention_ms)
            except LogError:
                # The log has told the journal. What was written twice does no harm, and the records are in.
                pass
        return LogPosition(number, end)

    def unflushed(self) -> list[int]:
        """The partitions that have something to flush."""
        return [
            number
            for number, each in self._partitions.items()
            if each.log.flushed_offset < each.log.end_offset and not each.log.failed
        ]

    def flush(self, number: int) -> LogPosition:
        """Make everything appended so far durable; delete what a finished compaction made useless. Blocks."""
        partition = self._partitions[number]
        flushed = partition.log.flush()
        if partition.compaction is not None and flushed >= partition.compaction[1]:
            self._trim(partition.log, partition.compaction[0])
            partition.compaction = None
        return LogPosition(number, flushed)

    def _trim(self, log: Log, start: int) -> None:
        """Delete the segments that end before ``start``."""
        fail_point("offsets.compact.before_trim")
        with self._trimming:
            self._keep[TOPIC] = log.flushed_offset - start
            log.retain(by_age=False, at_most=_FOREVER, forget=self._store.checkpoint)
            self._keep[TOPIC] = _FOREVER

    def replay(self) -> Iterator[Record]:
        """The last record of every key that has a value."""
        for partition in self._partitions.values():
            yield from partition.live()

    def latest(self, number: int) -> list[tuple[int, Record]]:
        """The last record of every key of one partition with the time it was written, tombstones too."""
        partition = self._partitions.get(number)
        return [] if partition is None else partition.latest()

    def size(self) -> int:
        """Bytes on disk."""
        return sum(partition.log.size for partition in self._partitions.values())


class _Partition:
    """One partition with the last record of each key in memory."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._latest: dict[bytes, tuple[int, bytes | None]] = {}
        self.live_size = 0
        self.compaction: tuple[int, int] | None = None
        """From where to where the last compaction wrote, until the segments before it are gone."""
        for payload in _payloads(log):
            self._remember(*_unpack(payload))

    @property
    def garbage(self) -> int:
        """Bytes that compaction would win: everything that is not the last word on its key."""
        return self.log.size - self.live_size

    def append(self, records: Iterable[Record], now_ms: int) -> int:
        payloads = [_pack(now_ms, record.key, record.value) for record in records]
        _, end = self.log.append(encode_set(payloads), len(payloads))
        for payload in payloads:
            self._remember(*_unpack(payload))
        return end

    def live(self) -> list[Record]:
        return [Record(key, value) for key, (_, value) in self._latest.items() if value is not None]

    def latest(self) -> list[tuple[int, Record]]:
        return [(when, Record(key, value)) for key, (when, value) in self._latest.items()]

    def compact(self, tombstones_since_ms: int) -> None:
        """Say again at the end of the log what still counts; the segments before can go after the next flush."""
        if self.compaction is not None:
            return
        for key in [k for k, (when, value) in self._latest.items() if value is None and when < tombstones_since_ms]:
            self._forget(key)
        start = self.log.end_offset
        payloads = [_pack(when, key, value) for key, (when, value) in self._latest.items()]
        for i in range(0, len(payloads), _BATCH):
            fail_point("offsets.compact.before_append")
            batch = payloads[i : i + _BATCH]
            self.log.append(encode_set(batch), len(batch))
        self.compaction = (start, self.log.end_offset)

    def _remember(self, when_ms: int, key: bytes, value: bytes | None) -> None:
        self._forget(key)
        self._latest[key] = (when_ms, value)
        self.live_size += _size(key, value)

    def _forget(self, key: bytes) -> None:
        before = self._latest.pop(key, None)
        if before is not None:
            self.live_size -= _size(key, before[1])


_OVERHEAD = len(encode_set([b""])) + 8 + 4 + 4


def _size(key: bytes, value: bytes | None) -> int:
    return _OVERHEAD + len(key) + len(value or b"")


def _pack(when_ms: int, key: bytes, value: bytes | None) -> bytes:
    return Writer().i64(when_ms).blob(key).blob(value).bytes()


def _unpack(payload: bytes) -> tuple[int, bytes, bytes | None]:
    reader = Reader(payload)
    return reader.i64(), reader.blob(), reader.nullable_blob()


def _payloads(log: Log) -> Iterator[bytes]:
    """Every message from the oldest to the flushed end, one segment at a time."""
    for segment in log.segments():
        offset, end = segment.start, segment.start + segment.flushed_size
        while offset < end:
            with log.read(offset, end - offset) as part:
                messages = decode_set(part.read(), offset)
            for message in messages:
                yield message.payload
            offset = messages[-1].next_offset
