"""One log, two eras: the 2011 log written and read through today's record batches.

A record's offset is the position of its message's **last** byte, so that offset + 1, which is what every modern client
asks for and commits next, *is* the 2011 offset of the next message. A batch's base offset is the position of its first
message's first byte. What a message cannot keep (key, headers, timestamp, null) is not kept.

Paper: §3.1 (offsets). Spec: modern-group-protocol §1.7.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twisted.internet.task import Cooperator

from consumers.group_protocol.batches import Batch, encode_batch
from consumers.group_protocol.boundaries import Boundaries
from consumers.group_protocol.events import OffsetsCrowded
from kafka2011.errors import InvalidMessageSize, MessageTooLarge
from kafka2011.events import Journal
from kafka2011.log.log import Log
from kafka2011.wire import MessageAndOffset, decode_set, encode_set

_length = struct.Struct(">i").unpack_from
_HEADER_SIZE = 10
"""Bytes of a message before its payload."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch as 2011 bytes, ready to append."""

    data: bytes
    n_messages: int
    first_size: int

    def first_offset(self, start: int) -> int:
        """The offset of the first record when the bytes are put at ``start``."""
        return start + self.first_size - 1


def to_messages(batch: Batch, max_payload: int) -> Stored:
    """Turn a producer's batch into 2011 messages; a null value becomes an empty payload."""
    payloads = [value or b"" for value in batch.values]
    largest = max(map(len, payloads), default=0)
    if largest > max_payload:
        raise MessageTooLarge(f"a record of {largest} bytes; max.message.size is {max_payload}")
    first_size = _HEADER_SIZE + len(payloads[0]) if payloads else 0
    return Stored(encode_set(payloads), len(payloads), first_size)


def to_records(messages: Sequence[MessageAndOffset]) -> list[tuple[int, bytes]]:
    """Number messages for a modern client: each by its last byte.

    The n messages inside a wrapper share its bytes: they get the wrapper's last n positions, so that they stay distinct
    and in order and the last one still leads to the next entry. (A wrapper with more messages than bytes cannot keep
    them distinct.)
    """
    records: list[tuple[int, bytes]] = []
    wrapped: list[bytes] = []
    for message in messages:
        if message.next_offset == message.offset:
            wrapped.append(message.payload)
            continue
        last = message.next_offset - 1
        if wrapped:
            n = len(wrapped)
            records += [(max(message.offset, last - n + i), payload) for i, payload in enumerate(wrapped)]
            wrapped = []
        records.append((last, message.payload))
    return records


class Bridge:
    """Read 2011 logs as record batches. Thread: reactor."""

    def __init__(self, cooperator: Cooperator, journal: Journal) -> None:
        self._cooperator = cooperator
        self._journal = journal
        self._boundaries: dict[Log, Boundaries] = {}

    async def read(self, log: Log, offset: int, max_size: int) -> bytes:
        """One batch that begins with the message containing ``offset``: at least that one, at most ``max_size`` bytes.

        ``offset`` must be at or after the log's first and before its flushed end. Raises InvalidMessage,
        InvalidMessageSize when the log is damaged there, OffsetOutOfRange when retention was quicker.
        """
        boundaries = self._boundaries.get(log)
        if boundaries is None:
            boundaries = self._boundaries[log] = Boundaries(log)
        start = offset if boundaries.is_known(offset) else await self._search(boundaries, offset)
        data = _read(log, start, max_size)
        messages = decode_set(data, start)
        records = to_records(messages)
        end = messages[-1].next_offset if messages else start + len(data)
        self._tell_if_crowded(log, messages, records)
        boundaries.remember(end)
        return encode_batch(start, end - 1, records)

    async def _search(self, boundaries: Boundaries, offset: int) -> int:
        """Search a megabyte per turn of the reactor, so that a seek far into a segment holds nobody up."""
        found: list[int] = []

        def steps() -> Iterator[None]:
            found.append((yield from boundaries.search(offset)))

        await self._cooperator.coiterate(steps())
        return found[0]

    def _tell_if_crowded(
        self, log: Log, messages: Sequence[MessageAndOffset], records: Sequence[tuple[int, bytes]]
    ) -> None:
        if len({offset for offset, _ in records}) < len(records):
            first, last = messages[0], messages[-1]
            self._journal.emit(
                OffsetsCrowded(
                    topic=log.topic,
                    partition=log.partition,
                    offset=first.offset,
                    n_messages=len(records),
                    size=last.next_offset - first.offset,
                )
            )


def _read(log: Log, start: int, max_size: int) -> bytes:
    """Whole entries from ``start``: as many as fit, but at least one."""
    data = _slice(log, start, max(max_size, 4))
    if len(data) < 4:
        raise InvalidMessageSize(f"{log.topic}-{log.partition} has no entry at {start}")
    needed = 4 + _length(data, 0)[0]
    if needed > len(data):
        data = _slice(log, start, needed)
    return data


def _slice(log: Log, start: int, size: int) -> bytes:
    with log.read(start, size) as found:
        return os.pread(found.fd, found.size, found.position)
