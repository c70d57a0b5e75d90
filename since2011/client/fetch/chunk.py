"""Bytes a fetch brought for one partition, opened batch by batch as the application takes records.

What an application does not see (§8.10 of the modern log's rules, docs/since-2011.md): control batches, records before
the offset asked for, and, with ``read_committed``, records of transactions that were aborted. They all move the
position on, as do offsets that compaction has emptied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka2011.errors import InvalidMessage, Kafka2011Error
from kafka2011.types import TopicPartition
from since2011.client.fetch.errors import BatchUnreadable
from since2011.wire import record_walk
from since2011.wire.compression import decompress
from since2011.wire.record_batch import HEADER_SIZE, BatchHeader, crc_is_good, headers
from since2011.wire.records import Header, decode_marker

MAX_INFLATED = 256 << 20
"""Of one batch: a lying batch costs itself, not the machine's memory."""
CREATED, APPENDED = 0, 1


class ConsumerRecord(NamedTuple):
    """One record with the place it came from."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970; -1 none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    leader_epoch: int
    timestamp_type: int
    """CREATED: by the producer's clock; APPENDED: by the broker's."""


class FetchedChunk:
    """Whole batches of one partition. Thread: one."""

    def __init__(
        self,
        partition: TopicPartition,
        data: bytes,
        offset: int,
        aborted: Iterable[tuple[int, int]],
        *,
        committed: bool,
        check_crcs: bool,
    ) -> None:
        """``offset``: the one asked for. ``aborted``: first offset and producer of each aborted transaction."""
        self.partition = partition
        self.offset = offset
        """The next offset to give out."""
        self.last_epoch = -1
        """Of the batch before ``offset``, if it came with this chunk."""
        self._batches = list(headers(data))
        self._data, self._index = data, 0
        self._aborted = sorted(aborted) if committed else []
        self._committed, self._check_crcs = committed, check_crcs
        self._gone: set[int] = set()
        self._records: list[ConsumerRecord] = []
        self._taken = 0

    @property
    def next_offset(self) -> int:
        """The offset after the chunk."""
        return max(self._batches[-1][1].next_offset, self.offset) if self._batches else self.offset

    @property
    def end_epoch(self) -> int:
        """The leader epoch of the last batch; -1 without batches."""
        return self._batches[-1][1].leader_epoch if self._batches else -1

    @property
    def size(self) -> int:
        """Bytes that are still to be opened."""
        return len(self._data) - self._batches[self._index][0] if self._index < len(self._batches) else 0

    def take(self, at_most: int) -> list[ConsumerRecord]:
        """The next records, of one batch at most; empty when there are no more. Raises BatchUnreadable."""
        while self._taken == len(self._records):
            if self._index == len(self._batches):
                return []
            self._open(*self._batches[self._index])
        some = self._records[self._taken : self._taken + at_most]
        self._taken += len(some)
        # Behind the last record of a batch, what is left of the batch is read too: a gap, or nothing.
        whole = self._taken == len(self._records)
        header = self._batches[self._index - 1][1]
        self.offset = header.next_offset if whole else some[-1].offset + 1
        self.last_epoch = header.leader_epoch
        return some

    def _open(self, position: int, header: BatchHeader) -> None:
        """Decode the next batch, or pass over it; moves on only if it can be read."""
        self._taken, self._records = 0, []
        batch = memoryview(self._data)[position : position + header.size]
        try:
            if self._check_crcs and not crc_is_good(batch, header):
                raise InvalidMessage("a batch fails its CRC-32C")
            if self._is_seen(batch, header):
                self._records = self._decode(batch, header)
        except Kafka2011Error as error:
            raise BatchUnreadable(self.partition, header.base_offset, header.next_offset, str(error)) from error
        self._index += 1
        if not self._records:
            self.offset, self.last_epoch = max(self.offset, header.next_offset), header.leader_epoch

    def _is_seen(self, batch: memoryview, header: BatchHeader) -> bool:
        if header.next_offset <= self.offset:
            return False
        if not self._committed:
            return not header.control
        aborted, gone = self._aborted, self._gone
        while aborted and aborted[0][0] <= header.last_offset:
            gone.add(aborted.pop(0)[1])
        if header.control:
            marker = decode_marker(batch, header) if header.producer_id in gone else None
            if marker is not None and not marker.committed:
                gone.discard(header.producer_id)
            return False
        return not (header.transactional and header.producer_id in gone)

    def _decode(self, batch: memoryview, header: BatchHeader) -> list[ConsumerRecord]:
        body = bytes(batch[HEADER_SIZE:])
        if header.codec:
            body = decompress(header.codec, body, MAX_INFLATED)
        stamped = header.append_time
        records = record_walk.walk_records(
            body,
            header.n_records,
            ConsumerRecord,
            (self.partition.topic, self.partition.partition),
            (header.leader_epoch, APPENDED if stamped else CREATED),
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if stamped else record_walk.CREATE_TIME,
        )
        if records and records[0].offset < self.offset:
            records = [record for record in records if record.offset >= self.offset]
        return records
