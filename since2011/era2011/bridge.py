"""One log, two eras: the 2011 log written and read through today's record batches.

A record's offset is the position of its message's **last** byte, so that offset + 1, which is what every modern client
asks for and commits next, *is* the 2011 offset of the next message. A batch's base offset is the position of its first
message's first byte. What a message cannot keep (key, headers, timestamp, null) is not kept.

Paper: §3.1 (offsets). See docs/modern-port.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from kafka2011.errors import InvalidMessageSize, MessageTooLarge, SetTooLarge
from kafka2011.events import Journal
from kafka2011.log.log import FileSlice, Log
from kafka2011.wire import DEFAULT_LIMITS, Limits, MessageAndOffset, encode_set, read_set
from since2011.era2011.entry_index import EntryIndex
from since2011.era2011.events import OffsetsCrowded
from since2011.wire.batches import Batch, encode_batch

_length = struct.Struct(">i").unpack_from
QUICK_BYTES = 128 << 10
QUICK_LIMITS = Limits(max_inflated=256 << 10, max_messages=10_000)
"""What is made into records at once, a few milliseconds' work; the rest in a thread."""
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


class Do(Protocol):
    """Do work in a thread, if need be; fires with what it returned."""

    def __call__(self, work: Callable[[], _Packed | int]) -> Deferred[_Packed | int]: ...


class Bridge:
    """Read 2011 logs as record batches. Thread: reactor."""

    def __init__(self, cooperator: Cooperator, journal: Journal, do: Do) -> None:
        self._cooperator = cooperator
        self._journal = journal
        self._do = do
        """How what takes long is done elsewhere."""
        self._boundaries: dict[Log, EntryIndex] = {}

    async def read(self, log: Log, offset: int, max_size: int) -> bytes:
        """One batch that begins with the message containing ``offset``: at least that one, at most ``max_size`` bytes.

        A wrapper goes whole; after those that inflate to ``max_size`` the rest is left for the next fetch.
        ``offset`` must be at or after the log's first and before its flushed end. Raises InvalidMessage,
        InvalidMessageSize when the log is damaged there, OffsetOutOfRange when retention was quicker.
        """
        boundaries = self._boundaries.get(log)
        if boundaries is None:
            boundaries = self._boundaries[log] = EntryIndex(log)
        start = offset if boundaries.is_known(offset) else await self._search(boundaries, offset)
        packed = await self._packed(log, start, max_size)
        if packed.crowded:
            size, n_messages = packed.end - start, packed.n_records
            told = OffsetsCrowded(
                topic=log.topic, partition=log.partition, offset=start, n_messages=n_messages, size=size
            )
            self._journal.emit(told)
        boundaries.remember(packed.end)
        return packed.batch

    async def _packed(self, log: Log, start: int, max_size: int) -> _Packed:
        """As many whole entries as fit into ``max_size``, but at least one; what is large is read in the thread."""
        size = max(max_size, 4)
        while True:
            found = log.read(start, size)
            if found.size < 4:
                raise InvalidMessageSize(f"{log.topic}-{log.partition} has no entry at {start}")
            packed = None
            if found.size <= QUICK_BYTES:
                data = _taken(found)
                packed = _missing(data, size) or _pack_quickly(data, start)
                found = log.read(start, size) if packed is None else found
            if packed is None:
                packed = await self._do(partial(_read_and_pack, found, start, max_size, size))
            if isinstance(packed, _Packed):
                return packed
            size = packed

    async def _search(self, boundaries: EntryIndex, offset: int) -> int:
        """Search a megabyte per turn of the reactor, so that a seek far into a segment holds nobody up."""
        found: list[int] = []

        def steps() -> Iterator[None]:
            found.append((yield from boundaries.search(offset)))

        await self._cooperator.coiterate(steps())
        return found[0]


class _Packed(NamedTuple):
    """Entries of a log as one batch, and where they end."""

    batch: bytes
    end: int
    n_records: int
    crowded: bool
    """Whether there were fewer bytes than messages, so that some have the same offset."""


def _pack(data: bytes, start: int, stop_after: int, limits: Limits = DEFAULT_LIMITS) -> _Packed:
    """Make a batch of the entries at ``start``. Thread: any."""
    read = read_set(data, start, limits=limits, stop_after=stop_after)
    records = to_records(list(read))
    end = start + read.size
    crowded = len({offset for offset, _ in records}) < len(records)
    return _Packed(encode_batch(start, end - 1, records), end, len(records), crowded)


def _pack_quickly(data: bytes, start: int) -> _Packed | None:
    """The same if it takes a few milliseconds only, else None."""
    if len(data) > QUICK_BYTES:
        return None
    try:
        return _pack(data, start, QUICK_LIMITS.max_inflated, QUICK_LIMITS)
    except SetTooLarge:
        return None


def _read_and_pack(found: FileSlice, start: int, max_size: int, asked: int) -> _Packed | int:
    """Thread: any."""
    data = _taken(found)
    return _missing(data, asked) or _pack(data, start, max_size)


def _taken(found: FileSlice) -> bytes:
    with found:
        return found.read()


def _missing(data: bytes, asked: int) -> int:
    """How many bytes to ask for if not even the first entry is whole; 0 if it is, or if more would not help."""
    needed: int = 4 + _length(data, 0)[0]
    return needed if needed > len(data) and needed > asked else 0
