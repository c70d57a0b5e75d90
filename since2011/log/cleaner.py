"""Compaction: of every key keep the latest record; offsets and order never change (KIP-58, KIP-534).

A round goes twice over the log. First the dirty part: which key has its latest record where (``build_map``). Then
everything below the end of that: batch by batch, records that have a later one with the same key go, and so do old
tombstones, data of aborted transactions, and markers of transactions nothing is left of. Groups of segments become one;
how the files change places is in ``swap``.

A tombstone, or a marker whose data is gone, is kept once more with a *delete horizon* (base timestamp = now +
``delete.retention.ms``), so that readers that are behind still see it; the round after that horizon drops it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from since2011.log.indexes import Aborted
from since2011.log.log import ModernLog
from since2011.log.offset_map import DEFAULT_MAP_BYTES, OffsetMap
from since2011.log.pace import Pace, unhurried
from since2011.log.segment import Segment
from since2011.wire.record_batch import CODEC_MASK, DELETE_HORIZON, NO_TIMESTAMP, BatchHeader
from since2011.wire.records import Deflate, Inflate, Record, decode_marker, decode_records, encode_records


def build_map(
    log: ModernLog, start: int, end: int, inflate: Inflate, most_bytes: int = DEFAULT_MAP_BYTES, pace: Pace = unhurried
) -> OffsetMap:
    """Read the dirty part; where its keys do not fit into the map, stop after the last batch that does."""
    with log.lock:
        segments = [segment for segment in log.segments[:-1] if segment.base_offset < end]
    found = OffsetMap(start, most_bytes)
    aborted = _AbortedData(log, start)
    for segment in segments:
        for stored in segment.batches(segment.index.position_of(start)):
            header = stored.header
            if header.last_offset < start:
                continue
            if header.base_offset >= end:
                return found
            if not header.control and not aborted.holds(header):
                batch = segment.read(stored.position, header.size)
                keys = {r.key: r.offset for r in decode_records(batch, header, inflate) if r.key is not None}
                if not found.take(keys, start):
                    return found
            found.end = header.next_offset
            pace(header.size)
    found.end = max(found.end, end)
    return found


class _AbortedData:
    """Which batches belong to aborted transactions, as one walks the log from an offset on."""

    def __init__(self, log: ModernLog, start: int) -> None:
        self._coming = sorted(
            (entry for segment in log.segments for entry in segment.txn_index.entries if entry.last_offset >= start),
            key=lambda entry: entry.first_offset,
            reverse=True,
        )
        self._now: dict[int, Aborted] = {}

    def holds(self, header: BatchHeader) -> bool:
        """Whether a data batch is of an aborted transaction."""
        self.advance(header.last_offset)
        return header.transactional and header.producer_id in self._now

    def advance(self, offset: int) -> None:
        """Transactions that begin at ``offset`` or before are under way."""
        while self._coming and self._coming[-1].first_offset <= offset:
            entry = self._coming.pop()
            self._now[entry.producer_id] = entry

    def ended(self, header: BatchHeader) -> Aborted | None:
        """A marker: the aborted transaction it ends."""
        self.advance(header.last_offset)
        entry = self._now.get(header.producer_id)
        if entry is not None and entry.last_offset <= header.base_offset:
            return self._now.pop(header.producer_id)
        return None


@dataclass(slots=True)
class CleanerStats:
    """What a round did."""

    bytes_before: int = 0
    bytes_after: int = 0
    records_before: int = 0
    records_after: int = 0


@dataclass(slots=True)
class Rewriter:
    """Goes over a log from its beginning and says what is left of each batch. Carries transactions from one segment to
    the next: a marker may be in a later one than its data.
    """

    log: ModernLog
    map: OffsetMap
    now_ms: int
    inflate: Inflate
    deflate: Deflate
    stats: CleanerStats = field(default_factory=CleanerStats)
    _aborted: _AbortedData = field(init=False)
    _with_data: set[int] = field(default_factory=set)
    """Producers of which data was seen since their last marker."""

    def __post_init__(self) -> None:
        self._aborted = _AbortedData(self.log, self.log.segments[0].base_offset)

    def clean(self, segment: Segment) -> Iterator[tuple[BatchHeader, bytes | None, Aborted | None]]:
        """What stays of each batch of a segment, and with an abort marker the transaction whose index entry stays."""
        for stored in segment.batches():
            header = stored.header
            batch = segment.read(stored.position, header.size)
            self.stats.bytes_before += len(batch)
            self.stats.records_before += header.n_records
            kept, entry = self._marker(header, batch) if header.control else (self._data(header, batch), None)
            self.stats.bytes_after += len(kept or b"")
            yield header, kept, entry

    # -- data ---------------------------------------------------------------------------------------------------

    def _data(self, header: BatchHeader, batch: bytes) -> bytes | None:
        if self._aborted.holds(header):
            self._with_data.add(header.producer_id)
            return self._bare(header)
        if header.transactional:
            self._with_data.add(header.producer_id)
        records = list(decode_records(batch, header, self.inflate))
        kept = [record for record in records if self._stays(record, header)]
        self.stats.records_after += len(kept)
        if not kept:
            return self._bare(header)
        tombstone = any(record.value is None for record in kept)
        horizon = header.delete_horizon_ms
        if len(kept) == len(records) and (horizon is not None or not tombstone):
            return batch
        attributes = header.attributes
        base_timestamp = header.base_timestamp
        if tombstone and horizon is None:
            attributes |= DELETE_HORIZON
            base_timestamp = self.now_ms + self.log.config.delete_retention_ms
        return encode_records(
            kept,
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            base_timestamp=base_timestamp,
            max_timestamp=header.max_timestamp if header.append_time else None,
            leader_epoch=header.leader_epoch,
            attributes=attributes,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            deflate=self.deflate,
        )

    def _stays(self, record: Record, header: BatchHeader) -> bool:
        if record.offset >= self.map.end:
            return True
        if record.key is None or not self.map.is_latest(record.key, record.offset):
            return False
        horizon = header.delete_horizon_ms
        return record.value is not None or horizon is None or self.now_ms < horizon

    def _bare(self, header: BatchHeader) -> bytes | None:
        """Nothing is left: the header stays where it is the last a known producer wrote, for its sequence."""
        known = self.log.producers.producers.get(header.producer_id)
        if header.producer_id < 0 or known is None:
            return None
        is_last = known.last_data_offset == header.last_offset
        if header.control:
            is_last = known.last_data_offset < 0 and known.epoch == header.producer_epoch
        if not is_last:
            return None
        return encode_records(
            (),
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=header.max_timestamp,
            leader_epoch=header.leader_epoch,
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON),
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )

    # -- markers ------------------------------------------------------------------------------------------------

    def _marker(self, header: BatchHeader, batch: bytes) -> tuple[bytes | None, Aborted | None]:
        marker = decode_marker(batch, header)
        if marker is None:
            return (None if header.n_records == 0 and self._bare(header) is None else batch), None
        entry = self._aborted.ended(header)
        # Data seen in this round, dropped or not: the marker, and the index entry of an abort, stay for one round more.
        has_data = header.producer_id in self._with_data
        self._with_data.discard(header.producer_id)
        if has_data:
            self.stats.records_after += header.n_records
            return batch, entry
        horizon = header.delete_horizon_ms
        if horizon is not None and horizon <= self.now_ms:
            return self._bare(header), None
        self.stats.records_after += header.n_records
        if horizon is not None:
            return batch, None
        return self._with_horizon(header, batch), None

    def _with_horizon(self, header: BatchHeader, batch: bytes) -> bytes:
        return encode_records(
            list(decode_records(batch, header, self.inflate)),
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            base_timestamp=self.now_ms + self.log.config.delete_retention_ms,
            max_timestamp=header.max_timestamp,
            leader_epoch=header.leader_epoch,
            attributes=header.attributes | DELETE_HORIZON,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
