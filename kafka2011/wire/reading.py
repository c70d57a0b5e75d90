"""A message set as a consumer reads it: every CRC checked at once, each message made when it is asked for.

Paper: §3.1 (offsets), §3.3 (CRC); the rules are spec §1.2.

A partial entry at the end is dropped; an entry cut off at the very start is an error, because then the fetch was
smaller than one message. Wrappers (compressed sets) are opened within Limits; the messages inside have no offset of
their own, they share the wrapper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain, repeat
from typing import NamedTuple

from isal.isal_zlib import crc32

from kafka2011.errors import InvalidMessage, InvalidMessageSize
from kafka2011.wire.entry import DEFAULT_LIMITS, Entry, Limits, Opener, read_entry
from kafka2011.wire.message import CODEC_MASK, LENGTH, MAGIC_1
from kafka2011.wire.run import RunFinder

_head = MAGIC_1.unpack_from


class _Fields(NamedTuple):
    payload: bytes
    offset: int
    next_offset: int
    magic: int


class MessageAndOffset(tuple[bytes, int, int, int]):
    """A message as a consumer sees it: ``payload``, ``offset``, ``next_offset``, ``magic``.

    ``offset`` is the position of the entry it came in; ``next_offset`` is where to resume after it (§3.1; for
    messages inside a wrapper spec §1.3). Made of one tuple, ``MessageAndOffset((payload, offset, next_offset, 1))``:
    a named tuple's constructor would cost three times as much, for each message consumed.
    """

    __slots__ = ()
    payload: bytes = _Fields.payload  # the descriptors that read a tuple by position
    offset: int = _Fields.offset
    next_offset: int = _Fields.next_offset
    magic: int = _Fields.magic

    def __repr__(self) -> str:
        return f"MessageAndOffset({self.payload!r}, offset={self.offset}, next_offset={self.next_offset})"


class _Row(Sized, Iterable[MessageAndOffset]):
    """Messages that follow each other: the payloads, and the offsets where they begin and where the last one ends."""

    __slots__ = ("kind", "offsets", "payloads")

    def __init__(self, payloads: list[bytes], offsets: Sequence[int], kind: type[MessageAndOffset]) -> None:
        self.payloads, self.offsets, self.kind = payloads, offsets, kind

    def __len__(self) -> int:
        return len(self.payloads)

    def __iter__(self) -> Iterator[MessageAndOffset]:
        return map(self.kind, zip(self.payloads, self.offsets, self.offsets[1:], repeat(1)))


_Piece = _Row | list[MessageAndOffset]


class ReadSet(Sized, Iterable[MessageAndOffset]):
    """The messages of a set, all checked; ``size`` is the bytes of its whole entries.

    Iterating makes the messages, each time anew. A set that waits in a queue is thus a few objects and not thousands,
    which the garbage collector would look through again and again.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self, pieces: list[_Piece], size: int) -> None:
        self._pieces, self.size = pieces, size

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    def __iter__(self) -> Iterator[MessageAndOffset]:
        return chain.from_iterable(self._pieces)


def read_set(
    data: bytes,
    offset: int = 0,
    *,
    deep: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    kind: type[MessageAndOffset] = MessageAndOffset,
) -> ReadSet:
    """Read the bytes of a fetch that began at ``offset``; a partial entry at the end is dropped.

    Raises InvalidMessageSize if not even the first entry is whole, InvalidMessage on a wrong CRC, magic or codec.
    With ``deep`` wrappers are opened; otherwise a wrapper comes as it is. The messages are of class ``kind``.
    """
    pieces: list[_Piece] = []
    payloads: list[bytes] = []
    offsets = [offset]
    pos, end, last_head = 0, len(data), len(data) - MAGIC_1.size
    previous, runs = 0, RunFinder()
    while pos < end:
        if pos <= last_head:
            n, magic, attributes, crc = _head(data, pos)
            after = pos + 4 + n
            if magic == 1 and n >= 6 and after <= end and not attributes & CODEC_MASK:
                if n == previous and pos >= runs.next_try and (run := runs.payloads(data, pos, 4 + n)):
                    after = pos + (4 + n) * len(run)
                    pieces += (
                        _Row(payloads, offsets, kind),
                        _Row(run, range(offset + pos, offset + after + 1, 4 + n), kind),
                    )
                    payloads, offsets, pos = [], [offset + after], after
                    continue
                payload = data[pos + 10 : after]
                if crc32(payload) == crc:
                    payloads.append(payload)
                    offsets.append(offset + after)
                    previous, pos = n, after
                    continue
        # Magic 0, wrappers, the partial tail, and everything that is wrong.
        entry = read_entry(data, pos)
        if entry is None:
            break
        after = pos + entry.size
        inner = [(entry.payload, entry.magic)]
        if deep and entry.attributes & CODEC_MASK:
            inner = _unwrap(entry, Opener(limits))
        made = [kind((payload, offset + pos, offset + pos, magic)) for payload, magic in inner[:-1]]
        made += [kind((payload, offset + pos, offset + after, magic)) for payload, magic in inner[-1:]]
        pieces += _Row(payloads, offsets, kind), made
        payloads, offsets, pos = [], [offset + after], after
    pieces.append(_Row(payloads, offsets, kind))
    return ReadSet(pieces, pos)


def decode_set(
    data: bytes, offset: int = 0, *, deep: bool = True, limits: Limits = DEFAULT_LIMITS
) -> list[MessageAndOffset]:
    """As ``read_set``, with all messages made."""
    return list(read_set(data, offset, deep=deep, limits=limits))


def _unwrap(entry: Entry, opener: Opener, depth: int = 0) -> list[tuple[bytes, int]]:
    """The payloads and magics of the messages in a wrapper, and in the wrappers in it."""
    inner = opener.open(entry, depth)
    found: list[tuple[bytes, int]] = []
    for message in read_set(inner, deep=False):
        if message.magic == 1 and inner[message.offset + 5] & CODEC_MASK:
            wrapper = read_entry(inner, message.offset)
            assert wrapper is not None, "read_set has just read it"
            found += _unwrap(wrapper, opener, depth + 1)
        else:
            found.append((message.payload, message.magic))
    opener.count(len(found))
    return found


def readable_bytes(data: bytes, limits: Limits = DEFAULT_LIMITS) -> int:
    """Bytes before the first entry that cannot be read: what is good of a set that ``decode_set`` refused."""
    pos = 0
    while len(data) - pos >= 4:
        after = pos + 4 + LENGTH.unpack_from(data, pos)[0]
        if not pos < after <= len(data):
            break
        try:
            decode_set(data[pos:after], limits=limits)
        except (InvalidMessage, InvalidMessageSize):
            break
        pos = after
    return pos
