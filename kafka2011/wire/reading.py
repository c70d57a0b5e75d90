"""A message set as a consumer reads it: every CRC checked at once, each message made when it is asked for.

Paper: §3.1 (offsets), §3.3 (CRC); the rules are docs/protocol.md.

A partial entry at the end is dropped; an entry cut off at the very start is an error, because then the fetch was
smaller than one message. Wrappers (compressed sets) are opened within Limits; the messages inside have no offset of
their own, they share the wrapper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import chain
from typing import NamedTuple

from kafka2011.errors import InvalidMessage, InvalidMessageSize
from kafka2011.wire import walk
from kafka2011.wire.entry import DEFAULT_LIMITS, Entry, Limits, Opener, read_entry
from kafka2011.wire.message import LENGTH, Message, encode_message


class _Fields(NamedTuple):
    payload: bytes
    offset: int
    next_offset: int
    magic: int


class MessageAndOffset(tuple[bytes, int, int, int]):
    """A message as a consumer sees it: ``payload``, ``offset``, ``next_offset``, ``magic``.

    ``offset`` is the position of the entry it came in; ``next_offset`` is where to resume after it (§3.1; for
    messages inside a wrapper docs/protocol.md). Made of one tuple, ``MessageAndOffset((payload, offset, next_offset,
    1))``: a named tuple's constructor would cost three times as much, for each message consumed.
    """

    __slots__ = ()
    payload: bytes = _Fields.payload  # the descriptors that read a tuple by position
    offset: int = _Fields.offset
    next_offset: int = _Fields.next_offset
    magic: int = _Fields.magic

    def __repr__(self) -> str:
        return f"MessageAndOffset({self.payload!r}, offset={self.offset}, next_offset={self.next_offset})"


class ReadSet(Sized, Iterable[MessageAndOffset]):
    """The messages of a set, all checked; ``size`` is the bytes of its whole entries.

    Iterating makes the messages, each time anew.
    """

    __slots__ = ("rows", "size")

    def __init__(self, rows: list[walk.Row[MessageAndOffset]], size: int) -> None:
        self.rows, self.size = rows, size

    def __len__(self) -> int:
        return sum(map(len, self.rows))

    def __iter__(self) -> Iterator[MessageAndOffset]:
        return iter(self.rows[0]) if len(self.rows) == 1 else chain.from_iterable(self.rows)


def read_set(
    data: bytes | memoryview,
    offset: int = 0,
    *,
    deep: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    kind: type[MessageAndOffset] = MessageAndOffset,
    stop_after: int | None = None,
) -> ReadSet:
    """Read the bytes of a fetch that began at ``offset``; a partial entry at the end is dropped.

    Entries after those that have inflated to ``stop_after`` bytes are left for another time.

    Raises InvalidMessageSize if not even the first entry is whole, InvalidMessage on a wrong CRC, magic or codec.
    With ``deep`` wrappers are opened; otherwise a wrapper comes as it is. The messages are of class ``kind``, a
    subclass of MessageAndOffset that adds no ``__new__``.
    """
    if not walk.takes_views:
        data = bytes(data)
    rows: list[walk.Row[MessageAndOffset]] = []
    pos, end, inflated = 0, len(data), 0
    while pos < end:
        after, row = walk.cut(kind, data, pos, offset)
        if len(row):
            rows.append(row)
            pos = after
            continue
        # A wrapper, the partial tail, or something wrong.
        entry = read_entry(data, pos)
        if entry is None:
            break
        opener = Opener(limits)
        inner = _unwrap(entry, opener, kind) if deep else _as_it_is(entry, kind)
        inflated += limits.max_inflated - opener.budget.inflated
        for row in inner:
            row.at = row.after = offset + pos
        pos += entry.size
        if inner:
            inner[-1].after = offset + pos
        rows += inner
        if stop_after is not None and inflated >= stop_after:
            break
    return ReadSet(rows, pos)


def decode_set(
    data: bytes | memoryview, offset: int = 0, *, deep: bool = True, limits: Limits = DEFAULT_LIMITS
) -> list[MessageAndOffset]:
    """As ``read_set``, with all messages made."""
    return list(read_set(data, offset, deep=deep, limits=limits))


def _unwrap(
    entry: Entry, opener: Opener, kind: type[MessageAndOffset], depth: int = 0
) -> list[walk.Row[MessageAndOffset]]:
    """The messages in a wrapper, and in the wrappers in it."""
    inner = opener.open(entry, depth)
    rows: list[walk.Row[MessageAndOffset]] = []
    pos, end = 0, len(inner)
    while pos < end:
        after, row = walk.cut(kind, inner, pos, 0)
        if len(row):
            rows.append(row)
            opener.budget.count(len(row))
            pos = after
            continue
        wrapper = read_entry(inner, pos)
        if wrapper is None:
            break
        rows += _unwrap(wrapper, opener, kind, depth + 1)
        pos += wrapper.size
    return rows


def _as_it_is(entry: Entry, kind: type[MessageAndOffset]) -> list[walk.Row[MessageAndOffset]]:
    """A wrapper as one message: its payload still compressed."""
    return [walk.cut(kind, encode_message(Message(entry.payload)), 0, 0)[1]]


def readable_bytes(data: bytes | memoryview, limits: Limits = DEFAULT_LIMITS) -> int:
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
