"""What a leader checks of a client's batch before it is stored, and what it changes (Kafka's LogValidator).

A batch is stored as it came: its CRC, length and header are checked, and nothing inside is looked at, unless the topic
asks for something only the records can tell:

    compacted topic              every record must have a key
    bounds on timestamps         every record's is looked at
    append time                  the max timestamp becomes the broker's clock; the records stay as they are
    a codec of the topic's own   the records are compressed anew
    ``full``                     records are counted, their offsets and the largest timestamp compared with the header

Pure: codecs and the clock are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from kafka2011.errors import InvalidMessage, Kafka2011Error, MessageTooLarge
from since2011.log.producer_state import Verification
from since2011.log.settings import FOREVER, LogConfig
from since2011.wire.record_batch import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    CODEC_MASK,
    NO_TIMESTAMP,
    BatchHeader,
    checked_header,
    headers,
    stamp,
)
from since2011.wire.records import Deflate, Inflate, Record, decode_records, encode_records

CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class RecordListTooLarge(Kafka2011Error):
    """More bytes in one append than a segment may have."""

    error_code: ClassVar[int] = 18


class InvalidRecord(Kafka2011Error):
    """A batch that breaks a rule of the topic or of the protocol; ``records`` numbers the guilty ones."""

    error_code: ClassVar[int] = 87

    def __init__(self, text: str, records: tuple[int, ...] = ()) -> None:
        self.records = records
        super().__init__(text)


class InvalidTimestamp(InvalidRecord):
    """A record stamped too far in the past or in the future."""

    error_code: ClassVar[int] = 32


class Prepared(NamedTuple):
    """Batches that may be stored, in a buffer of their own."""

    data: bytearray
    must_be_verified: bool = False
    """A batch that begins a transaction is stored only if ``verified`` still holds (KIP-890)."""
    verified: Verification | None = None


class Appended(NamedTuple):
    """Where an append ended up. A duplicate's offsets are those of the batch that was there already."""

    first_offset: int
    last_offset: int
    timestamp: int
    """The largest timestamp as stored."""
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Validator:
    """Checks a client's batch against a topic's settings. Thread: any."""

    inflate: Inflate
    deflate: Deflate
    full: bool = False
    """Look inside every batch (``log.validate=full``)."""

    def opens(self, data: bytes, config: LogConfig) -> bool:
        """Whether the batch has to be opened, which may take long; it has at least a header."""
        codec = data[ATTRIBUTES_AT + 1] & CODEC_MASK
        return self._must_open(config, codec, CODECS.get(config.compression_type, codec))

    def prepare(self, data: bytes | bytearray | memoryview, config: LogConfig, now_ms: int) -> Prepared:
        """The one batch of a client, ready to be stored. Raises what a client is answered with."""
        if len(data) > config.max_message_bytes:
            raise MessageTooLarge(
                f"a batch of {len(data)} bytes; max.message.bytes of the topic is {config.max_message_bytes}"
            )
        header = checked_header(data)
        _check_header(header)
        batch = bytearray(data[: header.size])
        wanted = CODECS.get(config.compression_type, header.codec)
        if not self._must_open(config, header.codec, wanted):
            if config.append_time:
                stamp(batch, header.attributes | APPEND_TIME, now_ms)
            elif header.append_time:
                stamp(batch, header.attributes & ~APPEND_TIME, header.max_timestamp)
            return Prepared(batch)
        records = list(decode_records(batch, header, self.inflate))
        _check_records(records, header, config, now_ms)
        dense = all(record.offset == header.base_offset + number for number, record in enumerate(records))
        if wanted == header.codec and (dense or not wanted):
            return Prepared(_restamped(batch, header, records, config, now_ms))
        return Prepared(self._encoded_anew(records, header, wanted, config, now_ms))

    def _must_open(self, config: LogConfig, codec: int, wanted: int) -> bool:
        bounded = config.message_timestamp_before_max_ms != FOREVER or config.message_timestamp_after_max_ms != FOREVER
        return self.full or config.compacted or (bounded and not config.append_time) or wanted != codec

    def _encoded_anew(
        self, records: list[Record], header: BatchHeader, codec: int, config: LogConfig, now_ms: int
    ) -> bytearray:
        attributes = (header.attributes & ~(CODEC_MASK | APPEND_TIME)) | codec
        if config.append_time:
            attributes |= APPEND_TIME
        renumbered = [record._replace(offset=number) for number, record in enumerate(records)]
        batch = bytearray(
            encode_records(
                renumbered,
                attributes=attributes,
                max_timestamp=now_ms if config.append_time else None,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                deflate=self.deflate,
            )
        )
        if len(batch) > config.max_message_bytes:
            raise MessageTooLarge(
                f"{len(batch)} bytes after compression with {config.compression_type}; max.message.bytes of the topic "
                f"is {config.max_message_bytes}"
            )
        return batch


def continuing(data: bytes | bytearray, expected: int, where: str) -> list[tuple[int, BatchHeader]]:
    """The whole batches of a leader's bytes, with their positions; they go on from offset ``expected``."""
    found = []
    for position, header in headers(data):
        if header.base_offset < expected:
            raise InvalidMessage(f"{where}: a batch of offset {header.base_offset} at the end, {expected}")
        expected = header.next_offset
        found.append((position, header))
    return found


def _check_header(header: BatchHeader) -> None:
    if header.base_offset != 0:
        raise InvalidRecord(f"a producer's batch begins at offset 0, not {header.base_offset}")
    if header.n_records <= 0 or header.last_offset_delta != header.n_records - 1:
        raise InvalidRecord(f"a batch of {header.n_records} records with last offset delta {header.last_offset_delta}")
    if header.control:
        raise InvalidRecord("a control batch from a client; only brokers write those")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise InvalidRecord(f"producer {header.producer_id} without an epoch or a sequence")
    if header.codec not in CODECS.values():
        raise InvalidMessage(f"compression codec {header.codec} is not known; use gzip, snappy, lz4 or zstd")


def _check_records(records: list[Record], header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    if len(records) != header.n_records:
        raise InvalidRecord(f"{len(records)} records in a batch that says {header.n_records}")
    keyless = tuple(n for n, record in enumerate(records) if record.key is None) if config.compacted else ()
    early, late = now_ms - config.message_timestamp_before_max_ms, now_ms + config.message_timestamp_after_max_ms
    odd: tuple[int, ...] = ()
    if not config.append_time:
        odd = tuple(
            number
            for number, record in enumerate(records)
            if record.timestamp != NO_TIMESTAMP and not early <= record.timestamp <= late
        )
    if odd:
        raise InvalidTimestamp(f"{len(odd)} of {len(records)} records are stamped outside the topic's bounds", odd)
    if keyless:
        raise InvalidRecord(f"{len(keyless)} of {len(records)} records have no key; the topic is compacted", keyless)


def _restamped(
    batch: bytearray, header: BatchHeader, records: list[Record], config: LogConfig, now_ms: int
) -> bytearray:
    """Write the largest timestamp as it is, if the header says otherwise; the records stay as they came."""
    if config.append_time:
        attributes, largest = header.attributes | APPEND_TIME, now_ms
    else:
        attributes = header.attributes & ~APPEND_TIME
        largest = max(record.timestamp for record in records)
    if (attributes, largest) != (header.attributes, header.max_timestamp):
        stamp(batch, attributes, largest)
    return batch
