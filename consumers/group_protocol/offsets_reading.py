"""Read a partition of ``__consumer_offsets`` from its beginning: the last record of every key.

A commit that is part of a transaction counts from the transaction's COMMIT marker on, unless a later commit is there
already; with an ABORT marker it never was. What has no marker yet is pending.

See docs/since-2011.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from consumers.group_protocol.coordinator.settings import Record
from since2011.log.log import ModernLog
from since2011.wire.compression import decompress
from since2011.wire.record_batch import BatchHeader, checked_header, headers
from since2011.wire.records import Record as StoredRecord
from since2011.wire.records import decode_marker, decode_records

_CHUNK = 1 << 20
_MOST_INFLATED = 64 << 20


@dataclass(slots=True)
class Replayed:
    """What a partition says. Thread: one."""

    latest: dict[bytes, StoredRecord] = field(default_factory=dict)
    pending: dict[int, list[StoredRecord]] = field(default_factory=dict)
    """By producer: commits of transactions that have not ended."""

    def records(self) -> Iterator[Record]:
        """Every key that has a value."""
        return (
            Record(key, record.value, record.offset)
            for key, record in self.latest.items()
            if record.value is not None
        )

    def open_commits(self) -> dict[int, list[Record]]:
        """By producer: the offsets of transactions that have not ended."""
        return {
            producer: [Record(each.key, each.value, each.offset) for each in records if each.key is not None]
            for producer, records in self.pending.items()
        }

    def take(self, header: BatchHeader, batch: bytes) -> None:
        """Let one batch speak."""
        if header.control:
            marker = decode_marker(batch, header)
            ended = self.pending.pop(header.producer_id, []) if marker is not None else []
            for record in ended if marker is not None and marker.committed else ():
                self._commit(record)
            return
        for record in decode_records(batch, header, partial(decompress, limit=_MOST_INFLATED)):
            if header.transactional:
                self.pending.setdefault(header.producer_id, []).append(record)
            elif record.key is not None:
                self.latest[record.key] = record

    def _commit(self, record: StoredRecord) -> None:
        known = None if record.key is None else self.latest.get(record.key)
        if record.key is not None and (known is None or known.offset < record.offset):
            self.latest[record.key] = record


def replay(log: ModernLog, is_wanted: Callable[[], bool] = lambda: True) -> Replayed:
    """Read everything below the end; stop early, with what there is, when nobody wants it any more. Thread: any.

    Raises InvalidMessage where the log is damaged: without one record "never committed" might be a lie.
    """
    found = Replayed()
    offset, end = log.log_start_offset, log.log_end_offset
    while is_wanted() and (part := log.locate(offset, _CHUNK, end)) is not None:
        data = part.read()
        for position, _ in headers(data):
            header = checked_header(data, position)
            found.take(header, data[position : position + header.size])
            offset = header.next_offset
    return found
