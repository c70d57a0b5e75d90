"""A chunk of a partition's bytes as Arrow columns: offsets, place inside a wrapper, next offset, payload.

Paper: §3.1 (the next offset is this one plus the message's length), §3.3 (a CRC per message).

The walk over the lengths is the only loop per entry; heads, payloads and CRCs are handled as columns, the CRC once for
the whole chunk (``checksum``). Only a chunk in which something is wrong is looked at entry by entry: damage costs one
dead row, with its bytes and the reason, and the walk goes on where two entries in a row are good again.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from isal.isal_zlib import crc32

from hadoop_etl.checksum import combined
from hadoop_etl.damage import MAX_ENTRY, damage_at, good_entry_end, is_whole
from hadoop_etl.wrappers import Opening
from kafka2011.errors import WireError
from kafka2011.wire.message import CODEC_MASK

_LONGEST_RUN = 512
_length = struct.Struct(">i").unpack_from
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DeadRow:
    """Bytes that are no readable message, with the reason."""

    offset: int
    index: int
    next_offset: int
    data: bytes
    reason: str


@dataclass(slots=True)
class Rows:
    """Messages as columns; ``index`` is the place inside a wrapper, 0 outside. All columns have one length."""

    offset: Ints
    index: Ints
    next_offset: Ints
    payload: pa.Array
    own: pa.Table | None = None
    """Of a modern topic: ``MODERN_COLUMNS``."""

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(slots=True)
class Entries:
    """What a chunk held. ``size`` bytes are accounted for; the caller asks again from there."""

    size: int
    rows: list[Rows] = field(default_factory=list)
    dead: list[DeadRow] = field(default_factory=list)
    is_cut: bool = False
    """Ended early because wrappers held much; what follows is good as far as anyone looked."""


def read_entries(data: bytes, offset: int, *, at_end: bool, sealed: Collection[int] = ()) -> Entries:
    """Read the entries of ``data``, which begins at ``offset`` of the partition.

    An entry that is not wholly there ends the chunk, unless ``at_end`` says that no more bytes belong to the range:
    then it is damage. ``size`` 0 means: not even one entry, bring more bytes. Wrappers at the offsets ``sealed`` are
    not opened: each is one dead row.
    """
    return _read(data, offset, at_end, Opening(sealed))


def _read(data: bytes, offset: int, at_end: bool, opening: Opening) -> Entries:
    bounds = _walk(data)
    entries = Entries(size=int(bounds[-1]))
    if not _whole(data, bounds, entries, offset, opening) or (
        not entries.is_cut and _is_damage(data, entries.size, at_end)
    ):
        entries = Entries(size=0)
        _salvage(data, offset, at_end, entries, opening)
    return entries


def _walk(data: bytes) -> Ints:
    """The positions of the entries, and the end of the last whole one. Runs of entries of one size take one step."""
    positions: list[int] = []
    position, last, before = 0, len(data) - 9, 0
    while position <= last:
        (size,) = _length(data, position)
        if size < 5:
            break
        step = 4 + size
        ahead = position + 8 * step
        if size == before and data[ahead : ahead + 4] == data[position : position + 4]:
            stop = position + run_length(data, position, step, 4, _LONGEST_RUN) * step
            positions += range(position, stop, step)
            position, before = stop, 0
        else:
            positions.append(position)
            position, before = position + step, size
    if position <= len(data):
        positions.append(position)
    return np.array(positions, dtype=np.int64)


def run_length(data: bytes, pos: int, size: int, width: int, most: int) -> int:
    """Count the rows of ``size`` bytes from ``pos`` on whose first ``width`` bytes are equal; at most ``most``."""
    count = min((len(data) - pos) // size, most)
    for i in range(pos, pos + width):
        column = data[i : pos + count * size : size]
        if column.count(column[0]) != count:
            count -= len(column.lstrip(column[:1]))
    return count


def _is_damage(data: bytes, position: int, at_end: bool) -> bool:
    """Tell whether what stands at ``position`` cannot be the beginning of an entry that goes on after the chunk."""
    left = len(data) - position
    if not left:
        return False
    if at_end:
        return True
    if left < 4:
        return False
    (size,) = _length(data, position)
    return not (5 <= size <= MAX_ENTRY and size > left - 4)


def _whole(data: bytes, bounds: Ints, entries: Entries, offset: int, opening: Opening) -> bool:
    """Read entries that are all well; False if any is not."""
    count = len(bounds) - 1
    if not count:
        return True
    raw = np.frombuffer(data, dtype=np.uint8)
    starts, ends = bounds[:-1], bounds[1:]
    magic = raw[starts + 4]
    if magic.max() > 1 or (ends - starts < 9 + magic).any():
        return False
    heads = 9 + magic.astype(np.int64)
    crcs = (raw[(starts + heads)[:, None] + np.arange(-4, 0)] @ _BIG_ENDIAN).astype(np.uint32)
    payload = _payloads(data, bounds, magic)
    sizes = ends - starts - heads
    after = int(sizes.sum()) - np.cumsum(sizes)
    if combined(crcs, after) != crc32(_content(payload)):
        return False
    codec = np.where(magic == 1, raw[starts + 5] & CODEC_MASK, 0)
    plain = codec == 0
    everything = bool(plain.all())
    for i in () if everything else np.flatnonzero(~plain):
        if opening.is_full:
            entries.size, entries.is_cut = int(starts[i]), True
            plain[i:] = False
            break
        place = offset + int(starts[i])
        _open(payload[int(i)].as_py(), int(codec[i]), place, offset + int(ends[i]), entries, opening)
    kept = payload if everything else payload.filter(pa.array(plain))
    entries.rows.append(Rows(offset + starts[plain], np.zeros(len(kept), dtype=np.int64), offset + ends[plain], kept))
    return True


_BIG_ENDIAN = np.array([1 << 24, 1 << 16, 1 << 8, 1], dtype=np.int64)


def _payloads(data: bytes, bounds: Ints, magic: npt.NDArray[np.uint8]) -> pa.Array:
    """The payload column: entries as a zero-copy binary array, their heads cut off."""
    entries = pa.Array.from_buffers(
        pa.binary(), len(magic), [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(data)]
    )
    # Without an explicit stop pyarrow 26 refuses values of unequal length.
    if magic.all():
        return pc.binary_slice(entries, 10, stop=len(data))
    old = pc.binary_slice(entries, 9, stop=len(data))
    if not magic.any():
        return old
    return pc.if_else(pa.array(magic == 1), pc.binary_slice(entries, 10, stop=len(data)), old)


def _content(payload: pa.Array) -> memoryview | bytes:
    """The payloads laid end to end, without a copy."""
    buffer = payload.buffers()[2]
    if buffer is None:
        return b""
    bounds = np.frombuffer(payload.buffers()[1], dtype=np.int32)
    first, last = int(bounds[payload.offset]), int(bounds[payload.offset + len(payload)])
    return memoryview(buffer)[first:last]


# -- wrappers -------------------------------------------------------------------------------------------------------


def _open(payload: bytes, codec: int, offset: int, next_offset: int, entries: Entries, opening: Opening) -> None:
    """Add the messages inside a wrapper; one that cannot be opened, or holds none, is a dead row."""
    opening.begin()
    try:
        if offset in opening.sealed and opening.depth == 0:
            raise WireError("a worker died of this wrapper; it is kept closed")
        pieces = _inside(payload, codec, opening)
        opening.count(sum(1 if isinstance(piece, DeadRow) else len(piece) for piece in pieces))
    except WireError as error:
        entries.dead.append(DeadRow(offset, 0, next_offset, payload, str(error)))
        return
    index = 0
    for piece in pieces:
        if isinstance(piece, DeadRow):
            entries.dead.append(DeadRow(offset, index, next_offset, piece.data, piece.reason))
            index += 1
        else:
            count = len(piece)
            places = np.arange(index, index + count, dtype=np.int64)
            entries.rows.append(Rows(np.full(count, offset), places, np.full(count, next_offset), piece))
            index += count
    if not index:
        entries.dead.append(DeadRow(offset, 0, next_offset, payload, "an empty wrapper: there is no message inside"))


def _inside(payload: bytes, codec: int, opening: Opening) -> list[pa.Array | DeadRow]:
    """The messages of a wrapper in order: arrays of payloads and dead rows between them."""
    data = opening.open(payload, codec)
    opening.depth += 1
    try:
        inner = _read(data, 0, True, opening)
    finally:
        opening.depth -= 1
    pieces: list[tuple[int, int, pa.Array | DeadRow]] = []
    for rows in inner.rows:
        pieces.append((int(rows.offset[0]) if len(rows) else 0, int(rows.index[0]) if len(rows) else 0, rows.payload))
    for dead in inner.dead:
        pieces.append((dead.offset, dead.index, dead))
    pieces.sort(key=lambda piece: piece[:2])
    return [piece for _, _, piece in pieces]


# -- damage ---------------------------------------------------------------------------------------------------------


def _salvage(data: bytes, offset: int, at_end: bool, entries: Entries, opening: Opening) -> None:
    """Go entry by entry: runs of good ones as columns, each damage as one dead row."""
    position, end = 0, len(data)
    while position < end:
        stop = position
        while (following := good_entry_end(data, stop)) is not None:
            stop = following
        if stop > position:
            bounds = _walk(data[position:stop])
            part = Entries(size=0)
            assert _whole(data[position:stop], bounds, part, offset + position, opening)
            entries.rows += part.rows
            entries.dead += part.dead
            if part.is_cut:
                position += part.size
                break
            position = stop
            continue
        if not at_end and not _is_damage(data, position, at_end) and not is_whole(data, position):
            break
        reason, stop = damage_at(data, position)
        if stop == end and not at_end and end - position < MAX_ENTRY and not is_whole(data, position):
            break  # the next good entry may lie beyond this chunk
        entries.dead.append(
            DeadRow(offset + position, 0, offset + stop, data[position:stop], f"{reason} ({stop - position} bytes)")
        )
        position = stop
    entries.size = position
