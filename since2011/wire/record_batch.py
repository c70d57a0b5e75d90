"""The record batch, version 2: what producers send, what lies on disk, what fetchers are served, all the same bytes.

    pos width                        pos width                   pos width
      0   8 base offset               21   2 attributes           43   8 producer id, -1 none
      8   4 length of what follows    23   4 last offset delta    51   2 producer epoch
     12   4 partition leader epoch    27   8 base timestamp       53   4 base sequence
     16   1 magic = 2                 35   8 max timestamp        57   4 record count
     17   4 CRC-32C of 21 to the end                              61     records, compressed as one block

Attributes: bits 0-2 codec, 3 append time, 4 transactional, 5 control, 6 base timestamp is the delete horizon.

Base offset and leader epoch, which a broker assigns, lie outside the CRC: a batch is stored by writing two fields and
nothing else. The paper's answer: a message set of messages, each with a CRC, no batch around them (§3.1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from fastcrc import crc32

from kafka2011.errors import InvalidMessage, InvalidMessageSize

_HEADER = struct.Struct(">qiibIhiqqqhii")
_SIZE = struct.Struct(">qi")
_OFFSET, _EPOCH, _CRC = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">I")
_AFTER_CRC = struct.Struct(">hiqqqhii")
HEADER_SIZE = _HEADER.size
LOG_OVERHEAD = 12
"""Base offset and length: what the length does not count."""
SMALLEST_LENGTH = HEADER_SIZE - LOG_OVERHEAD
MAGIC = 2
CRC_AT, CRC_FROM, ATTRIBUTES_AT, EPOCH_AT, MAX_TIMESTAMP_AT = 17, 21, 21, 12, 35

CODEC_MASK, APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
NO_PRODUCER_ID = NO_TIMESTAMP = NO_SEQUENCE = NO_EPOCH = -1
MAX_INT = 2**31 - 1

Buffer = bytes | bytearray | memoryview


class BatchHeader(NamedTuple):
    """The fields of a batch before its records."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    n_records: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The offset of the last record the batch ever had: compaction does not change it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Where the next batch begins."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & CODEC_MASK

    @property
    def append_time(self) -> bool:
        """The max timestamp is that of every record: the broker's clock, not the producer's."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """One record that is no user's: the marker that ends a transaction."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones of this batch may go; None while the cleaner has not decided."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 where there are none. After 2147483647 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return advance_sequence(self.base_sequence, self.last_offset_delta)


def advance_sequence(sequence: int, by: int) -> int:
    """The sequence ``by`` records on: 2147483647 is followed by 0."""
    return (sequence + by) & MAX_INT


def retreat_sequence(sequence: int, by: int) -> int:
    """The sequence ``by`` records before."""
    return (sequence - by) & MAX_INT


def read_header(data: Buffer, pos: int = 0) -> BatchHeader:
    """The header at ``pos``; raise if fewer than 61 bytes are left or the fields cannot be."""
    if len(data) - pos < HEADER_SIZE:
        raise InvalidMessageSize(f"a record batch ends after {len(data) - pos} bytes, inside its header")
    header = BatchHeader._make(_HEADER.unpack_from(data, pos))
    if header.length < SMALLEST_LENGTH:
        raise InvalidMessageSize(f"a record batch says {header.length} bytes; the smallest has {SMALLEST_LENGTH}")
    if header.magic != MAGIC:
        raise InvalidMessage(f"a record batch of magic {header.magic}; only {MAGIC} is stored")
    if header.last_offset_delta < 0:
        raise InvalidMessage(f"a record batch with last offset delta {header.last_offset_delta}")
    return header


def crc_is_good(batch: Buffer, header: BatchHeader) -> bool:
    """Whether the CRC-32C of a whole batch fits."""
    return int(crc32.iscsi(bytes(batch[CRC_FROM : header.size]))) == header.crc


def checked_header(data: Buffer, pos: int = 0) -> BatchHeader:
    """The header of a whole batch at ``pos`` whose CRC fits; raises InvalidMessage or InvalidMessageSize."""
    header = read_header(data, pos)
    if header.size > len(data) - pos:
        raise InvalidMessageSize(f"a record batch says {header.size} bytes, {len(data) - pos} are there")
    if not crc_is_good(memoryview(data)[pos : pos + header.size], header):
        raise InvalidMessage(f"the record batch at offset {header.base_offset} fails its CRC-32C")
    return header


def headers(data: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch; a partial one at the end is left out. CRCs are not looked at."""
    pos, end = 0, len(data)
    while end - pos >= HEADER_SIZE:
        header = read_header(data, pos)
        if header.size > end - pos:
            return
        yield pos, header
        pos += header.size


def assign(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write what a broker decides, in place: the two fields outside the CRC."""
    _OFFSET.pack_into(batch, 0, base_offset)
    _EPOCH.pack_into(batch, EPOCH_AT, leader_epoch)


def stamp(batch: bytearray, attributes: int, max_timestamp: int) -> None:
    """Write attributes and largest timestamp, in place, and the CRC anew."""
    struct.pack_into(">h", batch, ATTRIBUTES_AT, attributes)
    _OFFSET.pack_into(batch, MAX_TIMESTAMP_AT, max_timestamp)
    _CRC.pack_into(batch, CRC_AT, crc32.iscsi(bytes(batch[CRC_FROM:])))


def make_batch(header: BatchHeader, body: bytes) -> bytes:
    """A batch of these fields around ``body``; length and CRC are worked out."""
    rest = _AFTER_CRC.pack(*header[5:]) + body
    front = _HEADER.pack(header.base_offset, len(rest) + 9, header.leader_epoch, MAGIC, crc32.iscsi(rest), *([0] * 8))[
        :CRC_FROM
    ]
    return front + rest


def size_at(data: Buffer, pos: int) -> int:
    """How many bytes the batch at ``pos`` says it has."""
    return int(_SIZE.unpack_from(data, pos)[1]) + LOG_OVERHEAD
