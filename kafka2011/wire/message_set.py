"""Message sets: entries end to end, the same bytes in a request, in a log file and in an answer.

Paper: §3 (MessageSet in the sample producer), §3.1 (offsets), §3.3 (CRC); the rules of reading are spec §1.2.

A consumer drops a partial entry at the end; an entry cut off at the very start is an error, because then the fetch
was smaller than one message. Wrappers (compressed sets) are opened within Limits; the messages inside have no offset
of their own, they share the wrapper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import NamedTuple

from isal.isal_zlib import crc32

from kafka2011.errors import InvalidMessage, InvalidMessageSize
from kafka2011.wire.compression import compress, decompress
from kafka2011.wire.message import CODEC_MASK, LENGTH, MAGIC_0, MAGIC_1, Codec, Message, codec_of, encode_message
from kafka2011.wire.run import RunFinder, are_alike, pack_run

_head = MAGIC_1.unpack_from


@dataclass(frozen=True, slots=True)
class Limits:
    """How far wrappers are opened, against compression bombs.

    ``max_inflated`` and ``max_messages`` hold for a whole set when the broker validates it, and for each outer entry
    when a consumer reads: whatever a broker accepted can be read. ``max_ratio`` is asked only above
    ``free_inflated`` bytes, since short repetitive logs compress very well.
    """

    max_inflated: int = 8 * 1024 * 1024
    max_ratio: int = 100
    free_inflated: int = 1024 * 1024
    max_depth: int = 2
    max_messages: int = 500_000


DEFAULT_LIMITS = Limits()


class MessageAndOffset(NamedTuple):
    """A message as a consumer sees it.

    ``offset`` is the position of the entry it came in; ``next_offset`` is where to resume after it (§3.1; for
    messages inside a wrapper spec §1.3).
    """

    payload: bytes
    offset: int
    next_offset: int
    magic: int


class MessageSet:
    """A set of messages to publish, as in the paper's sample: ``MessageSet(Message(b"..."))`` (§3)."""

    __slots__ = ("messages",)

    def __init__(self, messages: Message | bytes | Iterable[Message | bytes] = ()) -> None:
        items = (messages,) if isinstance(messages, (Message, bytes, bytearray)) else messages
        self.messages = tuple(m if isinstance(m, Message) else Message(bytes(m)) for m in items)

    @classmethod
    def decode(cls, data: bytes, *, deep: bool = True) -> MessageSet:
        """Read a set from its bytes."""
        return cls([Message(m.payload, m.magic) for m in decode_set(data, deep=deep)])

    def encode(self, codec: Codec = Codec.NONE) -> bytes:
        """The set's bytes; with a codec, one wrapper message around them (§4)."""
        return _wrap(b"".join(map(encode_message, self.messages)), codec)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSet) and self.messages == other.messages

    def __hash__(self) -> int:
        return hash(self.messages)

    def __repr__(self) -> str:
        return f"MessageSet({list(self.messages)!r})"


def encode_set(payloads: Iterable[bytes], *, codec: Codec = Codec.NONE, magic: int = 1) -> bytes:
    """Encode many payloads at once; an empty batch is zero bytes."""
    entries: Iterable[bytes]
    if magic != 1:
        entries = [encode_message(Message(p, magic)) for p in payloads]
    elif isinstance(payloads, (list, tuple)) and are_alike(payloads):
        entries = pack_run(MAGIC_1.pack(len(payloads[0]) + 6, 1, 0, 0)[:6], payloads)
    else:
        pack = MAGIC_1.pack
        entries = [part for p in payloads for part in (pack(len(p) + 6, 1, 0, crc32(p)), p)]
    return _wrap(b"".join(entries), codec)


def _wrap(data: bytes, codec: Codec) -> bytes:
    if codec is Codec.NONE or not data:
        return data
    return encode_message(Message(compress(codec, data), attributes=codec))


class Entry(NamedTuple):
    """One entry of a set as it stands there, wrapper or not."""

    size: int
    magic: int
    attributes: int
    payload: bytes


def read_entry(data: bytes, pos: int) -> Entry | None:
    """Read one entry and check its CRC; None where the bytes end first.

    Raises InvalidMessageSize or InvalidMessage for anything that is not an entry (spec §1.2).
    """
    left = len(data) - pos - 4
    if left < 0:
        return None
    (n,) = LENGTH.unpack_from(data, pos)
    if n < 0 or (n > left and pos == 0):
        raise InvalidMessageSize(
            f"the entry at byte {pos} says {n} bytes and {left} are there; fetch more at a time, or the log is damaged"
        )
    if n > left:
        return None
    if n < 5 or (data[pos + 4] == 1 and n < 6):
        raise InvalidMessageSize(f"the entry at byte {pos} says {n} bytes, less than its own header")
    if data[pos + 4] == 1:
        _, magic, attributes, crc = MAGIC_1.unpack_from(data, pos)
        payload = data[pos + 10 : pos + 4 + n]
    else:
        _, magic, crc = MAGIC_0.unpack_from(data, pos)
        attributes, payload = 0, data[pos + 9 : pos + 4 + n]
    if magic > 1:
        raise InvalidMessage(f"the entry at byte {pos} has magic {magic}; known are 0 and 1")
    if crc32(payload) != crc:
        raise InvalidMessage(f"the entry at byte {pos} fails its CRC: {crc:08x} written, {crc32(payload):08x} found")
    return Entry(4 + n, magic, attributes, payload)


def valid_bytes(data: bytes) -> int:
    """Bytes up to the end of the last whole entry: how far a consumer's fetch offset moves (spec §1.2)."""
    pos, end = 0, len(data)
    while end - pos >= 4:
        (n,) = LENGTH.unpack_from(data, pos)
        if n < 0 or (n > end - pos - 4 and pos == 0):
            raise InvalidMessageSize(f"the entry at byte {pos} says {n} bytes and {end - pos - 4} are there")
        if n > end - pos - 4:
            break
        pos += 4 + n
    return pos


