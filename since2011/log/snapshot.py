"""Producer snapshots: the state of all producers up to, not including, the offset in the file's name.

    version i16 = 1, CRC-32C u32 of what follows, count i32, then for each producer
    producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64,
    coordinator epoch i32, first offset of the open transaction i64

Of up to five batches known in memory the last one is kept. An empty snapshot says: nothing up to here.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable

from fastcrc import crc32

from kafka2011.errors import LogCorrupt
from since2011.log.producer_state import KEPT_BATCHES, ProducerEntry, WrittenBatch

_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1
_CRC_FROM = 6


def encode_snapshot(producers: Iterable[tuple[int, ProducerEntry]]) -> bytes:
    """The file of these producers."""
    entries = []
    for producer_id, known in producers:
        last = known.batches[-1] if known.batches else WrittenBatch(-1, -1, 0, -1)
        entries.append(
            _ENTRY.pack(
                producer_id,
                known.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                known.last_timestamp,
                known.coordinator_epoch,
                known.current_txn_first_offset,
            )
        )
    rest = len(entries).to_bytes(4, "big") + b"".join(entries)
    return _VERSION.to_bytes(2, "big") + crc32.iscsi(rest).to_bytes(4, "big") + rest


def decode_snapshot(data: bytes, where: str) -> list[tuple[int, ProducerEntry]]:
    """The producers of a file. Raises LogCorrupt."""
    if len(data) < _HEAD.size:
        raise LogCorrupt(f"{where}: {len(data)} bytes, too short for a snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise LogCorrupt(f"{where}: snapshot version {version}; only {_VERSION} is known")
    if crc32.iscsi(data[_CRC_FROM:]) != crc:
        raise LogCorrupt(f"{where}: the snapshot fails its CRC-32C")
    if count < 0 or _HEAD.size + count * _ENTRY.size != len(data):
        raise LogCorrupt(f"{where}: it says {count} producers, which is not its size")
    found = []
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first = fields
        batches = [WrittenBatch(sequence, offset, delta, timestamp)] if offset >= 0 else []
        found.append(
            (
                producer_id,
                ProducerEntry(epoch, coordinator_epoch, timestamp, first, deque(batches, maxlen=KEPT_BATCHES)),
            )
        )
    return found