class _Opener:
    """Open wrappers and account for what came out of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.room = limits.max_inflated
        self.messages = limits.max_messages

    def open(self, entry: Entry, depth: int) -> bytes:
        """The set inside a wrapper."""
        if depth >= self.limits.max_depth:
            raise InvalidMessage(f"wrappers are nested deeper than {self.limits.max_depth}; send them flat")
        fair = max(self.limits.free_inflated, self.limits.max_ratio * len(entry.payload))
        inner = decompress(codec_of(entry.attributes), entry.payload, min(self.room, fair))
        self.room -= len(inner)
        return inner

    def count(self, n_messages: int) -> None:
        """Account for messages; too many in one set are refused."""
        self.messages -= n_messages
        if self.messages < 0:
            raise InvalidMessage(f"a set of more than {self.limits.max_messages} messages; send smaller sets")


def decode_set(
    data: bytes,
    offset: int = 0,
    *,
    deep: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    kind: type[MessageAndOffset] = MessageAndOffset,
) -> list[MessageAndOffset]:
    """Read the bytes of a fetch that began at ``offset``; a partial entry at the end is dropped.

    Raises InvalidMessageSize if not even the first entry is whole, InvalidMessage on a wrong CRC, magic or codec.
    With ``deep`` wrappers are opened; otherwise a wrapper comes as it is. The messages are of class ``kind``.
    """
    found: list[MessageAndOffset] = []
    pos, end, last_head = 0, len(data), len(data) - MAGIC_1.size
    # Straight to the tuple: half the cost of the named constructor, once per message consumed.
    new = partial(tuple.__new__, kind)
    previous, runs, add = 0, RunFinder(), found.append
    while pos < end:
        if pos <= last_head:
            n, magic, attributes, crc = _head(data, pos)
            after = pos + 4 + n
            if magic == 1 and n >= 6 and after <= end and not attributes & CODEC_MASK:
                if n == previous and pos >= runs.next_try and (payloads := runs.payloads(data, pos, 4 + n)):
                    after = pos + (4 + n) * len(payloads)
                    offsets = range(offset + pos, offset + after + 1, 4 + n)
                    found += map(new, zip(payloads, offsets, offsets[1:], repeat(1)))
                    pos = after
                    continue
                payload = data[pos + 10 : after]
                if crc32(payload) == crc:
                    add(new((payload, offset + pos, offset + after, 1)))
                    previous, pos = n, after
                    continue
        # Magic 0, wrappers, the partial tail, and everything that is wrong.
        entry = read_entry(data, pos)
        if entry is None:
            break
        after = pos + entry.size
        if deep and entry.attributes & CODEC_MASK:
            inner = _unwrap(entry, _Opener(limits))
            found += [kind(m.payload, offset + pos, offset + pos, m.magic) for m in inner[:-1]]
            found += [kind(m.payload, offset + pos, offset + after, m.magic) for m in inner[-1:]]
        else:
            found.append(kind(entry.payload, offset + pos, offset + after, entry.magic))
        pos = after
    return found


def _unwrap(entry: Entry, opener: _Opener, depth: int = 0) -> list[MessageAndOffset]:
    """The messages in a wrapper, and in the wrappers in it."""
    inner = opener.open(entry, depth)
    found: list[MessageAndOffset] = []
    for message in decode_set(inner, deep=False):
        if message.magic == 1 and inner[message.offset + 5] & CODEC_MASK:
            wrapper = read_entry(inner, message.offset)
            assert wrapper is not None, "decode_set has just read it"
            found += _unwrap(wrapper, opener, depth + 1)
        else:
            found.append(message)
    opener.count(len(found))
    return found


class SetSummary(NamedTuple):
    """What a validated set holds: its valid bytes, messages (inner ones counted), entries, largest outer payload."""

    size: int
    n_messages: int
    n_entries: int
    largest_payload: int


def validate_set(data: bytes, *, deep: bool = True, limits: Limits = DEFAULT_LIMITS) -> SetSummary:
    """Check a set before it is appended: every CRC, wrappers opened, a partial tail left out of ``size`` (spec §2.4).

    Raises InvalidMessageSize or InvalidMessage; nothing of such a set may be written.
    """
    return _validate(data, _Opener(limits), 0, deep)


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


def _validate(data: bytes, opener: _Opener, depth: int, deep: bool = True) -> SetSummary:
    n_messages = n_entries = largest = 0
    pos, end, last_head = 0, len(data), len(data) - MAGIC_1.size
    previous, runs = 0, RunFinder()
    while pos < end:
        if pos <= last_head:
            n, magic, attributes, crc = _head(data, pos)
            after = pos + 4 + n
            if magic == 1 and n >= 6 and after <= end and not attributes & CODEC_MASK:
                if n == previous and pos >= runs.next_try and (payloads := runs.payloads(data, pos, 4 + n)):
                    n_entries += len(payloads)
                    pos += (4 + n) * len(payloads)
                    continue
                if crc32(data[pos + 10 : after]) == crc:
                    if n - 6 > largest:
                        largest = n - 6
                    n_entries += 1
                    previous, pos = n, after
                    continue
        entry = read_entry(data, pos)
        if entry is None:
            break
        if deep and entry.attributes & CODEC_MASK:
            n_messages += _validate(opener.open(entry, depth), opener, depth + 1).n_messages - 1
        largest = max(largest, len(entry.payload))
        n_entries += 1
        pos += entry.size
    opener.count(n_entries)
    return SetSummary(pos, n_messages + n_entries, n_entries, largest)
